"""The packer's answers about clusters of raw objects, to compare them with the oracle's and with kube-scheduler's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

from springtide.apis.core.nodes import NamespaceView, NodeView, namespace_record, node_record
from springtide.apis.core.pod_record import PodRecord, PodView, pod_record
from springtide.apis.core.policies import PriorityClassView, class_with_priority, priority_class_record
from springtide.apis.core.volumes import (
    CSINodeView,
    StorageClassView,
    VolumeClaimView,
    VolumeView,
    csi_node_record,
    storage_class_record,
    volume_claim_record,
    volume_record,
)
from springtide.packing.reasons import refusals
from springtide.packing.snapshot import PodKey, Snapshot

Json: TypeAlias = dict[str, Any]


def snapshot_of(cluster: Json) -> Snapshot:
    """The snapshot of a cluster as `clusters.random_cluster` gives it, by the records of all objects."""
    snapshot = Snapshot()
    put_all(snapshot, deltas_of(cluster))
    return snapshot


def deltas_of(cluster: Json) -> list[tuple[str, Json]]:
    """Kinds of objects and the objects, in the order in which the cluster lists them."""
    kinds = (
        "namespaces",
        "storageClasses",
        "csiNodes",
        "persistentVolumes",
        "persistentVolumeClaims",
        "nodes",
        "pods",
        "pending",
    )
    return [(kind, thing) for kind in kinds for thing in cluster.get(kind) or ()]


def put_all(snapshot: Snapshot, deltas: Iterable[tuple[str, Json]]) -> None:
    """Apply deltas in their order."""
    for kind, thing in deltas:
        put(snapshot, kind, thing)


def put(snapshot: Snapshot, kind: str, thing: Json) -> None:
    """Add or change one object."""
    match kind:
        case "namespaces":
            namespace = namespace_record(msgspec.convert(thing, NamespaceView))
            snapshot.put_namespace(namespace.name, namespace.labels)
        case "nodes":
            snapshot.put_node(node_record(msgspec.convert(thing, NodeView)))
        case "pods" | "pending":
            snapshot.put_pod(key_of(thing), record_of(thing))
        case "persistentVolumeClaims":
            snapshot.put_volume_claim(volume_claim_record(msgspec.convert(thing, VolumeClaimView)))
        case "persistentVolumes":
            snapshot.put_volume(volume_record(msgspec.convert(thing, VolumeView)))
        case "storageClasses":
            snapshot.put_storage_class(storage_class_record(msgspec.convert(thing, StorageClassView)))
        case "csiNodes":
            snapshot.put_csi_node(csi_node_record(msgspec.convert(thing, CSINodeView)))
        case _:
            raise ValueError(kind)


def remove(snapshot: Snapshot, kind: str, thing: Json) -> None:
    """Remove one object."""
    name = thing["metadata"]["name"]
    match kind:
        case "namespaces":
            snapshot.remove_namespace(name)
        case "nodes":
            snapshot.remove_node(name)
        case "pods" | "pending":
            snapshot.remove_pod(key_of(thing))
        case "persistentVolumeClaims":
            snapshot.remove_volume_claim(*key_of(thing))
        case "persistentVolumes":
            snapshot.remove_volume(name)
        case "storageClasses":
            snapshot.remove_storage_class(name)
        case "csiNodes":
            snapshot.remove_csi_node(name)
        case _:
            raise ValueError(kind)


def key_of(thing: Json) -> PodKey:
    """Namespace and name of an object."""
    return thing["metadata"].get("namespace") or "default", thing["metadata"]["name"]


def record_of(pod: Json) -> PodRecord:
    """The record of a pod."""
    return pod_record(msgspec.convert(pod, PodView))


def with_priority(pod: Json, priority_classes: Iterable[Json]) -> PodRecord:
    """The record of a pod whose manifest only names its priority class."""
    records = [priority_class_record(msgspec.convert(one, PriorityClassView)) for one in priority_classes]
    record = record_of(pod)
    known = {one.name: one for one in records}
    return msgspec.structs.replace(record, pod_class=class_with_priority(record.pod_class, known))


def answers_of_packer(cluster: Json) -> dict[tuple[str, str], set[str]]:
    """For each pending pod (`namespace/name`) and node, the names of the predicates that refuse the pod."""
    snapshot = snapshot_of(cluster)
    pending = [
        key_of(pod)
        for pod in [*(cluster.get("pods") or ()), *(cluster.get("pending") or ())]
        if not pod["spec"].get("nodeName") and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    ]
    return answers_of_snapshot(snapshot, pending)


def answers_of_snapshot(
    snapshot: Snapshot, pending: Iterable[PodKey], *, without: Iterable[str] = ()
) -> dict[tuple[str, str], set[str]]:
    """The same for pods of a snapshot, or of a fork without some nodes."""
    answers = {}
    gone = tuple(without)
    for key in pending:
        space = snapshot.fork(asking=key, without=gone)
        found = refusals(space, snapshot.shape_at(key))
        for position, name in enumerate(space.names()):
            answers["/".join(key), name] = {each for each, mask in found.items() if mask[position]}
    return answers
