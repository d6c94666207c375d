"""Expansion of a thousand mixed schedules over ninety days: the cost of a preview of a large cluster."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from springtide.almanac import (
    CalendarFilter,
    Cron,
    DayCalendar,
    Days,
    Dialect,
    Firings,
    TimePattern,
    load_zone,
    recurring,
    restrict,
    windows_after_hits,
)

if TYPE_CHECKING:
    from collections.abc import Callable


_SCHEDULES = 1_000
_DAYS = 90
_START = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp())
_END = _START + _DAYS * 86_400
_ROUNDS = 3
_ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "America/Santiago", "Australia/Lord_Howe")
_HOLIDAYS = DayCalendar(Days(dates=(date(2026, 4, 3), date(2026, 4, 6)), yearly=((5, 1),)))


def _rule(i: int) -> Callable[[], int]:
    """Return a cron rule: most fire once a day or a week, some twice."""
    text = (
        f"{i % 60} {i % 24} * * *",
        f"{i % 60} {i % 24} * * mon-fri",
        f"{i % 60} {i % 24} * * {i % 7}",
        f"0 {i % 24} 1,15 * *",
        f"{i % 60} {i % 24},{(i + 6) % 24} * * mon-thu",
    )[i % 5]
    calendars = [CalendarFilter(_HOLIDAYS)] if i % 4 == 0 else []
    firings = Firings.of(Cron.parse(text, Dialect.RULE), load_zone(_ZONES[i % len(_ZONES)]), calendars)
    return lambda: sum(1 for _ in firings.between(_START, _END))


def _window(i: int) -> Callable[[], int]:
    """Return a window between patterns: nights, working days, weekends and month ends."""
    zone, early, late = load_zone(_ZONES[i % len(_ZONES)]), i % 9, 12 + i % 9
    start, end = (
        ({"hours": late}, {"hours": early}),
        ({"hours": early, "weekdays": "Mon"}, {"hours": late, "weekdays": "Fri"}),
        ({"hours": late, "weekdays": "Fri"}, {"hours": early, "weekdays": "Mon"}),
        ({"days": 28}, {"days": 2}),
    )[i % 4]
    window = recurring(TimePattern.parse(**start), TimePattern.parse(**end), zone)
    return lambda: len(window.changes(_START, _END))


def _budget(i: int) -> Callable[[], int]:
    """Return a window after hits: working days, nights, dense hits without a pause, one always open."""
    text, hours = (
        ("0 9 * * mon-fri", 8),
        (f"0 {i % 24} * * mon,wed,fri", 4),
        ("*/15 9-16 * * mon-fri", 1),
        (f"0 {i % 24} * * sat,sun", 10),
        ("@hourly", 1),
    )[i % 5]
    zone = load_zone(_ZONES[i % len(_ZONES)])
    window = windows_after_hits(Cron.parse(text, Dialect.BUDGET), hours * 3600, zone)
    if i % 4 == 0:
        window = restrict(window, [CalendarFilter(_HOLIDAYS)], zone)
    return lambda: len(window.changes(_START, _END))


def main() -> None:
    best_parse = best_expand = float("inf")
    total = 0
    for _ in range(_ROUNDS):
        begin = time.perf_counter()
        schedules = [(_rule, _window, _budget)[i % 3](i) for i in range(_SCHEDULES)]
        parsed = time.perf_counter()
        total = sum(expand() for expand in schedules)
        done = time.perf_counter()
        best_parse, best_expand = min(best_parse, parsed - begin), min(best_expand, done - parsed)
    print(
        f"{_SCHEDULES:,} mixed schedules over {_DAYS} days: {total:,} firings and changes, "
        f"parsed in {best_parse:.3f} s, expanded in {best_expand:.3f} s, best of {_ROUNDS}"
    )


if __name__ == "__main__":
    main()
