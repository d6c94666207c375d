"""Forecasts: the values that an object will have over time, as lanes.

Every kind that depends on time compiles itself to lanes. Charts, tables, calendars and scripts are made from lanes, and
know nothing of cron, time zones or budgets.
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
    """How a lane is drawn."""

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
    """A value over time."""

    name: str
    style: LaneStyle
    current: LaneValue
    changes: tuple[LaneChange, ...]
    next: LaneChange | None
    because: str = ""
    """Why the current value holds."""


@dataclass(frozen=True, slots=True)
class LaneCollision:
    """Two sources that want different values at the same time: when, which two, and which one wins."""

    at: int
    until: int | None
    """The same as `at` for an instant; None if it continues beyond the forecast."""
    text: str


@dataclass(frozen=True, slots=True)
class ForecastQuery:
    """The time to forecast, ``(start, until]``, and what the object itself does not know."""

    start: int
    until: int
    default_zone: str = "UTC"
    nodes: int | None = None
    """How many nodes a pool has, to turn percentages into counts."""
    calendars: Mapping[str, DayCalendar] = field(default_factory=dict)
    """The existing calendars by name; references to others are ignored, and are reported as problems."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """The lanes of an object, its collisions, and the time zones that its times are written in."""

    zones: tuple[str, ...]
    lanes: tuple[Lane, ...]
    collisions: tuple[LaneCollision, ...] = ()


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast of one object for ``(start, until]``."""

    api_version: str
    kind: str
    namespace: str | None
    name: str
    start: int
    until: int
    zones: tuple[str, ...]
    """The time zones that the object's times are written in; the first is the default for charts."""
    lanes: tuple[Lane, ...]
    collisions: tuple[LaneCollision, ...] = ()
    problems: tuple[Problem, ...] = field(default=())


@lru_cache(maxsize=4096)
def format_instant(at: int) -> str:
    """Format an instant for scripts: UTC, RFC 3339, whole seconds."""
    moment = datetime.datetime.fromtimestamp(at, tz=datetime.UTC) if at >= 0 else _before_epoch(at)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")


def _before_epoch(at: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=at)


def to_plain(forecast: Forecast) -> dict[str, Any]:
    """Return a forecast as JSON-compatible data for scripts."""
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
    query: ForecastQuery,
    *,
    because: Callable[[int, V], str],
    because_now: str,
) -> Lane:
    """Make a lane from a timeline; `because` returns the reason of a change."""
    upcoming = timeline.next_change(query.start)
    return Lane(
        name=name,
        style=style,
        current=timeline.at(query.start),
        changes=tuple(
            LaneChange(at, value, because(at, value)) for at, value in timeline.changes(query.start, query.until)
        ),
        next=None if upcoming is None else LaneChange(*upcoming, because(*upcoming)),
        because=because_now,
    )
