"""The cron libraries behind one interface: the hits after an instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from springtide.almanac import Cron, Dialect, load_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Hits = Callable[[str, str, int], Iterator[int]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)


def _aware(t: int, zone: str) -> datetime:
    return (_EPOCH + t * _SECOND).astimezone(ZoneInfo(zone))


def _instant(moment: datetime) -> int:
    return (moment.astimezone(UTC) - _EPOCH) // _SECOND


def _ours(dialect: Dialect) -> Hits:
    parsed = cache(Cron.parse)

    def hits(text: str, zone: str, t: int) -> Iterator[int]:
        cron, where = parsed(text, dialect), load_zone(zone)
        while (following := cron.after(t, where)) is not None:
            yield following
            t = following

    return hits


def _croniter(text: str, zone: str, t: int) -> Iterator[int]:
    schedule = croniter(text, _aware(t, zone))
    while True:
        yield _instant(schedule.get_next(datetime))


def _cronsim(text: str, zone: str, t: int) -> Iterator[int]:
    return map(_instant, CronSim(text, _aware(t, zone)))


#: Every library as (name, hits in the budgets' dialect, hits in the rules' dialect); the others have only one dialect.
SUBJECTS: tuple[tuple[str, Hits, Hits], ...] = (
    ("springtide", _ours(Dialect.BUDGET), _ours(Dialect.RULE)),
    ("croniter", _croniter, _croniter),
    ("cronsim", _cronsim, _cronsim),
)


def first_hits(hits: Hits, text: str, zone: str, t: int, count: int) -> list[int] | None:
    """Return the first hits, or None if a library rejects the schedule."""
    try:
        return list(islice(hits(text, zone, t), count))
    except Exception:  # every library has errors of its own, and any of them is a wrong answer
        return None
