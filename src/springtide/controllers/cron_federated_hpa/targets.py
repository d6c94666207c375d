"""Applies firings to the target of a CronFederatedHPA: sets replicas, or the bounds of an autoscaler.

Firings that are due together are applied in one write, computed from the version that was read. If the target is as the
rules want it already, nothing is written, and the firings succeed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from springtide.apis.karmada.targets import CronTarget, CronTargetKind
from springtide.cluster.client import Client
from springtide.cluster.errors import ApiError, Conflict, NotFound, ServerError, TooManyRequests, Unauthorized
from springtide.cluster.kinds import KindRegistry
from springtide.cluster.resources import Key, Resource
from springtide.cluster.transport import Patch
from springtide.controllers.cron_federated_hpa.plan import RuleAction, RuleExecution
from springtide.controllers.targets import TargetNotScalable, find_target_kind, read_scale


@dataclass(frozen=True, slots=True)
class BoundFields:
    """The fields and defaults of the bounds of a kind."""

    low: str
    high: str
    default_low: int
    default_high: int | None

    def written(self, before: ReplicaBounds, after: ReplicaBounds) -> dict[str, int]:
        """Return the fields in which two pairs of bounds differ."""
        changes = {}
        if after.low != before.low:
            changes[self.low] = after.low
        if after.high is not None and after.high != before.high:
            changes[self.high] = after.high
        return changes


BOUND_FIELDS: Mapping[CronTargetKind, BoundFields] = {
    CronTargetKind.FEDERATED_HPA: BoundFields("minReplicas", "maxReplicas", 1, None),
    CronTargetKind.HPA: BoundFields("minReplicas", "maxReplicas", 1, None),
    CronTargetKind.SCALED_OBJECT: BoundFields("minReplicaCount", "maxReplicaCount", 0, 100),
}


@dataclass(frozen=True, slots=True)
class ReplicaBounds:
    """A minimum and a maximum."""

    low: int
    high: int | None

    @classmethod
    def of(cls, spec: Mapping[str, Any], fields: BoundFields) -> ReplicaBounds:
        """Read the bounds of an autoscaler."""
        low, high = spec.get(fields.low), spec.get(fields.high)
        return cls(fields.default_low if low is None else low, fields.default_high if high is None else high)

    def with_values(self, values: RuleAction) -> ReplicaBounds:
        """Return the bounds after a rule was applied."""
        return ReplicaBounds(values.get("min", self.low), values.get("max", self.high))

    @property
    def is_valid(self) -> bool:
        """Whether the minimum is not greater than the maximum."""
        return self.high is None or self.low <= self.high


@dataclass(frozen=True, slots=True)
class BoundsChange:
    """The bounds to set, and the rules that were refused."""

    bounds: ReplicaBounds
    refused: Mapping[str, str]
    """Why, by rule."""


def combine_bounds(present: ReplicaBounds, executions: Sequence[RuleExecution], target: str) -> BoundsChange:
    """Apply firings to bounds, in the order of their times.

    All together may be valid where one after the other is not: one rule raises the minimum, another the maximum.
    Otherwise each firing that would put the minimum above the maximum is refused, and the others are applied.
    """
    together = present
    for execution in executions:
        together = together.with_values(execution.values)
    if together.is_valid:
        return BoundsChange(together, {})
    bounds, refused = present, {}
    for execution in executions:
        wanted = bounds.with_values(execution.values)
        if wanted.is_valid:
            bounds = wanted
        else:
            refused[execution.rule] = _refusal(wanted, execution.values, target)
    return BoundsChange(bounds, refused)


def _refusal(wanted: ReplicaBounds, values: RuleAction, target: str) -> str:
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
    return f"the minimum {wanted.low} is greater than the maximum {wanted.high}; change one of them"


MOST_CONFLICTS = 5
"""How many writes in a row may fail with a conflict before the attempt counts as failed."""

_RETRIABLE = (Conflict, NotFound, ServerError, TooManyRequests, Unauthorized)


@dataclass(frozen=True, slots=True)
class ApplyFailure:
    """Why a firing was not applied."""

    message: str
    retriable: bool
    """Whether a later attempt may succeed."""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class CronTargetObject:
    """The object that a rule scales."""

    reference: CronTarget
    namespace: str

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return Key(self.namespace, self.reference.name)

    def __str__(self) -> str:
        return f"{self.reference.kind} `{self.reference.name}`"


async def apply_executions(
    client: Client,
    registry: KindRegistry,
    target: CronTargetObject,
    executions: Sequence[RuleExecution],
    because: str,
    *,
    shared: bool,
) -> dict[str, ApplyFailure]:
    """Apply firings to their target in one write; gives those that were not applied, by rule.

    A `shared` target has rules of other objects as well. One of those may raise the maximum in the same minute in which
    a rule here raises the minimum, so a refusal because of a bound is retried.

    A failure of the connection does not concern this target: it is raised, and everything is retried when the API
    server answers again, as after an outage of the controller.
    """
    bounded = target.reference.target_kind
    try:
        resource = find_target_kind(
            registry, target.reference.api_version, target.reference.kind, needs_scale=not bounded.has_bounds
        ).resource
    except TargetNotScalable as problem:
        return _failed_all(executions, ApplyFailure(str(problem), retriable=False))
    for attempt in range(1, MOST_CONFLICTS + 1):
        try:
            if bounded.has_bounds:
                refused = await _write_bounds(client, resource, bounded, target, executions, because)
                return {rule: ApplyFailure(message, retriable=shared) for rule, message in refused.items()}
            await _scale(client, resource, target, executions, because)
        except Conflict as conflict:
            if attempt == MOST_CONFLICTS:
                return _failed_all(
                    executions, ApplyFailure(f"{target} was changed by others each time: {conflict}", retriable=True)
                )
        except ApiError as answer:
            return _failed_all(executions, _api_failure(answer, target))
        else:
            return {}
    raise AssertionError  # pragma: no cover - the last attempt returns


async def _scale(
    client: Client, resource: Resource, target: CronTargetObject, executions: Sequence[RuleExecution], because: str
) -> None:
    """Set replicas, unless the scale has them already."""
    replicas = next(execution.values["replicas"] for execution in executions)
    found = await read_scale(client, resource, target.key)
    if found.scale.asked != replicas:
        await client.scale(resource, replicas, of=found.object, because=because)


async def _write_bounds(
    client: Client,
    resource: Resource,
    kind: CronTargetKind,
    target: CronTargetObject,
    executions: Sequence[RuleExecution],
    because: str,
) -> Mapping[str, str]:
    """Set minimum and maximum in one write; gives the rules that were refused, with the reason."""
    autoscaler = await client.get(resource, target.key)
    fields = BOUND_FIELDS[kind]
    present = ReplicaBounds.of(autoscaler.get("spec") or {}, fields)
    move = combine_bounds(present, executions, str(target))
    changes = fields.written(present, move.bounds)
    if changes:
        before = {fields.low: present.low, fields.high: present.high}
        moves = " and ".join(
            f"{name} {'' if before[name] is None else f'from {before[name]} '}to {value}"
            for name, value in changes.items()
        )
        doing = f"set {moves} of {resource.kind} {target.key}"
        await client.patch(resource, Patch.merge({"spec": changes}), of=autoscaler, because=because, doing=doing)
    return move.refused


def _failed_all(executions: Sequence[RuleExecution], failure: ApplyFailure) -> dict[str, ApplyFailure]:
    return {execution.rule: failure for execution in executions}


def _api_failure(answer: ApiError, target: CronTargetObject) -> ApplyFailure:
    if isinstance(answer, NotFound):
        return ApplyFailure(f"there is no {target}", retriable=True)
    return ApplyFailure(f"{target} could not be changed: {answer}", isinstance(answer, _RETRIABLE), answer.retry_after)
