"""Columns: amounts and labels of nodes as numpy arrays, and the rules on them that no other pod changes.

A `NodeColumns` has one column for each node, existing or planned, or for each offering of which a node could be made.
Labels are interned: a key that some rule reads is a column of codes, so that a rule is evaluated once for each value of
the label and then looked up for all nodes. Taints are interned as sets in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from springtide.apis.core.nodes import NodeTaint
from springtide.apis.core.pod_record import NodeSelector, PodSchedulingClass, TaintToleration
from springtide.packing.predicates import (
    CORDON,
    Requirement,
    all_hold,
    canonical_requirement,
    holds,
    is_readable,
    tolerates,
    untolerated,
)
from springtide.quantity import Quantity

Amounts = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
AnyScalar = TypeVar("AnyScalar", bound=np.generic)

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = range(4)
_BASE: Final = ("cpu", "memory", "ephemeral-storage", "pods")
MOST: Final = 1 << 56
"""Amounts are cut to this, so that sums of them stay in 64 bits: 72 petabytes."""
ATTACHABLE: Final = "attachable-volumes-csi-"
"""The prefix of the columns that count volumes of a CSI driver."""
NAME_KEY: Final = "\0name"
"""The column of the node's name, which `matchFields` read."""
EVERYWHERE: Final = "\0everywhere"
"""The column of a label that all nodes have, with the same value."""


class Resources:
    """The resources that have a column, in the order in which they were first seen."""

    def __init__(self) -> None:
        self.names: list[str] = list(_BASE)
        self._columns = {name: column for column, name in enumerate(_BASE)}

    def __len__(self) -> int:
        return len(self.names)

    def in_order(self, columns: Iterable[int]) -> list[int]:
        """Sort columns by what they are, whatever was seen first."""
        return sorted(columns, key=lambda column: (min(column, PODS + 1), self.names[column]))

    def column(self, name: str) -> int:
        """Return the column of a resource, a new one for a new resource."""
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = len(self.names)
            self.names.append(name)
        return column

    def amounts(self, quantities: Mapping[str, Quantity]) -> dict[int, int]:
        """Return amounts by column: milli-cpu, bytes or units, rounded up; zeros are left out."""
        found = {}
        for name, quantity in quantities.items():
            amount = quantity.milli if name == "cpu" else quantity.units
            if amount > 0 and is_counted(name):
                found[self.column(name)] = min(amount, MOST)
        return found


@lru_cache(maxsize=4096)
def is_counted(resource: str) -> bool:
    """Return whether kube-scheduler looks at a resource: huge pages and extended ones beside those of every node."""
    if resource in _BASE or "kubernetes.io/" in resource or resource.startswith("hugepages-"):
        return True
    if resource.startswith("attachable-volumes-"):
        return not resource.startswith(ATTACHABLE)  # these columns count volumes
    return "/" in resource and not resource.startswith("requests.")


def vector(amounts: Mapping[int, int], width: int) -> Amounts:
    """Return amounts by column as an array."""
    row = np.zeros(width, np.int64)
    for column, amount in amounts.items():
        row[column] = amount
    return row


class Labels:
    """The codes of label values and of sets of taints, shared by all columns of a snapshot and its forks."""

    def __init__(self) -> None:
        self._codes: dict[str, dict[str, int]] = {}
        self._values: dict[str, list[str]] = {}
        self.taint_sets: list[tuple[NodeTaint, ...]] = []
        self._taint_codes: dict[tuple[tuple[str, str, str], ...], int] = {}

    def code(self, key: str, value: str | None) -> int:
        """Return the code of a label's value, a new one for a new value; -1 without the label."""
        if value is None:
            return -1
        codes = self._codes.setdefault(key, {})
        code = codes.get(value)
        if code is None:
            code = codes[value] = len(codes)
            self._values.setdefault(key, []).append(value)
        return code

    def known(self, key: str, value: str) -> int:
        """Return the code of a label's value, -2 for one that no node has."""
        return self._codes.get(key, _NO_CODES).get(value, -2)

    def values(self, key: str) -> Sequence[str]:
        """List the values of a label, by their codes."""
        return self._values.get(key, ())

    def taints(self, taints: Sequence[NodeTaint]) -> int:
        """Return the code of a set of taints."""
        key = tuple(sorted({(taint.key, taint.effect, taint.value) for taint in taints}))
        code = self._taint_codes.get(key)
        if code is None:
            code = self._taint_codes[key] = len(self.taint_sets)
            self.taint_sets.append(tuple(NodeTaint(name, effect, value) for name, effect, value in key))
        return code


_START = 64
_NO_CODES: Mapping[str, int] = {}


class NodeColumns:
    """Nodes or offerings as columns; positions of removed nodes are used again."""

    def __init__(self, resources: Resources, labels: Labels) -> None:
        self.resources = resources
        self.vocabulary = labels
        self.count = 0
        """The number of positions in use, removed ones included."""
        self.labels: list[Mapping[str, str]] = []
        self.names: list[str] = []
        self.alive: Mask = np.zeros(_START, np.bool_)
        self.cordoned: Mask = np.zeros(_START, np.bool_)
        self.taint_codes: Codes = np.zeros(_START, np.int32)
        self.allocatable: Amounts = np.zeros((len(resources), _START), np.int64)
        self.used: Amounts = np.zeros((len(resources), _START), np.int64)
        self._codes: dict[str, Codes] = {}
        self.version = 0
        """Grows when labels or taints change, which makes masks of rules outdated."""
        self._masks: dict[object, Mask] = {}
        self._masks_version = 0

    def widen(self) -> None:
        """Add the columns of resources that were seen since."""
        missing = len(self.resources) - len(self.allocatable)
        if missing > 0:
            more = np.zeros((missing, self.allocatable.shape[1]), np.int64)
            self.allocatable = np.concatenate([self.allocatable, more])
            self.used = np.concatenate([self.used, more])

    def add(
        self,
        name: str,
        labels: Mapping[str, str],
        taints: Sequence[NodeTaint],
        amounts: Mapping[int, int],
        *,
        cordoned: bool = False,
    ) -> int:
        """Append a node; gives its position."""
        row = self.count
        if row == len(self.alive):
            self._grow(2 * row)
        self.count += 1
        self.names.append(name)
        self.labels.append(labels)
        self.put(row, name, labels, taints, amounts, cordoned=cordoned)
        return row

    def put(
        self,
        row: int,
        name: str,
        labels: Mapping[str, str],
        taints: Sequence[NodeTaint],
        amounts: Mapping[int, int],
        *,
        cordoned: bool = False,
    ) -> None:
        """Write a node at a position."""
        self.widen()
        self.names[row], self.labels[row] = name, labels
        self.alive[row], self.cordoned[row] = True, cordoned
        self.taint_codes[row] = self.vocabulary.taints(taints)
        self.allocatable[:, row] = vector(amounts, len(self.resources))
        for key, codes in self._codes.items():
            codes[row] = self.vocabulary.code(key, _value(key, name, labels))
        self.version += 1

    def remove(self, row: int) -> None:
        """Remove a node; its position stays empty."""
        self.alive[row] = False
        self.version += 1

    def has_taints(self, row: int, taints: Sequence[NodeTaint]) -> bool:
        """Return whether a node has just these taints."""
        return bool(self.taint_codes[row] == self.vocabulary.taints(taints))

    def codes(self, key: str) -> Codes:
        """Return the codes of a label for all nodes; -1 where it is absent."""
        codes = self._codes.get(key)
        if codes is None:
            codes = np.full(len(self.alive), -1, np.int32)
            code = self.vocabulary.code
            named = zip(self.names, self.labels, strict=True)
            codes[: self.count] = [code(key, _value(key, name, labels)) for name, labels in named]
            self._codes[key] = codes
        return codes[: self.count]

    def ranked(self, key: str) -> Amounts:
        """Return numbers for the values of a label in their order as texts, whatever was seen first; -1: none."""
        codes = self.codes(key)
        present = self.vocabulary.values(key)
        ranks = np.full(len(present) + 1, -1, np.int64)
        ranks[sorted(range(len(present)), key=present.__getitem__)] = np.arange(len(present))
        return ranks[codes]

    def label_mask(self, key: str, operator: str, values: Sequence[str]) -> Mask:
        """Return for which nodes a requirement on a label holds."""
        codes = self.codes(key)
        if operator == "In" and len(values) == 1:
            mask: Mask = codes == self.vocabulary.known(key, values[0])
            return mask
        present = self.vocabulary.values(key)
        table = np.fromiter((holds(operator, value, values) for value in (*present, None)), np.bool_, len(present) + 1)
        return table[codes]

    def allowed_by(self, rule: NodeRule) -> Mask:
        """Return the nodes that an interned rule allows."""
        return self.cached(rule.number, lambda: rule.mask(self))

    def in_scope(self, scope: Scope) -> Mask:
        """Return the nodes in the scope of a spread constraint."""

        def compute() -> Mask:
            mask = self.alive[: self.count].copy()
            if scope.rule is not None and scope.affinity:
                mask &= scope.rule.affinity_mask(self)
            if scope.rule is not None and scope.taints:
                mask &= scope.rule.taint_mask(self)
            for key in scope.keys:
                mask &= self.codes(key) >= 0
            return mask

        return self.cached(scope, compute)

    def positions(self) -> Codes:
        """Return a number for each node that no other node has, planned or existing; -1 for offerings."""
        return np.arange(self.count, dtype=np.int32)

    @property
    def last_position(self) -> int:
        """One more than the highest of `positions`."""
        return self.count

    def cached(self, key: object, compute: Callable[[], Mask]) -> Mask:
        """Return a mask that depends on labels and taints only, computed again when these have changed."""
        if self._masks_version != self.version:
            self._masks, self._masks_version = {}, self.version
        mask = self._masks.get(key)
        if mask is None:
            mask = self._masks[key] = compute()
        return mask

    def _grow(self, size: int) -> None:
        def grown(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
            shape = (*array.shape[:-1], size)
            new = np.zeros(shape, array.dtype)
            new[..., : array.shape[-1]] = array
            return new

        self.alive = grown(self.alive)  # type: ignore[assignment]
        self.cordoned = grown(self.cordoned)  # type: ignore[assignment]
        self.taint_codes = grown(self.taint_codes)  # type: ignore[assignment]
        self.allocatable = grown(self.allocatable)  # type: ignore[assignment]
        self.used = grown(self.used)  # type: ignore[assignment]
        self._codes = {key: grown(codes) for key, codes in self._codes.items()}  # type: ignore[misc]


def _value(key: str, name: str, labels: Mapping[str, str]) -> str | None:
    if key in (NAME_KEY, EVERYWHERE):
        return name if key == NAME_KEY else ""
    return labels.get(key)


class View:
    """Nodes in an order of their own: the existing ones by name, or planned ones, each made of an offering."""

    def __init__(self, columns: NodeColumns, rows: Amounts) -> None:
        """Show the nodes of `columns` at these positions, which must not change."""
        self._columns = columns
        self._rows = rows
        self._cache: dict[object, npt.NDArray[Any]] = {}

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return len(self._rows)

    def codes(self, key: str) -> Codes:
        """Return the codes of a label; -1 where it is absent."""
        return self._kept(("codes", key), lambda: self._columns.codes(key)[self._rows])

    def allowed_by(self, rule: NodeRule) -> Mask:
        """Return the nodes that an interned rule allows."""
        return self._kept(rule.number, lambda: self._columns.allowed_by(rule)[self._rows])

    def in_scope(self, scope: Scope) -> Mask:
        """Return the nodes in the scope of a spread constraint."""
        return self._kept(scope, lambda: self._columns.in_scope(scope)[self._rows])

    def derived(self, key: object, compute: Callable[[NodeColumns], npt.NDArray[AnyScalar]]) -> npt.NDArray[AnyScalar]:
        """Return what is computed of the labels or taints of all nodes, for those shown; kept under a key."""
        return self._kept(key, lambda: compute(self._columns)[self._rows])

    def positions(self) -> Codes:
        """Return a number for each node that no other node has."""
        return self._rows.astype(np.int32)

    @property
    def last_position(self) -> int:
        """One more than the highest of `positions`."""
        return self._columns.count

    def _kept(self, key: object, compute: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        known = self._cache.get(key)
        if known is None:
            known = self._cache[key] = compute()
        return known


class Nodes(Protocol):
    """Nodes that counters are evaluated on: existing or planned ones, offerings, or domains of these."""

    @property
    def count(self) -> int:
        """How many there are."""

    def codes(self, key: str) -> Codes:
        """Return the codes of a label; -1 where it is absent."""

    def in_scope(self, scope: Scope) -> Mask:
        """Return those in the scope of a spread constraint."""

    def positions(self) -> Codes:
        """Return a number for each that no other has; -1 for what is not a node."""

    @property
    def last_position(self) -> int:
        """One more than the highest of `positions`."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The nodes whose pods and domains a spread constraint counts."""

    rule: NodeRule | None
    """An interned rule; None: every node with the labels counts."""
    affinity: bool
    """Whether nodes must match the selector and the affinity of the rule."""
    taints: bool
    """Whether the rule must tolerate their taints."""
    keys: tuple[str, ...]
    """Labels that a node must have."""

    def __hash__(self) -> int:
        return hash((self.rule.number if self.rule is not None else -1, self.affinity, self.taints, self.keys))


AffinityTerms = tuple[tuple[tuple[Requirement, ...], tuple[Requirement, ...]], ...]
"""Terms of a node affinity of which one must match, each with requirements on labels and on fields."""
VolumeTopology = tuple[str, AffinityTerms]
"""Where a volume can be reached, and the predicate that judges it."""


def affinity_terms(selector: NodeSelector) -> AffinityTerms:
    """Return the canonical form of a node selector; terms that match nothing, such as empty ones, are left out."""
    terms = set()
    for term in selector.node_selector_terms or ():
        labels = {canonical_requirement(one) for one in term.match_expressions or ()}
        fields = {canonical_requirement(one) for one in term.match_fields or ()}
        if (labels or fields) and all(map(is_readable, labels)) and all(map(_is_name, fields)):
            terms.add((tuple(sorted(labels)), tuple(sorted(fields))))
    return tuple(sorted(terms))


def _is_name(field: Requirement) -> bool:
    return field[0] == "metadata.name" and field[1] in ("In", "NotIn") and len(field[2]) == 1


class NodeRule:
    """The predicates that depend on the node alone: labels, taints and the zones of volumes."""

    __slots__ = ("affinity", "number", "selector", "text", "tolerations", "volumes")

    def __init__(
        self,
        selector: tuple[tuple[str, str], ...] = (),
        affinity: AffinityTerms | None = None,
        tolerations: tuple[TaintToleration, ...] = (),
        volumes: tuple[VolumeTopology, ...] = (),
    ) -> None:
        self.selector = selector
        self.affinity = affinity
        self.tolerations = tolerations
        self.volumes = volumes
        self.number = -1
        """Set when it is interned, so that equal rules share their masks."""
        self.text = ""
        """Set when it is interned: its content, to sort by."""

    def __repr__(self) -> str:
        return self.text or repr(self.key())

    def key(self) -> tuple[object, ...]:
        """Return what identifies the rule."""
        return self.selector, self.affinity, self.tolerations, self.volumes

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether node selector and required node affinity match one node."""
        if any(labels.get(key) != value for key, value in self.selector):
            return False
        named = {"metadata.name": name}
        return self.affinity is None or any(
            all_hold(on_labels, labels) and all_hold(on_fields, named) for on_labels, on_fields in self.affinity
        )

    def affinity_mask(self, nodes: NodeColumns) -> Mask:
        """Return the nodes that node selector and required node affinity match."""
        mask = np.ones(nodes.count, np.bool_)
        for key, value in self.selector:
            mask &= nodes.label_mask(key, "In", (value,))
        if self.affinity is not None:
            mask &= _terms_mask(self.affinity, nodes)
        return mask

    def taint_mask(self, nodes: NodeColumns) -> Mask:
        """Return the nodes whose taints are tolerated."""
        sets = nodes.vocabulary.taint_sets
        table = np.fromiter((not untolerated(self.tolerations, taints) for taints in sets), np.bool_, len(sets))
        return table[nodes.taint_codes[: nodes.count]]

    def cordon_mask(self, nodes: NodeColumns) -> Mask:
        """Return the nodes that are not cordoned, or all if the pod tolerates that."""
        if tolerates(self.tolerations, CORDON):
            return np.ones(nodes.count, np.bool_)
        return ~nodes.cordoned[: nodes.count]

    def volume_mask(self, nodes: NodeColumns, predicate: str | None = None) -> Mask:
        """Return the nodes that can reach all volumes; with `predicate` only as far as that one judges."""
        mask = np.ones(nodes.count, np.bool_)
        for judged_by, terms in self.volumes:
            if predicate is None or predicate == judged_by:
                mask &= _terms_mask(terms, nodes)
        return mask

    def mask(self, nodes: NodeColumns) -> Mask:
        """Return the nodes that the rule allows; `NodeColumns.allowed_by` keeps the result."""
        return (
            nodes.alive[: nodes.count]
            & self.affinity_mask(nodes)
            & self.taint_mask(nodes)
            & self.cordon_mask(nodes)
            & self.volume_mask(nodes)
        )


def _terms_mask(terms: AffinityTerms, nodes: NodeColumns) -> Mask:
    mask = np.zeros(nodes.count, np.bool_)
    for labels, fields in terms:
        found = np.ones(nodes.count, np.bool_)
        for key, operator, values in (*labels, *((NAME_KEY, operator, values) for _, operator, values in fields)):
            found &= nodes.label_mask(key, operator, values)
        mask |= found
    return mask


def rule_of(pod_class: PodSchedulingClass, volumes: tuple[VolumeTopology, ...] = ()) -> NodeRule:
    """Return the rule of a pod class, with the topology of its volumes."""
    affinity = pod_class.affinity.node_affinity if pod_class.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return NodeRule(
        tuple(sorted(pod_class.node_selector.items())),
        affinity_terms(required) if required is not None else None,
        tuple(sorted(set(pod_class.tolerations), key=repr)) if pod_class.tolerations else (),
        volumes,
    )
