"""Draws lanes with characters: rows of styled cells on a time scale of columns, and lines of a limited width.

Everything is drawn in Unicode; for a terminal without it, each character is replaced by an ASCII one of the same width.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeAlias

from rich.cells import cell_len, chop_cells, set_cell_size

from springtide.apis.forecast import LaneStyle
from springtide.cli.pictures.formatting import is_on, printable, value_forms
from springtide.cli.pictures.lanes import (
    FULL_HEIGHT,
    DenseSpans,
    Span,
    firing_group_forms,
    group_firings,
    height_scale,
    is_blocked,
    lane_spans,
    merge_short_spans,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from springtide.apis.forecast import Lane, LaneValue


class Ink(StrEnum):
    """The meaning of a piece of text, and its terminal codes; some meanings share a colour."""

    PLAIN = ""
    STRONG = "1"
    FAINT = "2"
    LEVEL = "94"
    ACTIVE = "32"
    BUDGET = "36"
    BLOCKED = "31"
    PIN = "35"
    NOW = "1;31"
    CLOCK_CHANGE = "35"
    COLLISION = "33"
    ERROR = "1;31"
    WARNING = "33"


Piece: TypeAlias = tuple[str, Ink]
Line: TypeAlias = list[Piece]

_ASCII: Final = str.maketrans(
    {"█": "#"}
    | dict.fromkeys("▇▆▅▄", "=")
    | dict.fromkeys("▃▂▁", "_")
    | dict.fromkeys("─╌", "-")
    | dict.fromkeys("│┊", "|")
    | dict.fromkeys("├┼", "+")
    | {
        "╳": "x",
        "▒": ":",
        "●": "*",
        "▼": "v",
        "▲": "^",
        "→": ">",
        "–": "-",
        "…": "~",
        "×": "x",
        "·": "-",
        "≥": ">",
        "≤": "<",
    }
)


def fit(text: str, width: int) -> str:
    """Cut or pad text to an exact width, with an ellipsis where something was cut."""
    text = printable(text)
    if cell_len(text) > width > 0:
        text = f"{set_cell_size(text, width - 1).rstrip()}…"
    return set_cell_size(text, width)


def shorten(text: str, width: int) -> str:
    """Cut text to a width at most."""
    return fit(text, width).rstrip() if cell_len(printable(text)) > width else printable(text)


def wrap(text: str, width: int) -> list[str]:
    """Wrap text between words; only a word longer than a line is broken."""
    lines: list[str] = []
    line = ""
    for word in printable(text).split():
        for part in chop_cells(word, width) if cell_len(word) > width else [word]:
            longer = f"{line} {part}" if line else part
            if cell_len(longer) <= width:
                line = longer
            else:
                lines.append(line)
                line = part
    return [*lines, line] if line else lines


def paint(lines: Iterable[Line], *, width: int, colour: bool, unicode: bool) -> str:
    """Render lines as text with terminal codes."""
    return "".join(f"{_paint_line(line, width, colour=colour, unicode=unicode)}\n" for line in lines)


def _paint_line(line: Line, width: int, *, colour: bool, unicode: bool) -> str:
    painted: list[str] = []
    left = width
    for text, ink in _without_trailing_space(line):
        shown = text if cell_len(text) <= left else fit(text, left)
        left -= cell_len(shown)
        shown = shown if unicode else _as_ascii(shown)
        painted.append(f"\x1b[{ink.value}m{shown}\x1b[0m" if colour and ink.value and shown else shown)
    return "".join(painted)


def _without_trailing_space(line: Line) -> Line:
    kept = list(line)
    while kept and not kept[-1][0].strip():
        kept.pop()
    if kept:
        kept[-1] = (kept[-1][0].rstrip(), kept[-1][1])
    return kept


def _as_ascii(text: str) -> str:
    translated = text.translate(_ASCII)
    return "".join(c if c.isascii() else "?" * cell_len(c) for c in translated)


def pieces(cells: Sequence[Piece]) -> Line:
    """Join adjacent cells that have the same ink."""
    return [("".join(text for text, _ in run), ink) for ink, run in groupby(cells, key=lambda cell: cell[1])]


_BLANK: Final[Piece] = (" ", Ink.PLAIN)


@dataclass(frozen=True, slots=True)
class Columns:
    """The time scale of a terminal picture."""

    start: int
    until: int
    count: int

    @property
    def length(self) -> int:
        """The range in seconds, at least 1."""
        return max(1, self.until - self.start)

    @property
    def seconds(self) -> int:
        """The duration of one column in seconds."""
        return max(1, self.length // self.count)

    def at(self, instant: int) -> int:
        """Return the column of an instant; outside the range, the nearest one."""
        return min(max(0, (instant - self.start) * self.count // self.length), self.count - 1)

    def edge(self, instant: int) -> int:
        """Return the edge of a column that is nearest to an instant."""
        return min(max(0, (2 * (instant - self.start) * self.count + self.length) // (2 * self.length)), self.count)

    def holds(self, instant: int) -> bool:
        """Return whether an instant is in the range."""
        return self.start <= instant <= self.until


class Rows:
    """A block of cells to draw into, row by row from the top."""

    def __init__(self, height: int, width: int) -> None:
        self.cells: list[list[Piece]] = [[_BLANK] * width for _ in range(height)]

    def put(self, row: int, column: int, text: str, ink: Ink) -> None:
        """Write characters of width 1 from a column on; those outside the block are left out."""
        for place, character in enumerate(text, start=column):
            if 0 <= place < len(self.cells[row]):
                self.cells[row][place] = (character, ink)

    def is_blank(self, row: int, start: int, end: int) -> bool:
        """Return whether all cells between two columns are unwritten; the space in a label is written."""
        return all(cell == _BLANK for cell in self.cells[row][max(0, start) : end])


# Indexed by the filled eighths of a cell; cells that are not filled stay blank for values and marks.
_EIGHTHS: Final = ("", *"▁▂▃▄▅▆▇█")
_DENSE: Final = ("", *"▒" * 8)
_BLOCKED: Final = ("", *"╳" * 8)
_LEVEL_ROWS: Final = 3


def draw_lane(lane: Lane, columns: Columns, *, unicode: bool) -> Rows:
    """Draw a lane; the number of rows depends on its style."""
    match lane.style:
        case LaneStyle.LEVEL:
            return _draw_steps(lane, columns, Rows(_LEVEL_ROWS + 1, columns.count), Ink.LEVEL, unicode=unicode)
        case LaneStyle.BUDGET:
            return _draw_steps(lane, columns, Rows(2, columns.count), Ink.BUDGET, unicode=unicode)
        case LaneStyle.ACTIVE:
            return _draw_active(lane, columns)
        case LaneStyle.FIRINGS:
            return _draw_firings(lane, columns, unicode=unicode)


def _draw_steps(lane: Lane, columns: Columns, rows: Rows, ink: Ink, *, unicode: bool) -> Rows:
    """Draw steps in all rows but the first, which has the largest value."""
    height = height_scale(lane)
    bars = len(rows.cells) - 1
    shown = _shown(lane, columns)
    for part in shown:
        left, right = _extent(part, columns)
        values = _values(part)
        blocked = any(is_blocked(lane, value) for value in values)
        levels = [8] * bars if blocked else _fill(max(map(height, values)), bars)
        shapes = _BLOCKED if blocked else _DENSE if isinstance(part, DenseSpans) else _EIGHTHS
        for row, filled in enumerate(levels, start=1):
            rows.put(row, left, shapes[filled] * (right - left), Ink.BLOCKED if blocked else ink)
    for part in shown:
        if isinstance(part, DenseSpans):
            continue
        left, right = _extent(part, columns)
        if is_blocked(lane, part.value):
            _put_centred(rows, 0, left, right, ("blocked", "0"), Ink.BLOCKED)
        else:
            above = _fill(height(part.value), bars).count(0)
            _put_centred(rows, above, left, right, value_forms(part.value, unicode=unicode), Ink.STRONG)
    return rows


def _shown(lane: Lane, columns: Columns) -> list[Span | DenseSpans]:
    return merge_short_spans(lane_spans(lane, columns.start, columns.until), columns.seconds)


def _values(part: Span | DenseSpans) -> list[LaneValue]:
    return [span.value for span in part.spans] if isinstance(part, DenseSpans) else [part.value]


def _extent(part: Span | DenseSpans, columns: Columns) -> tuple[int, int]:
    """Return the columns of a span, at least one."""
    left = min(columns.edge(part.start), columns.count - 1)
    return left, max(columns.edge(part.end), left + 1)


def _fill(height: int, rows: int) -> list[int]:
    """Return for every row, from the top, how many eighths of it a step of this height fills."""
    eighths = -(-height * rows * 8 // FULL_HEIGHT)
    return [min(max(eighths - 8 * below, 0), 8) for below in reversed(range(rows))]


def _draw_active(lane: Lane, columns: Columns) -> Rows:
    rows = Rows(1, columns.count)
    for part in _shown(lane, columns):
        left, right = _extent(part, columns)
        on = any(map(is_on, _values(part)))
        shape = "▒" if isinstance(part, DenseSpans) else "█" if on else "·"
        rows.put(0, left, shape * (right - left), Ink.ACTIVE if on else Ink.FAINT)
    return rows


def _draw_firings(lane: Lane, columns: Columns, *, unicode: bool) -> Rows:
    rows = Rows(2, columns.count)
    rows.put(1, 0, "·" * columns.count, Ink.FAINT)
    places = [columns.at(change.at) for change in lane.changes]
    for place in places:
        rows.put(1, place, "●", Ink.PIN)
    groups = group_firings(lane.changes, columns.seconds)
    for place, group in enumerate(groups, start=1):
        left = columns.at(group[0].at)
        end = columns.at(groups[place][0].at) - 1 if place < len(groups) else columns.count
        forms = firing_group_forms(group) if len(group) > 1 else value_forms(group[0].value, unicode=unicode)
        text = _longest_fit(forms, end - left)
        if text and rows.is_blank(0, left, left + len(text)):
            rows.put(0, left, text, Ink.STRONG)
    return rows


def _put_centred(rows: Rows, row: int, left: int, right: int, forms: Iterable[str], ink: Ink) -> None:
    text = _longest_fit(forms, right - left - 1)  # adjacent values would read as one number
    if text:
        start = left + (right - left - len(text)) // 2
        if rows.is_blank(row, start, start + len(text)):
            rows.put(row, start, text, ink)


def _longest_fit(forms: Iterable[str], room: int) -> str | None:
    return next((form for form in forms if cell_len(form) == len(form) <= room), None)
