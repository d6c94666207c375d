"""The time axis of a terminal picture, and the marks that belong to all of its lanes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from springtide.cli.pictures.axis import lay_out_axis
from springtide.cli.pictures.clashes import clashes_of
from springtide.cli.pictures.terminal_canvas import Ink
from springtide.cli.pictures.terminal_rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from springtide.apis.forecast import Forecast
    from springtide.cli.pictures.axis import Tick
    from springtide.cli.pictures.clock import WallClock
    from springtide.cli.pictures.terminal_rows import Columns

_HOUR_WIDTH: Final = 4
_MINUTE_WIDTH: Final = 8


def draw_axis(clock: WallClock, columns: Columns) -> Rows:
    """Draw a row of days (or months, or years) over a ruler that carries the hours (or days, or months)."""
    axis = lay_out_axis(clock, columns.start, columns.until, room=columns.count // _HOUR_WIDTH)
    if any(":" in tick.label.removesuffix(":00") for tick in axis.ticks):
        axis = lay_out_axis(clock, columns.start, columns.until, room=columns.count // _MINUTE_WIDTH)
    rows = Rows(2, columns.count)
    rows.put(1, 0, "─" * columns.count, Ink.FAINT)
    for cell in axis.cells:
        left, right = columns.edge(cell.start), columns.edge(cell.end)
        rows.put(0, left, next((label for label in cell.labels if len(label) < right - left), ""), Ink.STRONG)
        rows.put(1, left, "┼" if left else "├", Ink.FAINT)
    for left, label in _evenly(columns, axis.ticks):
        around = rows.cells[1][max(0, left - 1) : left + len(label) + 1]
        if 0 < left < columns.count - len(label) and all(character == "─" for character, _ in around):
            rows.put(1, left, label, Ink.FAINT)
    return rows


def _evenly(columns: Columns, ticks: Sequence[Tick]) -> Sequence[tuple[int, str]]:
    """Place the labels of every tick, else of every second one, and so on until none touches another."""
    short = [(tick.at, tick.label.removesuffix(":00")) for tick in ticks]
    labels = [(columns.edge(at) - len(label) // 2, label) for at, label in short]
    for step in range(1, len(labels)):
        if all(left + len(label) < following for (left, label), (following, _) in pairwise(labels[::step])):
            return labels[::step]
    return labels[:1]


def draw_marks(forecast: Forecast, clock: WallClock, columns: Columns, now: int) -> Iterator[tuple[str, Rows]]:
    """Draw a row that marks now and the changes of the clocks, and one with the collisions if there are any."""
    marks = [(shift.at, "▲", shift.forms, Ink.SHIFT) for shift in clock.shifts(columns.start, columns.until)]
    if columns.holds(now):
        marks.append((now, "▼", ("now",), Ink.NOW))
    if marks:
        row = Rows(1, columns.count)
        for at, sign, _, ink in marks:
            row.put(0, columns.at(at), sign, ink)
        for at, _, forms, ink in reversed(marks):
            _put_beside(row, columns.at(at), forms, ink)
        yield "", row
    clashes = Rows(1, columns.count)
    for clash in clashes_of(forecast, clock):
        if clash.drawn:
            left = columns.at(clash.start)
            clashes.put(0, left, str(clash.number).ljust(columns.at(clash.end) - left + 1, "╌"), Ink.CLASH)
    if not clashes.is_blank(0, 0, columns.count):
        yield "collisions", clashes


def draw_uprights(rows: Rows, clock: WallClock, columns: Columns, now: int) -> None:
    """Carry the marks for now and for clock changes down through whatever is blank; now tints bars as well."""
    uprights = [(shift.at, "┊", Ink.SHIFT) for shift in clock.shifts(columns.start, columns.until)]
    if columns.holds(now):
        uprights.append((now, "│", Ink.NOW))
    for at, character, ink in uprights:
        column = columns.at(at)
        for row in range(len(rows.cells)):
            if rows.is_blank(row, column, column + 1):
                rows.put(row, column, character, ink)
            elif at == now and rows.cells[row][column][1] is not Ink.STRONG:
                rows.put(row, column, rows.cells[row][column][0], ink)


def _put_beside(rows: Rows, column: int, forms: tuple[str, ...], ink: Ink) -> None:
    """Write the longest words that have room to the right of a mark, else to its left."""
    for text in forms:
        for left in (column + 2, column - 1 - len(text)):
            inside = left >= 0 and left + len(text) <= len(rows.cells[0])
            between = (left - 1, left + len(text) + 1) if left > column else (left - 1, left + len(text))
            if inside and rows.is_blank(0, *between):
                rows.put(0, left, text, ink)
                return
