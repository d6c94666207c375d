"""Cron rules: their firings, the checks of their times, and rules that conflict at the same instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from springtide.almanac import (
    Cron,
    DayCalendar,
    Dialect,
    FiringRule,
    Firings,
    RuleCoincidence,
    Zone,
    level_setters,
    load_zone,
    same_minute,
)
from springtide.apis.forecast import ForecastQuery, Lane, LaneChange, LaneCollision, LaneStyle, LazySequence
from springtide.apis.karmada.targets import CronTargetKind, action_of
from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.times import (
    KnownCalendars,
    calendar_filters,
    clock_time,
    date_and_time,
    dates_and_times,
    parse_instant,
)
from springtide.apis.problems import Problem, error, warning
from springtide.apis.validation import ANNOTATION

if TYPE_CHECKING:
    from springtide.apis.karmada.cron import CronFederatedHPARule


def zone_of(rule: CronFederatedHPARule, default: str) -> Zone:
    """Return the time zone of a rule."""
    return load_zone(rule.time_zone or default)


def fires(rule: CronFederatedHPARule) -> bool:
    """Return whether a rule has valid times and is not suspended."""
    return not rule.suspend and (rule.schedule is None) != (rule.at is None)


def firings_of(rule: CronFederatedHPARule, default_zone: str, calendars: Mapping[str, DayCalendar]) -> Firings:
    """Compile a rule without errors to the instants at which it fires while it is not suspended."""
    zone = zone_of(rule, default_zone)
    references = calendar_filters(rule.calendars or (), calendars)
    if rule.at is not None:
        return Firings.once(parse_instant(rule.at), zone, references)
    return Firings.of(Cron.parse(rule.schedule or "", Dialect.RULE), zone, references)


_DAY = 24 * 60 * 60
_HORIZON = 2 * 366 * _DAY
_FIRINGS = 10_000
_FINEST_GAP = 60


def timing_problems(rule: CronFederatedHPARule, context: ValidationContext) -> Iterator[Problem]:
    """Find problems with the times of one rule; paths are relative to it."""
    if rule.schedule is not None and rule.at is not None:
        yield error(
            ("at",),
            f"rule `{rule.name}` has both `schedule` and `at`",
            f"keep one of them; in the annotation {ANNOTATION}, `schedule: null` removes the other",
        )
    elif rule.schedule is not None:
        yield from _delay_problems(rule, context)
    elif rule.at is None:
        yield error(
            ("schedule",),
            f"rule `{rule.name}` never fires: it has neither `schedule` nor `at`",
            'write `schedule`, such as "30 8 * * *", or `at`, an RFC 3339 time',
        )
    elif parse_instant(rule.at) <= context.now:
        yield warning(("at",), f"rule `{rule.name}` never fires: {rule.at} is in the past", "remove the rule")


def _delay_problems(rule: CronFederatedHPARule, context: ValidationContext) -> Iterator[Problem]:
    if rule.max_delay_seconds is None or rule.schedule is None:
        return
    zone = zone_of(rule, context.default_zone)
    closest = closest_firings(Cron.parse(rule.schedule, Dialect.RULE), zone, context.now)
    if closest is None:
        return
    first, second = closest
    gap = second - first
    if rule.max_delay_seconds >= gap:
        yield error(
            ("maxDelaySeconds",),
            f"maxDelaySeconds {rule.max_delay_seconds} is not smaller than the {gap} seconds between two firings of"
            f" rule `{rule.name}` ({date_and_time(first, zone)} and {date_and_time(second, zone)})",
            f"write {gap - 1} or less",
        )


def closest_firings(cron: Cron, zone: Zone, now: int) -> tuple[int, int] | None:
    """Find the two closest firings within the next two years.

    The search is limited to a number of firings, within which a frequent schedule repeats itself, except where clocks
    change; the days around those changes are searched separately.
    """
    until = now + _HORIZON
    searched: list[Iterable[int]] = [islice(cron.between(now, until, zone), _FIRINGS)]
    searched += (
        cron.between(change.at - 2 * _DAY, change.at + 2 * _DAY, zone) for change in zone.transitions(now, until)
    )
    closest: tuple[int, int] | None = None
    for firings in searched:
        for pair in pairwise(firings):
            if closest is None or pair[1] - pair[0] < closest[1] - closest[0]:
                closest = pair
                if pair[1] - pair[0] <= _FINEST_GAP:
                    return closest
    return closest


_LONGEST_SEARCH = 2 * 366 * _DAY
_SHORTEST_SEARCH = 31 * _DAY
_PAIRS_SEARCHED_IN_FULL = 10
_SHOWN = 3


def collision_problems(
    rules: Sequence[CronFederatedHPARule],
    kind: CronTargetKind,
    context: ValidationContext,
    calendars: KnownCalendars | None = None,
) -> Iterator[Problem]:
    """Warn of rules that set different values at the same time.

    Without `calendars`, only rules without calendars are compared. With them, all rules whose calendars are known are
    compared, and only conflicts of rules with calendars are reported.
    """
    known = calendars or KnownCalendars({})
    compared = [rule for rule in rules if known.resolves(rule.calendars)]
    positions = {rule.name: position for position, rule in enumerate(rules)}
    by_name = {rule.name: rule for rule in rules}
    until = context.now + _search_horizon(len(compared))
    for found in _coincidences(compared, kind, context.default_zone, known.by_name, context.now, until, _SHOWN):
        if calendars is not None and not any(by_name[name].calendars for name in (found.winner, found.loser)):
            continue
        zone = zone_of(by_name[found.winner], context.default_zone)
        times = dates_and_times(found.instants, zone)
        yield warning(
            ("rules", positions[found.winner]),
            f"{_conflict_message(found, by_name, kind)}, first on {times}: `{found.winner}` wins, as it is listed last",
            "move one of them by a minute, or remove it",
        )


def forecast_collisions(
    rules: Sequence[CronFederatedHPARule], kind: CronTargetKind, query: ForecastQuery
) -> Iterator[LaneCollision]:
    """Find the instants of a forecast at which rules set different values."""
    by_name = {rule.name: rule for rule in rules}
    found = _coincidences(rules, kind, query.default_zone, query.calendars, query.start, query.until, None)
    for coincidence in found:
        text = f"{_conflict_message(coincidence, by_name, kind)}: `{coincidence.winner}` wins, as it is listed last"
        for at in coincidence.instants:
            yield LaneCollision(at, at, text)


_LEVELS = {"replicas": "replicas", "min": "minimum", "max": "maximum"}


def forecast_levels(
    rules: Sequence[CronFederatedHPARule], kind: CronTargetKind, query: ForecastQuery
) -> Iterator[Lane]:
    """Forecast a lane for each field that rules set: the value that the latest firing leaves behind."""
    for field, name in _LEVELS.items():
        setters = [rule for rule in rules if fires(rule) and field in action_of(rule, kind)]
        if setters:
            yield _level(name, field, setters, kind, query)


def _level(
    name: str, field: str, rules: Sequence[CronFederatedHPARule], kind: CronTargetKind, query: ForecastQuery
) -> Lane:
    values = [action_of(rule, kind)[field] for rule in rules]
    firings = [firings_of(rule, query.default_zone, query.calendars) for rule in rules]
    setters = level_setters(list(zip(firings, values, strict=True)))
    current, upcoming = setters.at(query.start), setters.next_change(query.start)

    def change(at: int, setter: int | None) -> LaneChange:
        if setter is None:  # only before the first firing
            return LaneChange(at, None, f"no rule has set the {name} yet")
        zone = zone_of(rules[setter], query.default_zone)
        return LaneChange(at, values[setter], fires_text(rules[setter], clock_time(at, zone)))

    def changes() -> Iterator[LaneChange]:
        for at, setter in islice(setters.segments(query.start), 1, None):
            if at > query.until:
                return
            yield change(at, setter)

    return Lane(
        name=name,
        style=LaneStyle.LEVEL,
        current=None if current is None else values[current],
        changes=LazySequence(changes),
        next=None if upcoming is None else change(*upcoming),
        because=f"no rule has set the {name} yet"
        if current is None
        else _set_text(rules[current], firings[current], query),
    )


def _set_text(rule: CronFederatedHPARule, firings: Firings, query: ForecastQuery) -> str:
    """Say which firing set the value that holds at the start of a forecast."""
    latest = firings.at_or_before(query.start)
    zone = zone_of(rule, query.default_zone)
    return f"set by rule `{rule.name}`" + ("" if latest is None else f" ({date_and_time(latest, zone)})")


def fires_text(rule: CronFederatedHPARule, time: str) -> str:
    """Say that a rule fires at a local time: the reason of a change."""
    return f"rule `{rule.name}` fires ({time})"


def _search_horizon(rules: int) -> int:
    """Return how far to search: two years, or less for many rules, so that the check takes bounded time."""
    pairs = max(1, rules * (rules - 1) // 2)
    return max(_SHORTEST_SEARCH, min(_LONGEST_SEARCH, _LONGEST_SEARCH * _PAIRS_SEARCHED_IN_FULL // pairs))


def _coincidences(
    rules: Sequence[CronFederatedHPARule],
    kind: CronTargetKind,
    default_zone: str,
    calendars: Mapping[str, DayCalendar],
    from_: int,
    until: int,
    first: int | None,
) -> list[RuleCoincidence]:
    # Duplicate names are reported elsewhere, and would be ambiguous in messages.
    names = Counter(rule.name for rule in rules)
    taking_part = [rule for rule in rules if fires(rule) and names[rule.name] == 1]
    named = [
        FiringRule(rule.name, firings_of(rule, default_zone, calendars), action_of(rule, kind)) for rule in taking_part
    ]
    return same_minute(named, from_, until, first)


def _conflict_message(found: RuleCoincidence, by_name: Mapping[str, CronFederatedHPARule], kind: CronTargetKind) -> str:
    field = found.field
    earlier, later = (action_of(by_name[name], kind)[field] for name in (found.loser, found.winner))
    return f"rules `{found.loser}` and `{found.winner}` fire together and set {field} to {earlier} and {later}"
