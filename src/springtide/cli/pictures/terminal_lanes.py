"""Lanes as rows of characters: steps of block characters, bars, crossed-out blocks and marks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from springtide.apis.forecast import LaneStyle
from springtide.cli.pictures.firings import cluster, cluster_forms
from springtide.cli.pictures.heights import FULL_HEIGHT, height_scale, is_blocked
from springtide.cli.pictures.spans import Crowd, Span, crowd_together, lane_spans
from springtide.cli.pictures.terminal_canvas import Ink
from springtide.cli.pictures.terminal_rows import Rows
from springtide.cli.pictures.words import is_on, value_forms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from springtide.apis.forecast import Lane, LaneValue
    from springtide.cli.pictures.terminal_rows import Columns

# By how many eighths of a character are filled; what is not filled at all stays blank for values and marks.
_EIGHTHS: Final = ("", *"▁▂▃▄▅▆▇█")
_CROWDED: Final = ("", *"▒" * 8)
_BLOCKED: Final = ("", *"╳" * 8)
_LEVEL_ROWS: Final = 3


def draw_lane(lane: Lane, columns: Columns, *, unicode: bool) -> Rows:
    """Draw a lane as the rows that its style takes."""
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
    """Draw steps in all rows but the first, which leaves room for the value of the tallest."""
    height = height_scale(lane)
    bars = len(rows.cells) - 1
    shown = _shown(lane, columns)
    for part in shown:
        left, right = _extent(part, columns)
        values = _values(part)
        blocked = any(is_blocked(lane, value) for value in values)
        levels = [8] * bars if blocked else _fill(max(map(height, values)), bars)
        shapes = _BLOCKED if blocked else _CROWDED if isinstance(part, Crowd) else _EIGHTHS
        for row, filled in enumerate(levels, start=1):
            rows.put(row, left, shapes[filled] * (right - left), Ink.BLOCKED if blocked else ink)
    for part in shown:
        if isinstance(part, Crowd):
            continue
        left, right = _extent(part, columns)
        if is_blocked(lane, part.value):
            _put_centred(rows, 0, left, right, ("blocked", "0"), Ink.BLOCKED)
        else:
            above = _fill(height(part.value), bars).count(0)
            _put_centred(rows, above, left, right, value_forms(part.value, unicode=unicode), Ink.STRONG)
    return rows


def _shown(lane: Lane, columns: Columns) -> list[Span | Crowd]:
    return crowd_together(lane_spans(lane, columns.start, columns.until), columns.seconds)


def _values(part: Span | Crowd) -> list[LaneValue]:
    return [span.value for span in part.spans] if isinstance(part, Crowd) else [part.value]


def _extent(part: Span | Crowd, columns: Columns) -> tuple[int, int]:
    """Give the columns of a span: at least one, so that what is short still shows."""
    left = min(columns.edge(part.start), columns.count - 1)
    return left, max(columns.edge(part.end), left + 1)


def _fill(height: int, rows: int) -> list[int]:
    """Tell for every row from the top how many eighths of it a step of this height fills."""
    eighths = -(-height * rows * 8 // FULL_HEIGHT)
    return [min(max(eighths - 8 * below, 0), 8) for below in reversed(range(rows))]


def _draw_active(lane: Lane, columns: Columns) -> Rows:
    rows = Rows(1, columns.count)
    for part in _shown(lane, columns):
        left, right = _extent(part, columns)
        on = any(map(is_on, _values(part)))
        shape = "▒" if isinstance(part, Crowd) else "█" if on else "·"
        rows.put(0, left, shape * (right - left), Ink.ACTIVE if on else Ink.FAINT)
    return rows


def _draw_firings(lane: Lane, columns: Columns, *, unicode: bool) -> Rows:
    rows = Rows(2, columns.count)
    rows.put(1, 0, "·" * columns.count, Ink.FAINT)
    places = [columns.at(change.at) for change in lane.changes]
    for place in places:
        rows.put(1, place, "●", Ink.PIN)
    groups = cluster(lane.changes, columns.seconds)
    for place, group in enumerate(groups, start=1):
        left = columns.at(group[0].at)
        end = columns.at(groups[place][0].at) - 1 if place < len(groups) else columns.count
        forms = cluster_forms(group) if len(group) > 1 else value_forms(group[0].value, unicode=unicode)
        text = _longest_fit(forms, end - left)
        if text and rows.is_blank(0, left, left + len(text)):
            rows.put(0, left, text, Ink.STRONG)
    return rows


def _put_centred(rows: Rows, row: int, left: int, right: int, forms: Iterable[str], ink: Ink) -> None:
    text = _longest_fit(forms, right - left - 1)  # values that touch read as one number
    if text:
        start = left + (right - left - len(text)) // 2
        if rows.is_blank(row, start, start + len(text)):
            rows.put(row, start, text, ink)


def _longest_fit(forms: Iterable[str], room: int) -> str | None:
    return next((form for form in forms if cell_len(form) == len(form) <= room), None)
