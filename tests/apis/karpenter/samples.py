"""Pools in few words, for tables.

Budgets are written as ``15@D,U [0 9 * * mon-fri +8h]; 10@D; 5``: the nodes, the reasons by their first letters
(X is Expired), and schedule and duration of the window.
"""

from __future__ import annotations

import datetime
import re
from typing import Any

import msgspec

from springtide.apis.karpenter.budgets import (
    BudgetDefault,
    DisruptionReason,
    PoolBudgets,
    compile_pool,
    disruption_limit,
)
from springtide.apis.karpenter.disruption import Disruption

LETTERS = {
    "U": DisruptionReason.UNDERUTILIZED,
    "E": DisruptionReason.EMPTY,
    "D": DisruptionReason.DRIFTED,
    "X": DisruptionReason.EXPIRED,
}
_BUDGET = re.compile(r"(?P<nodes>[0-9]+%?)(@(?P<reasons>[UEDX,]+))?( \[(?P<schedule>[^+]+) \+(?P<duration>\w+)\])?")


def budgets(text: str) -> list[dict[str, Any]]:
    """Read budgets in the notation of the tables."""
    made: list[dict[str, Any]] = []
    for part in text.split(";"):
        match = _BUDGET.fullmatch(part.strip())
        assert match is not None, part
        budget: dict[str, Any] = {"nodes": match["nodes"]}
        if match["reasons"]:
            budget["reasons"] = [LETTERS[letter].value for letter in match["reasons"].split(",")]
        if match["schedule"]:
            budget |= {"schedule": match["schedule"], "duration": match["duration"]}
        made.append(budget)
    return made


def disruption(listed: str | list[dict[str, Any]], **settings: Any) -> Disruption:
    """Make the view of a pool's disruption."""
    made = budgets(listed) if isinstance(listed, str) else listed
    return msgspec.convert({"budgets": made, **settings}, Disruption)


def compiled(listed: str | list[dict[str, Any]], **settings: Any) -> PoolBudgets:
    """Compile a pool."""
    return compile_pool(disruption(listed, **settings))


def limits(pool: PoolBudgets, at: int, nodes: int, reading: BudgetDefault | None = None) -> dict[str, int | None]:
    """Return the limit of every reason by its letter; None is no limit."""
    active = pool.active.at(at)
    return {letter: disruption_limit(pool, reason, active, nodes, reading).count for letter, reason in LETTERS.items()}


def instant(text: str) -> int:
    """Read a UTC time such as ``2024-01-10 09:00:00``."""
    moment = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)
    return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(seconds=1)


def node_pool(disruption_tree: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Write a complete v1 NodePool."""
    made: dict[str, Any] = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {
            "template": {
                "spec": {
                    "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
                    "nodeClassRef": {"group": "springtide.dev", "kind": "NodeClass", "name": "default"},
                }
            },
            **spec,
        },
    }
    if disruption_tree is not None:
        made["spec"]["disruption"] = disruption_tree
    return made


def beta_pool(disruption_tree: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Write a complete v1beta1 NodePool."""
    made = node_pool(disruption_tree, **spec) | {"apiVersion": "karpenter.sh/v1beta1"}
    made["spec"]["template"]["spec"]["nodeClassRef"] = {
        "apiVersion": "karpenter.k8s.aws/v1beta1",
        "kind": "EC2NodeClass",
        "name": "default",
    }
    return made
