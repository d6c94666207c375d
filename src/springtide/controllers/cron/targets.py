"""Carries out what rules have decided: sets the replicas of a workload, or the bounds of an autoscaler.

Whatever is due at once goes to the target in one write, computed from the version that was read. Nothing is written
where the target is as it should be; that is a success as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from springtide.apis.karmada.targets import CronTarget, TargetKind
from springtide.cluster.client import Client
from springtide.cluster.errors import ApiError, Conflict, NotFound, ServerError, TooManyRequests, Unauthorized
from springtide.cluster.kinds import Kinds, ServedKind
from springtide.cluster.port import Patch
from springtide.cluster.resources import Key
from springtide.controllers.cron.bounds import BOUND_FIELDS, Bounds, moved
from springtide.controllers.cron.plan import Execution

CONFLICTS = 5
"""How often in a row somebody else may be faster before a try counts as failed."""

_LATER = (Conflict, NotFound, ServerError, TooManyRequests, Unauthorized)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a firing was not applied."""

    words: str
    passing: bool
    """Whether it may go better later."""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """The object that a rule scales."""

    reference: CronTarget
    namespace: str

    @property
    def key(self) -> Key:
        """Where it is."""
        return Key(self.namespace, self.reference.name)

    def __str__(self) -> str:
        return f"{self.reference.kind} `{self.reference.name}`"


async def apply(
    client: Client, kinds: Kinds, target: Target, executions: Sequence[Execution], because: str, *, shared: bool
) -> dict[str, Trouble]:
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
        return _all(executions, Trouble(words, passing=False))
    if not served.resource.namespaced:
        words = f"{served.resource.kind} objects are in no namespace, and an object of one cannot scale them"
        return _all(executions, Trouble(words, passing=False))
    bounded = target.reference.target_kind
    if not bounded.has_bounds and not served.scalable:
        words = f"{served.resource.kind} of {served.resource.api_version} has no scale subresource"
        return _all(executions, Trouble(f"{words}; name a kind that has one", passing=False))
    for look in range(1, CONFLICTS + 1):
        try:
            if bounded.has_bounds:
                refused = await _move_bounds(client, served, bounded, target, executions, because)
                return {rule: Trouble(words, passing=shared) for rule, words in refused.items()}
            await _scale(client, served, target, executions, because)
        except Conflict as conflict:
            if look == CONFLICTS:
                return _all(executions, Trouble(f"{target} was changed by others each time: {conflict}", passing=True))
        except ApiError as answer:
            return _all(executions, _understood(answer, target))
        else:
            return {}
    raise AssertionError  # pragma: no cover - the last look returns


async def _scale(
    client: Client, served: ServedKind, target: Target, executions: Sequence[Execution], because: str
) -> None:
    """Set replicas; a scale that has none says so by having no such field."""
    replicas = next(execution.values["replicas"] for execution in executions)
    scale = await client.get(served.resource, target.key, subresource="scale")
    if ((scale.get("spec") or {}).get("replicas") or 0) != replicas:
        await client.scale(served.resource, replicas, of=scale, because=because)


async def _move_bounds(
    client: Client,
    served: ServedKind,
    kind: TargetKind,
    target: Target,
    executions: Sequence[Execution],
    because: str,
) -> Mapping[str, str]:
    """Set minimum and maximum, in one write; gives the rules that could not have their way, with why."""
    autoscaler = await client.get(served.resource, target.key)
    fields = BOUND_FIELDS[kind]
    present = Bounds.of(autoscaler.get("spec") or {}, fields)
    move = moved(present, executions, str(target))
    changes = fields.written(present, move.bounds)
    if changes:
        await client.patch(served.resource, Patch.merge({"spec": changes}), of=autoscaler, because=because)
    return move.refused


def _all(executions: Sequence[Execution], trouble: Trouble) -> dict[str, Trouble]:
    return {execution.rule: trouble for execution in executions}


def _understood(answer: ApiError, target: Target) -> Trouble:
    if isinstance(answer, NotFound):
        return Trouble(f"there is no {target}", passing=True)
    return Trouble(f"{target} could not be changed: {answer}", isinstance(answer, _LATER), answer.retry_after)
