"""Cron rules that fire at the same instant and want different things."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from springtide.almanac import Calendar, Coincidence, Rule, same_minute
from springtide.apis.fields import Context
from springtide.apis.forecast import Collision, Question
from springtide.apis.karmada.actions import action_of
from springtide.apis.karmada.rules import firings_of, zone_of
from springtide.apis.karmada.targets import TargetKind
from springtide.apis.meta.clock_times import dates_and_times
from springtide.apis.problems import Problem, warning

if TYPE_CHECKING:
    from springtide.apis.karmada.types import CronFederatedHPARule

_DAY = 24 * 60 * 60
_LONGEST_SEARCH = 2 * 366 * _DAY
_SHORTEST_SEARCH = 31 * _DAY
_PAIRS_SEARCHED_IN_FULL = 10


def collision_problems(rules: Sequence[CronFederatedHPARule], kind: TargetKind, context: Context) -> Iterator[Problem]:
    """Warn of rules that contradict each other.

    Calendars are not known here, so nothing is said about rules that have some; a forecast shows their collisions.
    """
    plain = [rule for rule in rules if not rule.calendars]
    positions = {rule.name: position for position, rule in enumerate(rules)}
    by_name = {rule.name: rule for rule in rules}
    until = context.now + _time_to_search(len(plain))
    for found in _coincidences(plain, kind, context.default_zone, {}, context.now, until):
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
    """Find the first instants within the question at which rules contradict each other."""
    by_name = {rule.name: rule for rule in rules}
    found = _coincidences(rules, kind, question.default_zone, question.calendars, question.start, question.until)
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
) -> list[Coincidence]:
    taking_part = [rule for rule in rules if not rule.suspend and (rule.schedule is None) != (rule.at is None)]
    named = [Rule(rule.name, firings_of(rule, default_zone, calendars), action_of(rule, kind)) for rule in taking_part]
    return same_minute(named, from_, until)


def _disagreement(found: Coincidence, by_name: Mapping[str, CronFederatedHPARule], kind: TargetKind) -> str:
    field = found.field
    earlier, later = (action_of(by_name[name], kind)[field] for name in (found.loser, found.winner))
    return f"rules `{found.loser}` and `{found.winner}` fire together and set {field} to {earlier} and {later}"
