"""Forecasts: the values that an object will have over time, as lanes.

Every kind that depends on time compiles itself to lanes. Charts, tables, calendars and scripts are made from lanes, and
know nothing of cron, time zones or budgets.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import Any, TypeAlias, TypeVar, overload

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


T_co = TypeVar("T_co", covariant=True)

_KEPT = 1_000


class LazySequence(Sequence[T_co]):
    """A sequence that is computed while it is read, so that a long one can be written without being held in memory.

    A short one is kept when it has been read once. A longer one is computed again for each iteration, until its length
    or one of its items is asked for: then all of it is kept.
    """

    __slots__ = ("_compute", "_items")

    def __init__(self, compute: Callable[[], Iterator[T_co]]) -> None:
        self._compute = compute
        self._items: tuple[T_co, ...] | None = None

    def __iter__(self) -> Iterator[T_co]:
        if self._items is not None:  # asked for the length before the first item, as `list` does
            yield from self._items
            return
        first: list[T_co] = []
        short = True
        for item in self._compute():
            if short:
                first.append(item)
                short = len(first) <= _KEPT
                if not short:
                    first.clear()
            yield item
        if short:
            self._items = tuple(first)

    def _kept(self) -> tuple[T_co, ...]:
        if self._items is None:
            self._items = tuple(self._compute())
        return self._items

    def __len__(self) -> int:
        return len(self._kept())

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, index: int | slice) -> T_co | tuple[T_co, ...]:
        return self._kept()[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LazySequence | tuple) and self._kept() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._kept())

    def __repr__(self) -> str:
        return repr(self._kept())


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
    changes: Sequence[LaneChange]
    next: LaneChange | None
    because: str = ""
    """Why the current value holds."""
    most: int | None = None
    """The level that is drawn at full height, for lanes that are compared; None: the highest of the lane."""


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
    collisions: Sequence[LaneCollision] = ()
    levels: tuple[Lane, ...] = ()
    """What firings leave behind until the next one: pictures draw it below the lanes, scripts get the firings."""


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
    collisions: Sequence[LaneCollision] = ()
    problems: tuple[Problem, ...] = field(default=())
    levels: tuple[Lane, ...] = ()
    """What firings leave behind until the next one."""

    @property
    def drawn(self) -> tuple[Lane, ...]:
        """The lanes of a picture, which reads their changes several times."""
        return tuple(replace(lane, changes=tuple(lane.changes)) for lane in (*self.lanes, *self.levels))


_DAY = 24 * 60 * 60
_EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()


def format_instant(at: int) -> str:
    """Format an instant for scripts: UTC, RFC 3339, whole seconds."""
    day, second = divmod(at, _DAY)
    return f"{_date_text(day)}T{_time_text(second)}Z"


@lru_cache(maxsize=4096)
def _date_text(day: int) -> str:
    return datetime.date.fromordinal(day + _EPOCH_ORDINAL).isoformat()


@lru_cache(maxsize=4096)
def _time_text(second: int) -> str:
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def to_plain(forecast: Forecast) -> dict[str, Any]:
    """Return a forecast as JSON-compatible data for scripts; iterators stand for lists, which may be long."""
    return {
        "apiVersion": forecast.api_version,
        "kind": forecast.kind,
        "namespace": forecast.namespace,
        "name": forecast.name,
        "from": format_instant(forecast.start),
        "until": format_instant(forecast.until),
        "lanes": map(_plain_lane, forecast.lanes),
    }


def _plain_lane(lane: Lane) -> dict[str, Any]:
    return {
        "lane": lane.name,
        "current": lane.current,
        "changes": map(_plain_change, lane.changes),
        "next": {"at": format_instant(lane.next.at), "value": lane.next.value} if lane.next is not None else None,
    }


def _plain_change(change: LaneChange) -> dict[str, Any]:
    return {"at": format_instant(change.at), "value": change.value, "because": change.because}


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

    def changes() -> Iterator[LaneChange]:
        for at, value in islice(timeline.segments(query.start), 1, None):
            if at > query.until:
                return
            yield LaneChange(at, value, because(at, value))

    return Lane(
        name=name,
        style=style,
        current=timeline.at(query.start),
        changes=LazySequence(changes),
        next=None if upcoming is None else LaneChange(*upcoming, because(*upcoming)),
        because=because_now,
    )
