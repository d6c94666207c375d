"""Minimum and maximum of an autoscaler, and how rules move them: always together, and never past each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from springtide.apis.karmada.targets import TargetKind
from springtide.controllers.cron.plan import Action, Execution


@dataclass(frozen=True, slots=True)
class BoundFields:
    """What a kind calls its bounds, and what they are where nobody has set them."""

    low: str
    high: str
    default_low: int
    default_high: int | None

    def written(self, before: Bounds, after: Bounds) -> dict[str, int]:
        """Give the fields in which two pairs of bounds differ."""
        changes = {}
        if after.low != before.low:
            changes[self.low] = after.low
        if after.high is not None and after.high != before.high:
            changes[self.high] = after.high
        return changes


BOUND_FIELDS: Mapping[TargetKind, BoundFields] = {
    TargetKind.FEDERATED_HPA: BoundFields("minReplicas", "maxReplicas", 1, None),
    TargetKind.HPA: BoundFields("minReplicas", "maxReplicas", 1, None),
    TargetKind.SCALED_OBJECT: BoundFields("minReplicaCount", "maxReplicaCount", 0, 100),
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """A minimum and a maximum."""

    low: int
    high: int | None

    @classmethod
    def of(cls, spec: Mapping[str, Any], fields: BoundFields) -> Bounds:
        """Read the bounds of an autoscaler."""
        low, high = spec.get(fields.low), spec.get(fields.high)
        return cls(fields.default_low if low is None else low, fields.default_high if high is None else high)

    def moved_by(self, values: Action) -> Bounds:
        """Give the bounds that a rule makes of these."""
        return Bounds(values.get("min", self.low), values.get("max", self.high))

    @property
    def possible(self) -> bool:
        """Whether any number of replicas lies between them."""
        return self.high is None or self.low <= self.high


@dataclass(frozen=True, slots=True)
class Move:
    """The bounds as they shall be, and the rules that could not have their way."""

    bounds: Bounds
    refused: Mapping[str, str]
    """Why, in words, by rule."""


def moved(present: Bounds, executions: Sequence[Execution], target: str) -> Move:
    """Move bounds by firings, given in the order of their times.

    Together they may be possible where one after the other would not be: one rule raises the minimum, another the
    maximum. Otherwise each that would move one bound past the other is refused, and the others have their way.
    """
    together = present
    for execution in executions:
        together = together.moved_by(execution.values)
    if together.possible:
        return Move(together, {})
    bounds, refused = present, {}
    for execution in executions:
        wanted = bounds.moved_by(execution.values)
        if wanted.possible:
            bounds = wanted
        else:
            refused[execution.rule] = _refusal(wanted, execution.values, target)
    return Move(bounds, refused)


def _refusal(wanted: Bounds, values: Action, target: str) -> str:
    if "max" not in values:
        return (
            f"the minimum {wanted.low} would be greater than the maximum of {target}, {wanted.high};"
            " set `targetMaxReplicas` as well, or raise the maximum"
        )
    if "min" not in values:
        return (
            f"the maximum {wanted.high} would be smaller than the minimum of {target}, {wanted.low};"
            " set `targetMinReplicas` as well, or lower the minimum"
        )
    return f"the minimum {wanted.low} is greater than the maximum {wanted.high}; swap them"
