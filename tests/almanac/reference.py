"""Slow and simple reference implementations for the almanac.

Nothing here uses the code under test. Clocks come from zoneinfo and datetime; schedules are matched by looking at
every minute that a clock shows; wall times are mapped one by one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (a wall clock has no zone)
_SECOND = timedelta(seconds=1)
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_WORDS = {
    3: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    4: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
}
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def clock(t: int, zone: str) -> datetime:
    """Return what a zone's clock shows at an instant, without its zone."""
    return (_EPOCH + timedelta(seconds=t)).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def offset(t: int, zone: str) -> int:
    """Return the offset from UTC at an instant."""
    shown = (_EPOCH + timedelta(seconds=t)).astimezone(ZoneInfo(zone)).utcoffset()
    assert shown is not None
    return shown // _SECOND


def first_shown(wall: datetime, zone: str) -> int:
    """Return the first instant that shows a wall time, or, where a clock jumps over it, the first one after."""
    early, late = (
        (wall.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC) - _EPOCH) // _SECOND for fold in (0, 1)
    )
    if clock(early, zone) == wall:
        return early
    # In a gap fold 1 gives an instant before the jump and fold 0 one after it.
    low, high = late, early
    before = offset(low, zone)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset(middle, zone) == before else (low, middle)
    return high


@dataclass(frozen=True)
class Spec:
    """A parsed schedule as sets of numbers."""

    fields: tuple[frozenset[int], ...]
    wildcard_day: bool
    wildcard_weekday: bool
    fixed: bool

    def on_day(self, day: date) -> bool:
        """Return whether the schedule has times on a date."""
        _, _, days, months, weekdays = self.fields
        by_date, by_weekday = day.day in days, day.isoweekday() % 7 in weekdays
        joined = by_date and by_weekday if self.wildcard_day or self.wildcard_weekday else by_date or by_weekday
        return day.month in months and joined

    def at(self, wall: datetime) -> bool:
        """Return whether the schedule matches a wall time."""
        on_time = wall.second == 0 and wall.minute in self.fields[0] and wall.hour in self.fields[1]
        return on_time and self.on_day(wall.date())


@cache
def read(text: str) -> Spec:
    """Parse a valid schedule."""
    parts = _MACROS.get(text, text).split()
    fields: list[frozenset[int]] = []
    wildcards: list[bool] = []
    for index, part in enumerate(parts):
        values: set[int] = set()
        wildcard = False
        for item in part.split(","):
            chosen, star = _item(item, index)
            values.update(chosen)
            wildcard = wildcard or star
        fields.append(frozenset(value % 7 if index == 4 else value for value in values))
        wildcards.append(wildcard)
    return Spec(tuple(fields), wildcards[2], wildcards[4], parts[0][0] not in "*?" and parts[1][0] not in "*?")


def _item(item: str, index: int) -> tuple[range, bool]:
    low, high = _BOUNDS[index]
    body, _, step = item.partition("/")
    stride = int(step or 1)
    if body in ("*", "?"):
        return range(low, high + 1, stride), stride == 1
    ends = [_number(end, index) for end in body.split("-")]
    last = ends[1] if len(ends) == 2 else (high if step else ends[0])
    return range(ends[0], last + 1, stride), False


def _number(text: str, index: int) -> int:
    words = _WORDS.get(index, [])
    return words.index(text.lower()) + _BOUNDS[index][0] if text.lower() in words else int(text)


def follow_clock(text: str, zone: str, a: int, b: int) -> list[int]:
    """Return the hits in (a, b] of a schedule that fires whenever the clock shows a matching minute.

    Where the clock jumps over midnight into a day, a hit at 00:00 of that day counts at the day's first instant.
    """
    spec = read(text)
    hits: list[int] = []
    for t, shown, before in _shown_minutes(zone, a, b):
        midnight = datetime.combine(shown.date(), datetime.min.time())
        jumped = before is not None and before < midnight < shown
        if spec.at(shown) or (jumped and spec.at(midnight)):
            hits.append(t)
    return hits


def _shown_minutes(zone: str, a: int, b: int) -> Iterator[tuple[int, datetime, datetime | None]]:
    """Yield the instants in (a, b] at which a minute begins, and those at which the clock jumps.

    With a jump comes what the clock showed one second before.
    """
    t, held = a + 1, offset(a, zone)
    while t <= b:
        now = offset(t, zone)
        if now != held:
            yield t, clock(t, zone), clock(t - 1, zone)
            t, held = t + 1, now
            continue
        if (t + held) % 60 == 0:
            yield t, clock(t, zone), None
            t += 1
            continue
        # On to the next minute, unless the clock jumps on the way: then second by second.
        following = t + 60 - (t + held) % 60
        t = following if offset(following, zone) == held else t + 1


def fixed_times(text: str, zone: str, a: int, b: int) -> list[int]:
    """Return the hits in (a, b] of a schedule that fires once for every matching wall time."""
    spec = read(text)
    return sorted({t for t, _ in _mapped(spec.on_day, _times(spec.fields[0], spec.fields[1]), zone, a, b)})


def occurrences(
    on_day: Callable[[date], bool], times: Iterable[tuple[int, int]], zone: str, a: int, b: int
) -> list[tuple[int, int]]:
    """Return the (instant, wall second) of a pattern in (a, b]; times are (hour, minute)."""
    return sorted(_mapped(on_day, times, zone, a, b))


def _times(minutes: Iterable[int], hours: Iterable[int]) -> list[tuple[int, int]]:
    minutes = sorted(minutes)
    return [(hour, minute) for hour in sorted(hours) for minute in minutes]


def _mapped(
    on_day: Callable[[date], bool], times: Iterable[tuple[int, int]], zone: str, a: int, b: int
) -> Iterator[tuple[int, int]]:
    times = list(times)
    day = (_EPOCH + timedelta(seconds=a)).date() - timedelta(days=2)
    last = (_EPOCH + timedelta(seconds=b)).date() + timedelta(days=2)
    while day <= last:
        if on_day(day):
            for hour, minute in times:
                wall = datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001
                t = first_shown(wall, zone)
                if a < t <= b:
                    yield t, (wall - _NAIVE_EPOCH) // _SECOND
        day += timedelta(days=1)
