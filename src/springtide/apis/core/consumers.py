"""Pods that consume a ProvisioningRequest: the annotations that say so, and how they go wrong."""

from __future__ import annotations

from collections.abc import Iterator

from springtide.apis.meta.types import ObjectMeta
from springtide.apis.problems import Problem, warning

CONSUME_ANNOTATION = "autoscaling.x-k8s.io/consume-provisioning-request"
CLASS_ANNOTATION = "autoscaling.x-k8s.io/provisioning-class-name"
OLD_CONSUME_ANNOTATION = "cluster-autoscaler.kubernetes.io/consume-provisioning-request"
OLD_CLASS_ANNOTATION = "cluster-autoscaler.kubernetes.io/provisioning-class-name"


def consumer_problems(metadata: ObjectMeta | None) -> Iterator[Problem]:
    """Find annotations of a pod that name a ProvisioningRequest without its class, or in the old spelling."""
    annotations = (metadata.annotations if metadata is not None else None) or {}
    for old, new in ((OLD_CONSUME_ANNOTATION, CONSUME_ANNOTATION), (OLD_CLASS_ANNOTATION, CLASS_ANNOTATION)):
        if old in annotations:
            yield warning(("annotations", old), f"`{old}` is the old name of an annotation", f"write `{new}`")
    consumes = CONSUME_ANNOTATION in annotations or OLD_CONSUME_ANNOTATION in annotations
    classed = CLASS_ANNOTATION in annotations or OLD_CLASS_ANNOTATION in annotations
    if consumes != classed:
        given, missing = (CONSUME_ANNOTATION, CLASS_ANNOTATION) if consumes else (CLASS_ANNOTATION, CONSUME_ANNOTATION)
        yield warning(("annotations",), f"`{given}` is set without `{missing}`", f"add `{missing}`")


def misplaced_consumer_problems(metadata: ObjectMeta) -> Iterator[Problem]:
    """Find a workload that names a ProvisioningRequest on itself, where only its pods' annotations count."""
    for name in (CONSUME_ANNOTATION, CLASS_ANNOTATION, OLD_CONSUME_ANNOTATION, OLD_CLASS_ANNOTATION):
        if name in (metadata.annotations or {}):
            yield warning(
                ("metadata", "annotations", name),
                f"`{name}` counts on pods only",
                "move it to `spec.template.metadata.annotations`",
            )
