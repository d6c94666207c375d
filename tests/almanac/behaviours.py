"""Schedules as the window tests write them: behaviours with patterns, laid over a default."""

from collections.abc import Sequence
from dataclasses import dataclass

from springtide.almanac import MatchPolicy, Pattern, Timeline, load_zone, overlay, recurring

WEEKDAYS = "Mon,Tue,Wed,Thu,Fri"


@dataclass(frozen=True)
class Behaviour:
    """A value between two patterns; patterns are given as the arguments of `Pattern.parse`."""

    value: int
    start: dict[str, str | int]
    end: dict[str, str | int]
    priority: int = 0

    def active(self, zone: str = "UTC", policy: MatchPolicy = MatchPolicy.LITERAL) -> Timeline[bool]:
        """Return when the behaviour is active."""
        return recurring(Pattern.parse(**self.start), Pattern.parse(**self.end), load_zone(zone), policy)


def daily(value: int, start: int, end: int, priority: int = 0) -> Behaviour:
    """Return a behaviour from one hour of every day to another."""
    return Behaviour(value, {"hours": start}, {"hours": end}, priority)


def replicas(behaviours: Sequence[Behaviour], default: int, zone: str = "UTC") -> Timeline[int]:
    """Return the value of a schedule: the highest priority wins, then the order of the list."""
    ranked = sorted(behaviours, key=lambda behaviour: -behaviour.priority)
    return overlay([(behaviour.active(zone), behaviour.value) for behaviour in ranked], default)
