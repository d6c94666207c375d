"""Scores: which of the nodes that fit a pod kube-scheduler prefers, by its default plugins and weights.

The functions follow kube-scheduler 1.36, in whole numbers. Where it computes with floating point, the result here is
that of exact arithmetic: it differs by at most one point of a hundred, where a rounded fraction falls below a whole
number. A `ScoreBoard` keeps the scores of a shape while pods are placed one by one, and computes only those of changed
nodes again. Of nodes with equal scores kube-scheduler takes any; here the caller chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Final

import numpy as np

from springtide.apis.core.pod_record import TaintToleration
from springtide.packing.catalogue import HOSTNAME_LABEL
from springtide.packing.columns import ATTACHABLE, CPU, MEMORY, Amounts, Mask, NodeColumns, NodeRule, View
from springtide.packing.counters import Counters
from springtide.packing.predicates import untolerated
from springtide.packing.shapes import CounterKey, Shape
from springtide.packing.space import Space


@dataclass(frozen=True, slots=True)
class Score:
    """A rule that ranks the nodes that fit a pod."""

    name: str
    """The name of the plugin of kube-scheduler that has the rule."""
    weight: int
    """What its points, 0 to 100, are multiplied by."""
    rule: str
    not_modelled: str = ""
    """What kube-scheduler does beyond this, or otherwise."""


SCORES: Final = (
    Score(
        "TaintToleration",
        3,
        "Fewer taints with effect PreferNoSchedule that the pod does not tolerate; the nodes with most of them have 0.",
    ),
    Score(
        "NodeAffinity",
        2,
        "The weights of the preferred node affinity terms that match, in proportion to the node with the highest sum.",
    ),
    Score(
        "NodeResourcesFit",
        1,
        "LeastAllocated: the mean of the free shares of cpu and memory, with the pod.",
        "A pod that requests no cpu counts as 100m, and one that requests no memory as 200Mi; kube-scheduler counts"
        " that for each container.",
    ),
    Score(
        "PodTopologySpread",
        2,
        "Constraints with ScheduleAnyway: fewer matching pods in the domain, weighed by the logarithm of the number of"
        " domains.",
        "The constraints that a cluster has by default for pods of Services and workloads.",
    ),
    Score(
        "InterPodAffinity",
        2,
        "Preferred affinity and anti-affinity terms of the pod, those of existing pods that match it, and, with weight"
        " 1, required affinity terms of existing pods.",
    ),
    Score(
        "NodeResourcesBalancedAllocation",
        1,
        "How much the pod evens out the allocated shares of cpu and memory. Pods that request neither have no such"
        " score.",
    ),
    Score("ImageLocality", 1, "", "Which images a node has: all nodes score the same."),
)
"""The scores of kube-scheduler, in its order. From 100 nodes on it scores only some of those that fit."""

_MOST: Final = 100
_WEIGHTS: Final = {score.name: score.weight for score in SCORES}
_DEFAULTS: Final = {CPU: 100, MEMORY: 200 << 20}
"""What a pod that does not request them counts as: milli-cpu and bytes."""
_PREFERRED: Final = ("PreferNoSchedule",)
_LOG_BITS: Final = 40
_EXACT: Final = 1 << 62


def scores(space: Space, shape: Shape) -> Amounts:
    """Return the score of each node of a space for a pod; -1 where it does not fit."""
    board = ScoreBoard.of(space)
    return board.scores(shape, board.feasible(shape))


class ScoreBoard:
    """Nodes with their free room, and the scores of shapes on them, while pods are placed one after the other."""

    def __init__(
        self,
        nodes: View,
        allocatable: Amounts,
        free: Amounts,
        defaults: Amounts,
        counters: Counters,
        resources: list[str],
        *,
        refused: Callable[[Shape], Mask | None] = lambda _: None,
    ) -> None:
        """Take over arrays of what is allocatable and free, by resource and node, and counters, which are changed.

        `defaults` has what pods without requests add to cpu and memory of each node in scores, `resources` the names of
        the columns, and `refused` gives nodes that shapes cannot use for reasons that the board does not know.
        """
        self.nodes = nodes
        self.free = free
        self.counters = counters
        self.resources = resources
        self._refused = refused
        self._capacity = np.ascontiguousarray(allocatable[: MEMORY + 1])
        self._divisor = np.maximum(self._capacity, 1)
        self._counted = np.maximum((self._capacity > 0).sum(axis=0), 1)
        self._both: Mask = np.all(self._capacity > 0, axis=0)
        largest = [int(self._divisor[column].max(initial=1)) for column in (CPU, MEMORY)]
        self._exact = largest[0] * largest[1] < _EXACT
        self._defaults = defaults
        self._imbalance = self._imbalances(self._capacity - free[: MEMORY + 1], slice(None))
        self._changes: list[int] = []
        self._kept: dict[Shape, _KeptScores] = {}

    @classmethod
    def of(cls, space: Space) -> ScoreBoard:
        """Make a board of a space; what is placed on the board does not change the space."""
        snapshot = space.snapshot
        return cls(
            space.nodes,
            snapshot.nodes.allocatable[:, space.order],
            space.free.copy(),
            defaults_of(space),
            space.counters.fork(),
            space.resources.names,
        )

    def add(self, shape: Shape, row: int, pods: int = 1) -> None:
        """Place pods of a shape on a node, or remove them if the number is negative."""
        self.free[shape.columns, row] -= shape.needs * pods
        for column, default in _DEFAULTS.items():
            if column not in shape.amounts:
                self._defaults[column, row] += default * pods
        rows = np.array([row])
        attached = [(volume, self._has_volume(volume)[row]) for volume in shape.volumes.shared]
        for number in shape.bumps:
            self.counters.add(number, self.nodes, rows, pods)
        for volume, before in attached:
            column = self.resources.index(ATTACHABLE + volume[0])
            self.free[column, row] -= int(self._has_volume(volume)[row]) - int(before)
        used = self._capacity[:, rows] - self.free[: MEMORY + 1, rows]
        self._imbalance[rows] = self._imbalances(used, rows)
        self._changes.append(row)

    def forget(self, shape: Shape) -> None:
        """Drop what is kept for a shape of which no further pod comes."""
        self._kept.pop(shape, None)

    def best(self, shape: Shape) -> Amounts:
        """Return the nodes with the highest score of those that fit, in their order; empty if none does."""
        kept = self._scores_kept(shape)
        if kept.is_final and not shape.is_constrained and not any(map(self._total, shape.wanted_by)):
            found = kept.scores
        else:
            found = self.scores(shape, self.feasible(shape))
        if not len(found):
            return _NOWHERE
        highest = found.max()
        return np.flatnonzero(found == highest) if highest >= 0 else _NOWHERE

    def feasible(self, shape: Shape) -> Mask:
        """Return the nodes that a pod fits."""
        mask = self._scores_kept(shape).scores >= 0
        if not shape.is_constrained:
            return mask
        nodes, counters = self.nodes, self.counters
        refused = counters.refused_mask(shape, nodes)
        if refused is not None:
            mask &= ~refused
        near = counters.affinity_mask(shape, nodes)
        if near is not None:
            mask &= near
        states = {number: counters.spread(each, nodes) for number, each in enumerate(shape.constraints.spreads)}
        spread = counters.spread_mask(shape, nodes, states)
        if spread is not None:
            mask &= spread
        return mask & self.attachable(shape)

    def scores(self, shape: Shape, feasible: Mask) -> Amounts:
        """Return the scores of the feasible nodes, which decide how others are normalized; -1 for all others."""
        kept = self._scores_kept(shape)
        rows = np.flatnonzero(feasible)
        found = np.full(self.nodes.count, -1, np.int64)
        if not len(rows):
            return found
        total = kept.scores[rows]
        total += _WEIGHTS["TaintToleration"] * (_MOST - _in_proportion(kept.taints[rows]))
        if kept.preferences is not None:
            total += _WEIGHTS["NodeAffinity"] * _in_proportion(kept.preferences[rows])
        if shape.constraints.soft_spreads:
            total += _WEIGHTS["PodTopologySpread"] * self._spread(shape, rows)
        affinity = self._affinity(shape, rows)
        if affinity is not None:
            total += _WEIGHTS["InterPodAffinity"] * affinity
        found[rows] = total
        return found

    def _scores_kept(self, shape: Shape) -> _KeptScores:
        """Return what is kept for a shape, after computing changed nodes again."""
        kept = self._kept.get(shape)
        if kept is None:
            kept = self._kept[shape] = self._first(shape)
        elif kept.seen < len(self._changes):
            changed = self._changes[kept.seen :]
            if len(changed) >= self.nodes.count:
                kept.scores = self._resource_scores(shape, kept, slice(None))
            else:
                rows = np.array(list(dict.fromkeys(changed)))
                kept.scores[rows] = self._resource_scores(shape, kept, rows)
            kept.seen = len(self._changes)
        return kept

    def _first(self, shape: Shape) -> _KeptScores:
        nodes, tolerations = self.nodes, shape.rule.tolerations
        allowed = nodes.allowed_by(shape.rule)
        refused = self._refused(shape)
        if shape.blocked:
            allowed = np.zeros_like(allowed)
        elif refused is not None:
            allowed = allowed & ~refused
        taints = nodes.derived(("avoided", tolerations), lambda columns: avoided_taints(tolerations, columns))
        preferences = None
        for weight, terms in shape.preferences:
            rule = NodeRule(affinity=terms)
            matching = nodes.derived(("matching", terms), rule.affinity_mask)
            preferences = matching * weight + (0 if preferences is None else preferences)
        found = taints[allowed]
        kept = _KeptScores(
            allowed,
            taints,
            preferences,
            is_final=preferences is None
            and not shape.constraints.preferred
            and not shape.constraints.soft_spreads
            and (not len(found) or bool(found.min() == found.max())),
            scores=_NOWHERE,
            seen=len(self._changes),
        )
        kept.scores = self._resource_scores(shape, kept, slice(None))
        return kept

    def _resource_scores(self, shape: Shape, kept: _KeptScores, rows: slice | Amounts) -> Amounts:
        """Return the scores for free resources and their balance; -1 where a pod does not fit."""
        fits: Mask = kept.allowed[rows].copy()
        for column, need in zip(shape.columns.tolist(), shape.needs.tolist(), strict=True):
            fits &= self.free[column, rows] >= need
        inside = np.flatnonzero(fits)
        if 2 * len(inside) > len(fits):
            # Most fit: it is faster to compute all than to select some.
            return np.where(fits, self._points(shape, rows), -1)
        found = np.full(len(fits), -1, np.int64)
        if len(inside):
            found[inside] = self._points(shape, inside if isinstance(rows, slice) else rows[inside])
        return found

    def _points(self, shape: Shape, rows: slice | Amounts) -> Amounts:
        """Return the points for free resources and their balance, as if a pod fitted these nodes."""
        free = self.free[: MEMORY + 1, rows]
        needs = np.array([[shape.amounts.get(CPU, 0)], [shape.amounts.get(MEMORY, 0)]], np.int64)
        counted = np.array([[shape.amounts.get(CPU, _DEFAULTS[CPU])], [shape.amounts.get(MEMORY, _DEFAULTS[MEMORY])]])
        rest = np.maximum(free - self._defaults[:, rows] - counted, 0)
        total: Amounts = (rest * _MOST // self._divisor[:, rows]).sum(axis=0) // self._counted[rows]
        if needs.any():
            better = self._imbalance[rows] - self._imbalances(self._capacity[:, rows] - free + needs, rows)
            total += _MOST // 2 + (_MOST // 2 + better) // 2
        return total

    def _imbalances(self, used: Amounts, rows: slice | Amounts) -> Amounts:
        """Return half the difference between the allocated shares of cpu and memory, in percent, rounded up."""
        divisor = self._divisor[:, rows]
        whole, part = np.divmod(np.minimum(np.maximum(used, 0), self._capacity[:, rows]) * (_MOST // 2), divisor)
        difference = whole[0] - whole[1]
        if not self._exact:
            part, divisor = part.astype(object), divisor.astype(object)
        left, right = part[0] * divisor[1], part[1] * divisor[0]
        more, less = np.greater(left, right).astype(np.int64), np.less(left, right).astype(np.int64)
        positive = (difference > 0) | ((difference == 0) & (more > 0))
        found: Amounts = np.where(positive, difference + more, less - difference)
        found[~self._both[rows]] = 0
        return found

    def attachable(self, shape: Shape) -> Mask:
        """Return the nodes with room for volumes that other pods use as well, and that may be attached already."""
        mask = np.ones(self.nodes.count, np.bool_)
        for driver in dict.fromkeys(driver for driver, _ in shape.volumes.shared):
            new = np.full(self.nodes.count, dict(shape.volumes.attached).get(driver, 0), np.int64)
            for volume in shape.volumes.shared:
                if volume[0] == driver:
                    new += ~self._has_volume(volume)
            mask &= (new == 0) | (self.free[self.resources.index(ATTACHABLE + driver)] >= new)
        return mask

    def _has_volume(self, volume: tuple[str, str]) -> Mask:
        """Return the nodes to which a volume that several pods use is attached."""
        number = self.counters.definitions.find(CounterKey("attached", volume=volume))
        found: Mask = self.counters.counts(number, self.nodes)[self.nodes.positions()] > 0
        return found

    def _total(self, number: int) -> int:
        return self.counters.total(number, self.nodes)

    def _affinity(self, shape: Shape, rows: Amounts) -> Amounts | None:
        """Return the points for preferred affinity, in proportion between the lowest and the highest node."""
        definitions = self.counters.definitions
        terms = [(weight, definitions.find(key)) for weight, key in shape.constraints.preferred]
        terms += [(definitions.keys[number].weight, number) for number in shape.wanted_by]
        total: Amounts | None = None
        for weight, number in terms:
            if self._total(number):
                counts = self.counters.counts(number, self.nodes)
                found = counts[self.counters.domains_of(number, self.nodes)[rows]] * weight
                total = found if total is None else total + found
        if total is None:
            return None
        least = int(total.min())
        points: Amounts = (total - least) * _MOST // max(1, int(total.max()) - least)
        return points

    def _spread(self, shape: Shape, rows: Amounts) -> Amounts:
        """Return the points for spreading; nodes that lack a label of the constraints have none."""
        spreads = shape.constraints.soft_spreads
        codes = [self.nodes.codes(each.counter.topology)[rows] for each in spreads]
        labelled: Mask = np.stack(codes).min(axis=0) >= 0
        points = np.zeros(len(rows), np.int64)
        if not labelled.any():
            return points
        raw = np.full(int(labelled.sum()), 1 << (_LOG_BITS - 1), np.int64)
        for each, own in zip(spreads, codes, strict=True):
            domains = own[labelled]
            hosts = each.counter.topology == HOSTNAME_LABEL
            size = len(domains) if hosts else len(np.unique(domains))
            counts = self.counters.counts(self.counters.definitions.find(each.counter), self.nodes)[domains]
            raw += counts * logarithm(size + 2) + ((each.max_skew - 1) << _LOG_BITS)
        raw >>= _LOG_BITS
        least, most = int(raw.min()), int(raw.max())
        points[labelled] = _MOST if not most else _MOST * (most + least - raw) // most
        return points


@dataclass(slots=True, eq=False)
class _KeptScores:
    """What is kept of the scores of a shape."""

    allowed: Mask
    """Where its rule allows it."""
    taints: Amounts
    """How many taints it should avoid."""
    preferences: Amounts | None
    """The weights of matching preferred terms."""
    is_final: bool
    """Whether its own preferences distinguish no nodes: then only resources, and preferences of other pods, do."""
    scores: Amounts
    """The points for resources; -1 where it does not fit."""
    seen: int
    """How many changes of the board the scores include."""


def defaults_of(space: Space) -> Amounts:
    """Return what pods without requests add to cpu and memory of each node in scores."""
    found = np.zeros((MEMORY + 1, space.nodes.count), np.int64)
    for column, default in _DEFAULTS.items():
        found[column] = space.snapshot.pods_without(column)[space.order] * default
        for step in space.steps:
            if column not in step.shape.amounts:
                found[column, step.node] += step.pods * default
    return found


def avoided_taints(tolerations: Sequence[TaintToleration], columns: NodeColumns) -> Amounts:
    """Return how many taints with effect PreferNoSchedule of each node are not tolerated."""
    sets = columns.vocabulary.taint_sets
    table = np.fromiter((len(untolerated(tolerations, taints, _PREFERRED)) for taints in sets), np.int64, len(sets))
    return table[columns.taint_codes[: columns.count]]


def _in_proportion(points: Amounts) -> Amounts:
    """Return points in percent of the highest."""
    return points * _MOST // max(1, int(points.max()))


@lru_cache(maxsize=8192)
def logarithm(number: int) -> int:
    """Return the natural logarithm as a multiple of 2^-40, the same on every machine."""
    with localcontext() as context:
        context.prec = 40
        return int(Decimal(number).ln() * (1 << _LOG_BITS))


_NOWHERE: Final = np.zeros(0, np.int64)
