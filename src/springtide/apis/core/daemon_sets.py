"""DaemonSets: the record of what each runs on every node that fits.

A node that is planned must have room for its pods as well. Those of a DaemonSet tolerate more than their template says,
and request what the limit ranges of their namespace add: see `springtide.apis.core.policies.class_with_defaults`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from springtide.apis.core.interning import NO_LABELS, intern_labels
from springtide.apis.core.pod_record import (
    PodSchedulingClass,
    PodSpecView,
    TaintToleration,
    class_with_tolerations,
)
from springtide.apis.meta.types import DecodedPart

_ALWAYS_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def taints_tolerated_by_daemons(*, host_network: bool) -> tuple[tuple[str, str], ...]:
    """Return keys and effects of the taints that the DaemonSet controller makes its pods tolerate."""
    return (*_ALWAYS_TOLERATED, _TOLERATED_ON_HOST_NETWORK) if host_network else _ALWAYS_TOLERATED


class DaemonSetRecord(msgspec.Struct, frozen=True, gc=False):
    """A DaemonSet."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    """By which its pods name their owner."""
    pod_class: PodSchedulingClass = PodSchedulingClass()
    """The class of its pods, with the tolerations that its controller adds, without defaults of its namespace."""
    labels: Mapping[str, str] = NO_LABELS
    """Those of its pods."""
    deleting: bool = False


class _Metadata(DecodedPart):
    name: str
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    deletion_timestamp: str | None = None


class _TemplateMetadata(DecodedPart):
    labels: dict[str, str] | None = None


class _Template(DecodedPart):
    spec: PodSpecView
    metadata: _TemplateMetadata | None = None


class _Spec(DecodedPart):
    template: _Template


class DaemonSetView(DecodedPart):
    """A DaemonSet as the API server sends it, as far as records are made of it."""

    metadata: _Metadata
    spec: _Spec


def daemon_set_record(daemon_set: DaemonSetView) -> DaemonSetRecord:
    """Make the record of a DaemonSet."""
    metadata, template = daemon_set.metadata, daemon_set.spec.template
    tolerated = taints_tolerated_by_daemons(host_network=bool(template.spec.host_network))
    return DaemonSetRecord(
        namespace=metadata.namespace or "",
        name=metadata.name,
        uid=metadata.uid or "",
        pod_class=class_with_tolerations(
            template.spec, [TaintToleration(key=key, operator="Exists", effect=effect) for key, effect in tolerated]
        ),
        labels=intern_labels(template.metadata.labels if template.metadata is not None else None),
        deleting=metadata.deletion_timestamp is not None,
    )
