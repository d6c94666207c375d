"""Next hits per second, of parsed schedules and of schedules that are parsed each time.

The almanac uses whole seconds and caches matching days, while the others return datetimes and cache nothing. So it is
measured twice: as it is used, and with every hit converted to a datetime and an empty cache in each round. The ratios
are those of the second measurement.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from springtide.almanac import Cron, Dialect, load_zone
from springtide.almanac.wall_times import matching_days

if TYPE_CHECKING:
    from collections.abc import Callable


_START = datetime(2026, 1, 1, tzinfo=UTC)
_SCHEDULES = ("*/5 * * * *", "0 8 * * 1-5", "0 0 1,15 * *", "30 2 * * *")
_ZONES = ("UTC", "America/New_York", "Europe/Berlin")
_HITS = 1_500
_ROUNDS = 3
_COLD = "cold, datetime"


def _ours(text: str, zone: str) -> Callable[[], object]:
    cron, where = Cron.parse(text, Dialect.RULE), load_zone(zone)
    t = int(_START.timestamp())

    def following() -> int | None:
        nonlocal t
        t = cron.after(t, where) or t
        return t

    return following


def _ours_as_datetimes(text: str, zone: str) -> Callable[[], object]:
    cron, where, shown = Cron.parse(text, Dialect.RULE), load_zone(zone), ZoneInfo(zone)
    t = int(_START.timestamp())

    def following() -> datetime:
        nonlocal t
        t = cron.after(t, where) or t
        return datetime.fromtimestamp(t, shown)

    return following


def _croniter(text: str, zone: str) -> Callable[[], object]:
    schedule = croniter(text, _START.astimezone(ZoneInfo(zone)))
    return lambda: schedule.get_next(datetime)


def _cronsim(text: str, zone: str) -> Callable[[], object]:
    schedule = CronSim(text, _START.astimezone(ZoneInfo(zone)))
    return lambda: next(schedule)


LIBRARIES = {"springtide": _ours, _COLD: _ours_as_datetimes, "croniter": _croniter, "cronsim": _cronsim}


def _forget(name: str) -> None:
    if name == _COLD:
        matching_days.cache_clear()
        load_zone.cache_clear()


def next_per_second(name: str, text: str, zone: str) -> float:
    """Return how many next hits of one parsed schedule a library finds per second."""
    _forget(name)
    following = LIBRARIES[name](text, zone)
    begin = time.perf_counter()
    for _ in range(_HITS):
        following()
    return _HITS / (time.perf_counter() - begin)


def parse_and_next_per_second(name: str) -> float:
    """Return for how many schedules a library finds the next hit per second, including parsing."""
    count = 600
    _forget(name)
    begin = time.perf_counter()
    for i in range(count):
        LIBRARIES[name](f"{i % 60} {i % 24} * * 1-5", "Europe/Berlin")()
    return count / (time.perf_counter() - begin)


def main() -> None:
    print(f"next hits per second of parsed schedules, best of {_ROUNDS}")
    print(f"{'schedule':16} {'zone':18}" + "".join(f"{name:>16}" for name in LIBRARIES) + "   cold / faster")
    ratios = []
    for text in _SCHEDULES:
        for zone in _ZONES:
            best = dict.fromkeys(LIBRARIES, 0.0)
            for _ in range(_ROUNDS):  # interleaved, so that a busy moment hits all of them
                for name in LIBRARIES:
                    best[name] = max(best[name], next_per_second(name, text, zone))
            ratios.append(_print_row(text, zone, best))
    print(f"smallest ratio to the faster of the others: {min(ratios):.1f}x")
    best = {name: max(parse_and_next_per_second(name) for _ in range(_ROUNDS)) for name in LIBRARIES}
    _print_row("parse + next", "Europe/Berlin", best)


def _print_row(text: str, zone: str, rates: dict[str, float]) -> float:
    ratio = rates[_COLD] / max(rates["croniter"], rates["cronsim"])
    print(f"{text:16} {zone:18}" + "".join(f"{rate:16,.0f}" for rate in rates.values()) + f"   {ratio:6.1f}x")
    return ratio


if __name__ == "__main__":
    main()
