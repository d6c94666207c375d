"""Cron rules that fire at no certain time, too late, or against each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from springtide.almanac import Cron, Dialect, Zone
from springtide.apis.extensions import ANNOTATION
from springtide.apis.fields import Context
from springtide.apis.karmada.rules import zone_of
from springtide.apis.meta.clock_times import date_and_time
from springtide.apis.meta.instants import parse_instant
from springtide.apis.problems import Problem, error, warning

if TYPE_CHECKING:
    from springtide.apis.karmada.types import CronFederatedHPARule

_DAY = 24 * 60 * 60
_HORIZON = 2 * 366 * _DAY
_FIRINGS = 10_000
_FINEST_GAP = 60


def timing_problems(rule: CronFederatedHPARule, context: Context) -> Iterator[Problem]:
    """Find what is wrong with the times of one rule; paths are relative to it."""
    if rule.schedule is not None and rule.at is not None:
        yield error(
            ("at",),
            f"rule `{rule.name}` has both `schedule` and `at`",
            f"keep one of them; in the annotation {ANNOTATION}, `schedule: null` takes the other away",
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
        yield warning(("at",), f"rule `{rule.name}` never fires: {rule.at} is past", "remove the rule")


def _delay_problems(rule: CronFederatedHPARule, context: Context) -> Iterator[Problem]:
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
    """Find the two firings of the next two years that follow each other soonest.

    A schedule that fires so often that two years of it are too many repeats itself within the part that is looked at,
    except where clocks change; so those days are looked at by themselves.
    """
    until = now + _HORIZON
    stretches: list[Iterable[int]] = [islice(cron.between(now, until, zone), _FIRINGS)]
    stretches += (
        cron.between(change.at - 2 * _DAY, change.at + 2 * _DAY, zone) for change in zone.transitions(now, until)
    )
    closest: tuple[int, int] | None = None
    for firings in stretches:
        for pair in pairwise(firings):
            if closest is None or pair[1] - pair[0] < closest[1] - closest[0]:
                closest = pair
                if pair[1] - pair[0] <= _FINEST_GAP:
                    return closest
    return closest
