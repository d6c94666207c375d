"""Reasons: which predicate refuses which node or instance type, and one sentence that says only what differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from springtide.packing.catalogue import CAPACITY_TYPE_LABEL, HOSTNAME_LABEL, ZONE_LABEL
from springtide.packing.columns import ATTACHABLE, NAME_KEY, Amounts, Mask, NodeRule, Nodes
from springtide.packing.counters import SpreadState, pod_refusals
from springtide.packing.offerings import Offerings, is_allowed
from springtide.packing.predicates import FRESH, NAMES, ORDER, PREDICATES, untolerated
from springtide.packing.shapes import Shape
from springtide.packing.space import Space

if TYPE_CHECKING:
    from springtide.packing.growth import Growth

Numbers = npt.NDArray[np.int8]


def refusals(space: Space, shape: Shape) -> dict[str, Mask]:
    """Return for each predicate the existing nodes of a space that it refuses for a pod, regardless of the others."""
    columns, order = space.snapshot.nodes, space.order
    found = node_refusals(space.resources.names, shape, space.room(shape))
    found["NodeUnschedulable"] = ~shape.rule.cordon_mask(columns)[order]
    found["TaintToleration"] = ~shape.rule.taint_mask(columns)[order]
    found["NodeAffinity"] = ~shape.rule.affinity_mask(columns)[order]
    found["VolumeBinding"] = ~shape.rule.volume_mask(columns, "VolumeBinding")[order]
    found["VolumeZone"] = ~shape.rule.volume_mask(columns, "VolumeZone")[order]
    found |= pod_refusals(space.counters, shape, space.nodes)
    if shape.volumes.shared:
        full = np.ones(space.nodes.count, np.bool_)
        space.share_volumes(shape, full)
        found["NodeVolumeLimits"] |= ~full
    for row, names in space.refused_for_promises(shape):
        for name in names:
            found[name][row] = True
    if shape.blocked:
        found[shape.blocked] = np.ones(space.nodes.count, np.bool_)
    return found


def node_refusals(names: list[str], shape: Shape, free: Amounts) -> dict[str, Mask]:
    """Return where resources, and attachments of volumes, do not suffice."""
    nodes = free.shape[1]
    found = {"NodeResourcesFit": np.zeros(nodes, np.bool_), "NodeVolumeLimits": np.zeros(nodes, np.bool_)}
    for column, need in zip(shape.columns.tolist(), shape.needs, strict=True):
        name = "NodeVolumeLimits" if names[column].startswith(ATTACHABLE) else "NodeResourcesFit"
        found[name] |= free[column] < need
    return found


_ALLOWED: Final = len(NAMES)
"""What stands for no predicate in arrays of the first predicate that refuses."""
_MOST_CHARACTERS: Final = 300
_MOST_NAMED: Final = 3
_MOST_OF_LABEL: Final = 48


class Explainer:
    """Says why pods found no place, at the end of a plan: for all shapes from one state of limits and counters."""

    def __init__(self, space: Space, offerings: Offerings, growth: Growth | None = None) -> None:
        """Explain by the existing nodes of a space and the offerings, in the state that growth has left them in."""
        self._space, self._offerings = space, offerings
        self._counters = growth.counters if growth is not None else space.counters
        self._planned = growth.planned if growth is not None else None
        remaining = growth.remaining if growth is not None else offerings.remaining()
        available = growth.available if growth is not None else offerings.available
        # Everything about offerings is in the order of their types, so that each type is one slice.
        self._order = np.argsort(offerings.type_of, kind="stable")
        self._types, self._starts, self._sizes = np.unique(
            offerings.type_of[self._order], return_index=True, return_counts=True
        )
        self._allocatable = np.ascontiguousarray(offerings.columns.allocatable[:, : offerings.count][:, self._order])
        self._pool = offerings.pool_of[self._order]
        self._rest = remaining[self._pool]
        self._capacity = offerings.capacity[self._order]
        closing = np.full(offerings.count, _ALLOWED, np.int8)
        closing[available[self._order] <= 0] = ORDER["Offering"]
        closing[(self._capacity > self._rest).any(axis=1)] = ORDER["Limits"]
        self._closing = closing
        """What refuses an offering whatever is asked for."""
        self._has_minimums = any(pool.min_values for pool in offerings.pools)
        self._by_rule: dict[int, tuple[Numbers, Numbers]] = {}
        self._nodes_by_rule: dict[int, tuple[Numbers, Numbers]] = {}
        self._phrases: dict[tuple[int, int, bytes], str] = {}
        self._without: tuple[int, int] | None = None

    def explain(self, shape: Shape) -> tuple[str, tuple[tuple[str, int], ...]]:
        """Return why a pod cannot be placed, and how many instance types each predicate refuses.

        A type counts once: by the predicate that refuses its last offering, in the order of the predicates.
        """
        total = len(self._offerings.types)
        if shape.blocked:
            refused = ((shape.blocked, total),) if total else ()
            return _cut(shape.because or PREDICATES[ORDER[shape.blocked]].refusal), refused
        nodes = self._on_nodes(shape)
        if not self._offerings.pools or not total:
            missing = "there is no NodePool to add nodes to" if total else "there are no instance types"
            return _within([missing], nodes), ()
        first = self._first(shape)
        last = np.maximum.reduceat(first, self._starts) if len(first) else first
        counts = np.bincount(last, minlength=_ALLOWED + 1)
        without = total - len(last)
        counts[ORDER["Offering"]] += without
        reasons = tuple((NAMES[number], int(counts[number])) for number in np.flatnonzero(counts[:_ALLOWED]))
        pools = len(self._offerings.pools)
        start = f"{counts[_ALLOWED]}/{total} types{f' in {pools} pools' if pools > 1 else ''}: "
        parts = []
        for name, count in sorted(reasons, key=lambda reason: -reason[1]):
            number = ORDER[name]
            types = last == number
            share = "all" if count == total else str(count)
            if number == ORDER["Offering"]:
                parts += self._not_offered(total, int(types.sum()))
            else:
                here = (first == number) & np.repeat(types, self._sizes)
                parts.append(f"{share} {self._phrase(number, shape, here, types)}")
        if counts[_ALLOWED]:
            parts.append(f"{counts[_ALLOWED]} could take the pod alone, but not after what is placed before it")
        parts[0] = start + parts[0]
        return _within(parts, nodes), reasons

    # Which predicate refuses first.

    def _first(self, shape: Shape) -> Numbers:
        """Return for each offering the first predicate that refuses it."""
        before, after = self._by_rule.get(shape.rule.number) or self._judged(shape.rule)
        if shape.is_constrained:
            before, after = self._constrained(shape, before, after)
        short = np.zeros(len(before), np.bool_)
        for column, need in zip(shape.columns.tolist(), shape.needs.tolist(), strict=True):
            short |= self._allocatable[column] < need
        first = np.where(before < _ALLOWED, before, np.where(short, _FIT, after))
        return self._with_minimums(first) if self._has_minimums else first

    def _judged(self, rule: NodeRule) -> tuple[Numbers, Numbers]:
        """Return the predicates that refuse offerings for a rule: those before the resources, and those after."""
        columns, order = self._offerings.columns, self._order
        before = np.full(len(order), _ALLOWED, np.int8)
        before[~rule.affinity_mask(columns)[order]] = ORDER["NodeAffinity"]
        before[~rule.taint_mask(columns)[order]] = ORDER["TaintToleration"]
        after = self._closing.copy()
        for name in ("VolumeZone", "VolumeBinding"):
            after[~rule.volume_mask(columns, name)[order]] = ORDER[name]
        self._by_rule[rule.number] = before, after
        return before, after

    def _constrained(self, shape: Shape, before: Numbers, after: Numbers) -> tuple[Numbers, Numbers]:
        """Add what other pods refuse."""
        before, after = self._with_pods(shape, self._offerings.columns, self._order, before, after)
        ports = self._offerings.taken_ports(shape) if shape.ports else None
        if ports is not None:
            before = np.where((before == _ALLOWED) & ports[self._order], np.int8(ORDER["NodePorts"]), before)
        return before, after

    def _with_pods(
        self, shape: Shape, nodes: Nodes, order: Amounts | slice, before: Numbers, after: Numbers
    ) -> tuple[Numbers, Numbers]:
        """Add what pods refuse that are placed on nodes already."""
        refused = pod_refusals(self._counters, shape, nodes, states=self._spread_states(shape))
        volumes = (after == ORDER["VolumeBinding"]) | (after == ORDER["VolumeZone"])
        for name in ("InterPodAffinity", "PodTopologySpread"):
            after = np.where(refused[name][order] & ~volumes, np.int8(ORDER[name]), after)
        after = np.where(refused["VolumeRestrictions"][order], np.int8(ORDER["VolumeRestrictions"]), after)
        before = np.where((before == _ALLOWED) & refused["NodePorts"][order], np.int8(ORDER["NodePorts"]), before)
        return before, after

    def _spread_states(self, shape: Shape) -> dict[int, SpreadState]:
        states = {}
        for number, spread in enumerate(shape.constraints.spreads):
            views: list[Nodes] = [] if self._planned is None else [self._planned]
            if spread.counter.topology != HOSTNAME_LABEL:
                views.append(self._offerings.columns)
            states[number] = self._counters.spread(spread, self._space.nodes, views)
        return states

    def _with_minimums(self, first: Numbers) -> Numbers:
        """Refuse what remains of pools whose `minValues` the remaining types do not reach."""
        first = first.copy()
        for number, pool in enumerate(self._offerings.pools):
            here = (self._pool == number) & ((first == _ALLOWED) | (first == ORDER["Offering"]))
            for key, least in sorted(pool.min_values.items()):
                codes = self._offerings.columns.codes(key)[self._order][here]
                if len(np.unique(codes[codes >= 0])) < least:
                    first[here] = ORDER["MinValues"]
        return first

    # What is said of the types that one predicate refuses.

    def _phrase(self, number: int, shape: Shape, here: Mask, types: Mask) -> str:
        name = NAMES[number]
        if name not in ("TaintToleration", "NodeAffinity"):
            return self._described(name, shape, here)
        key = (number, shape.rule.number, types.tobytes())
        phrase = self._phrases.get(key)
        if phrase is None:
            phrase = self._phrases[key] = self._described(name, shape, here)
        return phrase

    def _described(self, name: str, shape: Shape, here: Mask) -> str:
        match name:
            case "TaintToleration":
                return self._tainted(shape.rule, here)
            case "NodeAffinity":
                return self._unmatched(shape.rule, here)
            case "NodePorts":
                ports = _listed(sorted({f"{port.port}/{port.protocol}" for port in shape.ports}))
                return f"with daemons on host port {ports}"
            case "NodeResourcesFit":
                return self._too_small(shape, here)
            case "VolumeRestrictions":
                return "excluded by a volume or a ReadWriteOncePod claim that another pod uses"
            case "VolumeBinding" | "VolumeZone":
                return _away_from_volumes(shape.rule, name)
            case "PodTopologySpread":
                return self._spread(shape, here)
            case "InterPodAffinity":
                return self._apart(shape, here)
            case "Limits":
                return self._over_limits(here)
            case "MinValues":
                return self._too_few(here)
        return "refused"

    def _tainted(self, rule: NodeRule, here: Mask) -> str:
        columns = self._offerings.columns
        sets = np.unique(columns.taint_codes[: columns.count][self._order[here]])
        taints = sorted(
            {
                f"`{_short(taint.key)}{f'={_short(taint.value)}' if taint.value else ''}:{taint.effect}`"
                for code in sets
                for taint in untolerated(rule.tolerations, columns.vocabulary.taint_sets[code])
            }
        )
        return f"with untolerated taint{'s' if len(taints) > 1 else ''} {_listed(taints)}{self._pools(here)}"

    def _unmatched(self, rule: NodeRule, here: Mask) -> str:
        """Name the requirements that refuse offerings, the one that refuses most of them first."""
        columns = self._offerings.columns
        rows = self._order[here]
        asked: list[tuple[str, str, str, tuple[str, ...]]] = [
            ("nodeSelector", key, "In", (value,)) for key, value in rule.selector
        ]
        terms = rule.affinity
        if terms is not None and len(terms) == 1:
            asked += [("affinity", *each) for each in terms[0][0]]
            asked += [("affinity", NAME_KEY, operator, values) for _, operator, values in terms[0][1]]
        failing = []
        for source, key, operator, values in asked:
            mask = ~columns.label_mask(key, operator, values)[rows]
            failing.append((mask, f"{source} {self._requirement(key, operator, values)}"))
        if terms is not None and len(terms) != 1:
            text = f"each of {len(terms)} terms of affinity" if terms else "affinity without a term"
            failing.append((~NodeRule(affinity=terms).affinity_mask(columns)[rows], text))
        return f"excluded by {' and '.join(_covering(failing, 2))}"

    def _requirement(self, key: str, operator: str, values: tuple[str, ...]) -> str:
        if key == NAME_KEY:
            return f"of node {_listed(values)}"
        known = self._offerings.columns.vocabulary.values(key)
        codes = self._offerings.columns.codes(key)
        offered = {known[code] for code in np.unique(codes[codes >= 0])} - {FRESH}
        if operator == "In" and not offered.intersection(values) and key in (ZONE_LABEL, CAPACITY_TYPE_LABEL):
            return f"({_listed([_short(value) for value in values])} is not offered)"
        label = _short(key)
        match operator:
            case "In" if len(values) == 1:
                text = f"`{label}={_short(values[0])}`"
            case "In" | "NotIn":
                text = f"`{label}` {'in' if operator == 'In' else 'not in'} ({_listed([_short(v) for v in values])})"
            case "Exists":
                text = f"`{label}`"
            case "DoesNotExist":
                text = f"`!{label}`"
            case _:
                text = f"`{label} {'>' if operator == 'Gt' else '<'} {_short(values[0]) if values else ''}`"
        if operator in ("In", "Exists", "Gt", "Lt") and not (codes >= 0).any():
            text += " (no type has the label)"
        return text

    def _too_small(self, shape: Shape, here: Mask) -> str:
        names = self._space.resources.names
        failing = []
        for column, need in zip(shape.columns.tolist(), shape.needs.tolist(), strict=True):
            found = self._allocatable[column][here]
            short = found < need
            if short.any():
                most = int(found[short].max())
                text = f"needs {_amount(names[column], need, up=True)}"
                text += (
                    f", {_amount(names[column], most).split()[0]} at most" if most > 0 else ", which they have none of"
                )
                failing.append((short, text))
        return f"too small ({'; '.join(_covering(failing, _MOST_NAMED))})"

    def _spread(self, shape: Shape, here: Mask) -> str:
        columns, failing = self._offerings.columns, []
        states = self._spread_states(shape)
        for number, spread in enumerate(shape.constraints.spreads):
            codes = columns.codes(spread.counter.topology)[self._order[here]]
            state = states[number]
            crowded = state.counts + (spread.self_match - state.least) > spread.max_skew
            crowded[-1] = True
            text = f"`{_short(spread.counter.topology)}` (maxSkew {spread.max_skew}"
            text += f", minDomains {spread.min_domains})" if spread.min_domains > max(1, state.domains) else ")"
            failing.append((crowded[codes], text))
        return f"excluded by topology spread over {' and '.join(_covering(failing, 2))}"

    def _apart(self, shape: Shape, here: Mask) -> str:
        counters, columns, rows = self._counters, self._offerings.columns, self._order[here]
        failing = []
        own = {counters.definitions.find(key) for key in shape.constraints.refused}
        for number in shape.refused:
            key = counters.definitions.keys[number]
            if key.kind not in ("matching", "holders"):
                continue
            taken = counters.counts(number, columns)[counters.domains_of(number, columns)[rows]] > 0
            whose = "pod anti-affinity" if number in own else "anti-affinity of other pods"
            failing.append((taken, f"{whose} over `{_short(key.topology)}`"))
        near = counters.affinity_mask(shape, columns)
        if near is not None:
            keys = [f"`{_short(key.topology)}`" for key in shape.constraints.affinity]
            failing.append((~near[rows], f"pod affinity over {_listed(keys)}"))
        return f"excluded by {' and '.join(_covering(failing, 2))}"

    def _over_limits(self, here: Mask) -> str:
        """Name the limit of which too little is left, and what the smallest refused type needs of it."""
        names = (*self._offerings.limited, "nodes")
        over = self._capacity[here] > self._rest[here]
        failing = []
        for column, name in enumerate(names):
            if not over[:, column].any():
                continue
            pools = np.unique(self._pool[here][over[:, column]])
            left = int(self._rest[here][over[:, column], column].max())
            need = int(self._capacity[here][over[:, column], column].min())
            whose = f" of pool `{_short(self._offerings.pools[pools[0]].name)}`" if len(pools) == 1 else ""
            many = f" in {len(pools)} pools" if len(pools) > 1 else ""
            rest = (
                f"{_amount(name, left).split()[0]} of {_amount(name, need, up=True).split()[0]} needed"
                if left
                else "nothing"
            )
            failing.append(
                (over[:, column], f"limits.{_short(name)}{whose} leave{'s' if not many else ''} {rest}{many}")
            )
        return f"over limits ({'; '.join(_covering(failing, 2))})"

    def _too_few(self, here: Mask) -> str:
        pools = [self._offerings.pools[number] for number in np.unique(self._pool[here])]
        keys = sorted(
            {f"{least} values of `{_short(key)}`" for pool in pools for key, least in pool.min_values.items()}
        )
        return f"too few for minValues ({_listed(keys)}){self._pools(here)}"

    def _pools(self, here: Mask) -> str:
        """Say in which pools, unless there is only one."""
        if len(self._offerings.pools) < 2:
            return ""
        pools = np.unique(self._pool[here])
        if len(pools) > 1:
            return f" in {len(pools)} pools"
        return f" in pool `{_short(self._offerings.pools[pools[0]].name)}`"

    def _not_offered(self, total: int, exhausted: int) -> list[str]:
        """Say of how many types no offering is left, and how many no pool allows."""
        if self._without is None:
            present = set(self._types.tolist())
            absent = [each for number, each in enumerate(self._offerings.types) if number not in present]
            sold_out = sum(any(is_allowed(pool, each) for pool in self._offerings.pools) for each in absent)
            self._without = sold_out, len(absent) - sold_out
        sold_out, excluded = self._without
        sold_out += exhausted
        texts = [(sold_out, "unavailable"), (excluded, "not allowed by any pool")]
        return [f"{'all' if count == total else count} {text}" for count, text in texts if count]

    # Existing nodes.

    def _on_nodes(self, shape: Shape) -> str:
        """Return why existing nodes refuse a pod, or nothing if there are none."""
        space = self._space
        count = space.nodes.count
        if not count:
            return ""
        before, after = self._nodes_by_rule.get(shape.rule.number) or self._judged_on_nodes(shape.rule)
        first = after
        if shape.is_constrained:
            before, first = self._with_pods(shape, space.nodes, slice(None), before, after)
        masks = node_refusals(space.resources.names, shape, space.room(shape))
        if shape.volumes.shared:
            room = np.ones(count, np.bool_)
            space.share_volumes(shape, room)
            masks["NodeVolumeLimits"] |= ~room
        first = np.where(masks["NodeVolumeLimits"] & (first != ORDER["VolumeRestrictions"]), _VOLUMES, first)
        first = np.where(masks["NodeResourcesFit"], _FIT, first)
        counts = np.bincount(np.where(before < _ALLOWED, before, first), minlength=_ALLOWED + 1)
        found = sorted(
            ((int(counts[number]), NAMES[number]) for number in np.flatnonzero(counts[:_ALLOWED])),
            key=lambda each: -each[0],
        )
        texts = [f"{'all' if number == count else number} {_NODE_WORDS[name]}" for number, name in found]
        return f"on {count} existing node{'s' if count > 1 else ''}: {', '.join(texts)}" if texts else ""

    def _judged_on_nodes(self, rule: NodeRule) -> tuple[Numbers, Numbers]:
        columns, order = self._space.snapshot.nodes, self._space.order
        before = np.full(len(order), _ALLOWED, np.int8)
        before[~rule.affinity_mask(columns)[order]] = ORDER["NodeAffinity"]
        before[~rule.taint_mask(columns)[order]] = ORDER["TaintToleration"]
        before[~rule.cordon_mask(columns)[order]] = ORDER["NodeUnschedulable"]
        after = np.full(len(order), _ALLOWED, np.int8)
        for name in ("VolumeZone", "VolumeBinding"):
            after[~rule.volume_mask(columns, name)[order]] = ORDER[name]
        self._nodes_by_rule[rule.number] = before, after
        return before, after


def explain(
    space: Space, offerings: Offerings, shape: Shape, growth: Growth | None = None
) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Return why one pod cannot be placed; for many shapes an `Explainer` is faster."""
    return Explainer(space, offerings, growth).explain(shape)


def of_group(asked: int, placed: int, because: str = "") -> str:
    """Return why pods of an all-or-nothing group are not placed: too few of them have room."""
    return _cut(
        f"all or nothing: only {placed} of {asked} pods of the group can be placed{'; ' if because else ''}{because}"
    )


_FIT: Final = np.int8(ORDER["NodeResourcesFit"])
_VOLUMES: Final = np.int8(ORDER["NodeVolumeLimits"])
_NODE_WORDS: Final = {
    "NodeUnschedulable": "cordoned",
    "TaintToleration": "tainted",
    "NodeAffinity": "excluded by nodeSelector or affinity",
    "NodePorts": "with the host port taken",
    "NodeResourcesFit": "full",
    "VolumeRestrictions": "excluded by a volume in use",
    "NodeVolumeLimits": "at their limit of volumes",
    "VolumeBinding": "away from its volumes",
    "VolumeZone": "away from its volumes",
    "PodTopologySpread": "excluded by topology spread",
    "InterPodAffinity": "excluded by pod affinity",
}


def _covering(failing: list[tuple[Mask, str]], most: int) -> list[str]:
    """Choose texts whose masks cover all that some mask covers, the largest first, each only for what is left."""
    left = np.ones(len(failing[0][0]), np.bool_) if failing else np.zeros(0, np.bool_)
    chosen: list[str] = []
    while left.any() and len(chosen) < most:
        sizes = [int((mask & left).sum()) for mask, _ in failing]
        best = int(np.argmax(sizes))
        if not sizes[best]:
            break
        chosen.append(failing[best][1])
        left &= ~failing[best][0]
    return chosen or ["its constraints"]


def _away_from_volumes(rule: NodeRule, predicate: str) -> str:
    zones = sorted(
        {
            value
            for judged_by, terms in rule.volumes
            for labels, _ in (terms if judged_by == predicate else ())
            for key, operator, values in labels
            if key == ZONE_LABEL and operator == "In"
            for value in values
        }
    )
    return f"away from its volumes{f' ({_listed([_short(zone) for zone in zones])})' if zones else ''}"


def _within(parts: list[str], nodes: str) -> str:
    """Join parts while they fit; what is said of existing nodes comes last, if it fits."""
    text = _cut(parts[0])
    for number, part in enumerate(parts[1:], 1):
        rest = f", and {len(parts) - number} more reasons"
        if len(text) + 2 + len(part) + (len(rest) if number < len(parts) - 1 else 0) > _MOST_CHARACTERS:
            return text + rest if len(text) + len(rest) <= _MOST_CHARACTERS else text
        text += f", {part}"
    if nodes and len(text) + 6 + len(nodes) <= _MOST_CHARACTERS:
        text += f"; and {nodes}"
    return text


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"


def _short(text: str) -> str:
    return text if len(text) <= _MOST_OF_LABEL else f"{text[: _MOST_OF_LABEL - 11]}…{text[-10:]}"


def _listed(names: Sequence[str]) -> str:
    """List a few names; of many the first and how many more there are."""
    if len(names) <= _MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: _MOST_NAMED - 1])} and {len(names) - _MOST_NAMED + 1} more"


_GIB, _MIB = 1 << 30, 1 << 20


def _amount(name: str, amount: int, *, up: bool = False) -> str:
    """Return an amount in the unit in which it is easy to read; a need is rounded up, room is rounded down."""
    if name == "cpu":
        return f"{amount / 1000:.3f}".rstrip("0").rstrip(".") + " cpu"
    if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        unit, text = (_GIB, "Gi") if amount >= _GIB else (_MIB, "Mi")
        tenths = (-(-amount * 10 // unit)) if up else amount * 10 // unit
        return f"{tenths // 10}{f'.{tenths % 10}' if tenths % 10 else ''}{text} {name}"
    return f"{amount} {_short(name)}"
