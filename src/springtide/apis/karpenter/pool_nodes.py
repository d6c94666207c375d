"""The nodes of a pool as its budgets count them: how many there are, and which of them are unavailable already.

A node counts if it belongs to a NodeClaim of the pool, is initialized, and its instance is not going away. Each node is
unavailable at most once: as disrupting if it is marked for deletion, else as unhealthy if it is not ready.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from springtide.apis.karpenter.budgets import DisruptionReason, parse_reason
from springtide.apis.karpenter.types import NODEPOOL_LABEL

_INITIALIZED_LABEL = "karpenter.sh/initialized"
_DISRUPTED_TAINTS = ("karpenter.sh/disrupted", "karpenter.sh/disruption")

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PoolNodes:
    """The numbers of nodes of a pool."""

    nodes: int = 0
    disrupting: Mapping[DisruptionReason, int] = field(default_factory=dict)
    unhealthy: int = 0


def count_pool_nodes(pool: str, nodes: Iterable[Item], claims: Iterable[Item] | None) -> PoolNodes:
    """Count the nodes of a pool; without NodeClaims (None), every node with the labels of the pool is taken for one.

    A node that is deleted for no known reason counts as Expired: expiry and users delete NodeClaims directly.
    """
    claim_of = None if claims is None else {_at(one, "status", "nodeName"): one for one in claims}
    counted = unhealthy = 0
    disrupting: Counter[DisruptionReason] = Counter()
    for node in nodes:
        labels = _at(node, "metadata", "labels") or {}
        claim = {} if claim_of is None else claim_of.get(_at(node, "metadata", "name"))
        if labels.get(NODEPOOL_LABEL) != pool or claim is None or not _is_initialized(node, claim):
            continue
        if _condition(claim, "InstanceTerminating") == "True":
            continue
        counted += 1
        if _is_disrupting(node, claim):
            disrupting[_reason(claim)] += 1
        elif _condition(node, "Ready") != "True":
            unhealthy += 1
    return PoolNodes(counted, dict(disrupting), unhealthy)


def _is_initialized(node: Item, claim: Item) -> bool:
    labelled = (_at(node, "metadata", "labels") or {}).get(_INITIALIZED_LABEL) == "true"
    return labelled or _condition(claim, "Initialized") == "True"


def _is_disrupting(node: Item, claim: Item) -> bool:
    deleted = any(_at(one, "metadata", "deletionTimestamp") for one in (node, claim))
    return bool(deleted) or any(taint.get("key") in _DISRUPTED_TAINTS for taint in _at(node, "spec", "taints") or ())


def _reason(claim: Item) -> DisruptionReason:
    for condition in _at(claim, "status", "conditions") or ():
        if condition.get("type") == "DisruptionReason" and condition.get("status") == "True":
            return parse_reason(str(condition.get("reason", ""))) or DisruptionReason.EXPIRED
    return DisruptionReason.EXPIRED


def _condition(item: Item, type_: str) -> str | None:
    conditions = _at(item, "status", "conditions") or ()
    return next((one.get("status") for one in conditions if one.get("type") == type_), None)


def _at(item: Any, *path: str) -> Any:
    for step in path:
        item = item.get(step) if isinstance(item, Mapping) else None
    return item
