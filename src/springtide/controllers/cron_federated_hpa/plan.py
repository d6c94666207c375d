"""Which firings of cron rules are due, and which of them are applied.

After an outage many firings may be due at once, and what matters is the state that the target should have now. So of
every field (replicas, minimum, maximum) only the latest due firing is applied, unless it is too late, and all others
are missed. A firing is also missed if the later one that superseded it is too late itself.

A time at which a calendar prevents a firing is handled when it passes. Otherwise it would become due days later, when a
user edits the calendar.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from springtide.almanac import Firings
from springtide.apis.forecast import format_instant

RuleAction: TypeAlias = Mapping[str, int]
"""Values by field: any of `replicas`, `min` and `max`."""


@dataclass(frozen=True, slots=True)
class CandidateRule:
    """A rule of the object that is evaluated."""

    name: str
    firings: Firings
    action: RuleAction
    since: int
    """Firings up to this instant are handled, or never counted."""
    recorded: int | None = None
    """The newest firing in the history: it competes with those of other rules as if it were due."""
    applied: frozenset[int] = frozenset()
    """Firings that were applied and are not recorded yet."""
    ended: int | None = None
    """When the rule ceased to be in force; what was due until then is missed."""
    max_delay: int | None = None
    kept: int = 3
    """How many missed firings are listed; at least one."""


@dataclass(frozen=True, slots=True)
class ConflictingRule:
    """A rule of another object with the same target, which may have fired later."""

    object: str
    name: str
    firings: Firings
    action: RuleAction
    since: int
    """Firings after this instant count."""
    recorded: int | None
    """The newest firing in the history: it counts as well."""
    precedes: bool
    """Whether the rules of the evaluated object win a tie."""


@dataclass(frozen=True, slots=True)
class RuleExecution:
    """A firing to be applied."""

    rule: str
    at: int
    values: RuleAction
    """The fields to set: those for which no later firing is due."""
    last_try: int | None
    """After this instant it is not retried: it would be too late, or the next firing is due."""
    settled_before: int
    """The progress of the rule while this firing is still being retried."""


@dataclass(frozen=True, slots=True)
class MissedFiring:
    """A firing that is not applied any more, and why."""

    rule: str
    at: int
    because: str
    earlier: int = 0
    """How many more of the rule were missed before it, and are not listed."""


@dataclass(frozen=True, slots=True)
class FiringPlan:
    """What is due now, and when the object is requeued."""

    executions: tuple[RuleExecution, ...]
    """In the order of their times, then of the rules."""
    missed: tuple[MissedFiring, ...]
    """By rule, newest first."""
    settled: Mapping[str, int]
    """The progress of each rule once all of this is done."""
    next: Mapping[str, int | None]
    """When each rule in force fires next."""
    requeue_at: int | None
    """The next firing, or the next time at which a calendar prevents one."""


@dataclass(frozen=True, slots=True)
class FieldClaim:
    """The latest firing of a rule, due or handled, as it competes for fields; later ones and then higher ranks win."""

    at: int
    rank: int
    rule: str
    label: str
    """The rule, for messages."""
    tie_break: str
    """Why it wins a tie, for messages."""


def plan_firings(candidates: Sequence[CandidateRule], now: int, others: Sequence[ConflictingRule] = ()) -> FiringPlan:
    """Decide what is due of one object, whose rules are given in their order."""
    following = {one.name: one.firings.after(max(now, one.since)) for one in candidates if one.ended is None}
    claims = latest_claims(candidates, now)
    winners = field_winners(candidates, claims, others, now)
    executions: list[RuleExecution] = []
    missed: list[MissedFiring] = []
    for one in candidates:
        claim = claims.get(one.name)
        if claim is None or claim.at <= one.since:
            continue
        if claim.at in one.applied:
            missed += _missed_run(one, claim.at - 1, _superseded_by_itself(claim.at))
            continue
        won = {field: value for field, value in one.action.items() if winners.get(field) == claim}
        late = one.max_delay is not None and now - claim.at > one.max_delay
        if won and not late:
            executions.append(_execution(one, claim.at, won, candidates, following))
            missed += _missed_run(one, claim.at - 1, _superseded_by_itself(claim.at))
        else:
            missed += _missed_run(one, claim.at, _why_missed(one, claim, winners, now, superseded=not won))
    executions.sort(key=lambda each: each.at)
    return FiringPlan(
        tuple(executions),
        tuple(missed),
        {one.name: _settled(one, now) for one in candidates},
        following,
        min((at for one in candidates if (at := _next_firing(one, following, now)) is not None), default=None),
    )


def _until(one: CandidateRule, now: int) -> int:
    """Return the instant up to which the firings of a rule count."""
    return now if one.ended is None else min(one.ended, now)


def _latest(one: CandidateRule | ConflictingRule, until: int) -> int | None:
    """Return the latest firing of a rule that counts: it is due, or recorded.

    A firing in the very second from which on the rule counts does not count itself.
    """
    begun = one.since if one.recorded is None else min(one.since, one.recorded)
    latest = one.firings.at_or_before(until, since=begun)
    return latest if latest is not None and (latest > one.since or latest == one.recorded) else None


def _settled(one: CandidateRule, now: int) -> int:
    passed = one.firings.unrestricted().at_or_before(_until(one, now))
    return one.since if passed is None else max(one.since, passed)


def _next_firing(one: CandidateRule, following: Mapping[str, int | None], now: int) -> int | None:
    if one.ended is not None:
        return None
    times = one.firings.unrestricted()
    return following[one.name] if times is one.firings else times.after(max(now, one.since))


def latest_claims(candidates: Sequence[CandidateRule], now: int) -> dict[str, FieldClaim]:
    """Return the latest firing of each rule that counts, by rule."""
    return {
        one.name: FieldClaim(latest, rank, one.name, f"rule `{one.name}`", "as it is listed last")
        for rank, one in enumerate(candidates)
        if (latest := _latest(one, _until(one, now))) is not None
    }


def field_winners(
    candidates: Sequence[CandidateRule], claims: Mapping[str, FieldClaim], others: Sequence[ConflictingRule], now: int
) -> dict[str, FieldClaim]:
    """Find the latest firing that sets each field; rules that are not in force set none."""
    winners: dict[str, FieldClaim] = {}

    def claim_fields(fields: Iterable[str], claim: FieldClaim) -> None:
        for field in fields:
            if field not in winners or (winners[field].at, winners[field].rank) < (claim.at, claim.rank):
                winners[field] = claim

    for one in candidates:
        if one.name in claims and one.ended is None:
            claim_fields(one.action, claims[one.name])
    for number, other in enumerate(others):
        latest = _latest(other, now)
        if latest is not None:
            rank = number - len(others) if other.precedes else len(candidates) + number
            label = f"rule `{other.name}` of CronFederatedHPA `{other.object}`"
            claim_fields(
                other.action, FieldClaim(latest, rank, other.name, label, "as the name of its object comes last")
            )
    return winners


def _execution(
    one: CandidateRule,
    at: int,
    values: RuleAction,
    candidates: Iterable[CandidateRule],
    following: Mapping[str, int | None],
) -> RuleExecution:
    ends = [] if one.max_delay is None else [at + one.max_delay]
    for other in candidates:
        comes = following.get(other.name)
        if comes is not None and not other.action.keys().isdisjoint(values):
            ends.append(comes - 1)
    earlier = one.firings.at_or_before(at - 1, since=one.since)
    return RuleExecution(one.name, at, values, min(ends, default=None), one.since if earlier is None else earlier)


def _missed_run(one: CandidateRule, until: int, because: str) -> Iterator[MissedFiring]:
    """List the due firings of a rule up to an instant, newest first, as many as the history keeps."""
    at = one.firings.at_or_before(until, since=one.since)
    applied = sum(one.since < each <= until and one.firings.at_or_before(each) == each for each in one.applied)
    more = max(0, one.firings.count(one.since, until) - applied - one.kept)
    listed = 0
    while at is not None and at > one.since and listed < one.kept:
        if at not in one.applied:
            yield MissedFiring(one.name, at, because, 0 if listed else more)
            listed += 1
        because = _superseded_by_itself(at)
        at = one.firings.at_or_before(at - 1, since=one.since)


def _superseded_by_itself(at: int) -> str:
    return f"the rule fired again at {format_instant(at)} before this could be applied"


def _why_missed(
    one: CandidateRule, claim: FieldClaim, winners: Mapping[str, FieldClaim], now: int, *, superseded: bool
) -> str:
    if one.ended is not None:
        return "the rule was suspended, or changed to something that cannot be used, before this could be applied"
    if not superseded:
        return f"it came {now - claim.at} s late, and maxDelaySeconds is {one.max_delay}"
    winner = next(winners[field] for field in one.action)
    if winner.at == claim.at:
        return f"{winner.label} fires at the same time and wins, {winner.tie_break}"
    return f"{winner.label} fired at {format_instant(winner.at)} before this could be applied"
