"""Minimum and maximum of an autoscaler, and how rules move them: always together, and never past each other.

Carries out what rules have decided: sets the replicas of a workload, or the bounds of an autoscaler.

Whatever is due at once goes to the target in one write, computed from the version that was read. Nothing is written
where the target is as it should be; that is a success as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from springtide.apis.karmada.targets import CronTarget, CronTargetKind
from springtide.cluster.client import Client
from springtide.cluster.errors import ApiError, Conflict, NotFound, ServerError, TooManyRequests, Unauthorized
from springtide.cluster.kinds import KindInfo, KindRegistry
from springtide.cluster.resources import Key
from springtide.cluster.transport import Patch
from springtide.controllers.cron_federated_hpa.plan import RuleAction, RuleExecution


@dataclass(frozen=True, slots=True)
class BoundFields:
    """What a kind calls its bounds, and what they are where nobody has set them."""

    low: str
    high: str
    default_low: int
    default_high: int | None

    def written(self, before: ReplicaBounds, after: ReplicaBounds) -> dict[str, int]:
        """Give the fields in which two pairs of bounds differ."""
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

    def moved_by(self, values: RuleAction) -> ReplicaBounds:
        """Give the bounds that a rule makes of these."""
        return ReplicaBounds(values.get("min", self.low), values.get("max", self.high))

    @property
    def possible(self) -> bool:
        """Whether any number of replicas lies between them."""
        return self.high is None or self.low <= self.high


@dataclass(frozen=True, slots=True)
class BoundsChange:
    """The bounds as they shall be, and the rules that could not have their way."""

    bounds: ReplicaBounds
    refused: Mapping[str, str]
    """Why, in words, by rule."""


def move_bounds(present: ReplicaBounds, executions: Sequence[RuleExecution], target: str) -> BoundsChange:
    """Move bounds by firings, given in the order of their times.

    Together they may be possible where one after the other would not be: one rule raises the minimum, another the
    maximum. Otherwise each that would move one bound past the other is refused, and the others have their way.
    """
    together = present
    for execution in executions:
        together = together.moved_by(execution.values)
    if together.possible:
        return BoundsChange(together, {})
    bounds, refused = present, {}
    for execution in executions:
        wanted = bounds.moved_by(execution.values)
        if wanted.possible:
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
    return f"the minimum {wanted.low} is greater than the maximum {wanted.high}; swap them"


MOST_CONFLICTS = 5
"""How often in a row somebody else may be faster before a try counts as failed."""

_RETRIABLE = (Conflict, NotFound, ServerError, TooManyRequests, Unauthorized)


@dataclass(frozen=True, slots=True)
class ApplyFailure:
    """Why a firing was not applied."""

    words: str
    passing: bool
    """Whether it may go better later."""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class CronTargetObject:
    """The object that a rule scales."""

    reference: CronTarget
    namespace: str

    @property
    def key(self) -> Key:
        """Where it is."""
        return Key(self.namespace, self.reference.name)

    def __str__(self) -> str:
        return f"{self.reference.kind} `{self.reference.name}`"


async def apply_executions(
    client: Client,
    kinds: KindRegistry,
    target: CronTargetObject,
    executions: Sequence[RuleExecution],
    because: str,
    *,
    shared: bool,
) -> dict[str, ApplyFailure]:
    """Apply firings to their target, all in one write; gives those that were not applied, by rule.

    A target may be shared with rules of other objects. One of those may raise the maximum in the same minute in which a
    rule here raises the minimum, so a bound that is in the way now may not be in a moment.

    Where nobody answers at all, that is no matter of this target: it raises, and everything is tried again when the
    cluster is back, as after an outage of our own.
    """
    served = kinds.find(target.reference.api_version or "v1", target.reference.kind)
    if served is None:
        name = f"{target.reference.kind} in {target.reference.api_version or 'v1'}"
        words = f"the cluster has no kind {name} that can be scaled; install it, or mend `scaleTargetRef`"
        return _failed_all(executions, ApplyFailure(words, passing=False))
    if not served.resource.namespaced:
        words = f"{served.resource.kind} objects are in no namespace, and an object of one cannot scale them"
        return _failed_all(executions, ApplyFailure(words, passing=False))
    bounded = target.reference.target_kind
    if not bounded.has_bounds and not served.scalable:
        words = f"{served.resource.kind} of {served.resource.api_version} has no scale subresource"
        return _failed_all(executions, ApplyFailure(f"{words}; name a kind that has one", passing=False))
    for look in range(1, MOST_CONFLICTS + 1):
        try:
            if bounded.has_bounds:
                refused = await _move_bounds(client, served, bounded, target, executions, because)
                return {rule: ApplyFailure(words, passing=shared) for rule, words in refused.items()}
            await _scale(client, served, target, executions, because)
        except Conflict as conflict:
            if look == MOST_CONFLICTS:
                return _failed_all(
                    executions, ApplyFailure(f"{target} was changed by others each time: {conflict}", passing=True)
                )
        except ApiError as answer:
            return _failed_all(executions, _api_failure(answer, target))
        else:
            return {}
    raise AssertionError  # pragma: no cover - the last look returns


async def _scale(
    client: Client, served: KindInfo, target: CronTargetObject, executions: Sequence[RuleExecution], because: str
) -> None:
    """Set replicas; a scale that has none says so by having no such field."""
    replicas = next(execution.values["replicas"] for execution in executions)
    scale = await client.get(served.resource, target.key, subresource="scale")
    if ((scale.get("spec") or {}).get("replicas") or 0) != replicas:
        await client.scale(served.resource, replicas, of=scale, because=because)


async def _move_bounds(
    client: Client,
    served: KindInfo,
    kind: CronTargetKind,
    target: CronTargetObject,
    executions: Sequence[RuleExecution],
    because: str,
) -> Mapping[str, str]:
    """Set minimum and maximum, in one write; gives the rules that could not have their way, with why."""
    autoscaler = await client.get(served.resource, target.key)
    fields = BOUND_FIELDS[kind]
    present = ReplicaBounds.of(autoscaler.get("spec") or {}, fields)
    move = move_bounds(present, executions, str(target))
    changes = fields.written(present, move.bounds)
    if changes:
        await client.patch(served.resource, Patch.merge({"spec": changes}), of=autoscaler, because=because)
    return move.refused


def _failed_all(executions: Sequence[RuleExecution], trouble: ApplyFailure) -> dict[str, ApplyFailure]:
    return {execution.rule: trouble for execution in executions}


def _api_failure(answer: ApiError, target: CronTargetObject) -> ApplyFailure:
    if isinstance(answer, NotFound):
        return ApplyFailure(f"there is no {target}", passing=True)
    return ApplyFailure(f"{target} could not be changed: {answer}", isinstance(answer, _RETRIABLE), answer.retry_after)
