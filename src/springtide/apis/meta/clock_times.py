"""Instants as sentences write them: what a clock in a zone shows."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from springtide.almanac import Zone
from springtide.almanac.civil import DAY, FIRST_DAY, LAST_DAY

_EPOCH = datetime.datetime(1970, 1, 1)  # noqa: DTZ001 - wall time: the zone is what the sentence adds
_FIRST, _LAST = FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def clock_time(at: int, zone: Zone) -> str:
    """Write the time of day in a zone: `09:00 America/Los_Angeles`; seconds only where there are any."""
    return f"{_shown(_wall(at, zone))} {zone.name}"


def date_and_time(at: int, zone: Zone) -> str:
    """Write the day and time in a zone: `Fri 2026-06-05 17:00 America/Los_Angeles`."""
    return dates_and_times([at], zone)


def dates_and_times(instants: Iterable[int], zone: Zone) -> str:
    """List days and times, and once the zone: `Fri 2026-06-05 17:00, Fri 2026-06-12 17:00 America/Los_Angeles`."""
    walls = [_wall(at, zone) for at in instants]
    listed = (f"{_WEEKDAYS[wall.weekday()]} {wall.date().isoformat()} {_shown(wall)}" for wall in walls)
    return f"{', '.join(listed)} {zone.name}"


def _wall(at: int, zone: Zone) -> datetime.datetime:
    # The last instant of 9999 in UTC, which people write for "forever", is past the last day in zones to the east.
    return _EPOCH + datetime.timedelta(seconds=min(max(zone.local(at), _FIRST), _LAST))


def _shown(wall: datetime.datetime) -> str:
    return wall.time().isoformat("seconds" if wall.second else "minutes")
