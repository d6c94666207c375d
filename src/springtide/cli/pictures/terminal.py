"""A forecast as a picture in the terminal: lanes over a time axis, then what comes next, in words and as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from springtide.apis.forecast import LaneStyle
from springtide.apis.problems import format_path
from springtide.cli.pictures.clashes import clashes_of, told
from springtide.cli.pictures.clock import clock_for
from springtide.cli.pictures.heights import tell
from springtide.cli.pictures.spans import upcoming, value_at
from springtide.cli.pictures.terminal_axis import draw_axis, draw_marks, draw_uprights
from springtide.cli.pictures.terminal_canvas import Ink, fit, paint, pieces, shorten, wrap
from springtide.cli.pictures.terminal_lanes import draw_lane
from springtide.cli.pictures.terminal_rows import Columns, Rows
from springtide.cli.pictures.terminal_table import list_changes
from springtide.cli.pictures.words import format_never, format_relative, format_span, format_subject, why_empty

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from springtide.apis.forecast import Forecast, Lane
    from springtide.cli.pictures.clock import WallClock
    from springtide.cli.pictures.terminal_canvas import Line

_NARROWEST: Final = 40
_SHORTEST_GUTTER: Final = 10


def render_terminal(
    forecasts: Sequence[Forecast], *, zone: str | None, now: int, width: int, colour: bool, unicode: bool
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
    lines: list[Line] = []
    for block in blocks or [[[("nothing to show", Ink.FAINT)]]]:
        lines += [[], *block] if lines else block
    return paint(lines, width=width, colour=colour, unicode=unicode)


@dataclass(frozen=True, slots=True)
class _Sheet:
    """What the picture of one object is made on."""

    forecast: Forecast
    clock: WallClock
    now: int
    width: int
    unicode: bool
    gutter: int
    columns: Columns

    @classmethod
    def of(cls, forecast: Forecast, clock: WallClock, now: int, width: int, unicode: bool) -> _Sheet:
        longest = max((cell_len(lane.name) for lane in forecast.lanes), default=0)
        gutter = min(max(longest, _SHORTEST_GUTTER), width // 5) + 2
        columns = Columns(forecast.start, forecast.until, width - gutter)
        return cls(forecast, clock, now, width, unicode, gutter, columns)

    @property
    def seen_at(self) -> int:
        """The instant whose values are named beside the lanes: now, or the nearest one that is drawn."""
        return min(max(self.now, self.forecast.start), self.forecast.until)


def _blocks(sheet: _Sheet) -> Iterator[list[Line]]:
    """Give the parts of an object's picture that a blank line stands between."""
    yield list(_heading(sheet))
    forecast = sheet.forecast
    if not forecast.lanes:
        yield [[(why_empty(forecast), Ink.FAINT)]]
    for place, lane in enumerate(forecast.lanes):
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
    length = format_span(forecast.until - forecast.start)
    for line in wrap(f"{when} ({length}), {clock.zone.name}", sheet.width - 3):
        yield [("   ", Ink.PLAIN), (line, Ink.FAINT)]


def _scale(sheet: _Sheet) -> Iterator[Line]:
    lasts = format_span(sheet.columns.seconds)
    column = next((f"█ {form}" for form in (lasts, lasts.split()[0]) if len(form) <= sheet.gutter - 4), "")
    yield from _beside(sheet, ["", column], draw_axis(sheet.clock, sheet.columns))
    for name, rows in draw_marks(sheet.forecast, sheet.clock, sheet.columns, sheet.now):
        yield from _beside(sheet, [name], rows)


def _lane(sheet: _Sheet, lane: Lane) -> Iterator[Line]:
    rows = draw_lane(lane, sheet.columns, unicode=sheet.unicode)
    draw_uprights(rows, sheet.clock, sheet.columns, sheet.now)
    value, _ = value_at(lane, sheet.seen_at)
    yield from _beside(sheet, [lane.name, tell(lane, value, unicode=sheet.unicode)], rows)
    for place, line in enumerate(wrap(_coming(sheet, lane), sheet.columns.count - 6)):
        yield [(" " * (sheet.gutter + (6 if place else 0)), Ink.PLAIN), (line, Ink.FAINT)]


def _coming(sheet: _Sheet, lane: Lane) -> str:
    """Say what happens next to a lane, when, and why."""
    change = upcoming(lane, sheet.seen_at)
    if change is None:
        if lane.next is not None:
            return f"next: nothing more before {sheet.clock.moment(sheet.forecast.until)}"
        # Why a lane of firings has its value is who set it, and not why nobody will again.
        because = "" if lane.style is LaneStyle.FIRINGS and lane.current is not None else lane.because
        return f"{format_never(lane)}: {because}" if because else format_never(lane)
    value = tell(lane, change.value, unicode=sheet.unicode)
    when = f"{sheet.clock.moment_near(change.at, sheet.now)} ({format_relative(change.at, sheet.now)})"
    because = f", because {change.because}" if change.because else ""
    return f"next: {value} at {when}{because}"


def _beside(sheet: _Sheet, names: Sequence[str], rows: Rows) -> Iterator[Line]:
    """Put names to the left of the rows that they belong to."""
    for place, cells in enumerate(rows.cells):
        name = names[place] if place < len(names) else ""
        yield [(fit(name, sheet.gutter - 2) + "  ", Ink.FAINT if place else Ink.STRONG), *pieces(cells)]


def _notes(sheet: _Sheet) -> Iterator[Line]:
    for shift in sheet.clock.shifts(sheet.forecast.start, sheet.forecast.until):
        yield from _note(sheet, "▲", shift.sentence, Ink.SHIFT)
    for number, sentence in told(clashes_of(sheet.forecast, sheet.clock)):
        yield from _note(sheet, str(number), sentence, Ink.CLASH)


def _problems(sheet: _Sheet) -> Iterator[Line]:
    for problem in sheet.forecast.problems:
        where = f"{format_path(problem.path)}: " if problem.path else ""
        hint = f" ({problem.hint})" if problem.hint else ""
        ink = Ink.ERROR if problem.severity == "error" else Ink.WARNING
        yield from _note(sheet, problem.severity, f"{where}{problem.message}{hint}", ink)


def _note(sheet: _Sheet, sign: str, text: str, ink: Ink) -> Iterator[Line]:
    for place, line in enumerate(wrap(text, sheet.width - len(sign) - 1)):
        yield [((sign if place == 0 else " " * len(sign)) + " ", ink), (line, Ink.PLAIN)]
