"""The cache of the scheduler: a snapshot of the packer, pending pods, unschedulable pods and nominations.

It is updated by deltas of the informer caches, and rebuilt from them after a restart. While pods are placed one after
the other, a board keeps the free room and the scores of the snapshot's nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from springtide.apis.core.interning import intern_labels
from springtide.apis.core.nodes import NamespaceRecord, NodeRecord
from springtide.apis.core.pod_record import PodRecord, PodView, pod_class_of, pod_record
from springtide.apis.core.volumes import (
    WAIT_FOR_FIRST_CONSUMER,
    CSINodeRecord,
    StorageClassRecord,
    VolumeClaimRecord,
    VolumeRecord,
)
from springtide.cluster.resources import Key, Object, key_of
from springtide.cluster.store import Delta
from springtide.packing.columns import Amounts
from springtide.packing.scoring import ScoreBoard
from springtide.packing.shapes import Shape
from springtide.packing.snapshot import Snapshot
from springtide.simulator.behaviours.pod_status import created_at, is_finished, is_terminating
from springtide.simulator.behaviours.resources import effective_taints


class UnschedulablePod(NamedTuple):
    """An unschedulable pod, and what all pods of its group have in common."""

    group: object
    pod: Object
    record: PodRecord
    """Kept as long as the group, which is identified by parts of it."""


class UnschedulablePods:
    """Unschedulable pods in groups of one shape: an event that does not help one pod helps none of its group."""

    def __init__(self) -> None:
        self._pods: dict[Key, UnschedulablePod] = {}
        self._groups: dict[object, dict[Key, None]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._pods

    def __len__(self) -> int:
        return len(self._pods)

    def keys(self) -> list[Key]:
        """List the unschedulable pods."""
        return list(self._pods)

    def put(self, pod: Object, record: PodRecord) -> None:
        """Add a pod."""
        key = key_of(pod)
        self.drop(key)
        details = record.details
        own = key if details.claims or details.disks or details.resized is not None else None
        group = (key.namespace, id(record.pod_class), id(record.labels), own)
        self._pods[key] = UnschedulablePod(group, pod, record)
        self._groups.setdefault(group, {})[key] = None

    def renew(self, key: Key, pod: Object) -> None:
        """Replace a pod that changed but kept its shape."""
        self._pods[key] = self._pods[key]._replace(pod=pod)

    def drop(self, key: Key) -> None:
        """Remove a pod, if present."""
        unschedulable = self._pods.pop(key, None)
        if unschedulable is not None:
            group = self._groups[unschedulable.group]
            del group[key]
            if not group:
                del self._groups[unschedulable.group]

    def release(self, helps: Callable[[Key], bool]) -> dict[Key, Object]:
        """Remove and return the pods of the groups that an event helps; one pod of each is asked for."""
        helped = [group for group, keys in self._groups.items() if helps(next(iter(keys)))]
        return {key: self._pods.pop(key).pod for group in helped for key in self._groups.pop(group)}


class NominatedPod(NamedTuple):
    """A pending pod that has room reserved on a node."""

    key: Key
    node: str
    priority: int


SCHEDULER = "default-scheduler"
_ANYWHERE = "\0anywhere"
"""The storage class of claims that only wait for a volume controller, which a simulated cluster does not have."""


class SchedulerCache:
    """The nodes and bound pods of the cluster, pending pods, unschedulable pods and nominations."""

    def __init__(self) -> None:
        self.pending: dict[Key, Object] = {}
        """Pods to schedule."""
        self.unschedulable = UnschedulablePods()
        """Pods that fit no node; an event that may help moves them to `pending`."""
        self.move_cycle = 0
        """The number of events that may have made pods schedulable."""
        self.snapshot = Snapshot(counts_as_pending=lambda _: True)
        self.nominations: dict[Key, NominatedPod] = {}
        self._nodes: dict[str, tuple[object, ...]] = {}
        self._placements: dict[Key, PodRecord] = {}
        self._records: dict[Key, PodRecord] = {}
        self._claims: dict[Key, VolumeClaimRecord] = {}
        self._classes: dict[str, StorageClassRecord] = {}
        self._board: ScoreBoard | None = None
        self._defined = 0
        self._shapes: dict[Key, Shape] = {}
        self._is_current = False
        """Whether nothing but assumed pods has changed since the shapes were looked up."""
        self._known_shapes = self.snapshot.shapes
        self._definitions = self.snapshot.definitions
        self._names: list[str] = []
        self._rows: dict[str, int] = {}
        anywhere = StorageClassRecord(_ANYWHERE, provisioner=_ANYWHERE, binding_mode=WAIT_FOR_FIRST_CONSUMER)
        self.snapshot.volumes.put_class(anywhere)

    def queue(self) -> list[Object]:
        """List pending pods by priority, age and name."""
        return sorted(self.pending.values(), key=lambda pod: (-_priority(pod), created_at(pod), key_of(pod)))

    # What pods are placed on.

    @property
    def board(self) -> ScoreBoard:
        """The nodes with their free room, assumed pods counted; the same board until something else changes."""
        self._refresh()
        if self._board is None or self._defined != len(self.snapshot.definitions.keys):
            space = self.snapshot.fork()
            self._board, self._defined = ScoreBoard.of(space), len(self.snapshot.definitions.keys)
            self._names = space.names()
            self._rows = {name: row for row, name in enumerate(self._names)}
        return self._board

    def name_of(self, row: int) -> str:
        """Return the name of a node of the board; they are in the order of their names."""
        return self._names[row]

    def row_of(self, node: str) -> int | None:
        """Return the position of a node on the board; None if there is no such node."""
        return self._rows.get(node)

    def shape_of(self, key: Key) -> Shape:
        """Return the shape of a pending pod."""
        self._refresh()
        shape = self._shapes.get(key)
        if shape is None:
            self.snapshot.flush()
            self._refresh()
            shape = self.snapshot.shape_at(key)
            if not _has_volumes(self._records[key]):
                # What volumes mean for a pod also changes with the pods that are assumed.
                self._shapes[key] = shape
        return shape

    def _refresh(self) -> None:
        """Apply deltas to the snapshot, and look up the shapes of pending pods that are new.

        While pods are placed nothing has to be applied: those that are assumed are on the board already.
        """
        if not self._is_current:
            self.snapshot.flush()
        if self._definitions is not self.snapshot.definitions:
            # The snapshot has forgotten shapes that no pod has any more, and numbered everything anew.
            self._definitions = self.snapshot.definitions
            self._board, self._is_current = None, False
        if self._known_shapes is not self.snapshot.shapes:
            self._known_shapes, self._is_current = self.snapshot.shapes, False
            self._shapes.clear()
        if not self._is_current:
            for key in (*self.pending, *self.nominations):
                if key not in self._shapes and not _has_volumes(self._records[key]):
                    self._shapes[key] = self.snapshot.shape_at(key)
            self._is_current = True

    def nominated_beside(self, key: Key) -> list[tuple[int, Shape]]:
        """List the nodes and shapes of nominated pods to which a pending pod must leave their room."""
        own = self._records[key].pod_class.priority
        return [
            (row, self.shape_of(each.key))
            for each in self.nominations.values()
            if each.priority >= own and each.key != key and (row := self.row_of(each.node)) is not None
        ]

    # Deltas of what pods are placed on.

    def node_changed(self, delta: Delta[NodeRecord]) -> None:
        """Apply a change of a node."""
        name, node = delta.key.name, delta.new
        if node is None:
            if self._nodes.pop(name, None) is not None:
                self.snapshot.remove_node(name)
                self._outdate()
            return
        state = _scheduling_state(node)
        if self._nodes.get(name) == state:
            return
        self._nodes[name] = state
        self.snapshot.put_node(msgspec.structs.replace(node, taints=effective_taints(node)))
        # All pods, since the message of those that still do not fit changes.
        self._changed(lambda _: True)

    def namespace_changed(self, delta: Delta[NamespaceRecord]) -> None:
        """Apply a change of the labels of a namespace."""
        if delta.new is not None and (delta.old is None or delta.old.labels != delta.new.labels):
            self.snapshot.put_namespace(delta.key.name, delta.new.labels)
            self._changed(lambda _: True)

    def claim_changed(self, delta: Delta[VolumeClaimRecord]) -> None:
        """Apply a change of a PersistentVolumeClaim."""
        if delta.new is None:
            self._claims.pop(delta.key, None)
            self.snapshot.volumes.remove_claim(delta.key.namespace, delta.key.name)
        else:
            self._claims[delta.key] = delta.new
            self.snapshot.volumes.put_claim(self._bindable(delta.new))
        self._changed_storage()

    def volume_changed(self, delta: Delta[VolumeRecord]) -> None:
        """Apply a change of a PersistentVolume."""
        if delta.new is None:
            self.snapshot.volumes.remove_volume(delta.key.name)
        else:
            self.snapshot.volumes.put_volume(delta.new)
        self._changed_storage()

    def storage_class_changed(self, delta: Delta[StorageClassRecord]) -> None:
        """Apply a change of a StorageClass."""
        if delta.new is None:
            self._classes.pop(delta.key.name, None)
            self.snapshot.volumes.remove_class(delta.key.name)
        else:
            self._classes[delta.key.name] = delta.new
            self.snapshot.volumes.put_class(delta.new)
        for claim in self._claims.values():
            if claim.storage_class == delta.key.name:
                self.snapshot.volumes.put_claim(self._bindable(claim))
        self._changed_storage()

    def csi_node_changed(self, delta: Delta[CSINodeRecord]) -> None:
        """Apply a change of the CSI drivers of a node."""
        if delta.new is None:
            self.snapshot.remove_csi_node(delta.key.name)
        else:
            self.snapshot.put_csi_node(delta.new)
        self._changed_storage()

    def _changed_storage(self) -> None:
        """Try pods with volumes again: what their shape was before the change is not known any more."""
        self._outdate()
        self.move_cycle += 1
        self.pending.update(self.unschedulable.release(lambda key: _has_volumes(self._records[key])))

    def _bindable(self, claim: VolumeClaimRecord) -> VolumeClaimRecord:
        """Return a claim as the controllers of a real cluster would leave it: simulated ones bind no volumes.

        Claims that wait for their pod are left to the rules of their class; of all others the volume is on no
        particular node.
        """
        if claim.bound or claim.deleting:
            return claim
        if claim.volume_name:
            return msgspec.structs.replace(claim, bound=True)
        storage_class = self._classes.get(claim.storage_class or "")
        if storage_class is not None and storage_class.waits_for_pod:
            return claim
        return msgspec.structs.replace(claim, storage_class=_ANYWHERE, selector=None)

    # Deltas of pods.

    def pod_changed(self, delta: Delta[Object]) -> None:
        """Apply a change of a pod."""
        key, old, pod = delta
        if old is not None and pod is not None and old["metadata"].get("uid") != pod["metadata"].get("uid"):
            # The pod was deleted and another created with its name, in one delta.
            self.remove(key)
            old = None
        same = old is not None and pod is not None and _is_alike(old, pod)
        if key in self.unschedulable and same and pod is not None and not is_finished(pod):
            self.unschedulable.renew(key, pod)
            self._nominate(key, pod)
            return
        self.unschedulable.drop(key)
        self.pending.pop(key, None)
        if pod is None or is_finished(pod):
            self.remove(key)
        elif pod["spec"].get("nodeName"):
            self._bind(key, old if same else None, pod)
        elif key in self._placements:
            return
        elif _is_ours(pod):
            if not same or key not in self._records:
                self._put(key, _record_of(pod))
                self._is_current = False
            self.pending[key] = pod
            self._nominate(key, pod)
        else:
            self._forget(key)

    def assume(self, pod: Object, node: str) -> None:
        """Assume a pod on a node before the informer cache shows the binding."""
        key = key_of(pod)
        self.pending.pop(key, None)
        shape, board = self.shape_of(key), self.board
        row = self.row_of(node)
        record = msgspec.structs.replace(self._records[key], node=node)
        self._put(key, record)
        self._placements[key] = record
        self.nominations.pop(key, None)
        if row is not None:
            # The board stays up to date without another fork.
            board.add(shape, row)
        self._move_to_pending(_gains_by_a_pod)

    def remove(self, key: Key) -> None:
        """Remove a pod; unschedulable pods that fit on its node become pending."""
        place = self._placements.pop(key, None)
        self._forget(key)
        if place is None:
            return
        self._outdate()
        row = self._node_row(place.node)
        if row is None or not len(self.unschedulable):
            self.move_cycle += 1
            return
        self.snapshot.flush()
        nodes = self.snapshot.nodes
        free = nodes.allocatable[:, row] - nodes.used[:, row]

        def fits(shape: Shape) -> bool:
            return _depends_on_pods(shape) or (_fits(shape, free) and bool(nodes.allowed_by(shape.rule)[row]))

        self._move_to_pending(fits)

    def sync(self, key: Key, pod: Object | None) -> None:
        """Drop the assumption about a pod, and use its state in the informer cache."""
        self.remove(key)
        self.pod_changed(Delta(key, None, pod))

    def drop(self, pod: Object) -> None:
        """Drop a pending pod that no longer exists, unless the cache has a newer version."""
        key = key_of(pod)
        if self.pending.get(key) is pod:
            del self.pending[key]
            self._forget(key)

    def mark_unschedulable(self, pod: Object, *, move_cycle: int) -> None:
        """Mark a pod unschedulable, unless an event after `move_cycle` may have made it schedulable.

        A pod with a newer version in the cache, even if only by our status write, stays pending.
        """
        key = key_of(pod)
        if move_cycle == self.move_cycle and self.pending.get(key) is pod:
            del self.pending[key]
            self.unschedulable.put(pod, self._records[key])

    def _bind(self, key: Key, same: Object | None, pod: Object) -> None:
        """Count a pod on its node; `same` is the version before, if the change is one of its status only."""
        known = self._placements.get(key)
        if known is not None and same is not None and not _is_resized(pod):
            return
        record = _record_of(pod)
        if known is not None and _is_equal(known, record):
            self._placements[key] = record
            return
        self.nominations.pop(key, None)
        self._put(key, record)
        self._placements[key] = record
        self._changed(_depends_on_pods if known is not None else _gains_by_a_pod)

    def _put(self, key: Key, record: PodRecord) -> None:
        self._records[key] = record
        self._shapes.pop(key, None)
        if record.state.nominated_node:
            # Nominated pods are not counted on their node: to which pods they matter depends on the priority.
            record = msgspec.structs.replace(record, state=msgspec.structs.replace(record.state, nominated_node=""))
        for name in _claims_of_controllers(record):
            # Simulated controllers create no claims; they would be there before the pod is scheduled.
            if Key(key.namespace, name) not in self._claims:
                self.snapshot.volumes.put_claim(VolumeClaimRecord(key.namespace, name, storage_class=_ANYWHERE))
        self.snapshot.put_pod(key, record)

    def _forget(self, key: Key) -> None:
        self._shapes.pop(key, None)
        if self._records.pop(key, None) is not None:
            self.snapshot.remove_pod(key)
            self._is_current = False
        if self.nominations.pop(key, None) is not None:
            self._move_to_pending(lambda _: True)

    def _nominate(self, key: Key, pod: Object) -> None:
        node = str((pod.get("status") or {}).get("nominatedNodeName") or "")
        known = self.nominations.get(key)
        if (known.node if known is not None else "") == node:
            return
        self._is_current = False
        if node:
            self.nominations[key] = NominatedPod(key, node, _priority(pod))
        else:
            del self.nominations[key]
        if known is not None:
            self._move_to_pending(lambda _: True)

    def _outdate(self) -> None:
        self._board, self._is_current = None, False

    def _changed(self, helps: Callable[[Shape], bool]) -> None:
        self._outdate()
        self._move_to_pending(helps)

    def _move_to_pending(self, helps: Callable[[Shape], bool]) -> None:
        self.move_cycle += 1
        if len(self.unschedulable):
            self.pending.update(self.unschedulable.release(lambda key: helps(self.shape_of(key))))

    def _node_row(self, node: str) -> int | None:
        return self.snapshot.node_row(node) if node in self._nodes else None


def _depends_on_pods(shape: Shape) -> bool:
    """Whether other pods or their volumes decide where pods of a shape can run."""
    return shape.is_constrained or bool(shape.volumes.attached or shape.volumes.blocked)


def _has_volumes(record: PodRecord) -> bool:
    return bool(record.details.claims or record.details.disks)


def _gains_by_a_pod(shape: Shape) -> bool:
    """Whether a further pod on a node may make room for pods of a shape."""
    return bool(shape.constraints.affinity or shape.constraints.spreads)


def _fits(shape: Shape, free: Amounts) -> bool:
    columns: Iterable[int] = shape.columns.tolist()
    return all(free[column] >= need for column, need in zip(columns, shape.needs.tolist(), strict=True))


def _claims_of_controllers(record: PodRecord) -> Iterable[str]:
    """List the claims of a pod that a controller creates: those of ephemeral volumes and of StatefulSets."""
    if record.owner is not None and record.owner.kind == "StatefulSet":
        return record.details.claims
    return [claim.name for claim in record.details.ephemeral_claims]


def _record_of(pod: Object) -> PodRecord:
    """Make the record of a pod; of one that cannot be read as such, what can be."""
    try:
        return pod_record(msgspec.convert(pod, PodView))
    except msgspec.ValidationError:
        return PodRecord(
            pod_class=pod_class_of(pod["spec"]),
            labels=intern_labels(pod["metadata"].get("labels")),
            node=pod["spec"].get("nodeName") or "",
        )


def _is_equal(one: PodRecord, other: PodRecord) -> bool:
    """Whether two records of a pod mean the same on its node."""
    return (
        one.node == other.node
        and one.pod_class is other.pod_class
        and one.labels is other.labels
        and one.details == other.details
        and one.state.deleted_at == other.state.deleted_at
    )


def _is_ours(pod: Object) -> bool:
    return not is_terminating(pod) and pod["spec"].get("schedulerName", SCHEDULER) == SCHEDULER


def _is_alike(old: Object, new: Object) -> bool:
    """Whether a change of a pod leaves where it can run unchanged: it is one of its status."""
    return bool(
        old["spec"] == new["spec"]
        and old["metadata"].get("labels") == new["metadata"].get("labels")
        and old["metadata"].get("deletionTimestamp") == new["metadata"].get("deletionTimestamp")
    )


def _is_resized(pod: Object) -> bool:
    """Whether the kubelet reports resources of containers, which a resize in place changes."""
    status = pod.get("status") or {}
    return any("resources" in each or "allocatedResources" in each for each in status.get("containerStatuses") or ())


def _priority(pod: Object) -> int:
    return int(pod["spec"].get("priority") or 0)


def _scheduling_state(node: NodeRecord) -> tuple[object, ...]:
    """Return the parts of a node that decide whether pods fit."""
    return (node.labels, node.taints, node.unschedulable, node.allocatable, node.ready)
