"""The snapshot: nodes, pods and volumes of a cluster as columns, fed by deltas, with forks to try placements on.

    records ──put/remove──► Snapshot ──fork()──► Space ──place, plan──► a plan
                            (one per process)    (one per question; dropping it undoes everything)

Changes are collected and applied together when the snapshot is read next, so that a burst of deltas costs a few array
operations. These cases are defined:

- A pod that is bound to a node which is not known takes nothing until the node appears, and is not pending.
- A NodeClaim without a node is an upcoming node: pods may be placed on it, with what the claim promises.
- A node without a NodeClaim is a node like any other.
- A pod that preemption has promised a node asks for nothing else, and takes its room there for pods of the same or a
  lower priority, as in kube-scheduler. If there is no such node it is pending like any other.
- Pods of DaemonSets ask for nothing: their room is set aside on every node where they run or should run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import numpy as np

from springtide.apis.core.daemon_sets import DaemonSetRecord
from springtide.apis.core.nodes import NodeRecord, NodeTaint
from springtide.apis.core.pod_record import (
    ObjectSelector,
    PodDetails,
    PodRecord,
    PodSchedulingClass,
    SpreadConstraint,
)
from springtide.apis.core.volumes import CSINodeRecord, StorageClassRecord, VolumeClaimRecord, VolumeRecord
from springtide.packing.columns import (
    ATTACHABLE,
    MOST,
    PODS,
    Amounts,
    Labels,
    NodeColumns,
    NodeRule,
    Resources,
    rule_of,
)
from springtide.packing.counters import HOSTNAME, Counters, Definitions
from springtide.packing.shapes import (
    NO_VOLUMES,
    ConstraintCompiler,
    Rules,
    Shape,
    VolumeNeeds,
    class_content,
    make_shape,
    selector_keys,
)
from springtide.packing.space import Space
from springtide.packing.volumes import Volumes
from springtide.quantity import Quantity

PodKey = tuple[str, str]
"""Namespace and name."""

_KnownClass = tuple[PodSchedulingClass, set[str], tuple[object, ...], str]
"""A class, the labels of pods that its selectors read, its canonical form, and that form as text."""
_PENDING, _UNKNOWN, _ABSENT = -1, -2, -3
_TERMINATING, _NOMINATED, _DAEMON = 1, 2, 4
_MOST_EMPTY: Final = 1024
"""So many groups without pods are kept: their pods may come again."""
_UNREGISTERED: Final = "karpenter.sh/unregistered"


@dataclass(frozen=True, slots=True)
class UpcomingNode:
    """A NodeClaim, as far as pods can be placed on the node that it will become."""

    name: str
    """The name of the claim."""
    labels: Mapping[str, str]
    taints: tuple[NodeTaint, ...]
    """Without startup taints, which are gone when the node is initialized."""
    startup_taints: tuple[NodeTaint, ...]
    allocatable: Mapping[str, Quantity]
    node: str = ""
    """The name of its node, once there is one."""
    initialized: bool = False


@dataclass(slots=True)
class _Group:
    namespace: str
    pod_class: PodSchedulingClass
    labels: Mapping[str, str]
    requests: Mapping[str, Quantity]
    volumes: VolumeNeeds
    pods: int = 0


def is_default_scheduled(record: PodRecord) -> bool:
    """Return whether the default scheduler places a pod."""
    return record.pod_class.scheduler_name == "default-scheduler"


SYSTEM_DEFAULT_SPREADS: Final = (
    SpreadConstraint(max_skew=3, topology_key="kubernetes.io/hostname", when_unsatisfiable="ScheduleAnyway"),
    SpreadConstraint(max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway"),
)
"""The constraints that kube-scheduler adds where its configuration names none: they only score."""
_SPREAD_OWNERS: Final = ("ReplicaSet", "ReplicationController", "StatefulSet")
_LABELS_OF_ONE_POD: Final = (
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/job-completion-index",
    "statefulset.kubernetes.io/pod-name",
)


class Snapshot:
    """The cluster as the packer sees it."""

    def __init__(
        self,
        *,
        counts_as_pending: Callable[[PodRecord], bool] = is_default_scheduled,
        default_spreads: Sequence[SpreadConstraint] = (),
    ) -> None:
        """Make an empty snapshot.

        Args:
            counts_as_pending: selects the unbound pods that ask for a node.
            default_spreads: what the configuration of kube-scheduler adds to pods of workloads that have no spread
                constraints, such as `SYSTEM_DEFAULT_SPREADS`. Their selectors are made of the pods' labels.
        """
        self._counts_as_pending = counts_as_pending
        self._default_spreads = tuple(default_spreads)
        self._spread_classes: dict[tuple[int, int], tuple[PodRecord, PodSchedulingClass]] = {}
        self.resources = Resources()
        self.labels = Labels()
        self.rules = Rules()
        self.definitions = Definitions()
        self.nodes = NodeColumns(self.resources, self.labels)
        self.counters = Counters(self.definitions, self.labels)
        self.volumes = Volumes()
        self.shapes: list[Shape] = []
        self.version = 0
        """Grows with every change that could change an answer."""
        self._compiler = ConstraintCompiler(self.rules)
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._node_rows: dict[str, int] = {}
        self._node_records: dict[str, NodeRecord] = {}
        self._claims: dict[str, UpcomingNode] = {}
        self._claim_of_node: dict[str, str] = {}
        self._vacant: list[int] = []
        self._waiting: dict[str, set[int]] = {}
        self._daemon_sets: dict[PodKey, DaemonSetRecord] = {}
        self._daemon_pods: dict[int, PodKey] = {}
        self._promised: dict[int, None] = {}
        # Groups: index by identity of the interned parts of a record, which the group keeps alive.
        self._groups: list[_Group] = []
        self._group_numbers: dict[object, int] = {}
        self._group_shape = np.zeros(64, np.int64)
        self._group_needs = np.zeros((len(self.resources), 64), np.int64)
        self._empty = 0
        self._shaped = 0
        self._shape_numbers: dict[object, int] = {}
        self._keys_read: set[str] = set()
        self._class_keys: dict[int, _KnownClass] = {}
        self._reshape = False
        self._linked = 0
        self._recount = False
        self._counted = 0
        # Pods: what is wanted, and what has been applied to the nodes and counters.
        self._pods: dict[PodKey, int] = {}
        self._keys: list[PodKey | None] = []
        self._records: list[PodRecord | None] = []
        self._free_rows: list[int] = []
        self._wanted = np.full((3, 64), 0, np.int64)
        self._applied = np.full((3, 64), 0, np.int64)
        self._wanted[1] = self._applied[1] = _ABSENT
        self._dirty: list[int] = []
        self._reserved: Amounts | None = None
        self._demand: tuple[int, dict[int, int]] | None = None
        self._order: tuple[int, Amounts] | None = None

    # Deltas.

    def put_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Add or change a namespace."""
        if self._namespaces.get(name) != labels:
            self._namespaces[name] = dict(labels)
            self._match_again()

    def remove_namespace(self, name: str) -> None:
        """Remove a namespace."""
        if self._namespaces.pop(name, None) is not None:
            self._match_again()

    def _match_again(self) -> None:
        """Find anew what selectors match: they read the labels of namespaces."""
        self.version += 1
        if self.definitions.keys:
            self.definitions.forget_matches()
            self._linked, self._recount, self._reshape = 0, True, True

    def put_node(self, record: NodeRecord) -> None:
        """Add or change a node."""
        before = self._node_records.get(record.name)
        self._node_records[record.name] = record
        claim = self._claims.get(self._claim_of_node.get(record.name, ""))
        if claim is not None and before is None:
            self._drop_row(_upcoming(claim.name))
        self._write_node(record, claim)

    def remove_node(self, name: str) -> None:
        """Remove a node; its pods are bound to an unknown node until they go too."""
        if self._node_records.pop(name, None) is not None:
            self._drop_row(name)
            claim = self._claims.get(self._claim_of_node.get(name, ""))
            if claim is not None:
                self._write_claim(claim)

    def put_claim(self, claim: UpcomingNode) -> None:
        """Add or change a NodeClaim."""
        if self._claims.get(claim.name) == claim:
            return
        self.remove_claim(claim.name)
        self._claims[claim.name] = claim
        if claim.node:
            self._claim_of_node[claim.node] = claim.name
        record = self._node_records.get(claim.node)
        if record is not None:
            self._write_node(record, claim)
        else:
            self._write_claim(claim)

    def remove_claim(self, name: str) -> None:
        """Remove a NodeClaim; a node that it became stays."""
        claim = self._claims.pop(name, None)
        if claim is None:
            return
        if self._claim_of_node.get(claim.node) == name:
            del self._claim_of_node[claim.node]
        if _upcoming(name) in self._node_rows:
            self._drop_row(_upcoming(name))
        record = self._node_records.get(claim.node)
        if record is not None:
            self._write_node(record, None)

    def put_volume_claim(self, record: VolumeClaimRecord) -> None:
        """Add or change a PersistentVolumeClaim."""
        self.volumes.put_claim(record)

    def remove_volume_claim(self, namespace: str, name: str) -> None:
        """Remove a PersistentVolumeClaim."""
        self.volumes.remove_claim(namespace, name)

    def put_volume(self, record: VolumeRecord) -> None:
        """Add or change a PersistentVolume."""
        self.volumes.put_volume(record)

    def remove_volume(self, name: str) -> None:
        """Remove a PersistentVolume."""
        self.volumes.remove_volume(name)

    def put_storage_class(self, record: StorageClassRecord) -> None:
        """Add or change a StorageClass."""
        self.volumes.put_class(record)

    def remove_storage_class(self, name: str) -> None:
        """Remove a StorageClass."""
        self.volumes.remove_class(name)

    def put_csi_node(self, record: CSINodeRecord) -> None:
        """Add or change the CSI drivers of a node, with the limits of attached volumes."""
        self.volumes.put_csi_node(record)
        known = len(self.resources)
        for driver in record.limits:
            self.resources.column(ATTACHABLE + driver)
        self.nodes.widen()
        self.nodes.allocatable[known:] = MOST
        self._rewrite(record.name)

    def remove_csi_node(self, name: str) -> None:
        """Remove the CSI drivers of a node."""
        self.volumes.remove_csi_node(name)
        self._rewrite(name)

    def _rewrite(self, name: str) -> None:
        node = self._node_records.get(name)
        if node is not None:
            self._write_node(node, self._claims.get(self._claim_of_node.get(name, "")))

    def put_daemon_set(self, key: PodKey, record: DaemonSetRecord) -> None:
        """Add or change a DaemonSet."""
        self._daemon_sets[key] = record
        self._changed_daemons()

    def remove_daemon_set(self, key: PodKey) -> None:
        """Remove a DaemonSet."""
        if self._daemon_sets.pop(key, None) is not None:
            self._changed_daemons()

    def put_pod(self, key: PodKey, record: PodRecord) -> None:
        """Add or change a pod."""
        row = self._pods.get(key)
        if record.is_finished or (not record.node and record.state.deleted_at is not None):
            if row is not None:
                self.remove_pod(key)
            return
        if row is None:
            row = self._new_row(key)
        else:
            self._forget_waiting(row)
            self._leave(int(self._wanted[0, row]))
        details, before = record.details, self._records[row]
        if _has_volumes(details):
            self.volumes.use(key, key[0], details, bound=bool(record.node))
            needs = _with_disks(self.volumes.needs(key, key[0], details), details)
        else:
            needs = NO_VOLUMES
            if before is not None and _has_volumes(before.details):
                self.volumes.release(key)  # another pod of the same name
        group = self._group(key[0], record, needs)
        self._join(group)
        self._records[row] = record
        self._wanted[0, row] = group
        owner = record.owner
        if owner is not None and owner.kind == "DaemonSet":
            self._daemon_pods[row] = (key[0], owner.name)
            self._reserved = None
        elif self._daemon_pods.pop(row, None) is not None:
            self._reserved = None
        self._set_place(row, record)

    def remove_pod(self, key: PodKey) -> None:
        """Remove a pod."""
        row = self._pods.pop(key, None)
        if row is None:
            return
        record = self._records[row]
        self._forget_waiting(row)
        self._promised.pop(row, None)
        if record is not None and _has_volumes(record.details):
            self.volumes.release(key)
        self._leave(int(self._wanted[0, row]))
        if self._daemon_pods.pop(row, None) is not None:
            self._reserved = None
        self._keys[row] = self._records[row] = None
        self._wanted[1, row] = _ABSENT
        self._dirty.append(row)
        self._free_rows.append(row)

    # Questions.

    def shape_of(self, namespace: str, record: PodRecord) -> Shape:
        """Return the shape of a pod that is not in the snapshot, such as one of a template."""
        return self.shapes_of([(namespace, record)])[0]

    def shapes_of(self, pods: Iterable[tuple[str, PodRecord]]) -> list[Shape]:
        """Return the shapes of pods that are not in the snapshot, each given by its namespace and its record.

        Shapes are valid until the snapshot changes, and a pod whose terms read further labels changes it: ask for all
        shapes at once.
        """
        groups = []
        for namespace, record in pods:
            details, needs = record.details, NO_VOLUMES
            if _has_volumes(details):
                key = (namespace, "\0template")
                needs = _with_disks(self.volumes.needs(key, namespace, details, assume_created=True), details)
            groups.append(self._group(namespace, record, needs))
            self._join(groups[-1])
        self.flush()
        for group in groups:
            self._leave(group)
        return [self.shapes[int(self._group_shape[group])] for group in groups]

    def demand(self) -> dict[int, int]:
        """Return how many pending pods there are of each shape, by its number."""
        self.flush()
        if self._demand is None or self._demand[0] != self.version:
            rows = np.flatnonzero(self._applied[1] == _PENDING)
            counts = np.bincount(self._group_shape[self._applied[0, rows]], minlength=len(self.shapes))
            self._demand = self.version, {int(number): int(counts[number]) for number in np.flatnonzero(counts)}
            self._name_claims(rows)
        return self._demand[1]

    def _name_claims(self, rows: Amounts) -> None:
        """Say of pods with claims that cannot be used why, by the claim of the first of them in order of names."""
        first: dict[int, PodKey] = {}
        blocked = np.array([bool(shape.volumes.blocked) for shape in self.shapes], np.bool_)
        shapes = self._group_shape[self._applied[0, rows]]
        for row, number in zip(rows[blocked[shapes]].tolist(), shapes[blocked[shapes]].tolist(), strict=True):
            key = self._keys[row]
            if key is not None and key < first.get(number, (key[0], key[1] + "\0")):
                first[number] = key
        for number, key in first.items():
            record, shape = self._records[self._pods[key]], self.shapes[number]
            if record is not None and shape.blocked == shape.volumes.blocked:
                shape.because = self.volumes.needs(key, key[0], record.details).because

    def pending(self) -> dict[int, list[PodKey]]:
        """Return the pending pods of each shape, by its number, sorted."""
        self.flush()
        rows = np.flatnonzero(self._applied[1] == _PENDING)
        found: dict[int, list[PodKey]] = {}
        for row, shape in zip(rows, self._group_shape[self._applied[0, rows]], strict=True):
            key = self._keys[row]
            if key is not None:
                found.setdefault(int(shape), []).append(key)
        return {number: sorted(keys) for number, keys in sorted(found.items())}

    def shape_at(self, key: PodKey) -> Shape:
        """Return the shape of a pod of the snapshot."""
        self.flush()
        return self.shapes[int(self._group_shape[self._wanted[0, self._pods[key]]])]

    def node_row(self, name: str) -> int:
        """Return the position of a node, or of the upcoming node of a claim."""
        return self._node_rows[name] if name in self._node_rows else self._node_rows[_upcoming(name)]

    def pods_on(self, rows: Sequence[int]) -> dict[int, int]:
        """Return how many pods of each shape are on the nodes at these positions, without those of DaemonSets."""
        self.flush()
        here = np.isin(self._applied[1], np.asarray(rows)) & (self._applied[2] & _DAEMON == 0)
        counts = np.bincount(self._group_shape[self._applied[0, here]], minlength=len(self.shapes))
        return {int(number): int(counts[number]) for number in np.flatnonzero(counts)}

    def pods_without(self, column: int) -> Amounts:
        """Return how many pods that do not request a resource are on each node, by its position."""
        self.flush()
        bound = self._applied[1] >= 0
        bound[bound] = self._group_needs[column, self._applied[0, bound]] == 0
        return np.bincount(self._applied[1, bound], minlength=self.nodes.count)

    def fork(self, *, without: Iterable[str] = (), asking: PodKey | None = None) -> Space:
        """Return a copy to try placements on; the nodes of `without` are gone in it, and their pods with them.

        The copy is valid until the next change of the snapshot. What preemption has promised the pod `asking` does not
        count: it is asked where else that pod could go.
        """
        self.flush()
        self.nodes.widen()
        counters = self.counters.fork()
        gone = np.array(sorted(self.node_row(name) for name in without), np.int64)
        if len(gone):
            here = np.flatnonzero(np.isin(self._applied[1], gone) & (self._applied[2] & _NOMINATED == 0))
            shapes = self._group_shape[self._applied[0, here]]
            self._count(self.nodes, counters, shapes, self._applied[1, here], self._applied[2, here], -1)
        if self._order is None or self._order[0] != self.nodes.version:
            alive = np.flatnonzero(self.nodes.alive[: self.nodes.count])
            names = self.nodes.names
            ordered = np.array(sorted(alive.tolist(), key=lambda row: names[row]), np.int64)
            self._order = self.nodes.version, ordered
        order = self._order[1]
        if len(gone):
            order = order[~np.isin(order, gone)]
        promised: dict[int, list[Shape]] = {}
        for row in sorted(self._promised, key=lambda row: self._keys[row] or ("", "")):
            place = int(self._wanted[1, row])
            if self._keys[row] != asking and place not in gone:
                promised.setdefault(place, []).append(self.shapes[self._group_shape[self._wanted[0, row]]])
        return Space(self, counters, order, promised)

    # Applying deltas.

    def flush(self) -> None:
        """Apply the deltas that were collected."""
        changed = bool(self._dirty)
        for key in self.volumes.changed():
            self.version += 1
            row = self._pods.get(key)
            record = self._records[row] if row is not None else None
            if record is not None:
                self.put_pod(key, record)
        if self._shaped < len(self._groups) or self._reshape:
            self._make_shapes()
        if self._dirty:
            self._apply_pods()
        if self._recount or self._counted < len(self.definitions.keys):
            self._count_anew()
        if self._empty > max(_MOST_EMPTY, len(self._groups) // 2) and changed:
            self._compact()

    def _leave(self, group: int) -> None:
        self._groups[group].pods -= 1
        self._empty += not self._groups[group].pods

    def _join(self, group: int) -> None:
        self._empty -= not self._groups[group].pods
        self._groups[group].pods += 1

    def _compact(self) -> None:
        """Forget groups without pods, and the shapes, rules and counters that only they had."""
        kept = [number for number, group in enumerate(self._groups) if group.pods]
        moved = np.zeros(len(self._groups), np.int64)
        moved[kept] = np.arange(len(kept))
        numbers = {number: new for new, number in enumerate(kept)}
        self._group_numbers = {key: numbers[old] for key, old in self._group_numbers.items() if old in numbers}
        self._groups = [self._groups[number] for number in kept]
        self._empty = 0
        for rows in (self._wanted, self._applied):
            rows[0, : len(self._keys)] = moved[rows[0, : len(self._keys)]]
        present = {id(group.pod_class) for group in self._groups}
        self._class_keys = {key: known for key, known in self._class_keys.items() if key in present}
        self._spread_classes.clear()
        self.rules.forget()
        self.definitions = Definitions()
        self.counters = Counters(self.definitions, self.labels)
        self._keys_read = set()
        self._shaped = self._linked = self._counted = 0
        self._reshape = True
        self._make_shapes()
        self._count_anew()

    def _apply_pods(self) -> None:
        rows = np.unique(np.array(self._dirty, np.int64))
        self._dirty.clear()
        before, after = self._applied[:, rows], self._wanted[:, rows]
        changed = (before != after).any(axis=0)
        rows, before, after = rows[changed], before[:, changed], after[:, changed]
        if not len(rows):
            return
        self.version += 1
        self.nodes.widen()
        # Counters that are new are counted as a whole afterwards.
        for part, sign in ((before, -1), (after, 1)):
            bound = (part[1] >= 0) & (part[2] & _NOMINATED == 0)
            groups, nodes = part[0, bound], part[1, bound]
            for column in range(self._group_needs.shape[0]):
                needs = self._group_needs[column, groups]
                if needs.any():
                    np.add.at(self.nodes.used[column], nodes, sign * needs)
            shapes = self._group_shape[groups]
            self._count(self.nodes, self.counters, shapes, nodes, part[2, bound], sign)
        self._applied[:, rows] = after

    def _count(
        self,
        nodes: NodeColumns,
        counters: Counters,
        shapes: Amounts,
        places: Amounts,
        flags: Amounts,
        sign: int,
    ) -> None:
        """Add pods to the counters that their shapes raise."""
        if not self.definitions.keys or not len(shapes):
            return
        mark = shapes * 2 + (flags & _TERMINATING)
        order = np.argsort(mark, kind="stable")
        sorted_marks = mark[order]
        starts = np.flatnonzero(np.concatenate([[True], sorted_marks[1:] != sorted_marks[:-1]]))
        for begin, end in zip(starts, [*starts[1:], len(order)], strict=True):
            shape = self.shapes[sorted_marks[begin] // 2]
            bumps = shape.terminating_bumps if sorted_marks[begin] % 2 else shape.bumps
            if bumps:
                there = places[order[begin:end]]
                for number in bumps:
                    counters.add(number, nodes, there, sign)

    def _count_anew(self) -> None:
        """Count the counters that are new, or all of them."""
        first = 0 if self._recount else self._counted
        self._counted, self._recount = len(self.definitions.keys), False
        self.version += 1
        for number in range(first, self._counted):
            self.counters.clear(number, self.nodes)
        rows = np.flatnonzero((self._applied[1] >= 0) & (self._applied[2] & _NOMINATED == 0))
        if not len(rows):
            return
        shapes = self._group_shape[self._applied[0, rows]]
        terminating = (self._applied[2, rows] & _TERMINATING) > 0
        places = self._applied[1, rows]
        members: dict[int, tuple[list[int], list[int]]] = {}
        for shape in self.shapes:
            for position, bumps in enumerate((shape.bumps, shape.terminating_bumps)):
                for number in bumps:
                    if number >= first:
                        members.setdefault(number, ([], []))[position].append(shape.number)
        for number, lists in sorted(members.items()):
            counted = np.zeros((2, len(self.shapes)), np.bool_)
            counted[0, lists[0]] = True
            counted[1, lists[1]] = True
            there = np.where(terminating, counted[1, shapes], counted[0, shapes])
            self.counters.add(number, self.nodes, places[there], 1)

    def _make_shapes(self) -> None:
        """Give every new group its shape; all groups anew if a selector reads a label that no other did."""
        keys = len(self._keys_read)
        for group in self._groups[self._shaped :]:
            self._keys_read |= self._known_class(group.pod_class)[1]
        if self._reshape or len(self._keys_read) != keys:
            self._shaped, self._reshape = 0, False
            self.version += 1
            self.shapes, self._shape_numbers = [], {}
        if len(self._groups) > len(self._group_shape):
            size = 2 * len(self._groups)
            self._group_shape = _grown(self._group_shape, size)
            self._group_needs = _grown(self._group_needs, size)
        for number in range(self._shaped, len(self._groups)):
            self._group_shape[number] = self._shape_number(self._groups[number])
        missing = len(self.resources) - len(self._group_needs)
        if missing > 0:
            more = np.zeros((missing, self._group_needs.shape[1]), np.int64)
            self._group_needs = np.concatenate([self._group_needs, more])
        for number in range(self._shaped, len(self._groups)):
            shape = self.shapes[self._group_shape[number]]
            self._group_needs[:, number] = 0
            self._group_needs[shape.columns, number] = shape.needs
        self._shaped = len(self._groups)
        for shape in self.shapes if self._linked != len(self.definitions.keys) else ():
            self.definitions.link(shape, self._namespaces)
        self._linked = len(self.definitions.keys)
        self.nodes.widen()

    def _shape_number(self, group: _Group) -> int:
        labels = {key: value for key, value in group.labels.items() if key in self._keys_read}
        pod_class = group.pod_class
        content = self._known_class(pod_class)[2]
        amounts = self.resources.amounts(group.requests)
        shown = tuple(sorted(labels.items()))
        identity = (group.namespace, shown, pod_class.priority, content, tuple(sorted(amounts.items())), group.volumes)
        number = self._shape_numbers.get(identity)
        if number is None:
            number = self._shape_numbers[identity] = len(self.shapes)
            constraints = self._compiler.compile(
                pod_class, group.namespace, group.labels, self._namespaces, group.volumes
            )
            shape = make_shape(
                number,
                group.namespace,
                labels,
                pod_class,
                amounts,
                constraints,
                group.volumes,
                self._known_class(pod_class)[3],
                self.rules,
                self.resources,
            )
            self.shapes.append(shape)
            before = len(self.definitions.keys)
            for key in (
                *constraints.affinity,
                *constraints.refused,
                *constraints.holds,
                *(spread.counter for spread in (*constraints.spreads, *constraints.soft_spreads)),
                *(key for _, key in constraints.preferred),
            ):
                self.definitions.number(key)
            if before == len(self.definitions.keys) == self._linked:
                self.definitions.link(shape, self._namespaces)
        return number

    def _known_class(self, pod_class: PodSchedulingClass) -> _KnownClass:
        known = self._class_keys.get(id(pod_class))
        if known is None or known[0] is not pod_class:
            content = class_content(pod_class)
            known = self._class_keys[id(pod_class)] = (pod_class, selector_keys(pod_class), content, repr(content))
        return known

    def _group(self, namespace: str, record: PodRecord, needs: VolumeNeeds) -> int:
        resized, pod_class = record.details.resized, self._class_of(record)
        key: object = (namespace, id(pod_class), id(record.labels))
        if resized is not None or needs is not NO_VOLUMES:
            key = (key, needs, tuple(sorted((name, each.nano) for name, each in record.requests.items())))
        number = self._group_numbers.get(key)
        if number is None:
            number = self._group_numbers[key] = len(self._groups)
            self._groups.append(_Group(namespace, pod_class, record.labels, record.requests, needs))
            self._empty += 1
        return number

    def _class_of(self, record: PodRecord) -> PodSchedulingClass:
        """Return the class of a pod, with the default spread constraints if it has none of its own."""
        pod_class, owner = record.pod_class, record.owner
        if not self._default_spreads or pod_class.topology_spread or owner is None or owner.kind not in _SPREAD_OWNERS:
            return pod_class
        key = (id(pod_class), id(record.labels))
        known = self._spread_classes.get(key)
        if known is None:
            same = {name: value for name, value in record.labels.items() if name not in _LABELS_OF_ONE_POD}
            spreads = tuple(
                msgspec.structs.replace(each, label_selector=ObjectSelector(match_labels=same))
                for each in self._default_spreads
            )
            made = msgspec.structs.replace(pod_class, topology_spread=spreads) if same else pod_class
            known = self._spread_classes[key] = record, made
        return known[1]

    def _new_row(self, key: PodKey) -> int:
        if self._free_rows:
            row = self._free_rows.pop()
            self._keys[row] = key
        else:
            row = len(self._keys)
            self._keys.append(key)
            self._records.append(None)
            if row >= self._wanted.shape[1]:
                self._wanted, self._applied = _grown(self._wanted, 2 * row), _grown(self._applied, 2 * row)
                self._wanted[1, row:] = self._applied[1, row:] = _ABSENT
        self._pods[key] = row
        return row

    def _set_place(self, row: int, record: PodRecord) -> None:
        """Write where a pod is now."""
        flags = _TERMINATING if record.state.deleted_at is not None else 0
        name = record.node
        if row in self._daemon_pods:
            flags |= _DAEMON
        elif not name:
            name = record.state.nominated_node
        place = self._node_rows.get(name, _UNKNOWN) if name else _UNKNOWN
        if name and place < 0:
            self._waiting.setdefault(name, set()).add(row)
        if not record.node:
            if place >= 0:
                flags |= _NOMINATED
            elif not flags & _DAEMON and self._counts_as_pending(record):
                place = _PENDING
        if flags & _NOMINATED:
            self._promised[row] = None
        else:
            self._promised.pop(row, None)
        self._wanted[1, row], self._wanted[2, row] = place, flags
        self._dirty.append(row)

    def _forget_waiting(self, row: int) -> None:
        record = self._records[row]
        name = (record.node or record.state.nominated_node) if record is not None else ""
        waiting = self._waiting.get(name)
        if waiting is not None:
            waiting.discard(row)
            if not waiting:
                del self._waiting[name]

    def _write_claim(self, claim: UpcomingNode) -> None:
        # A node has a host name of its own, so pods that spread over nodes may use this one as well.
        labels = {HOSTNAME: f"\0{claim.name}", **claim.labels}
        self._write(_upcoming(claim.name), labels, claim.taints, self.resources.amounts(claim.allocatable), False)

    def _write_node(self, record: NodeRecord, claim: UpcomingNode | None) -> None:
        taints, labels = record.taints, record.labels
        amounts = self.resources.amounts(record.allocatable)
        if claim is not None and not claim.initialized:
            startup = {(taint.key, taint.effect) for taint in claim.startup_taints}
            taints = tuple(
                taint
                for taint in taints
                if (taint.key, taint.effect) not in startup and taint.key not in _EPHEMERAL_TAINTS
            )
            labels = {**claim.labels, **labels}
            # The kubelet reports some resources later than others.
            for column, amount in self.resources.amounts(claim.allocatable).items():
                amounts.setdefault(column, amount)
        for driver, limit in self.volumes.limits(record.name).items():
            amounts[self.resources.column(ATTACHABLE + driver)] = limit
        self._write(record.name, labels, taints, amounts, record.unschedulable)

    def _write(
        self,
        name: str,
        labels: Mapping[str, str],
        taints: Sequence[NodeTaint],
        amounts: Mapping[int, int],
        cordoned: bool,
    ) -> None:
        for column, resource in enumerate(self.resources.names):
            if resource.startswith(ATTACHABLE) and column not in amounts:
                amounts = {**amounts, column: MOST}
        row = self._node_rows.get(name)
        self.version += 1
        self._reserved = None
        if row is not None:
            moved = self.nodes.labels[row] != labels or not self.nodes.has_taints(row, taints)
            self.nodes.put(row, name, labels, taints, amounts, cordoned=cordoned)
            self._recount = self._recount or moved
            return
        if self._vacant:
            row = self._vacant.pop()
            self.nodes.put(row, name, labels, taints, amounts, cordoned=cordoned)
        else:
            row = self.nodes.add(name, labels, taints, amounts, cordoned=cordoned)
        self._node_rows[name] = row
        self._seat(name)

    def _seat(self, name: str) -> None:
        """Place the pods that are bound to a node, or nominated for it, before it was known."""
        for pod in sorted(self._waiting.pop(name, ())):
            record = self._records[pod]
            if record is not None:
                self._set_place(pod, record)

    def _drop_row(self, name: str) -> None:
        row = self._node_rows.pop(name)
        self.version += 1
        self._reserved = None
        self.flush()
        for pod in np.flatnonzero(self._wanted[1] == row):
            record = self._records[pod]
            if record is not None:
                self._set_place(int(pod), record)
        self.flush()
        self.nodes.remove(row)
        self._vacant.append(row)

    def _changed_daemons(self) -> None:
        self.version += 1
        self._reserved = None

    def reserved(self) -> Amounts:
        """Return the room that is set aside for pods of DaemonSets which are not bound yet, by resource and node."""
        if self._reserved is None or self._reserved.shape != (len(self.resources), self.nodes.count):
            needs = [(key, self._daemon_rule(record)) for key, record in sorted(self._daemon_sets.items())]
            reserved = np.zeros((len(self.resources), self.nodes.count), np.int64)
            present: dict[PodKey, list[int]] = {}
            for row, owner in self._daemon_pods.items():
                if self._wanted[1, row] >= 0:
                    present.setdefault(owner, []).append(int(self._wanted[1, row]))
            for key, (rule, amounts) in needs:
                wanted = self.nodes.allowed_by(rule) & self.nodes.alive[: self.nodes.count]
                wanted = wanted.copy()
                wanted[present.get(key, [])] = False
                for column, amount in amounts.items():
                    reserved[column, wanted] += amount
            self._reserved = reserved
        return self._reserved

    def daemon_needs(self) -> list[tuple[NodeRule, Mapping[int, int], DaemonSetRecord]]:
        """List the rules and requests of the pods of all DaemonSets, which every new node must have room for."""
        return [(*self._daemon_rule(record), record) for _, record in sorted(self._daemon_sets.items())]

    def _daemon_rule(self, record: DaemonSetRecord) -> tuple[NodeRule, Mapping[int, int]]:
        amounts = self.resources.amounts(record.pod_class.requests)
        amounts[PODS] = 1
        self.nodes.widen()
        return self.rules.intern(rule_of(record.pod_class)), amounts


_EPHEMERAL_TAINTS = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.cloudprovider.kubernetes.io/uninitialized",
    _UNREGISTERED,
)
"""Taints of nodes that are starting."""


_EXCLUSIVE: Final = ("awsElasticBlockStore", "gcePersistentDisk", "iscsi", "rbd")
"""The plugins of disks that not every pod may use on the same node."""


def _has_volumes(details: PodDetails) -> bool:
    return bool(details.claims or details.disks or details.ephemeral_claims)


def _with_disks(needs: VolumeNeeds, details: PodDetails) -> VolumeNeeds:
    """Add the disks that a pod names itself and that it may not share."""
    disks = {disk for disk in details.disks if disk.plugin in _EXCLUSIVE}
    return replace(needs, disks=tuple(sorted(disks, key=repr))) if disks else needs


def _upcoming(claim: str) -> str:
    """Return the name under which the upcoming node of a claim is kept; no node can have it."""
    return f"nodeclaim/{claim}"


def _grown(array: Amounts, size: int) -> Amounts:
    new = np.zeros((*array.shape[:-1], size), array.dtype)
    new[..., : array.shape[-1]] = array
    return new
