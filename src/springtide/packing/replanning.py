"""Replanning: a plan for a cluster that has hardly changed, made of the last one.

What still holds is kept: pods stay where they were placed as long as they are asked for and their node has room. Only
the difference is placed, into free room first and then on new nodes of the offerings that the plan uses already. The
result is a function of the last plan and the cluster. It is refused (and everything planned anew) where constraints
between pods, all-or-nothing groups or changed nodes make more of a difference, and as soon as it costs noticeably more
than the last plan did for its pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from springtide.packing.columns import Amounts, Mask
from springtide.packing.greedy import greedy
from springtide.packing.problem import UNLIMITED, NodeTypes, PodDemand
from springtide.packing.shapes import Shape
from springtide.packing.snapshot import Snapshot
from springtide.packing.space import Ask, Space, Step, in_order

if TYPE_CHECKING:
    from springtide.packing.offerings import Offerings
    from springtide.packing.planning import Plan, PlannedNodes

_MOST_NODES = 20_000
_DEARER = 102
"""Percent of the price for the same size of pods in the last plan made anew, up to which a plan is adjusted."""


@dataclass(slots=True)
class Layout:
    """Where the pods of a plan are, as arrays: an entry for each node and shape, existing nodes first."""

    shape: Amounts
    node: Amounts
    """Positions of existing nodes, then planned nodes by their number after these."""
    pods: Amounts
    steps: list[Step]
    """For the first entries, which are those on existing nodes."""
    rows: list[PlannedNodes]
    """For each planned node."""


def layout_of(plan: Plan, existing: int) -> Layout:
    """Return where the pods of a plan are."""
    entries = [(step.shape.number, step.node, step.pods) for step in plan.placed]
    rows: list[PlannedNodes] = []
    for group in plan.groups:
        one = group if group.nodes == 1 else group.single()
        for _ in range(group.nodes):
            entries += [(shape.number, existing + len(rows), pods) for shape, pods in group.pods]
            rows.append(one)
    shape, node, pods = np.array(entries, np.int64).reshape(-1, 3).T
    return Layout(shape, node, pods, list(plan.placed), rows)


def is_unchanged(plan: Plan, snapshot: Snapshot, asks: Sequence[Ask], offerings: Offerings) -> bool:
    """Return whether a plan still is the answer: nothing has changed that could change it."""
    basis = plan.basis
    return (
        basis is not None
        and plan.offerings_asked is offerings
        and basis.version == snapshot.version
        and basis.shapes is snapshot.shapes
        and basis.asks == tuple(asks)
    )


@dataclass(frozen=True, slots=True)
class Basis:
    """What a plan was made of, to see what has changed since."""

    version: int
    nodes_version: int
    shapes: Sequence[Shape]
    asks: tuple[Ask, ...]
    fresh: tuple[int, int] = (0, 0)
    """The cost of the last plan that was made anew, and the size of its pods: adjustments must not add up."""


def is_adjustable(plan: Plan) -> bool:
    """Return whether a plan is one that can be adjusted: of pods without constraints, all of which have a place."""
    return (
        plan.strategy == "least-cost" and not plan.unplaced and not plan.steps and 0 < plan.nodes <= _MOST_NODES
    ) and not any(pool.min_values for pool in plan.offerings.pools)


def adjusted(plan: Plan, snapshot: Snapshot, asks: Sequence[Ask], offerings: Offerings) -> Plan | None:
    """Return the last plan, adjusted to other pods; None where it must be made anew."""
    basis = plan.basis
    if (
        basis is None
        or not is_adjustable(plan)
        or plan.offerings_asked is not offerings
        or basis.nodes_version != snapshot.nodes.version
        or basis.shapes is not snapshot.shapes
        or any(each.shape.is_constrained or each.shape.blocked or each.group or each.virtual for each in asks)
    ):
        return None
    return _Adjustment(plan, snapshot, asks, offerings).run()


class _Adjustment:
    def __init__(self, plan: Plan, snapshot: Snapshot, asks: Sequence[Ask], offerings: Offerings) -> None:
        self.plan, self.offerings = plan, offerings
        self.asks = in_order(asks)
        self.space: Space = snapshot.fork()
        self.existing = self.space.nodes.count
        self.layout = plan.layout or layout_of(plan, self.existing)
        self.shapes = snapshot.shapes
        self.wanted = np.zeros(len(self.shapes), np.int64)
        for ask in asks:
            self.wanted[ask.shape.number] += ask.count
        self.needs = np.zeros((len(self.space.resources), len(self.shapes)), np.int64)
        for number in np.unique(np.concatenate([self.layout.shape, np.flatnonzero(self.wanted)])).tolist():
            shape = self.shapes[number]
            self.needs[shape.columns, number] = shape.needs
        chosen = [row.offering for row in self.layout.rows]
        planned = offerings.columns.allocatable[:, chosen] if chosen else np.zeros((len(self.needs), 0), np.int64)
        self.chosen = chosen
        self.free = np.concatenate([self.space.free, planned], axis=1)

    def run(self) -> Plan | None:
        kept = self._kept()
        self._use(kept)
        missing = self.wanted.copy()
        np.subtract.at(missing, self.layout.shape, kept)
        added = self._into_free_room(missing)
        new = self._on_new_nodes(missing)
        return None if new is None else self._plan(kept, added, new)

    def _kept(self) -> Amounts:
        """Return how many pods of each entry stay: not more than are asked for, nor than their node has room for.

        Of a shape of which fewer pods are asked for, those on nodes that lack room go first: a pod was bound where it
        was planned. Then those on planned nodes go.
        """
        layout = self.layout
        short = self._short(layout.pods)[0]
        rank = np.where(layout.node >= self.existing, 1, np.where(short[layout.node], 2, 0))
        order = np.argsort(layout.shape * 3 + rank, kind="stable")
        counts, shapes = layout.pods[order], layout.shape[order]
        before = np.cumsum(counts) - counts
        first = np.searchsorted(shapes, shapes)
        kept = np.zeros_like(layout.pods)
        kept[order] = np.clip(self.wanted[shapes] - (before - before[first]), 0, counts)
        short, used = self._short(kept)
        if short.any():
            self._relieve(kept, used, short)
        return kept

    def _short(self, pods: Amounts) -> tuple[Mask, Amounts]:
        """Return which nodes lack room for so many pods of each entry, and what these use: only existing ones can."""
        here = slice(len(self.layout.steps))
        shapes, nodes = self.layout.shape[here], self.layout.node[here]
        used = np.zeros_like(self.free)
        for column in range(len(used)):
            amounts = self.needs[column, shapes] * pods[here]
            if amounts.any():
                np.add.at(used[column], nodes, amounts)
        return np.asarray(np.logical_and(self.free < used, used > 0).any(axis=0)), used

    def _relieve(self, pods: Amounts, used: Amounts, short: Mask) -> None:
        """Take pods off nodes that have become too small for them."""
        layout = self.layout
        for entry in np.flatnonzero(short[layout.node]).tolist():
            node, need = int(layout.node[entry]), self.needs[:, layout.shape[entry]]
            lack = np.where(used[:, node] > 0, used[:, node] - self.free[:, node], 0)
            useful = (lack > 0) & (need > 0)
            if useful.any():
                off = min(int(pods[entry]), int((-(-lack[useful] // need[useful])).max()))
                pods[entry] -= off
                used[:, node] -= need * off

    def _use(self, kept: Amounts) -> None:
        layout = self.layout
        for column in range(len(self.free)):
            amounts = self.needs[column, layout.shape] * kept
            if amounts.any():
                np.subtract.at(self.free[column], layout.node, amounts)

    def _into_free_room(self, missing: Amounts) -> list[tuple[Shape, int, int]]:
        """Place pods where there is room, in the order of the nodes; gives shapes, nodes and pods."""
        asked = np.flatnonzero(missing > 0)
        if not len(asked):
            return []
        # Only nodes with room for the smallest of each request are looked at.
        least = self.needs[:, asked].min(axis=1)
        rows = np.flatnonzero((self.free >= least[:, None])[least > 0].all(axis=0))
        free = np.ascontiguousarray(self.free[:, rows])
        at_planned = np.searchsorted(rows, self.existing)
        offerings = np.array(self.chosen, np.int64)[rows[at_planned:] - self.existing]
        added = []
        for ask in self.asks:
            shape, count = ask.shape, int(missing[ask.shape.number])
            if count <= 0:
                continue
            mask = np.concatenate(
                [
                    self.space.nodes.allowed_by(shape.rule)[rows[:at_planned]],
                    self.offerings.columns.allowed_by(shape.rule)[offerings],
                ]
            )
            for column, need in zip(shape.columns.tolist(), shape.needs, strict=True):
                mask &= free[column] >= need
            found = np.flatnonzero(mask)
            if not len(found):
                continue
            most = (free[shape.columns][:, found] // shape.needs[:, None]).min(axis=0)
            taken = np.clip(count - (np.cumsum(most) - most), 0, most)
            for column, need in zip(shape.columns.tolist(), shape.needs, strict=True):
                free[column, found] -= need * taken
            missing[shape.number] -= int(taken.sum())
            here = np.flatnonzero(taken)
            added += [(shape, int(rows[found[n]]), int(taken[n])) for n in here.tolist()]
        self.free[:, rows] = free
        return added

    def _on_new_nodes(self, missing: Amounts) -> list[PlannedNodes] | None:
        """Add nodes of the offerings in use for what is left; None if these do not suffice."""
        from springtide.packing.planning import PlannedNodes

        asked = [ask.shape for ask in self.asks if missing[ask.shape.number] > 0]
        if not asked:
            return []
        offered = np.unique(np.array(self.chosen, np.int64))
        offered = offered[np.lexsort((self.offerings.rank[offered], self.offerings.cost[offered]))]
        columns = sorted({column for shape in asked for column in shape.amounts})
        numbers = [shape.number for shape in asked]
        demand = PodDemand(
            requests=np.ascontiguousarray(self.needs[np.ix_(columns, numbers)].T),
            counts=missing[numbers],
            per_node=np.full(len(asked), UNLIMITED, np.int64),
            allowed=np.stack([self.offerings.columns.allowed_by(shape.rule)[offered] for shape in asked]),
        )
        capacity = np.ascontiguousarray(self.offerings.columns.allocatable[:, offered][columns].T)
        unlimited = np.full(len(offered), UNLIMITED, np.int64)
        packing = greedy(demand, NodeTypes(np.maximum(capacity, 0), self.offerings.cost[offered], unlimited))
        if packing.left:
            return None
        return [
            PlannedNodes(
                int(offered[group.type]),
                group.nodes,
                tuple((asked[number], pods) for number, pods in group.pods),
                int(self.offerings.cost[offered[group.type]]),
            )
            for group in packing.groups
        ]

    def _plan(self, kept: Amounts, added: list[tuple[Shape, int, int]], new: list[PlannedNodes]) -> Plan | None:
        from dataclasses import replace

        from springtide.packing.planning import PlannedNodes

        layout, existing = self.layout, self.existing
        steps: list[Step | None] = list(layout.steps)
        changed: set[int] = {node for _, node, _ in added if node >= existing}
        for entry in np.flatnonzero(kept != layout.pods).tolist():
            if entry < len(steps):
                step = layout.steps[entry]
                steps[entry] = Step(step.shape, step.node, int(kept[entry])) if kept[entry] else None
            else:
                changed.add(int(layout.node[entry]))
        contents: dict[int, dict[int, int]] = {node: {} for node in sorted(changed)}
        on_changed = np.isin(layout.node, sorted(changed))
        for entry in np.flatnonzero(on_changed & (kept > 0)).tolist():
            there, number = contents[int(layout.node[entry])], int(layout.shape[entry])
            there[number] = there.get(number, 0) + int(kept[entry])
        placed = [step for step in steps if step is not None]
        for shape, node, pods in added:
            if node < existing:
                placed.append(Step(shape, node, pods))
            else:
                there = contents[node]
                there[shape.number] = there.get(shape.number, 0) + pods
        rows: list[PlannedNodes] = []
        numbers = np.full(len(layout.rows), -1, np.int64)
        for number, row in enumerate(layout.rows):
            content = contents.get(existing + number)
            if content == {}:
                continue
            numbers[number] = len(rows)
            if content is not None:
                on_node = tuple((self.shapes[each], count) for each, count in sorted(content.items()))
                row = PlannedNodes(row.offering, 1, on_node, row.price)
            rows.append(row)
        groups = (*rows, *(each.single() for each in new for _ in range(each.nodes)))
        cost = sum(group.price for group in groups)
        sizes = np.array([shape.size for shape in self.shapes], np.int64)
        planned = self.wanted.copy()
        here = layout.node < existing
        np.subtract.at(planned, layout.shape[here], kept[here])
        for shape, node, pods in added:
            if node < existing:
                planned[shape.number] -= pods
        fresh_cost, fresh_size = self.plan.basis.fresh if self.plan.basis is not None else (0, 0)
        if not self._within_limits(groups) or cost * fresh_size * 100 > fresh_cost * int(sizes @ planned) * _DEARER:
            return None
        self._settle(placed)
        asked = {int(column): int(self.needs[column] @ planned) for column in np.flatnonzero(self.needs.any(axis=1))}
        return replace(
            self.plan,
            method="adjusted",
            space=self.space,
            placed=tuple(placed),
            groups=groups,
            cost=cost,
            lower_bound=self.plan.prices.bound(asked, self.free[:, :existing]) if self.plan.prices else 0,
            layout=self._layout(kept, added, placed, numbers, groups),
        )

    def _settle(self, placed: list[Step]) -> None:
        """Give the space the state that it would have after placing the pods."""
        self.space.free = np.ascontiguousarray(self.free[:, : self.existing])
        self.space.steps = placed
        for step in placed if any(shape.bumps for shape in self.shapes) else ():
            for number in step.shape.bumps:
                self.space.counters.add(number, self.space.nodes, np.array([step.node]), step.pods)

    def _layout(
        self,
        kept: Amounts,
        added: list[tuple[Shape, int, int]],
        placed: list[Step],
        numbers: Amounts,
        groups: Sequence[PlannedNodes],
    ) -> Layout:
        """Return where the pods are now."""
        layout, existing = self.layout, self.existing
        there = (kept > 0) & (layout.node < existing)
        here = np.stack([layout.shape[there], layout.node[there], kept[there]])
        came = [(shape.number, node, pods) for shape, node, pods in added if node < existing]
        stays = (kept > 0) & (layout.node >= existing)
        beside = [
            (shape.number, existing + int(numbers[node - existing]), n) for shape, node, n in added if node >= existing
        ]
        first = int((numbers >= 0).sum())
        beside += [
            (shape.number, existing + number, pods)
            for number, group in enumerate(groups[first:], first)
            for shape, pods in group.pods
        ]
        old = np.stack([layout.shape[stays], existing + numbers[layout.node[stays] - existing], kept[stays]])
        parts = [here, np.array(came, np.int64).reshape(-1, 3).T, old, np.array(beside, np.int64).reshape(-1, 3).T]
        shape, node, pods = np.concatenate(parts, axis=1)
        return Layout(shape, node, pods, placed, list(groups))

    def _within_limits(self, groups: Sequence[PlannedNodes]) -> bool:
        if not any(pool.limits for pool in self.offerings.pools) and not (self.offerings.available < UNLIMITED).any():
            return True
        remaining, available = self.offerings.remaining(), self.offerings.available.copy()
        for group in groups:
            remaining[self.offerings.pool[group.offering]] -= self.offerings.capacity[group.offering] * group.nodes
            available[group.offering] -= group.nodes
        return bool((remaining >= 0).all() and (available >= 0).all())
