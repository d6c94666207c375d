"""Behaviours that are not what they seem: read in two ways, in each other's way, or never seen.

Calendars may not be known. What a behaviour with calendars does on which day cannot be told then, so nothing is said
about its meeting others; whoever knows the calendars gives them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from springtide.almanac import (
    Layer,
    MatchPolicy,
    Overlap,
    Timeline,
    Zone,
    active_spans,
    always,
    first_difference,
    merged,
    overlaps,
)
from springtide.almanac.effort import Effort, at_most, is_enough
from springtide.apis.fields import Context
from springtide.apis.meta.clock_times import date_and_time, dates_and_times
from springtide.apis.meta.windows import KnownCalendars, open_times
from springtide.apis.problems import Path, Problem, has_errors, warning
from springtide.apis.scheduled.schedule import Claim, active_times, zone_of

if TYPE_CHECKING:
    from springtide.apis.scheduled.behaviors import ScheduledBehavior, ScheduleSpec

_DAY = 24 * 60 * 60
# Every date but 29 February comes within the first, and every date on every weekday often enough within the second.
_SHADOW_HORIZON = 400 * _DAY
_COLLISION_HORIZON = 2 * 366 * _DAY
# What recurs by weekdays alone does so every week; in one of these clocks may change, and hide a part of it.
_WEEKLY_HORIZON = 3 * 7 * _DAY
_SHOWN = 3

# A check must answer at once, whatever it is given. Schedules that people write are far below these bounds.
_MOST_COMPARED = 50
_LONGEST_YEARS = 9
_YEARS_FOR_EVENTS_PER_DAY = 60
_MOST_STEPS = 2_000_000
_CLAIMS_PER_STEP = 8


@dataclass(frozen=True, slots=True)
class Surprise:
    """Something about a schedule that its author may not have meant."""

    reason: str
    """What it is, in one CamelCase word, for conditions."""
    path: Path
    """Where, relative to the schedule."""
    message: str
    """What, in words that are as true tomorrow as they are today."""
    hint: str
    first: str = ""
    """What, with the times at which it happens first, where they are known."""

    @property
    def dated(self) -> str:
        """What, and when first if that is known."""
        return self.first or self.message


def schedule_problems(spec: ScheduleSpec, context: Context) -> Iterator[Problem]:
    """Warn of surprises in a schedule; paths are relative to it."""
    return (warning(found.path, found.dated, found.hint) for found in surprises(spec, context))


def surprises(spec: ScheduleSpec, context: Context, calendars: KnownCalendars | None = None) -> Iterator[Surprise]:
    """Find surprises in a schedule: what is found is true, of schedules that change all the time not all may be."""
    with at_most(_MOST_STEPS) as effort:
        return iter(_found(spec, context, calendars or KnownCalendars({}), effort))


def _found(spec: ScheduleSpec, context: Context, calendars: KnownCalendars, effort: Effort) -> list[Surprise]:
    """Search one thing after the other; what a search says that was cut short may not be true."""
    found: list[Surprise] = []
    zone = zone_of(spec, context.default_zone)
    policy = MatchPolicy(spec.match_policy)
    sound = [
        Claim(
            position,
            behavior,
            active_times(behavior, policy, zone, calendars.by_name),
            context.position("behaviors", position),
        )
        for position, behavior in enumerate(spec.behaviors)
        if not behavior.suspend and _is_sound(behavior, context)
    ]
    years = _years_to_search(sound)
    compared: list[Claim] = []
    for claim in sound:
        here: list[Surprise] = []
        if policy is MatchPolicy.LITERAL:
            here += _readings(claim, zone, context.now, years)
        filled = False
        if (lead := claim.behavior.lead_seconds) is not None and lead > 0:
            rhythm = _rhythm(claim, policy, zone, context.now)
            here += _leads(claim, lead, rhythm)
            filled = rhythm.is_filled_by(lead)
        excluded = _is_excluded(claim, policy, zone, context.now)
        if excluded:
            here.append(
                Surprise(
                    "NeverTakesEffect",
                    ("behaviors", claim.position, "calendars"),
                    f"{claim.label} never takes effect: its calendars exclude every time at which it would",
                    "remove it, or one of its calendars",
                )
            )
        if effort.exhausted:
            return found
        found += here
        if excluded:
            continue
        if not claim.behavior.calendars:
            # What is known to be always active need not be searched for its end.
            compared.append(replace(claim, active=always()) if filled else claim)
        elif calendars.tell(claim.behavior.calendars):
            compared.append(claim)
    compared = sorted(compared, key=lambda claim: (-claim.priority, claim.position))[:_MOST_COMPARED]
    shadowed = _shadowed(compared, context.now)
    if effort.exhausted:
        return found
    found += (
        Surprise(
            "NeverTakesEffect",
            ("behaviors", claim.position),
            f"{claim.label} never takes effect: whenever it is active, another one wins",
            "give it a higher `priority`, or list it earlier",
        )
        for claim in shadowed
    )
    found += _clashes([claim for claim in compared if claim not in shadowed], zone, context.now)
    return found


def collisions(
    claims: Sequence[Claim], from_: int, until: int, first: int | None = None
) -> Iterator[tuple[Claim, Claim, Overlap]]:
    """Find the pairs of ranked claims that are active together with different replicas: winner, loser, and when."""
    by_name = {str(claim.position): claim for claim in claims}
    layers = [Layer(name, claim.active, claim.replicas, claim.priority) for name, claim in by_name.items()]
    for overlap in overlaps(layers, from_, until, first):
        yield by_name[overlap.winner], by_name[overlap.loser], overlap


def _is_sound(behavior: ScheduledBehavior, context: Context) -> bool:
    parts = (part for part in (behavior, behavior.start, behavior.end) if part is not None)
    return not any(has_errors(part.problems(context)) for part in parts)


def _is_excluded(claim: Claim, policy: MatchPolicy, zone: Zone, now: int) -> bool:
    """Tell whether calendars leave nothing of a behaviour that would be active some time."""
    if not claim.behavior.calendars or not _never_again(claim.active, now):
        return False
    return not _never_again(open_times(claim.behavior, zone, policy), now)


def _never_again(active: Timeline[bool], now: int) -> bool:
    return not active.at(now) and active.next_change(now) is None


def _is_weekly(claim: Claim) -> bool:
    """Tell whether a claim is made in every week alike: by weekdays and times of the wall clock, and by nothing else.

    A lead is in elapsed time, and reaches back to another time of the clock in the weeks in which clocks change.
    """
    patterns = (claim.behavior.start, claim.behavior.end)
    by_weekdays = all(pattern is not None and pattern.days is None and pattern.months is None for pattern in patterns)
    return by_weekdays and not claim.behavior.lead_seconds


def _years_to_search(claims: Sequence[Claim]) -> int:
    """Look far ahead for rare events, and not so far where there are many to look at."""
    patterns = [spec.parse() for claim in claims for spec in (claim.behavior.start, claim.behavior.end) if spec]
    events_per_day = sum(len(pattern.walls.times) for pattern in patterns)
    return max(1, min(_LONGEST_YEARS, _YEARS_FOR_EVENTS_PER_DAY // max(1, events_per_day)))


def _readings(claim: Claim, zone: Zone, now: int, years: int) -> Iterator[Surprise]:
    """Find where "the next end comes before the next start" is not "from a start until the next end"."""
    start, end = claim.behavior.start, claim.behavior.end
    if start is None or end is None:
        return
    literal = open_times(claim.behavior, zone, MatchPolicy.LITERAL)
    if _is_weekly(claim):
        window = open_times(claim.behavior, zone, MatchPolicy.WINDOW)
        within = takewhile(lambda step: step[0] <= now + _WEEKLY_HORIZON, merged((literal, window), now))
        first = next((at for at, (one, other) in within if one is not other), None)
    else:
        first = first_difference(start.parse(), end.parse(), zone, now, years)
    if first is None:
        return
    literally = literal.at(first)
    states = ("active", "not active") if literally else ("not active", "active")
    sooner, later = ("end", "start") if literally else ("start", "end")
    fact = f"starts and ends of {claim.label} do not take turns"
    yield Surprise(
        "NotAlternating",
        ("behaviors", claim.position, "start"),
        f"{fact}: it is active while the next end comes before the next start, which is not the same as from a start"
        " until the next end",
        "write `matchPolicy: Window` beside `behaviors` if windows are meant",
        f"{fact}: on {date_and_time(first, zone)} it is {states[0]}, because the next {sooner} comes before the next"
        f" {later}; read as windows from a start until the next end it would be {states[1]}",
    )


@dataclass(frozen=True, slots=True)
class _Rhythm:
    """The longest pause between the windows of a behaviour, before its lead, and the longest window."""

    pause: int | None
    length: int | None

    def is_filled_by(self, lead: int) -> bool:
        """Whether a lead reaches from every window back to the one before."""
        return self.pause is not None and lead >= self.pause


def _rhythm(claim: Claim, policy: MatchPolicy, zone: Zone, now: int) -> _Rhythm:
    window = open_times(claim.behavior, zone, policy)
    windows = list(takewhile(lambda span: span[0] <= now + _SHADOW_HORIZON, active_spans(window, now)))
    pauses = [later[0] - earlier[1] for earlier, later in pairwise(windows) if earlier[1] is not None]
    # The first window may have begun before now; the others are seen whole.
    lengths = [end - start for start, end in windows if end is not None and start > now]
    return _Rhythm(max(pauses, default=None), max(lengths, default=None))


def _leads(claim: Claim, lead: int, rhythm: _Rhythm) -> Iterator[Surprise]:
    """Find leads that swallow what they should precede."""
    path = ("behaviors", claim.position, "leadSeconds")
    if rhythm.is_filled_by(lead):
        yield Surprise(
            "LeadFillsPause",
            path,
            f"leadSeconds {lead} reaches back to the window before: {claim.label} is always active",
            f"write less than {rhythm.pause}, the time between two windows",
        )
    elif rhythm.length is not None and lead >= rhythm.length:
        yield Surprise(
            "LeadLongerThanWindow",
            path,
            f"leadSeconds {lead} is not shorter than the {rhythm.length} seconds of the window that it precedes",
            "leadSeconds is in seconds",
        )


def _shadowed(claims: Sequence[Claim], now: int) -> list[Claim]:
    """Find the claims that are active within the horizon and never win."""
    won, active = set[int](), set[int]()
    for at, states in merged([claim.active for claim in claims], now):
        if at > now + _SHADOW_HORIZON or len(won) == len(claims) or is_enough(len(claims) // _CLAIMS_PER_STEP):
            break
        present = [index for index, state in enumerate(states) if state]
        active.update(present)
        won.update(present[:1])
    return [claims[index] for index in sorted(active - won)]


def _clashes(claims: Sequence[Claim], zone: Zone, now: int) -> Iterator[Surprise]:
    # The days of a calendar are in some weeks and not in others.
    weekly = all(_is_weekly(claim) and not claim.behavior.calendars for claim in claims)
    horizon = _WEEKLY_HORIZON if weekly else _COLLISION_HORIZON
    for winner, loser, overlap in collisions(claims, now, now + horizon, _SHOWN):
        if winner.priority != loser.priority:
            continue  # somebody has decided who wins
        fact = (
            f"{winner.label} (replicas {winner.replicas}) and {loser.label} (replicas {loser.replicas}) are active at"
            " the same time"
        )
        verdict = f"{winner.label} wins, being listed first"
        times = dates_and_times((at for at, _ in overlap.spans), zone)
        yield Surprise(
            "Collision",
            ("behaviors", loser.position),
            f"{fact}: {verdict}",
            "give the one that should win a higher `priority`",
            f"{fact}, first on {times}: {verdict}",
        )
