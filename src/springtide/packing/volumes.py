"""Volumes: what the claims and disks of pods resolve to, kept up to date by deltas.

`Volumes` knows claims, volumes, storage classes and the CSI drivers of nodes, and which live pods use which claims and
disks. Of these it answers what the volumes of one pod mean for its placement: where they can be reached, how many are
attached, and whether a claim refuses every node. The answers follow the plugins VolumeBinding, VolumeZone,
VolumeRestrictions and NodeVolumeLimits of kube-scheduler 1.36 and have no names of claims, so that pods with claims of
the same kind share a shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from types import MappingProxyType
from typing import Final, TypeVar

import msgspec

from springtide.apis.core.pod_record import NodeSelector, PodDetails
from springtide.apis.core.volumes import (
    CSINodeRecord,
    StorageClassRecord,
    TopologyTerm,
    VolumeClaimRecord,
    VolumeRecord,
    default_class,
    ephemeral_claim_record,
)
from springtide.packing.columns import AffinityTerms, VolumeTopology, affinity_terms
from springtide.packing.predicates import Requirement, canonical, holds, selects
from springtide.packing.shapes import NO_VOLUMES, VolumeNeeds
from springtide.quantity import Quantity

PodKey = tuple[str, str]
"""Namespace and name of a pod."""
_ClaimKey = tuple[str, str]
_Disk = tuple[str, str]
"""A CSI driver, and what identifies the volume to it."""

_BINDING: Final = "VolumeBinding"
_ZONE: Final = "VolumeZone"
_RESTRICTIONS: Final = "VolumeRestrictions"

_ZONE_LABELS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region": "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    }
)
"""The labels that VolumeZone reads, and the label that nodes have instead of a deprecated one."""
_NOWHERE_KNOWN: Final = tuple((key, "DoesNotExist", ()) for key in sorted(_ZONE_LABELS))
"""What nodes meet that are in no zone and no region, which VolumeZone lets pass."""

_MOST_GROUPS: Final = 16
_MOST_CLAIMS: Final = 4
"""For how many kinds of places, and claims of a pod, it is computed exactly which have a volume for each claim."""
_MOST_KEPT: Final = 1024
_NO_LIMITS: Mapping[str, int] = MappingProxyType({})
_ANYWHERE: Final = None
_Reach = AffinityTerms | None
"""The nodes that can use a volume; None: all."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class _UnusableClaimError(Exception):
    """A claim refuses every node; the message says why."""


@dataclass(slots=True)
class _Use:
    """What a live pod uses."""

    namespace: str
    details: PodDetails
    bound: bool
    disks: tuple[_Disk, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Existing volumes that a claim may get, and the nodes that can use one of them."""

    volumes: tuple[VolumeRecord, ...] = ()
    reach: _Reach = ()


class Volumes:
    """Claims, volumes, storage classes and the drivers of nodes, and the pods that use them."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._claims: dict[_ClaimKey, VolumeClaimRecord] = {}
        self._volumes: dict[str, VolumeRecord] = {}
        self._classes: dict[str, StorageClassRecord] = {}
        self._nodes: dict[str, CSINodeRecord] = {}
        self._limited: dict[str, int] = {}
        """How many nodes limit the volumes of a driver; drivers that none limits are not counted at all."""
        # Inner dictionaries are sets that keep their order.
        self._claims_of_volume: dict[str, dict[_ClaimKey, None]] = {}
        self._claims_of_class: dict[str, dict[_ClaimKey, None]] = {}
        self._unbound_of_class: dict[str, dict[_ClaimKey, None]] = {}
        self._reserved: dict[_ClaimKey, dict[str, None]] = {}
        """The volumes that are for a claim."""
        self._free: dict[str, dict[str, None]] = {}
        """The volumes of a class that are for no claim."""
        self._candidates: dict[str, dict[object, _Candidates]] = {}
        """Which free volumes of a class suit claims of the same kind."""
        self._together: dict[tuple[tuple[_Candidates, Quantity | None], ...], _Reach] = {}
        """Which nodes have a free volume for each of several claims."""
        self._uses: dict[PodKey, _Use] = {}
        self._pods_of_claim: dict[_ClaimKey, dict[PodKey, None]] = {}
        self._pods_of_disk: dict[_Disk, dict[PodKey, None]] = {}
        self._changed: dict[PodKey, None] = {}
        self._changed_classes: dict[str, None] = {}
        """Classes for whose unbound claims other volumes are free than before."""

    # Deltas of storage.

    def put_claim(self, record: VolumeClaimRecord) -> None:
        """Add or change a claim."""
        self._write_claim((record.namespace, record.name), record)

    def remove_claim(self, namespace: str, name: str) -> None:
        """Remove a claim."""
        self._write_claim((namespace, name), None)

    def _write_claim(self, key: _ClaimKey, new: VolumeClaimRecord | None) -> None:
        old = self._claims.pop(key, None)
        if new is not None:
            self._claims[key] = new
        if new == old:
            return
        for record, change in ((old, _discard), (new, _add)):
            if record is None:
                continue
            if record.volume_name:
                change(self._claims_of_volume, record.volume_name, key)
            if record.storage_class:
                change(self._claims_of_class, record.storage_class, key)
                if not record.volume_name:
                    change(self._unbound_of_class, record.storage_class, key)
        self._refresh_claims((key,))

    def put_volume(self, record: VolumeRecord) -> None:
        """Add or change a volume."""
        self._write_volume(record.name, record)

    def remove_volume(self, name: str) -> None:
        """Remove a volume."""
        self._write_volume(name, None)

    def _write_volume(self, name: str, new: VolumeRecord | None) -> None:
        old = self._volumes.pop(name, None)
        if new is not None:
            self._volumes[name] = new
        if new == old:
            return
        claims = dict(self._claims_of_volume.get(name, {}))
        for record, change in ((old, _discard), (new, _add)):
            if record is None:
                continue
            if record.claim is not None:
                change(self._reserved, record.claim, name)
                claims[record.claim] = None
            elif record.phase == "Available":
                change(self._free, record.storage_class, name)
                self._candidates.pop(record.storage_class, None)
                self._together.clear()
                self._changed_classes[record.storage_class] = None
        self._refresh_claims(claims)

    def put_class(self, record: StorageClassRecord) -> None:
        """Add or change a storage class."""
        if self._classes.get(record.name) != record:
            self._classes[record.name] = record
            self._refresh_claims(self._claims_of_class.get(record.name, ()))

    def remove_class(self, name: str) -> None:
        """Remove a storage class."""
        if self._classes.pop(name, None) is not None:
            self._refresh_claims(self._claims_of_class.get(name, ()))

    def put_csi_node(self, record: CSINodeRecord) -> None:
        """Add or change the drivers of a node."""
        self._write_csi_node(record.name, record)

    def remove_csi_node(self, name: str) -> None:
        """Remove the drivers of a node."""
        self._write_csi_node(name, None)

    def _write_csi_node(self, name: str, new: CSINodeRecord | None) -> None:
        old = self._nodes.pop(name, None)
        if new is not None:
            self._nodes[name] = new
        before = old.limits if old is not None else _NO_LIMITS
        after = new.limits if new is not None else _NO_LIMITS
        other: set[str] = set()
        for driver in after:
            if driver not in before:
                self._limited[driver] = self._limited.get(driver, 0) + 1
                if self._limited[driver] == 1:
                    other.add(driver)
        for driver in before:
            if driver not in after:
                self._limited[driver] -= 1
                if not self._limited[driver]:
                    del self._limited[driver]
                    other.add(driver)
        if other:
            for (driver, _), pods in self._pods_of_disk.items():
                if driver in other:
                    self._changed.update(pods)

    def _refresh_claims(self, claims: Iterable[_ClaimKey]) -> None:
        for claim in claims:
            for pod in self._pods_of_claim.get(claim, ()):
                self._changed[pod] = None
                use = self._uses[pod]
                self._set_disks(pod, use, self._disks(use.namespace, use.details))

    # Deltas of pods.

    def use(self, pod_key: PodKey, namespace: str, details: PodDetails, *, bound: bool = False) -> None:
        """Note what a live pod uses; `bound` once it has a node, so that no other pod can have its claims for one pod.

        Ask for the needs of the pod itself afterwards: `changed` lists only the other pods.
        """
        if not (details.claims or details.disks or details.ephemeral_claims):
            self.release(pod_key)
            return
        known = self._uses.get(pod_key)
        if known is not None and known.namespace == namespace and known.details == details:
            if known.bound != bound:
                known.bound = bound
                self._changed_exclusive(pod_key, known)
            return
        self.release(pod_key)
        use = self._uses[pod_key] = _Use(namespace, details, bound)
        for name in _claim_names(details):
            _add(self._pods_of_claim, (namespace, name), pod_key)
        self._set_disks(pod_key, use, self._disks(namespace, details))
        self._changed_exclusive(pod_key, use)

    def release(self, pod_key: PodKey) -> None:
        """Note that a pod uses nothing any more: it has ended, or it is gone."""
        use = self._uses.pop(pod_key, None)
        self._changed.pop(pod_key, None)
        if use is None:
            return
        self._set_disks(pod_key, use, ())
        for name in _claim_names(use.details):
            _discard(self._pods_of_claim, (use.namespace, name), pod_key)
        self._changed_exclusive(pod_key, use)

    def _set_disks(self, pod_key: PodKey, use: _Use, disks: tuple[_Disk, ...]) -> None:
        if disks == use.disks:
            return
        for disk in use.disks:
            _discard(self._pods_of_disk, disk, pod_key)
            left = self._pods_of_disk.get(disk, {})
            if len(left) == 1:
                self._changed.update(left)
        use.disks = disks
        for disk in disks:
            present = self._pods_of_disk.get(disk, {})
            if len(present) == 1:
                self._changed.update(present)
            _add(self._pods_of_disk, disk, pod_key)

    def _changed_exclusive(self, pod_key: PodKey, use: _Use) -> None:
        """Note the other pods with its claims for one pod."""
        for name in use.details.claims:
            claim = self._claims.get((use.namespace, name))
            if claim is not None and claim.for_one_pod:
                others = self._pods_of_claim.get((use.namespace, name), {})
                self._changed.update((pod, None) for pod in others if pod != pod_key)

    def changed(self) -> list[PodKey]:
        """Return the pods in use whose needs may have changed since the last call, sorted."""
        for name in self._changed_classes:
            for claim in self._unbound_of_class.get(name, ()):
                self._changed.update(self._pods_of_claim.get(claim, {}))
        found = sorted(self._changed)
        self._changed, self._changed_classes = {}, {}
        return found

    # Questions.

    def limits(self, node_name: str) -> Mapping[str, int]:
        """Return how many volumes can be attached to a node, by driver."""
        node = self._nodes.get(node_name)
        return node.limits if node is not None else _NO_LIMITS

    def needs(
        self, pod_key: PodKey, namespace: str, details: PodDetails, *, assume_created: bool = False
    ) -> VolumeNeeds:
        """Return what the volumes of a pod resolve to.

        With `assume_created` the pod is one of a template: the claims of `details.ephemeral_claims` that do not exist
        yet, also those that a StatefulSet will create, are provisioned where the pod goes, and whatever else it uses
        counts as shared with the other pods of the template. `changed` does not list such pods.
        """
        if not (details.claims or details.disks or details.ephemeral_claims):
            return NO_VOLUMES
        created = {each.name: each for each in details.ephemeral_claims}
        claims: list[VolumeClaimRecord] = []
        waiting: list[tuple[VolumeClaimRecord, StorageClassRecord]] = []
        topologies: set[VolumeTopology] = set()
        zones: dict[str, frozenset[str]] = {}
        counts: dict[str, int] = {}
        blocked = because = ""
        for name in _claim_names(details):
            claim = self._claims.get((namespace, name))
            try:
                if claim is None:
                    if name not in created:
                        raise _UnusableClaimError(f"claim {name} does not exist")
                    if not assume_created:
                        raise _UnusableClaimError(f"claim {name} of its ephemeral volume does not exist yet")
                    claim = self._assumed(ephemeral_claim_record(namespace, created[name]))
                    driver = self._class_of(claim).driver
                    if driver in self._limited:
                        counts[driver] = counts.get(driver, 0) + 1
                    waiting.append((claim, self._class_of(claim)))
                    continue
                claims.append(claim)
                volume = self._bound_volume(claim)
                if volume is None:
                    waiting.append((claim, self._class_of(claim)))
                    continue
            except _UnusableClaimError as error:
                blocked, because = blocked or _BINDING, because or str(error)
                continue
            reach = _reach(volume.node_affinity)
            if reach is not _ANYWHERE:
                topologies.add((_BINDING, reach))
            # VolumeZone leaves out ephemeral volumes; claims of a StatefulSet are not that.
            if assume_created or name not in created:
                for key, values in _zones_of(volume):
                    zones[key] = zones.get(key, values) & values
            if reach == ():
                blocked, because = blocked or _BINDING, because or f"the volume of claim {name} can be used on no node"
        if not blocked:
            try:
                topologies.update((_BINDING, reach) for reach in self._reach_of_waiting(waiting))
            except _UnusableClaimError as error:
                blocked, because = _BINDING, str(error)
        if not blocked:
            taken = self._taken(pod_key, namespace, [claim for claim in claims if claim.name not in created])
            if taken:
                blocked, because = _RESTRICTIONS, f"claim {taken} is for one pod, and another pod uses it"
        exclusive = [
            f"{namespace}/{claim.name}"
            for claim in claims
            if claim.for_one_pod and claim.name not in created and self._is_wanted(pod_key, namespace, claim.name)
        ]
        topologies.update((_ZONE, _zone_terms(key, values)) for key, values in zones.items())
        shared: set[_Disk] = set()
        if self._limited:
            own = {disk for name in created if (disk := self._disk_of_claim(namespace, name)) is not None}
            for disk in self._disks(namespace, details):
                if disk[0] not in self._limited:
                    continue
                pods = self._pods_of_disk.get(disk, {})
                if len(pods) > (pod_key in pods) or (assume_created and disk not in own):
                    shared.add(disk)
                else:
                    counts[disk[0]] = counts.get(disk[0], 0) + 1
        # Where volumes can be reached does not matter to a pod that no node takes.
        needs = VolumeNeeds(
            topologies=() if blocked else tuple(sorted(topologies)),
            attached=tuple(sorted(counts.items())),
            shared=tuple(sorted(shared)),
            exclusive=() if blocked else tuple(sorted(exclusive)),
            blocked=blocked,
            because=because,
        )
        return NO_VOLUMES if needs == NO_VOLUMES else needs

    def _bound_volume(self, claim: VolumeClaimRecord) -> VolumeRecord | None:
        """Return the volume of a claim; None if it is bound where the pod goes."""
        if claim.deleting:
            raise _UnusableClaimError(f"claim {claim.name} is being deleted")
        if claim.bound:
            volume = self._volumes.get(claim.volume_name)
            if volume is None:
                raise _UnusableClaimError(
                    f"claim {claim.name} is bound to volume {claim.volume_name}, which does not exist"
                )
            return volume
        if claim.volume_name:
            raise _UnusableClaimError(f"claim {claim.name} is not bound yet to volume {claim.volume_name}")
        if not self._class_of(claim).waits_for_pod:
            raise _UnusableClaimError(f"claim {claim.name} is not bound yet, and does not wait for a pod")
        return None

    def _assumed(self, claim: VolumeClaimRecord) -> VolumeClaimRecord:
        """Return what the API server makes of a claim when it is created: one of the default class if it names none."""
        if claim.volume_name:
            raise _UnusableClaimError(f"claim {claim.name} is not bound yet to volume {claim.volume_name}")
        if claim.storage_class is None and (default := default_class(self._classes.values())) is not None:
            return msgspec.structs.replace(claim, storage_class=default.name)
        return claim

    def _class_of(self, claim: VolumeClaimRecord) -> StorageClassRecord:
        if not claim.storage_class:
            raise _UnusableClaimError(f"claim {claim.name} is not bound and has no storage class")
        storage_class = self._classes.get(claim.storage_class)
        if storage_class is None:
            raise _UnusableClaimError(
                f"claim {claim.name} has the storage class {claim.storage_class}, which does not exist"
            )
        return storage_class

    def _is_wanted(self, pod_key: PodKey, namespace: str, name: str) -> bool:
        """Return whether another pod has a claim among its volumes; ephemeral volumes do not count."""
        return any(
            pod != pod_key and all(one.name != name for one in self._uses[pod].details.ephemeral_claims)
            for pod in self._pods_of_claim.get((namespace, name), ())
        )

    def _taken(self, pod_key: PodKey, namespace: str, claims: list[VolumeClaimRecord]) -> str:
        """Return the name of a claim for one pod that another pod has; ephemeral volumes do not count."""
        for claim in claims:
            if not claim.for_one_pod:
                continue
            for pod in self._pods_of_claim.get((namespace, claim.name), ()):
                use = self._uses[pod]
                if pod != pod_key and use.bound and all(one.name != claim.name for one in use.details.ephemeral_claims):
                    return claim.name
        return ""

    # Claims that are bound where their pod goes.

    def _reach_of_waiting(self, waiting: list[tuple[VolumeClaimRecord, StorageClassRecord]]) -> Iterable[AffinityTerms]:
        """List where claims of one pod can be bound; all must hold."""
        found: list[AffinityTerms] = []
        names: list[str] = []
        existing_only: list[tuple[_Candidates, Quantity | None]] = []
        for claim, storage_class in waiting:
            provisioned = _topology_reach(storage_class.allowed_topologies) if storage_class.provisions else ()
            if claim.selected_node:
                found.append((((), (("metadata.name", "In", (claim.selected_node,)),)),))
                reach: _Reach = provisioned
            else:
                candidates = self._candidates_for(claim)
                if not storage_class.provisions:
                    existing_only.append((candidates, claim.requested))
                    names.append(claim.name)
                reach = _any_of((provisioned, candidates.reach))
            if reach == ():
                missing = (
                    "cannot be provisioned on any node"
                    if storage_class.provisions
                    else f"needs an existing volume of the storage class {storage_class.name}, and none suits"
                )
                raise _UnusableClaimError(f"claim {claim.name} {missing}")
            if reach is not _ANYWHERE:
                found.append(reach)
        if len(existing_only) > 1:
            key = tuple(existing_only)
            if key not in self._together:
                if len(self._together) >= _MOST_KEPT:
                    self._together.clear()
                self._together[key] = _reach_together(existing_only)
            together = self._together[key]
            if together == ():
                raise _UnusableClaimError(f"no node has a volume for each of the claims {', '.join(names)}")
            if together is not _ANYWHERE:
                found.append(together)
        return found

    def _candidates_for(self, claim: VolumeClaimRecord) -> _Candidates:
        """Return the existing volumes that a claim may get: those for it, otherwise those that are free and suit it."""
        name = claim.storage_class or ""
        reserved = (self._volumes[each] for each in sorted(self._reserved.get((claim.namespace, claim.name), ())))
        kept = [each for each in reserved if each.storage_class == name and _is_large_enough(each, claim)]
        if kept:
            return _candidates(kept)
        free = self._free.get(name)
        if free is None:
            return _NO_CANDIDATES
        selector = canonical(claim.selector)
        key = (claim.requested, claim.volume_mode, claim.access_modes, selector)
        known = self._candidates.setdefault(name, {})
        found = known.get(key)
        if found is None:
            found = known[key] = _candidates(
                volume
                for volume in map(self._volumes.__getitem__, sorted(free))
                if _is_large_enough(volume, claim)
                and (selector is None or selects(selector, volume.labels))
                and all(mode in volume.access_modes for mode in claim.access_modes)
            )
        return found

    # Attached volumes.

    def _disks(self, namespace: str, details: PodDetails) -> tuple[_Disk, ...]:
        """List the volumes that a pod attaches, each once."""
        found = {(disk.driver, disk.handle): None for disk in details.disks if disk.driver}
        for name in _claim_names(details):
            disk = self._disk_of_claim(namespace, name)
            if disk is not None:
                found[disk] = None
        return tuple(found)

    def _disk_of_claim(self, namespace: str, name: str) -> _Disk | None:
        """Return what a claim attaches; one without a volume stands for the volume that it will get."""
        claim = self._claims.get((namespace, name))
        if claim is None:
            return None
        volume = self._volumes.get(claim.volume_name) if claim.volume_name else None
        if volume is not None:
            return (volume.driver, volume.handle) if volume.driver else None
        storage_class = self._classes.get(claim.storage_class or "")
        if storage_class is None or not storage_class.driver:
            return None
        return storage_class.driver, f"claim {namespace}/{name}"


def _claim_names(details: PodDetails) -> Iterable[str]:
    """List the claims of a pod, those of ephemeral volumes and of a StatefulSet included, each once."""
    if not details.ephemeral_claims and len(details.claims) < 2:
        return details.claims
    return dict.fromkeys((*details.claims, *(each.name for each in details.ephemeral_claims)))


def _add(index: dict[_Key, dict[_Value, None]], key: _Key, value: _Value) -> None:
    index.setdefault(key, {})[value] = None


def _discard(index: dict[_Key, dict[_Value, None]], key: _Key, value: _Value) -> None:
    values = index.get(key)
    if values is not None:
        values.pop(value, None)
        if not values:
            del index[key]


def _candidates(volumes: Iterable[VolumeRecord]) -> _Candidates:
    found = tuple(volumes)
    return _Candidates(found, _any_of(_reach(volume.node_affinity) for volume in found))


_NO_CANDIDATES: Final = _Candidates()


def _is_large_enough(volume: VolumeRecord, claim: VolumeClaimRecord) -> bool:
    """Return whether a volume has the size and the mode of a claim, and stays."""
    wanted = claim.requested.nano if claim.requested is not None else 0
    size = volume.capacity.nano if volume.capacity is not None else 0
    return size >= wanted and volume.volume_mode == claim.volume_mode and not volume.deleting


@lru_cache(maxsize=16_384)
def _reach(selector: NodeSelector | None) -> _Reach:
    """Return the nodes that a volume with this node affinity can be used on.

    Only labels of nodes are compared with it: requirements on the name see an empty one.
    """
    if selector is None:
        return _ANYWHERE
    terms = [
        (labels, ())
        for labels, fields in affinity_terms(selector)
        if all(holds(operator, "", values) for _, operator, values in fields)
    ]
    return _any_of([tuple(terms)])


@lru_cache(maxsize=1024)
def _topology_reach(terms: tuple[TopologyTerm, ...]) -> _Reach:
    """Return the nodes for which a storage class provisions volumes."""
    if not terms:
        return _ANYWHERE
    found: list[tuple[tuple[Requirement, ...], tuple[Requirement, ...]]] = []
    for term in terms:
        labels = {(one.key, "In", tuple(sorted(set(one.values)))) for one in term.match_label_expressions}
        if labels:
            found.append((tuple(sorted(labels)), ()))
    return _any_of([tuple(found)])


def _any_of(reaches: Iterable[_Reach]) -> _Reach:
    """Return the nodes of any of these, in canonical form.

    Terms that only list values of the same label become one, so that a thousand local volumes are one requirement.
    """
    values: dict[str, set[str]] = {}
    others: set[tuple[tuple[Requirement, ...], tuple[Requirement, ...]]] = set()
    for reach in dict.fromkeys(reaches):
        if reach is _ANYWHERE:
            return _ANYWHERE
        for labels, fields in reach:
            if not labels and not fields:
                return _ANYWHERE
            if len(labels) == 1 and not fields and labels[0][1] == "In":
                values.setdefault(labels[0][0], set()).update(labels[0][2])
            else:
                others.add((labels, fields))
    listed = {(((key, "In", tuple(sorted(found))),), ()) for key, found in values.items() if found}
    return tuple(sorted(listed | others))


def _reach_together(claims: list[tuple[_Candidates, Quantity | None]]) -> _Reach:
    """Return the nodes with a different existing volume for each claim of a pod, of candidates and a size each.

    Volumes are grouped by the nodes that can use them; a node needs enough of these groups. Local volumes have one
    group for each hostname, of which a node can be in one only. Others have few groups; if they are too many for all
    combinations, no more is said than each claim says itself.
    """
    known = {volume.name: volume for candidates, _ in claims for volume in candidates.volumes}
    reaches = {name: _reach(volume.node_affinity) for name, volume in known.items()}
    everywhere = [name for name, reach in reaches.items() if reach is _ANYWHERE]
    groups: dict[AffinityTerms, list[str]] = {}
    keys = {_listed_label(reach) for reach in reaches.values() if reach is not _ANYWHERE}
    exclusive = len(keys) == 1 and "" not in keys
    for name, reach in reaches.items():
        if reach is _ANYWHERE:
            continue
        if exclusive:
            key, _, values = reach[0][0][0]
            for value in values:
                groups.setdefault(((((key, "In", (value,)),), ()),), []).append(name)
        else:
            groups.setdefault(reach, []).append(name)
    if not exclusive and (len(groups) > _MOST_GROUPS or len(claims) > _MOST_CLAIMS):
        return _ANYWHERE

    # As in kube-scheduler the smallest claim chooses first, the smallest volume.
    ranks = {each.name: rank for rank, each in enumerate(sorted(known.values(), key=_size_and_name))}
    smallest_first = sorted(claims, key=lambda each: each[1].nano if each[1] is not None else 0)
    suited = [{volume.name for volume in candidates.volumes} for candidates, _ in smallest_first]

    def suffice(names: Iterable[str]) -> bool:
        left = sorted(dict.fromkeys(names), key=ranks.__getitem__)
        for suiting in suited:
            chosen = next((name for name in left if name in suiting), None)
            if chosen is None:
                return False
            left.remove(chosen)
        return True

    if suffice(everywhere):
        return _ANYWHERE
    found: list[frozenset[AffinityTerms]] = []
    terms: list[AffinityTerms] = []
    for count in range(1, 2 if exclusive else len(claims) + 1):
        for chosen in combinations(sorted(groups), count):
            if count > 1 and any(smaller <= set(chosen) for smaller in found):
                continue
            if suffice([*everywhere, *(name for group in chosen for name in groups[group])]):
                found.append(frozenset(chosen))
                terms.append(
                    tuple(
                        (tuple(sorted({each for part in parts for each in part[0]})), ()) for parts in product(*chosen)
                    )
                )
    return _any_of(terms)


def _size_and_name(volume: VolumeRecord) -> tuple[int, str]:
    return volume.capacity.nano if volume.capacity is not None else 0, volume.name


def _listed_label(reach: AffinityTerms) -> str:
    """Return the label of which a reach lists values, if it requires nothing else."""
    if len(reach) == 1 and len(reach[0][0]) == 1 and reach[0][0][0][1] == "In":
        return reach[0][0][0][0]
    return ""


def _zones_of(volume: VolumeRecord) -> list[tuple[str, frozenset[str]]]:
    """List the labels of zone and region of a volume, with their values; a label with an empty value says nothing."""
    found = []
    for key in _ZONE_LABELS:
        if key in volume.labels:
            values = frozenset(value.strip() for value in volume.labels[key].split("__"))
            if "" not in values:
                found.append((key, values))
    return found


def _zone_terms(key: str, values: frozenset[str]) -> AffinityTerms:
    """Return the nodes that VolumeZone takes: those with one of the values, and those without zone and region.

    If a node does not have a deprecated label, its successor is read.
    """
    listed = tuple(sorted(values))
    terms: list[tuple[Requirement, ...]] = [_NOWHERE_KNOWN]
    if listed:
        terms.append(((key, "In", listed),))
        if _ZONE_LABELS[key] != key:
            terms.append(((key, "DoesNotExist", ()), (_ZONE_LABELS[key], "In", listed)))
    return tuple(sorted((tuple(sorted(term)), ()) for term in terms))
