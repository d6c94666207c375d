"""Whether a Grant is in force, and what it allows."""

from __future__ import annotations

from springtide.apis.springtide.grants import Grant, GrantSpec
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.resources import Object
from springtide.controllers.decision import Decision
from springtide.controllers.validated import validated


def decide(grant: Object, now: int, default_zone: str = "UTC") -> Decision[None]:
    """Decide what the status of a grant says; a grant with errors allows nothing."""
    verdict = validated(grant, Grant, now=now, default_zone=default_zone)
    if verdict.sound is None:
        message = f"nothing is allowed by a grant with errors: {verdict.error_message}"
        ready = Condition("Ready", ConditionStatus.FALSE, "Invalid", message)
    else:
        ready = Condition("Ready", ConditionStatus.TRUE, "InForce", _allowance(verdict.sound.spec))
    return Decision(reasons=(ready.message,), conditions=(ready,))


def _allowance(spec: GrantSpec) -> str:
    listed = (
        ("node group", "node groups", spec.node_groups),
        ("queue", "queues", spec.queues),
        ("address", "addresses", spec.urls),
    )
    counted = [f"{len(ids)} {one if len(ids) == 1 else many}" for one, many, ids in listed if ids]
    reach = f"what it lists: {', '.join(counted)}" if counted else "nothing by it"
    return f"objects of {', '.join(spec.namespaces)} may reach {reach}"
