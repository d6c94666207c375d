"""Draws forecasts in a terminal: a time axis with marks, lanes, what comes next, notes, and tables of changes."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from springtide.apis.forecast import LaneStyle
from springtide.apis.problems import format_path
from springtide.cli.pictures.formatting import format_never, format_relative, format_span, format_subject, why_empty
from springtide.cli.pictures.lanes import (
    collision_sentences,
    describe_value,
    next_change_after,
    number_collisions,
    value_at,
)
from springtide.cli.pictures.terminal_canvas import Columns, Ink, Rows, draw_lane, fit, paint, pieces, shorten, wrap
from springtide.cli.pictures.time_axis import clock_for, lay_out_axis

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from springtide.apis.forecast import Forecast, Lane, LaneChange
    from springtide.cli.pictures.terminal_canvas import Line
    from springtide.cli.pictures.time_axis import AxisTick, ZoneClock


_HOUR_WIDTH: Final = 4
_MINUTE_WIDTH: Final = 8


def draw_axis(clock: ZoneClock, columns: Columns) -> Rows:
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


def _evenly(columns: Columns, ticks: Sequence[AxisTick]) -> Sequence[tuple[int, str]]:
    """Place the labels of every tick, else of every second one, and so on, until they do not touch."""
    short = [(tick.at, tick.label.removesuffix(":00")) for tick in ticks]
    labels = [(columns.edge(at) - len(label) // 2, label) for at, label in short]
    for step in range(1, len(labels)):
        if all(left + len(label) < following for (left, label), (following, _) in pairwise(labels[::step])):
            return labels[::step]
    return labels[:1]


def draw_marks(forecast: Forecast, clock: ZoneClock, columns: Columns, now: int) -> Iterator[tuple[str, Rows]]:
    """Draw a row with now and the clock changes, and one with collisions, if there are any."""
    marks = [
        (clock_change.at, "▲", clock_change.forms, Ink.CLOCK_CHANGE)
        for clock_change in clock.clock_changes(columns.start, columns.until)
    ]
    if columns.holds(now):
        marks.append((now, "▼", ("now",), Ink.NOW))
    if marks:
        row = Rows(1, columns.count)
        for at, sign, _, ink in marks:
            row.put(0, columns.at(at), sign, ink)
        for at, _, forms, ink in reversed(marks):
            _put_beside(row, columns.at(at), forms, ink)
        yield "", row
    collisions = Rows(1, columns.count)
    for collision in number_collisions(forecast, clock):
        if collision.drawn:
            left = columns.at(collision.start)
            collisions.put(
                0, left, str(collision.number).ljust(columns.at(collision.end) - left + 1, "╌"), Ink.COLLISION
            )
    if not collisions.is_blank(0, 0, columns.count):
        yield "collisions", collisions


def draw_vertical_lines(rows: Rows, clock: ZoneClock, columns: Columns, now: int) -> None:
    """Extend the marks of now and of clock changes down through blank cells; now colours bars as well."""
    lines = [
        (clock_change.at, "┊", Ink.CLOCK_CHANGE) for clock_change in clock.clock_changes(columns.start, columns.until)
    ]
    if columns.holds(now):
        lines.append((now, "│", Ink.NOW))
    for at, character, ink in lines:
        column = columns.at(at)
        for row in range(len(rows.cells)):
            if rows.is_blank(row, column, column + 1):
                rows.put(row, column, character, ink)
            elif at == now and rows.cells[row][column][1] is not Ink.STRONG:
                rows.put(row, column, rows.cells[row][column][0], ink)


def _put_beside(rows: Rows, column: int, forms: tuple[str, ...], ink: Ink) -> None:
    """Write the longest label that fits to the right of a mark, else to its left."""
    for text in forms:
        for left in (column + 2, column - 1 - len(text)):
            inside = left >= 0 and left + len(text) <= len(rows.cells[0])
            between = (left - 1, left + len(text) + 1) if left > column else (left - 1, left + len(text))
            if inside and rows.is_blank(0, *between):
                rows.put(0, left, text, ink)
                return


_MOST_ROWS: Final = 12
_WIDEST_VALUE: Final = 24


def list_changes(lane: Lane, clock: ZoneClock, now: int, width: int, *, unicode: bool) -> Iterator[Line]:
    """List at most twelve changes of a lane; of more, the next ones."""
    first = _first_row(lane.changes, now)
    shown = lane.changes[first : first + _MOST_ROWS]
    count = "1 change" if len(lane.changes) == 1 else f"{len(lane.changes):,} changes"
    earlier = f", the first {first:,} not shown" if first else ""
    yield [(shorten(lane.name, width // 2), Ink.STRONG), (f"  {count}{earlier}", Ink.FAINT)]
    reasons = {change.because for change in shown}
    if len(reasons) == 1:  # written once instead of in every row
        for line in wrap(shown[0].because, width - 2):
            yield [(f"  {line}", Ink.FAINT)]
    yield from _rows(lane, shown, clock, now, with_reasons=len(reasons) > 1, width=width, unicode=unicode)
    more = len(lane.changes) - first - len(shown)
    if more:
        yield [(f"  … and {more:,} more; -o json shows all", Ink.FAINT)]


def _first_row(changes: Sequence[LaneChange], now: int) -> int:
    if len(changes) <= _MOST_ROWS:
        return 0
    past = bisect_right(changes, now, key=lambda change: change.at)
    return min(past, len(changes) - _MOST_ROWS)


def _rows(
    lane: Lane,
    changes: Sequence[LaneChange],
    clock: ZoneClock,
    now: int,
    *,
    with_reasons: bool,
    width: int,
    unicode: bool,
) -> Iterator[Line]:
    cells = [
        (
            clock.moment(change.at, aligned=True),
            format_relative(change.at, now),
            describe_value(lane, change.value, unicode=unicode),
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


_NARROWEST: Final = 40
_SHORTEST_GUTTER: Final = 10


def render_terminal(
    forecasts: Sequence[Forecast],
    *,
    zone: str | None,
    now: int,
    title: str | None = None,
    width: int,
    colour: bool,
    unicode: bool,
) -> str:
    """Draw forecasts below each other; ``zone`` overrides the zone that each object is written in.

    No line is wider than ``width``, which is taken as 40 where it is less.
    """
    width = max(width, _NARROWEST)
    blocks = [
        block
        for forecast in forecasts
        for block in _blocks(_Sheet.of(forecast, clock_for(forecast, zone), now, width, unicode))
    ]
    lines: list[Line] = [[(line, Ink.STRONG)] for line in wrap(title or "", width)]
    for block in blocks or [[[("nothing to show", Ink.FAINT)]]]:
        lines += [[], *block] if lines else block
    return paint(lines, width=width, colour=colour, unicode=unicode)


@dataclass(frozen=True, slots=True)
class _Sheet:
    """The layout of the picture of one object."""

    forecast: Forecast
    clock: ZoneClock
    now: int
    width: int
    unicode: bool
    gutter: int
    columns: Columns

    @classmethod
    def of(cls, forecast: Forecast, clock: ZoneClock, now: int, width: int, unicode: bool) -> _Sheet:
        longest = max((cell_len(lane.name) for lane in forecast.drawn), default=0)
        gutter = min(max(longest, _SHORTEST_GUTTER), width // 5) + 2
        columns = Columns(forecast.start, forecast.until, width - gutter)
        return cls(forecast, clock, now, width, unicode, gutter, columns)

    @property
    def seen_at(self) -> int:
        """The instant of the values beside the lanes: now, or the nearest one in the range."""
        return min(max(self.now, self.forecast.start), self.forecast.until)


def _blocks(sheet: _Sheet) -> Iterator[list[Line]]:
    """Draw the parts of the picture of an object, which blank lines separate."""
    yield list(_heading(sheet))
    forecast = sheet.forecast
    if not forecast.drawn:
        yield [[(why_empty(forecast), Ink.FAINT)]]
    for place, lane in enumerate(forecast.drawn):
        yield [*(_scale(sheet) if place == 0 else ()), *_lane(sheet, lane)]
    if notes := list(_notes(sheet)):
        yield notes
    if problems := list(_problems(sheet)):
        yield problems
    for lane in forecast.lanes:
        if lane.changes:
            yield list(list_changes(lane, sheet.clock, sheet.now, sheet.width, unicode=sheet.unicode))


def _heading(sheet: _Sheet) -> Iterator[Line]:
    forecast, clock = sheet.forecast, sheet.clock
    subject = shorten(format_subject(forecast), sheet.width - 6)
    about = f" in namespace {forecast.namespace}" if forecast.namespace else ""
    about = shorten(about, max(0, sheet.width - 6 - cell_len(subject)))
    rule = "─" * max(0, sheet.width - 4 - cell_len(subject) - cell_len(about))
    yield [("── ", Ink.FAINT), (subject, Ink.STRONG), (about, Ink.PLAIN), (f" {rule}", Ink.FAINT)]
    when = clock.range(forecast.start, forecast.until, year=True)
    about = f"{when} ({format_span(forecast.until - forecast.start)}), {clock.zone.name}"
    scale = f"one column = {format_span(sheet.columns.seconds, spaced=True)}"
    whole = f"{about}; {scale}"
    texts = [whole] if cell_len(whole) <= sheet.width - 3 else [*wrap(about, sheet.width - 3), scale]
    for text in texts:
        yield [("   ", Ink.PLAIN), (text, Ink.FAINT)]


def _scale(sheet: _Sheet) -> Iterator[Line]:
    yield from _beside(sheet, [], draw_axis(sheet.clock, sheet.columns))
    for name, rows in draw_marks(sheet.forecast, sheet.clock, sheet.columns, sheet.now):
        yield from _beside(sheet, [name], rows)


def _lane(sheet: _Sheet, lane: Lane) -> Iterator[Line]:
    rows = draw_lane(lane, sheet.columns, unicode=sheet.unicode)
    draw_vertical_lines(rows, sheet.clock, sheet.columns, sheet.now)
    value, _ = value_at(lane, sheet.seen_at)
    yield from _beside(sheet, [lane.name, describe_value(lane, value, unicode=sheet.unicode)], rows)
    for place, line in enumerate(wrap(_next_text(sheet, lane), sheet.columns.count - 6)):
        yield [(" " * (sheet.gutter + (6 if place else 0)), Ink.PLAIN), (line, Ink.FAINT)]


def _next_text(sheet: _Sheet, lane: Lane) -> str:
    """Say what changes next in a lane, when, and why."""
    change = next_change_after(lane, sheet.seen_at)
    if change is None:
        if lane.next is not None:
            return f"next: no change before {sheet.clock.moment(sheet.forecast.until)}"
        # The reason of a value that a firing has set does not explain why there are no further firings.
        because = "" if lane.style is LaneStyle.FIRINGS and lane.current is not None else lane.because
        return f"{format_never(lane)}: {because}" if because else format_never(lane)
    value = describe_value(lane, change.value, unicode=sheet.unicode)
    when = f"{sheet.clock.moment_near(change.at, sheet.now)} ({format_relative(change.at, sheet.now)})"
    because = f", because {change.because}" if change.because else ""
    return f"next: {value} at {when}{because}"


def _beside(sheet: _Sheet, names: Sequence[str], rows: Rows) -> Iterator[Line]:
    """Write names to the left of rows."""
    for place, cells in enumerate(rows.cells):
        name = names[place] if place < len(names) else ""
        yield [(fit(name, sheet.gutter - 2) + "  ", Ink.FAINT if place else Ink.STRONG), *pieces(cells)]


def _notes(sheet: _Sheet) -> Iterator[Line]:
    for clock_change in sheet.clock.clock_changes(sheet.forecast.start, sheet.forecast.until):
        yield from _note(sheet, "▲", clock_change.sentence, Ink.CLOCK_CHANGE)
    for number, sentence in collision_sentences(number_collisions(sheet.forecast, sheet.clock)):
        yield from _note(sheet, str(number), sentence, Ink.COLLISION)


def _problems(sheet: _Sheet) -> Iterator[Line]:
    for problem in sheet.forecast.problems:
        where = f"{format_path(problem.path)}: " if problem.path else ""
        hint = f" ({problem.hint})" if problem.hint else ""
        ink = Ink.ERROR if problem.severity == "error" else Ink.WARNING
        yield from _note(sheet, problem.severity, f"{where}{problem.message}{hint}", ink)


def _note(sheet: _Sheet, sign: str, text: str, ink: Ink) -> Iterator[Line]:
    for place, line in enumerate(wrap(text, sheet.width - len(sign) - 1)):
        yield [((sign if place == 0 else " " * len(sign)) + " ", ink), (line, Ink.PLAIN)]
