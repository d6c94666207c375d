"""Builders of objects as stores hold them, for decisions that are tested without a cluster."""

from __future__ import annotations

from typing import Any

import msgspec

from springtide.apis.core.nodes import NodeRecord, NodeView, node_record
from springtide.apis.forecast import format_instant
from springtide.cluster.resources import Object

NOW = 1_800_000_000


def live_pod(
    name: str = "p",
    *,
    age: int = 1000,
    ready_for: int | None = 900,
    phase: str = "Running",
    node: str | None = "a",
    going: bool = False,
    restarts: int = 0,
    uid: str = "",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    metadata: Object = {
        "name": name,
        "namespace": "default",
        "uid": uid or name,
        "labels": labels or {},
        "annotations": annotations or {},
        "creationTimestamp": format_instant(NOW - age),
    }
    if going:
        metadata["deletionTimestamp"] = format_instant(NOW + 30)
    conditions = []
    if ready_for is not None and phase == "Running":
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": format_instant(NOW - ready_for)}]
    place = {"nodeName": node} if node else {}
    return {
        "metadata": metadata,
        "spec": {"containers": [{"name": "main"}], **place, **spec},
        "status": {"phase": phase, "conditions": conditions, "containerStatuses": [{"restartCount": restarts}]},
    }


def replica_set(
    name: str, size: int, available: int | None = None, *, age: int = 100, desired: int | None = None, most: int = 0
) -> Object:
    annotations = {}
    if desired is not None:
        annotations = {
            "deployment.kubernetes.io/desired-replicas": str(desired),
            "deployment.kubernetes.io/max-replicas": str(most or desired),
        }
    count = size if available is None else available
    return {
        "metadata": {"name": name, "creationTimestamp": format_instant(NOW - age), "annotations": annotations},
        "spec": {"replicas": size},
        "status": {"replicas": size, "availableReplicas": count, "readyReplicas": count},
    }


def deployment(replicas: int, surge: int | str = "25%", unavailable: int | str = "25%", **spec: Any) -> Object:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    return {
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {"replicas": replicas, "strategy": strategy, **spec},
    }


def record_of(node: Object) -> NodeRecord:
    """Make the record that controllers have of a node."""
    return node_record(msgspec.convert({**node, "metadata": {"name": "a", **node.get("metadata", {})}}, NodeView))
