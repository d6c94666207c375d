"""Cron rules that fire at the same instant and want different things."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from springtide.almanac import Calendar, Coincidence, Rule, same_minute
from springtide.apis.fields import Context
from springtide.apis.forecast import Collision, Question
from springtide.apis.karmada.actions import action_of
from springtide.apis.karmada.rules import fires, firings_of, zone_of
from springtide.apis.karmada.targets import TargetKind
from springtide.apis.meta.clock_times import dates_and_times
from springtide.apis.meta.windows import KnownCalendars
from springtide.apis.problems import Problem, warning

if TYPE_CHECKING:
    from springtide.apis.karmada.types import CronFederatedHPARule

_DAY = 24 * 60 * 60
_LONGEST_SEARCH = 2 * 366 * _DAY
_SHORTEST_SEARCH = 31 * _DAY
_PAIRS_SEARCHED_IN_FULL = 10
_SHOWN = 3


def collision_problems(
    rules: Sequence[CronFederatedHPARule], kind: TargetKind, context: Context, calendars: KnownCalendars | None = None
) -> Iterator[Problem]:
    """Warn of rules that contradict each other.

    Without calendars the rules are compared that have none; with them every rule whose calendars are known, and only
    what the first comparison could not tell is told.
    """
    known = calendars or KnownCalendars({})
    compared = [rule for rule in rules if known.tell(rule.calendars)]
    positions = {rule.name: position for position, rule in enumerate(rules)}
    by_name = {rule.name: rule for rule in rules}
    until = context.now + _time_to_search(len(compared))
    for found in _coincidences(compared, kind, context.default_zone, known.by_name, context.now, until, _SHOWN):
        if calendars is not None and not any(by_name[name].calendars for name in (found.winner, found.loser)):
            continue
        zone = zone_of(by_name[found.winner], context.default_zone)
        times = dates_and_times(found.instants, zone)
        yield warning(
            ("rules", positions[found.winner]),
            f"{_disagreement(found, by_name, kind)}, first on {times}: `{found.winner}` wins, being listed last",
            "move one of them by a minute, or remove it",
        )


def forecast_collisions(
    rules: Sequence[CronFederatedHPARule], kind: TargetKind, question: Question
) -> Iterator[Collision]:
    """Find the instants within the question at which rules contradict each other."""
    by_name = {rule.name: rule for rule in rules}
    found = _coincidences(rules, kind, question.default_zone, question.calendars, question.start, question.until, None)
    for coincidence in found:
        text = f"{_disagreement(coincidence, by_name, kind)}: `{coincidence.winner}` wins, being listed last"
        for at in coincidence.instants:
            yield Collision(at, at, text)


def _time_to_search(rules: int) -> int:
    """Look two years ahead, or less where so many rules are to be compared that a check would not answer at once."""
    pairs = max(1, rules * (rules - 1) // 2)
    return max(_SHORTEST_SEARCH, min(_LONGEST_SEARCH, _LONGEST_SEARCH * _PAIRS_SEARCHED_IN_FULL // pairs))


def _coincidences(
    rules: Sequence[CronFederatedHPARule],
    kind: TargetKind,
    default_zone: str,
    calendars: Mapping[str, Calendar],
    from_: int,
    until: int,
    first: int | None,
) -> list[Coincidence]:
    # Which of two rules with one name is meant cannot be told; that they have one is an error by itself.
    names = Counter(rule.name for rule in rules)
    taking_part = [rule for rule in rules if fires(rule) and names[rule.name] == 1]
    named = [Rule(rule.name, firings_of(rule, default_zone, calendars), action_of(rule, kind)) for rule in taking_part]
    return same_minute(named, from_, until, first)


def _disagreement(found: Coincidence, by_name: Mapping[str, CronFederatedHPARule], kind: TargetKind) -> str:
    field = found.field
    earlier, later = (action_of(by_name[name], kind)[field] for name in (found.loser, found.winner))
    return f"rules `{found.loser}` and `{found.winner}` fire together and set {field} to {earlier} and {later}"
