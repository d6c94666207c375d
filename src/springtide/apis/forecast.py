"""What an object will do over time: the one shape that pictures, tables, calendars and scripts are made from.

Every kind that depends on time compiles itself to lanes; nothing that shows them knows about cron, zones or budgets.

Timelines as lanes: the values of a stretch of time, each with its reason.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

from springtide.almanac import DayCalendar, Timeline
from springtide.apis.problems import Problem

LaneValue: TypeAlias = int | bool | str | dict[str, Any] | None
"""A value as scripts read it: a replica count, on or off, a budget, or what a cron rule applies."""


class LaneStyle(StrEnum):
    """How a lane is meant to be drawn."""

    LEVEL = "level"  # a number that holds until the next change: a step line
    ACTIVE = "active"  # on or off: a bar where it is on
    BUDGET = "budget"  # how many nodes may be disrupted: a step line in which 0 is "blocked"
    FIRINGS = "firings"  # something is applied at an instant: a mark


@dataclass(frozen=True, slots=True)
class LaneChange:
    """A value from an instant on, and why."""

    at: int
    value: LaneValue
    because: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One line of a picture: a value over time."""

    name: str
    style: LaneStyle
    current: LaneValue
    changes: tuple[LaneChange, ...]
    next: LaneChange | None
    because: str = ""
    """Why the current value holds."""


@dataclass(frozen=True, slots=True)
class LaneCollision:
    """Two claims on the same time with different values: when, between whom, who wins."""

    at: int
    until: int | None
    """The same as `at` for claims on an instant; none where it goes on beyond what was asked."""
    text: str


@dataclass(frozen=True, slots=True)
class ForecastQuery:
    """What is asked of an object: its values in ``(start, until]``, given what the object itself cannot know."""

    start: int
    until: int
    default_zone: str = "UTC"
    nodes: int | None = None
    """How many nodes a pool has, which turns percentages into counts."""
    calendars: Mapping[str, DayCalendar] = field(default_factory=dict)
    """The calendars that exist, by name; a reference to another one is left out (and is a problem of its own)."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """An object's answer: its lanes, where its claims collide, and the zones its times are written in."""

    zones: tuple[str, ...]
    lanes: tuple[Lane, ...]
    collisions: tuple[LaneCollision, ...] = ()


@dataclass(frozen=True, slots=True)
class Forecast:
    """What one object will do in ``(start, until]``."""

    api_version: str
    kind: str
    namespace: str | None
    name: str
    start: int
    until: int
    zones: tuple[str, ...]
    """The zones that the object's times are written in, the first being the one to draw in by default."""
    lanes: tuple[Lane, ...]
    collisions: tuple[LaneCollision, ...] = ()
    problems: tuple[Problem, ...] = field(default=())


@lru_cache(maxsize=4096)
def format_instant(at: int) -> str:
    """Write an instant for scripts: UTC, RFC 3339, whole seconds."""
    moment = datetime.datetime.fromtimestamp(at, tz=datetime.UTC) if at >= 0 else _before_epoch(at)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def _before_epoch(at: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=at)


def to_plain(forecast: Forecast) -> dict[str, Any]:
    """Give a forecast in the shape that scripts read."""
    return {
        "apiVersion": forecast.api_version,
        "kind": forecast.kind,
        "namespace": forecast.namespace,
        "name": forecast.name,
        "from": format_instant(forecast.start),
        "until": format_instant(forecast.until),
        "lanes": [_lane(lane) for lane in forecast.lanes],
    }


def _lane(lane: Lane) -> dict[str, Any]:
    return {
        "lane": lane.name,
        "current": lane.current,
        "changes": [
            {"at": format_instant(change.at), "value": change.value, "because": change.because}
            for change in lane.changes
        ],
        "next": {"at": format_instant(lane.next.at), "value": lane.next.value} if lane.next is not None else None,
    }


V = TypeVar("V", bound=LaneValue)


def timeline_lane(
    name: str,
    style: LaneStyle,
    timeline: Timeline[V],
    question: ForecastQuery,
    *,
    because: Callable[[int, V], str],
    because_now: str,
) -> Lane:
    """Write out a timeline over the time that is asked about; `because` gives the reason of a change."""
    upcoming = timeline.next_change(question.start)
    return Lane(
        name=name,
        style=style,
        current=timeline.at(question.start),
        changes=tuple(
            LaneChange(at, value, because(at, value)) for at, value in timeline.changes(question.start, question.until)
        ),
        next=None if upcoming is None else LaneChange(*upcoming, because(*upcoming)),
        because=because_now,
    )
