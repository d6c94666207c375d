"""How fast an autoscaler may act: the rules of a HorizontalPodAutoscaler as those of a HorizontalAutoscaler."""

from __future__ import annotations

from typing import Any

from springtide.apis.peers.conversion import Notes, Tree, part
from springtide.apis.problems import Path

_KINDS_OF_POLICY = {"Pods": "Count", "Percent": "Percent"}


def scaling_behavior(behavior: Tree, path: Path, notes: Notes, *, metrics: int) -> Tree:
    """Translate what there is; both count windows in seconds and take the best recommendation within one.

    `selectPolicy` chooses among policies there, and here also among metrics; so with several metrics only the default,
    the highest, means the same.
    """
    made: Tree = {}
    for direction in ("scaleUp", "scaleDown"):
        rules = part(behavior, direction)
        if not rules:
            continue
        if metrics > 1 and rules.get("selectPolicy") == "Min":
            notes.warn(
                (*path, direction, "selectPolicy"),
                f"has no equivalent beside {metrics} metrics, of which the highest counts: the fastest policy counts",
            )
            rules = {key: rule for key, rule in rules.items() if key != "selectPolicy"}
        made[direction] = _rules(rules)
    return made


def _rules(rules: Tree) -> Tree:
    made: dict[str, Any] = {
        key: rules[key]
        for key in ("stabilizationWindowSeconds", "selectPolicy", "tolerance")
        if rules.get(key) is not None
    }
    policies = rules.get("policies")
    if isinstance(policies, list) and policies:
        made["policies"] = [
            {**part(policy), "type": _KINDS_OF_POLICY.get(str(part(policy).get("type")), part(policy).get("type"))}
            for policy in policies
        ]
    return made
