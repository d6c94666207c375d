"""The changes of a lane as a compact table: when, how far away, what, and why."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from springtide.cli.pictures.heights import tell
from springtide.cli.pictures.terminal_canvas import Ink, fit, shorten, wrap
from springtide.cli.pictures.words import format_relative

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from springtide.apis.forecast import Change, Lane
    from springtide.cli.pictures.clock import WallClock
    from springtide.cli.pictures.terminal_canvas import Line

_MOST_ROWS: Final = 12
_WIDEST_VALUE: Final = 24


def list_changes(lane: Lane, clock: WallClock, now: int, width: int, *, unicode: bool) -> Iterator[Line]:
    """List a dozen changes of a lane; of more than that, those that still lie ahead."""
    first = _first_row(lane.changes, now)
    shown = lane.changes[first : first + _MOST_ROWS]
    count = "1 change" if len(lane.changes) == 1 else f"{len(lane.changes):,} changes"
    earlier = f", the first {first:,} not shown" if first else ""
    yield [(shorten(lane.name, width // 2), Ink.STRONG), (f"  {count}{earlier}", Ink.FAINT)]
    reasons = {change.because for change in shown}
    if len(reasons) == 1:  # said once instead of in every row
        for line in wrap(shown[0].because, width - 2):
            yield [(f"  {line}", Ink.FAINT)]
    yield from _rows(lane, shown, clock, now, with_reasons=len(reasons) > 1, width=width, unicode=unicode)
    more = len(lane.changes) - first - len(shown)
    if more:
        yield [(f"  … and {more:,} more; -o json shows all", Ink.FAINT)]


def _first_row(changes: Sequence[Change], now: int) -> int:
    if len(changes) <= _MOST_ROWS:
        return 0
    past = bisect_right(changes, now, key=lambda change: change.at)
    return min(past, len(changes) - _MOST_ROWS)


def _rows(
    lane: Lane, changes: Sequence[Change], clock: WallClock, now: int, *, with_reasons: bool, width: int, unicode: bool
) -> Iterator[Line]:
    cells = [
        (
            clock.moment(change.at, aligned=True),
            format_relative(change.at, now),
            tell(lane, change.value, unicode=unicode),
        )
        for change in changes
    ]
    widest = [max(cell_len(row[column]) for row in cells) for column in range(3)]
    value_width = min(widest[2], _WIDEST_VALUE)
    for change, (when, away, value) in zip(changes, cells, strict=True):
        ink = Ink.FAINT if change.at <= now else Ink.PLAIN
        left = f"  {fit(when, widest[0])}  {fit(away, widest[1])}  "
        room = width - cell_len(left) - value_width - 2
        reason = f"  {shorten(change.because, room)}" if with_reasons else ""
        yield [(left, ink), (fit(value, value_width), Ink.STRONG), (reason, Ink.FAINT)]
