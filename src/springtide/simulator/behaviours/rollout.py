"""How far a rollout may go now: the sizes of the ReplicaSets of a Deployment, step by step.

No step lets more pods exist than the surge allows, nor takes an available one away that is needed. All of it is
computed from what the ReplicaSets say of themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from springtide.cluster.resources import Object
from springtide.simulator.behaviours.pods import created_at
from springtide.simulator.behaviours.shares import share

DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"

Sizes = list[tuple[Object, int]]
"""ReplicaSets that should have another size than they have."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a rollout must keep to."""

    wanted: int
    surge: int
    unavailable: int
    recreate: bool

    @property
    def most(self) -> int:
        """How many pods may exist."""
        return self.wanted + self.surge

    @property
    def least(self) -> int:
        """How many pods must be available."""
        return self.wanted - self.unavailable


def bounds(deployment: Object) -> Bounds:
    """Read the strategy of a Deployment."""
    spec = deployment["spec"]
    wanted = int(spec.get("replicas", 1))
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return Bounds(wanted, 0, 0, recreate=True)
    rolling = strategy.get("rollingUpdate") or {}
    surge = share(rolling.get("maxSurge", "25%"), wanted, up=True)
    unavailable = share(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    if not surge and not unavailable:
        # Both rounded to nothing: the rollout would never move.
        unavailable = 1
    return Bounds(wanted, surge, min(unavailable, wanted), recreate=False)


def size(replica_set: Object) -> int:
    """Tell how many pods a ReplicaSet should have."""
    return int(replica_set["spec"].get("replicas", 1))


def told(replica_set: Object, field: str) -> int:
    """Tell what a ReplicaSet counts under a field of its status."""
    return int((replica_set.get("status") or {}).get(field) or 0)


def noted(replica_set: Object, annotation: str) -> int | None:
    """Read a number that a ReplicaSet was given as an annotation."""
    text = (replica_set["metadata"].get("annotations") or {}).get(annotation, "")
    return int(text) if text.isdecimal() else None


def first_size(limits: Bounds, olds: Sequence[Object]) -> int:
    """Tell with how many pods a new ReplicaSet starts."""
    if limits.recreate:
        return limits.wanted
    return max(0, min(limits.most - sum(map(size, olds)), limits.wanted))


def was_scaled(limits: Bounds, replica_sets: Sequence[Object]) -> bool:
    """Tell whether the Deployment was given another size since its ReplicaSets were given theirs."""
    noticed = [noted(item, DESIRED) for item in replica_sets if size(item)]
    return any(count is not None and count != limits.wanted for count in noticed)


def next_sizes(limits: Bounds, new: Object | None, olds: Sequence[Object]) -> Sizes:
    """Take one step of a rollout; `olds` from the oldest on. Nothing to do: no sizes."""
    if new is None:
        return []
    if limits.recreate:
        return [(old, 0) for old in olds if size(old)] or _to(new, limits.wanted)
    return _grown(limits, new, olds) or _shrunk(limits, new, olds)


def _to(item: Object, wanted: int) -> Sizes:
    return [(item, wanted)] if size(item) != wanted else []


def _grown(limits: Bounds, new: Object, olds: Sequence[Object]) -> Sizes:
    if size(new) >= limits.wanted:
        return _to(new, limits.wanted)
    room = limits.most - size(new) - sum(map(size, olds))
    return _to(new, size(new) + max(0, min(room, limits.wanted - size(new))))


def _shrunk(limits: Bounds, new: Object, olds: Sequence[Object]) -> Sizes:
    """Take old pods away: first those that are of no use to anybody, then as many as are not needed."""
    not_yet = max(0, size(new) - told(new, "availableReplicas"))
    room = sum(map(size, (new, *olds))) - limits.least - not_yet
    if room <= 0:
        return []
    kept = []
    for old in olds:
        useless = max(0, min(room, size(old) - told(old, "availableReplicas")))
        kept.append(size(old) - useless)
        room -= useless
    spare = min(room, sum(told(item, "availableReplicas") for item in (new, *olds)) - limits.least)
    sizes = []
    for old, count in zip(olds, kept, strict=True):
        taken = max(0, min(count, spare))
        spare -= taken
        if count - taken != size(old):
            sizes.append((old, count - taken))
    return sizes


def scaled_sizes(limits: Bounds, new: Object | None, olds: Sequence[Object]) -> Sizes:
    """Give a Deployment another size: in the middle of a rollout every ReplicaSet grows or shrinks by its part."""
    everything = [*olds, *([new] if new is not None else [])]
    active = [item for item in everything if size(item)]
    if len(active) <= 1:
        # `everything` has the newest last.
        only = active or ([new] if new is not None else everything[-1:])
        return [(item, limits.wanted) for item in only]
    if limits.recreate or (new is not None and _is_saturated(limits, new)):
        return [(old, 0) for old in olds if size(old)]
    return _in_proportion(limits, active)


def _is_saturated(limits: Bounds, new: Object) -> bool:
    return (
        size(new) == limits.wanted
        and noted(new, DESIRED) == limits.wanted
        and told(new, "availableReplicas") == limits.wanted
    )


def _in_proportion(limits: Bounds, active: list[Object]) -> Sizes:
    allowed = limits.most if limits.wanted else 0
    change = allowed - sum(map(size, active))
    # The largest first; of two of one size the newer grows first, and the older shrinks first.
    direction = -1 if change > 0 else 1
    active.sort(key=lambda item: (-size(item), direction * created_at(item), item["metadata"]["name"]))
    left, sizes = change, []
    for item in active:
        part = _part(limits, item) if left else 0
        part = min(part, left) if change > 0 else max(part, left)
        left -= part
        sizes.append((item, size(item) + part))
    largest, grown = sizes[0]
    sizes[0] = (largest, max(0, grown + left))
    return sizes


def _part(limits: Bounds, item: Object) -> int:
    """Tell by how much one ReplicaSet changes when all change alike; halves round away from zero."""
    if not limits.wanted:
        return -size(item)
    before = noted(item, MOST) or 0
    if not before:
        return 0
    return (2 * size(item) * limits.most + before) // (2 * before) - size(item)
