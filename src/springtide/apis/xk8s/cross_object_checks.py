"""Cross-object checks of this group: buffers with the templates and workloads that define their chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from springtide.apis.core.pods import PodSpec, PodTemplate
from springtide.apis.core.resources import amounts, is_known, pod_requests
from springtide.apis.core.workloads import Deployment, Job, ReplicaSet, ReplicationController, StatefulSet
from springtide.apis.kinds import View
from springtide.apis.meta.types import LocalReference
from springtide.apis.objects import LoadedObject
from springtide.apis.problems import Problem, error, warning
from springtide.apis.xk8s.buffers import (
    BufferSizeError,
    CapacityBuffer,
    CapacityBufferSpec,
    ScalableReference,
    chunk_count,
)


@dataclass(frozen=True, slots=True)
class ChunkTemplate:
    """The pod template of a chunk, and the replicas of its workload, if it is from one."""

    pod: PodSpec
    replicas: int | None = None


def buffer_problems(objects: Sequence[LoadedObject]) -> Iterator[tuple[int, Problem]]:
    """Find buffers whose limits do not fit their chunks; each problem with the position of its buffer."""
    shapes = {
        (loaded.kind.kind, loaded.namespace, loaded.name): shape
        for loaded in objects
        if loaded.view is not None and (shape := _chunk_template_of(loaded.view)) is not None
    }
    for position, loaded in enumerate(objects):
        if not isinstance(loaded.view, CapacityBuffer):
            continue
        spec = loaded.view.spec
        reference = _reference(spec)
        shape = shapes.get((reference[0], loaded.namespace, reference[1])) if reference is not None else None
        if shape is not None:
            for problem in size_problems(spec, shape):
                yield position, problem.under("spec")


def size_problems(spec: CapacityBufferSpec, shape: ChunkTemplate) -> Iterator[Problem]:
    """Find limits of resources that chunks do not request, and limits that are too small for any chunk."""
    requests, limits = pod_requests(shape.pod), amounts(spec.limits)
    if not any(amount.sign > 0 for amount in requests.values()):
        yield warning(
            (), "the pods request nothing, so the chunks reserve no capacity", "add `resources.requests` to them"
        )
    if not limits or not all(is_known(name) for name in limits):
        return
    try:
        count = chunk_count(
            replicas=spec.replicas,
            percentage=spec.percentage,
            target_replicas=shape.replicas,
            limits=limits,
            requests=requests,
        )
    except BufferSizeError as failure:
        asked = ", ".join(requests) or "nothing"
        yield error(("limits",), str(failure), f"limit what the pods request, which is {asked}")
        return
    for name in limits:
        if name not in requests:
            yield warning(("limits", name), f"the pods do not request `{name}`: this limit never applies")
    if count == 0 and chunk_count(limits=limits, requests=requests) == 0:
        yield warning(("limits",), "the limits are too small for a single chunk")


def _reference(spec: CapacityBufferSpec) -> tuple[str, str] | None:
    """Return kind and name of the object with the pod template, if there is exactly one."""
    match spec.pod_template_ref, spec.scalable_ref:
        case LocalReference() as template, None:
            return "PodTemplate", template.name
        case None, ScalableReference() as workload:
            return workload.kind, workload.name
    return None


def _chunk_template_of(view: View) -> ChunkTemplate | None:
    match view:
        case PodTemplate():
            return ChunkTemplate(view.template.spec)
        case Deployment() | ReplicaSet() | StatefulSet():
            return ChunkTemplate(view.spec.template.spec, view.spec.replicas)
        case ReplicationController():
            return (
                ChunkTemplate(view.spec.template.spec, view.spec.replicas) if view.spec.template is not None else None
            )
        case Job():
            return ChunkTemplate(view.spec.template.spec, view.spec.parallelism)
    return None
