"""The schedule of a MetricsProducer: compiled to replicas over time, searched for conflicts, and forecast.

Behaviours are ranked by priority and then by their position in the list. Wherever several are active, the first in rank
wins.

The search warns of behaviours that are ambiguous, that collide, or that never take effect. Calendars may be unknown to
it; the collisions of a behaviour with unknown calendars are not reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING

from springtide.almanac import (
    DayCalendar,
    LayerOverlap,
    MatchPolicy,
    Timeline,
    TimelineLayer,
    Zone,
    active_spans,
    always,
    first_difference,
    load_zone,
    merged,
    overlaps,
    overlay,
    with_lead_time,
)
from springtide.almanac.search_budget import SearchBudget, exceeds_budget, limit_search
from springtide.apis.forecast import ForecastQuery, LaneCollision, LaneStyle, Outlook, timeline_lane
from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.times import (
    KnownCalendars,
    clock_time,
    date_and_time,
    dates_and_times,
    on_calendars,
    open_times,
)
from springtide.apis.problems import Path, Problem, has_errors, warning

if TYPE_CHECKING:
    from springtide.apis.scheduled.producer import MetricsProducer, ScheduledBehavior, ScheduleSpec


@dataclass(frozen=True, slots=True)
class CompiledBehavior:
    """A behaviour that is not suspended, with the times at which it is active."""

    position: int
    """Its position in the list of behaviours."""
    behavior: ScheduledBehavior
    active: Timeline[bool]
    written_position: int | None = None
    """Its position in the manifest, if invalid entries were removed from the list."""

    @property
    def label(self) -> str:
        """The behaviour in messages: by its name, else by its position."""
        if self.behavior.name:
            return f"behaviour `{self.behavior.name}`"
        return f"`behaviors[{self.position if self.written_position is None else self.written_position}]`"

    @property
    def priority(self) -> int:
        """The higher priority wins."""
        return self.behavior.priority or 0

    @property
    def replicas(self) -> int:
        """The value while it wins."""
        return self.behavior.replicas


def zone_of(spec: ScheduleSpec, default: str) -> Zone:
    """Return the time zone of a schedule."""
    return load_zone(spec.timezone or default)


def active_times(
    behavior: ScheduledBehavior, policy: MatchPolicy, zone: Zone, calendars: Mapping[str, DayCalendar]
) -> Timeline[bool]:
    """Compile a behaviour without errors: its window, restricted by calendars, then with its lead time."""
    window = open_times(behavior, zone, policy)
    return with_lead_time(on_calendars(window, behavior.calendars or (), calendars, zone), behavior.lead_seconds or 0)


def compile_behaviors(
    spec: ScheduleSpec, zone: Zone, calendars: Mapping[str, DayCalendar]
) -> tuple[CompiledBehavior, ...]:
    """Compile the behaviours that are not suspended, ranked: of several active ones the first wins."""
    policy = MatchPolicy(spec.match_policy)
    claims = (
        CompiledBehavior(position, behavior, active_times(behavior, policy, zone, calendars))
        for position, behavior in enumerate(spec.behaviors)
        if not behavior.suspend
    )
    return tuple(sorted(claims, key=lambda claim: (-claim.priority, claim.position)))


def compile_schedule(spec: ScheduleSpec, zone: Zone, calendars: Mapping[str, DayCalendar]) -> Timeline[int]:
    """Compile a schedule without errors to its number of replicas over time."""
    return replicas_over_time(compile_behaviors(spec, zone, calendars), spec.default_replicas)


def replicas_over_time(claims: Sequence[CompiledBehavior], default: int) -> Timeline[int]:
    """Return the value of the winning behaviour, or the default, over time."""
    return overlay([(claim.active, claim.replicas) for claim in claims], default)


def active_behaviors(claims: Sequence[CompiledBehavior], at: int) -> tuple[CompiledBehavior, ...]:
    """Return the behaviours that are active at an instant, the winning one first."""
    return tuple(claim for claim in claims if claim.active.at(at))


_DAY = 24 * 60 * 60
# The first includes every date except 29 February, the second most combinations of date and weekday.
_SHADOW_HORIZON = 400 * _DAY
_COLLISION_HORIZON = 2 * 366 * _DAY
# A pattern of weekdays alone repeats weekly; in one of these weeks a change of clocks may hide a part of it.
_WEEKLY_HORIZON = 3 * 7 * _DAY
_SHOWN = 3

# Bounds for the duration of a check; real schedules are far below.
_MOST_COMPARED = 50
_LONGEST_YEARS = 9
_YEARS_FOR_EVENTS_PER_DAY = 60
_MOST_STEPS = 2_000_000
_CLAIMS_PER_STEP = 8


@dataclass(frozen=True, slots=True)
class ScheduleFinding:
    """A part of a schedule that is probably a mistake."""

    reason: str
    """The reason for conditions, in CamelCase."""
    path: Path
    """The path, relative to the schedule."""
    message: str
    """The message without dates, which does not change over time."""
    hint: str
    first: str = ""
    """The message with the first times at which it happens, if they are known."""

    @property
    def dated(self) -> str:
        """The message, with its first times if they are known."""
        return self.first or self.message


def schedule_problems(spec: ScheduleSpec, context: ValidationContext) -> Iterator[Problem]:
    """Warn of probable mistakes in a schedule; paths are relative to it."""
    return (warning(found.path, found.dated, found.hint) for found in schedule_findings(spec, context))


def schedule_findings(
    spec: ScheduleSpec, context: ValidationContext, calendars: KnownCalendars | None = None
) -> Iterator[ScheduleFinding]:
    """Find probable mistakes in a schedule; in a very busy schedule, the search may end before it has found all."""
    with limit_search(_MOST_STEPS) as budget:
        return iter(_search(spec, context, calendars or KnownCalendars({}), budget))


def _search(
    spec: ScheduleSpec, context: ValidationContext, calendars: KnownCalendars, budget: SearchBudget
) -> list[ScheduleFinding]:
    """Run all searches; the result of a search that exceeds the budget is discarded."""
    found: list[ScheduleFinding] = []
    zone = zone_of(spec, context.default_zone)
    policy = MatchPolicy(spec.match_policy)
    sound = [
        CompiledBehavior(
            position,
            behavior,
            active_times(behavior, policy, zone, calendars.by_name),
            context.position("behaviors", position),
        )
        for position, behavior in enumerate(spec.behaviors)
        if not behavior.suspend and _is_valid(behavior, context)
    ]
    years = _years_to_search(sound)
    compared: list[CompiledBehavior] = []
    for claim in sound:
        here: list[ScheduleFinding] = []
        if policy is MatchPolicy.LITERAL:
            here += _alternation_findings(claim, zone, context.now, years)
        filled = False
        if (lead := claim.behavior.lead_seconds) is not None and lead > 0:
            rhythm = _window_lengths(claim, policy, zone, context.now)
            here += _lead_findings(claim, lead, rhythm)
            filled = rhythm.is_filled_by(lead)
        excluded = _is_excluded(claim, policy, zone, context.now)
        if excluded:
            here.append(
                ScheduleFinding(
                    "NeverTakesEffect",
                    ("behaviors", claim.position, "calendars"),
                    f"{claim.label} never takes effect: its calendars exclude every time at which it would",
                    "remove it, or one of its calendars",
                )
            )
        if budget.exhausted:
            return found
        found += here
        if excluded:
            continue
        if not claim.behavior.calendars:
            # The timeline of an always active behaviour need not be searched for its end.
            compared.append(replace(claim, active=always()) if filled else claim)
        elif calendars.resolves(claim.behavior.calendars):
            compared.append(claim)
    compared = sorted(compared, key=lambda claim: (-claim.priority, claim.position))[:_MOST_COMPARED]
    shadowed = _never_winning(compared, context.now)
    if budget.exhausted:
        return found
    found += (
        ScheduleFinding(
            "NeverTakesEffect",
            ("behaviors", claim.position),
            f"{claim.label} never takes effect: whenever it is active, another one wins",
            "give it a higher `priority`, or list it earlier",
        )
        for claim in shadowed
    )
    found += _collision_findings([claim for claim in compared if claim not in shadowed], zone, context.now)
    return found


def collisions(
    claims: Sequence[CompiledBehavior], from_: int, until: int, first: int | None = None
) -> Iterator[tuple[CompiledBehavior, CompiledBehavior, LayerOverlap]]:
    """Find pairs of behaviours that are active together with different replicas: winner, loser, and when."""
    by_name = {str(claim.position): claim for claim in claims}
    layers = [TimelineLayer(name, claim.active, claim.replicas, claim.priority) for name, claim in by_name.items()]
    for overlap in overlaps(layers, from_, until, first):
        yield by_name[overlap.winner], by_name[overlap.loser], overlap


def _is_valid(behavior: ScheduledBehavior, context: ValidationContext) -> bool:
    parts = (part for part in (behavior, behavior.start, behavior.end) if part is not None)
    return not any(has_errors(part.problems(context)) for part in parts)


def _is_excluded(claim: CompiledBehavior, policy: MatchPolicy, zone: Zone, now: int) -> bool:
    """Return whether calendars exclude all times of a behaviour."""
    if not claim.behavior.calendars or not _never_again(claim.active, now):
        return False
    return not _never_again(open_times(claim.behavior, zone, policy), now)


def _never_again(active: Timeline[bool], now: int) -> bool:
    return not active.at(now) and active.next_change(now) is None


def _is_weekly(claim: CompiledBehavior) -> bool:
    """Return whether a behaviour repeats weekly: its patterns have weekdays and times only, and it has no lead time.

    A lead time is elapsed time, so it begins at another local time in weeks in which clocks change.
    """
    patterns = (claim.behavior.start, claim.behavior.end)
    by_weekdays = all(pattern is not None and pattern.days is None and pattern.months is None for pattern in patterns)
    return by_weekdays and not claim.behavior.lead_seconds


def _years_to_search(claims: Sequence[CompiledBehavior]) -> int:
    """Return how many years to search: many for rare events, fewer for frequent ones."""
    patterns = [spec.parse() for claim in claims for spec in (claim.behavior.start, claim.behavior.end) if spec]
    events_per_day = sum(len(pattern.walls.times) for pattern in patterns)
    return max(1, min(_LONGEST_YEARS, _YEARS_FOR_EVENTS_PER_DAY // max(1, events_per_day)))


def _alternation_findings(claim: CompiledBehavior, zone: Zone, now: int, years: int) -> Iterator[ScheduleFinding]:
    """Find times at which the literal reading differs from windows.

    Literal: active while the next end comes before the next start. Windows: active from a start until the next end.
    """
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
    fact = f"starts and ends of {claim.label} do not alternate"
    yield ScheduleFinding(
        "NotAlternating",
        ("behaviors", claim.position, "start"),
        f"{fact}: it is active while the next end comes before the next start, which is not the same as from a start"
        " until the next end",
        "write `matchPolicy: Window` beside `behaviors` if windows are meant",
        f"{fact}: on {date_and_time(first, zone)} it is {states[0]}, because the next {sooner} comes before the next"
        f" {later}; read as windows from a start until the next end it would be {states[1]}",
    )


@dataclass(frozen=True, slots=True)
class _WindowLengths:
    """The longest pause between the windows of a behaviour, without its lead time, and the longest window."""

    pause: int | None
    length: int | None

    def is_filled_by(self, lead: int) -> bool:
        """Whether a lead time fills every pause between windows."""
        return self.pause is not None and lead >= self.pause


def _window_lengths(claim: CompiledBehavior, policy: MatchPolicy, zone: Zone, now: int) -> _WindowLengths:
    window = open_times(claim.behavior, zone, policy)
    windows = list(takewhile(lambda span: span[0] <= now + _SHADOW_HORIZON, active_spans(window, now)))
    pauses = [later[0] - earlier[1] for earlier, later in pairwise(windows) if earlier[1] is not None]
    # The first window may have begun before now.
    lengths = [end - start for start, end in windows if end is not None and start > now]
    return _WindowLengths(max(pauses, default=None), max(lengths, default=None))


def _lead_findings(claim: CompiledBehavior, lead: int, rhythm: _WindowLengths) -> Iterator[ScheduleFinding]:
    """Find lead times that are as long as the pauses or the windows."""
    path = ("behaviors", claim.position, "leadSeconds")
    if rhythm.is_filled_by(lead):
        yield ScheduleFinding(
            "LeadFillsPause",
            path,
            f"leadSeconds {lead} reaches back to the window before: {claim.label} is always active",
            f"write less than {rhythm.pause}, the time between two windows",
        )
    elif rhythm.length is not None and lead >= rhythm.length:
        yield ScheduleFinding(
            "LeadLongerThanWindow",
            path,
            f"leadSeconds {lead} is not shorter than the {rhythm.length} seconds of the window that it precedes",
            "leadSeconds is in seconds",
        )


def _never_winning(claims: Sequence[CompiledBehavior], now: int) -> list[CompiledBehavior]:
    """Find behaviours that are active within the horizon and never win."""
    won, active = set[int](), set[int]()
    for at, states in merged([claim.active for claim in claims], now):
        if at > now + _SHADOW_HORIZON or len(won) == len(claims) or exceeds_budget(len(claims) // _CLAIMS_PER_STEP):
            break
        present = [index for index, state in enumerate(states) if state]
        active.update(present)
        won.update(present[:1])
    return [claims[index] for index in sorted(active - won)]


def first_wins(claims: Sequence[CompiledBehavior], now: int) -> list[tuple[CompiledBehavior | None, int]]:
    """List the behaviours that win at some time from now on, each with the first one; None is the default.

    Behaviours that happen once are found however far ahead, others within a year.
    """
    first: dict[int | None, int] = {}
    by_position = {claim.position: claim for claim in claims}
    with limit_search(_MOST_STEPS):
        for at, states in merged([claim.active for claim in claims], now):
            if (
                at > now + _SHADOW_HORIZON
                or len(first) > len(claims)
                or exceeds_budget(len(claims) // _CLAIMS_PER_STEP)
            ):
                break
            first.setdefault(next((one.position for one, on in zip(claims, states, strict=True) if on), None), at)
    for claim in claims:
        if claim.position not in first and (change := claim.active.next_change(now)) is not None and change[1]:
            winner = active_behaviors(claims, change[0])[0]
            first.setdefault(winner.position, change[0])
    return [(None if position is None else by_position[position], at) for position, at in first.items()]


def _collision_findings(claims: Sequence[CompiledBehavior], zone: Zone, now: int) -> Iterator[ScheduleFinding]:
    # With calendars, weeks differ.
    weekly = all(_is_weekly(claim) and not claim.behavior.calendars for claim in claims)
    horizon = _WEEKLY_HORIZON if weekly else _COLLISION_HORIZON
    for winner, loser, overlap in collisions(claims, now, now + horizon, _SHOWN):
        if winner.priority != loser.priority:
            continue  # the user decided which one wins
        fact = (
            f"{winner.label} (replicas {winner.replicas}) and {loser.label} (replicas {loser.replicas}) are active at"
            " the same time"
        )
        verdict = f"{winner.label} wins, as it is listed first"
        times = dates_and_times((at for at, _ in overlap.spans), zone)
        yield ScheduleFinding(
            "Collision",
            ("behaviors", loser.position),
            f"{fact}: {verdict}",
            "give the one that should win a higher `priority`",
            f"{fact}, first on {times}: {verdict}",
        )


def forecast_schedule(producer: MetricsProducer, query: ForecastQuery) -> Outlook:
    """Forecast the replicas; producers without a schedule have no lanes."""
    schedule = producer.spec.schedule
    if schedule is None:
        return Outlook(zones=(query.default_zone,), lanes=())
    zone = zone_of(schedule, query.default_zone)
    claims = compile_behaviors(schedule, zone, query.calendars)
    lane = timeline_lane(
        "replicas",
        LaneStyle.LEVEL,
        replicas_over_time(claims, schedule.default_replicas),
        query,
        because=lambda at, _: change_reason(claims, at, zone, schedule.default_replicas),
        because_now=current_reason(claims, query.start, zone, schedule.default_replicas),
    )
    return Outlook((zone.name,), (lane,), tuple(_collisions(claims, query)))


def change_reason(claims: Sequence[CompiledBehavior], at: int, zone: Zone, default: int) -> str:
    """Say which behaviour begins or ends at an instant, and which value follows."""
    before, after = active_behaviors(claims, at - 1), active_behaviors(claims, at)
    clock = clock_time(at, zone)
    if after and after[0] not in before:
        lead = after[0].behavior.lead_seconds
        early = f", {lead} seconds early" if lead else ""
        return f"{after[0].label} starts ({clock}{early})"
    following = f"{after[0].label} continues" if after else f"back to the default of {default}"
    return f"window of {before[0].label} over ({clock}): {following}"


def current_reason(claims: Sequence[CompiledBehavior], at: int, zone: Zone, default: int) -> str:
    """Say which behaviour is active at an instant."""
    active = active_behaviors(claims, at)
    reason = f"{active[0].label} is active" if active else f"no behaviour is active: the default of {default}"
    return f"{reason} ({clock_time(at, zone)})"


def _collisions(claims: Sequence[CompiledBehavior], query: ForecastQuery) -> Iterator[LaneCollision]:
    for winner, loser, overlap in collisions(claims, query.start, query.until):
        reason = "by priority" if winner.priority != loser.priority else "as it is listed first"
        for at, until in overlap.spans:
            yield LaneCollision(
                at,
                until,
                f"{winner.label} (replicas {winner.replicas}) wins over {loser.label} (replicas {loser.replicas}),"
                f" {reason}",
            )
