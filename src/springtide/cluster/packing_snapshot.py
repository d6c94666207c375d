"""The packer's snapshot of the cluster as shared state: fed by the deltas of the caches, read by planning controllers.

    caches ──deltas──► PackingSnapshot.apply ──► Snapshot ──run(), held()──► a plan, computed beside the event loop
                            │                                   │
                            └──► deltas that come meanwhile ────┴──► applied when the plan is complete

A plan forks the snapshot first, but a fork is no copy: a `Space` and `Offerings` read nodes, shapes and volumes of
their snapshot lazily, and asking for shapes adds to it. Therefore at most one computation uses the snapshot at a time,
and no delta is applied while it does. `run` is the simplest way to observe this:

    state = self.context.state(PackingSnapshot)
    plan = await state.run(self.context.compute, compute_plan, pools, cost=0.5)  # compute_plan(snapshot, pools)

The function must return all that is needed later; shapes and spaces are invalid when `run` returns.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, TypeVarTuple

import msgspec

from springtide.apis.core.daemon_sets import DaemonSetRecord, DaemonSetView, daemon_set_record
from springtide.apis.core.nodes import NamespaceView, namespace_record
from springtide.apis.core.policies import LimitRangeRecord, LimitRangeView, class_with_defaults, limit_range_record
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
from springtide.cluster.compute import Compute
from springtide.cluster.controller import Cached, Permission
from springtide.cluster.pods_and_nodes import ALL_NODES, ALL_PODS
from springtide.cluster.resources import Key, Resource, Selection
from springtide.cluster.state import SharedState
from springtide.cluster.store import Delta
from springtide.packing.node_claims import NodeClaimView, node_claim_record
from springtide.packing.snapshot import Snapshot

Args = TypeVarTuple("Args")
RecordT = TypeVar("RecordT")
ResultT = TypeVar("ResultT")


def _all(resource: Resource, view: type[Any], record: Callable[[Any], Any]) -> Cached:
    return Cached(Selection(resource, view=view), record=record)


ALL_NAMESPACES: Final = _all(
    Resource("", "v1", "namespaces", "Namespace", namespaced=False), NamespaceView, namespace_record
)
ALL_CSI_NODES: Final = _all(
    Resource("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False), CSINodeView, csi_node_record
)
ALL_STORAGE_CLASSES: Final = _all(
    Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False),
    StorageClassView,
    storage_class_record,
)
ALL_VOLUMES: Final = _all(
    Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False), VolumeView, volume_record
)
ALL_VOLUME_CLAIMS: Final = _all(
    Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"), VolumeClaimView, volume_claim_record
)
ALL_LIMIT_RANGES: Final = _all(Resource("", "v1", "limitranges", "LimitRange"), LimitRangeView, limit_range_record)
ALL_DAEMON_SETS: Final = _all(Resource("apps", "v1", "daemonsets", "DaemonSet"), DaemonSetView, daemon_set_record)
ALL_NODE_CLAIMS: Final = _all(
    Resource("karpenter.sh", "v1", "nodeclaims", "NodeClaim", namespaced=False), NodeClaimView, node_claim_record
)

_REQUIRED: Final = (ALL_NAMESPACES, ALL_NODES, ALL_PODS)
_OPTIONAL: Final = (
    ALL_CSI_NODES,
    ALL_STORAGE_CLASSES,
    ALL_VOLUMES,
    ALL_VOLUME_CLAIMS,
    ALL_LIMIT_RANGES,  # before the DaemonSets, which get their defaults from them
    ALL_DAEMON_SETS,
    ALL_NODE_CLAIMS,
)

READ_PERMISSIONS: Final = tuple(
    Permission(cached.selection.resource, ("get", "list", "watch")) for cached in (*_REQUIRED, *_OPTIONAL)
)
"""What a controller needs that reads the snapshot."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Contents:
    """What is known in one term."""

    snapshot: Snapshot = field(default_factory=Snapshot)
    in_use: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the computation that uses the snapshot."""
    waiting: list[tuple[Cached, Delta[Any]]] = field(default_factory=list)
    """Deltas that came meanwhile."""
    daemon_sets: dict[str, dict[Key, DaemonSetRecord]] = field(default_factory=dict)
    """By namespace, without the defaults of its limit ranges."""
    limit_ranges: dict[str, dict[Key, LimitRangeRecord]] = field(default_factory=dict)

    def apply(self, cached: Cached, delta: Delta[Any]) -> None:
        """Apply a delta to the snapshot."""
        key, _, new = delta
        if new is None:
            self._remove(cached, key)
        else:
            self._put(cached, key, new)

    def _put(self, cached: Cached, key: Key, new: Any) -> None:
        snapshot = self.snapshot
        if cached is ALL_PODS:
            snapshot.put_pod(key, new)
        elif cached is ALL_NODES:
            snapshot.put_node(new)
        elif cached is ALL_NAMESPACES:
            snapshot.put_namespace(new.name, new.labels)
        elif cached is ALL_CSI_NODES:
            snapshot.put_csi_node(new)
        elif cached is ALL_STORAGE_CLASSES:
            snapshot.put_storage_class(new)
        elif cached is ALL_VOLUMES:
            snapshot.put_volume(new)
        elif cached is ALL_VOLUME_CLAIMS:
            snapshot.put_volume_claim(new)
        elif cached is ALL_LIMIT_RANGES:
            self.limit_ranges.setdefault(key.namespace, {})[key] = new
            self._put_daemon_sets(key.namespace)
        elif cached is ALL_DAEMON_SETS:
            if new.deleting:
                self._remove(cached, key)
            else:
                self.daemon_sets.setdefault(key.namespace, {})[key] = new
                self._put_daemon_set(key, new)
        elif cached is ALL_NODE_CLAIMS:
            if new.deleting:  # it promises nothing any more; a node that it became counts as it is
                self._remove(cached, key)
            else:
                snapshot.put_claim(new.node)

    def _remove(self, cached: Cached, key: Key) -> None:
        snapshot = self.snapshot
        if cached is ALL_PODS:
            snapshot.remove_pod(key)
        elif cached is ALL_NODES:
            snapshot.remove_node(key.name)
        elif cached is ALL_NAMESPACES:
            snapshot.remove_namespace(key.name)
        elif cached is ALL_CSI_NODES:
            snapshot.remove_csi_node(key.name)
        elif cached is ALL_STORAGE_CLASSES:
            snapshot.remove_storage_class(key.name)
        elif cached is ALL_VOLUMES:
            snapshot.remove_volume(key.name)
        elif cached is ALL_VOLUME_CLAIMS:
            snapshot.remove_volume_claim(key.namespace, key.name)
        elif cached is ALL_LIMIT_RANGES:
            _discard(self.limit_ranges, key)
            self._put_daemon_sets(key.namespace)
        elif cached is ALL_DAEMON_SETS:
            _discard(self.daemon_sets, key)
            snapshot.remove_daemon_set(key)
        elif cached is ALL_NODE_CLAIMS:
            snapshot.remove_claim(key.name)

    def _put_daemon_sets(self, namespace: str) -> None:
        for key, record in self.daemon_sets.get(namespace, {}).items():
            self._put_daemon_set(key, record)

    def _put_daemon_set(self, key: Key, record: DaemonSetRecord) -> None:
        ranges = self.limit_ranges.get(key.namespace, {}).values()
        pod_class = class_with_defaults(record.pod_class, ranges)
        self.snapshot.put_daemon_set(key, msgspec.structs.replace(record, pod_class=pod_class))


def _discard(of_namespaces: dict[str, dict[Key, RecordT]], key: Key) -> None:
    records = of_namespaces.get(key.namespace, {})
    records.pop(key, None)
    if not records:
        of_namespaces.pop(key.namespace, None)


class PackingSnapshot(SharedState[Delta[Any]]):
    """The cluster as the packer sees it; a change of it is a delta that has been applied."""

    sources = _REQUIRED
    optional_sources = _OPTIONAL

    def __init__(self) -> None:
        self._contents = _Contents()

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot of this term, for tests and metrics; to ask it anything, use `held` or `run`."""
        return self._contents.snapshot

    @asynccontextmanager
    async def held(self) -> AsyncGenerator[Snapshot, None]:
        """Give the snapshot, alone and unchanged until the end of the block, where the deltas that came are applied.

        Other blocks and calls of `run` wait, so a block must contain none. It must not end while a thread still uses
        the snapshot, as it would when the reconcile is cancelled: that is what `run` is for.
        If the leadership term ends meanwhile, the snapshot stays as it is, and the next term begins with another one.
        """
        contents = self._contents
        async with contents.in_use:
            try:
                yield contents.snapshot
            finally:
                self._apply_waiting(contents)

    async def run(
        self, compute: Compute, function: Callable[[Snapshot, *Args], ResultT], *args: *Args, cost: float
    ) -> ResultT:
        """Call a function with the snapshot and arguments beside the event loop, and return or raise what it does.

        It runs alone: deltas and other computations wait until it is complete, also if the caller has been cancelled,
        since a thread cannot be. `cost` is its modelled time in seconds, which only a simulation uses.
        """
        contents = self._contents
        await contents.in_use.acquire()
        call = asyncio.ensure_future(compute.run(function, contents.snapshot, *args, cost=cost))

        def ended(call: asyncio.Future[ResultT]) -> None:
            self._apply_waiting(contents)
            contents.in_use.release()
            if not call.cancelled():
                call.exception()  # the caller may have been cancelled

        call.add_done_callback(ended)
        await asyncio.wait((call,))
        return call.result()

    def apply(self, cached: Cached, delta: Delta[Any]) -> None:
        """Apply a delta, now or when the computation that uses the snapshot is complete."""
        contents = self._contents
        if contents.in_use.locked():
            contents.waiting.append((cached, delta))
        else:
            contents.apply(cached, delta)
            self.publish(delta)

    def reset(self) -> None:
        """Begin with an empty snapshot; a computation that is not complete keeps the former one."""
        self._contents = _Contents()

    def _apply_waiting(self, contents: _Contents) -> None:
        waiting, contents.waiting = contents.waiting, []
        if contents is not self._contents:
            return  # the term is over
        for cached, delta in waiting:
            try:
                contents.apply(cached, delta)
            except Exception:
                log.exception("the change of %s cannot be applied; others go on", delta.key)
            else:
                self.publish(delta)
