"""One object's part of a drawing: heading, axis, lanes with their names, marks and notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from springtide.apis.forecast import LaneStyle
from springtide.cli.pictures.axis import lay_out_axis
from springtide.cli.pictures.clock import clock_for
from springtide.cli.pictures.heights import is_blocked, tell
from springtide.cli.pictures.lettering import longest_fit, shorten, text_width
from springtide.cli.pictures.markup import Markup, join, tag
from springtide.cli.pictures.spans import upcoming, value_at
from springtide.cli.pictures.svg_frame import (
    LEFT,
    MARGIN,
    RIGHT,
    Frame,
    hover,
    label,
    level_line,
    upright,
)
from springtide.cli.pictures.svg_lanes import HEIGHTS, draw_lane
from springtide.cli.pictures.svg_marks import draw_marks, draw_notes
from springtide.cli.pictures.words import format_never, format_span, format_subject, value_forms, why_empty

if TYPE_CHECKING:
    from springtide.apis.forecast import Forecast, Lane
    from springtide.cli.pictures.axis import Axis

_HEADING: Final = 48
_AXIS: Final = 40
_MARKS: Final = 24
_NO_LANES: Final = 40
_TICK_ROOM: Final = (RIGHT - LEFT) // 34
_LEGIBLE_WEEKEND: Final = 3  # pixels


def draw_panel(forecast: Forecast, *, zone: str | None, now: int, top: int) -> tuple[Markup, int]:
    """Draw one forecast from ``top`` down; gives the markup and where it ends."""
    clock = clock_for(forecast, zone)
    frame = Frame(forecast.start, forecast.until, now, clock)
    axis = lay_out_axis(clock, forecast.start, forecast.until, room=_TICK_ROOM)
    axis_top = top + _HEADING
    marks_top = axis_top + _AXIS
    lanes_top = marks_top + _MARKS
    bottom = lanes_top + (sum(HEIGHTS[lane.style] for lane in forecast.lanes) or _NO_LANES)
    marks = draw_marks(forecast, frame, marks_top, bottom)
    shapes, words = _draw_lanes(forecast, frame, lanes_top)
    notes, end = draw_notes(forecast, frame, bottom + 12)
    panel = tag(
        "g",
        hover(format_subject(forecast)),
        _draw_heading(forecast, frame, top),
        _draw_axis(axis, frame, axis_top, lanes_top, bottom),
        shapes,
        *marks.shapes,
        words,
        *marks.words,
        notes,
    )
    return panel, end


def _draw_heading(forecast: Forecast, frame: Frame, top: int) -> Markup:
    clock = frame.clock
    where = f"namespace {forecast.namespace}" if forecast.namespace else "cluster-wide"
    about = f"{forecast.kind}, {where}, times in {clock.zone.name}"
    length = format_span(forecast.until - forecast.start)
    when = f"{clock.moment(forecast.start, year=True)} – {clock.moment(forecast.until, year=True)} ({length})"
    room = RIGHT - MARGIN - text_width(when, 12) - 24
    return join(
        (
            label(shorten(forecast.name, 17, RIGHT - MARGIN, bold=True), MARGIN, top + 16, "name ink"),
            label(shorten(about, 12, room), MARGIN, top + 36, "note muted"),
            label(when, RIGHT, top + 36, "note muted end"),
        )
    )


def _draw_axis(axis: Axis, frame: Frame, top: int, lanes_top: int, bottom: int) -> Markup:
    shapes: list[Markup] = []
    for start, end in axis.weekends:
        left, right = frame.x(start), frame.x(end)
        if right - left >= _LEGIBLE_WEEKEND:
            box = {"x": left, "y": top + 4, "width": right - left, "height": bottom - top - 4}
            shapes.append(tag("rect", **box, class_="weekend"))
    free = float(LEFT)
    for tick in axis.ticks:
        x, half = frame.x(tick.at), text_width(tick.label, 11) / 2
        shapes.append(upright(x, lanes_top, bottom, "hair"))
        if x - half >= free and x + half <= RIGHT:
            shapes.append(label(tick.label, x, top + 35, "small muted middle"))
            free = x + half + 6
    for cell in axis.cells:
        left, right = frame.x(cell.start), frame.x(cell.end)
        shapes.append(upright(left, top + 4, bottom, "rule"))
        if text := longest_fit(cell.labels, 12, right - left - 8, bold=True):
            shapes.append(label(text, left + 6, top + 18, "day ink"))
    shapes.append(upright(RIGHT, top + 4, bottom, "rule"))
    return join(shapes)


def _draw_lanes(forecast: Forecast, frame: Frame, top: int) -> tuple[Markup, Markup]:
    """Draw lanes below each other; gives their shapes and, to be put on top of all marks, their words."""
    shapes: list[Markup] = []
    words: list[Markup] = []
    for lane in forecast.lanes:
        drawn = draw_lane(lane, frame, top)
        rule = level_line(top, MARGIN, RIGHT, "rule")
        shapes.append(tag("g", rule, _draw_name(lane, frame, top), *drawn.shapes, data_lane=lane.name))
        words += drawn.words
        top += HEIGHTS[lane.style]
    if not forecast.lanes:
        shapes.append(level_line(top, MARGIN, RIGHT, "rule"))
        words.append(label(why_empty(forecast), LEFT + 12, top + 25, "note muted halo"))
        top += _NO_LANES
    shapes.append(level_line(top, MARGIN, RIGHT, "rule"))
    return join(shapes), join(words)


def _draw_name(lane: Lane, frame: Frame, top: int) -> Markup:
    room = LEFT - MARGIN - 12
    held, coming = _held(lane, frame), _coming(lane, frame)
    _, because = value_at(lane, frame.seen_at)
    return tag(
        "g",
        hover("; ".join(part for part in (f"{lane.name}: {held}", because, coming) if part)),
        label(shorten(lane.name, 13, room, bold=True), MARGIN, top + 20, "lane ink"),
        label(shorten(held, 11, room), MARGIN, top + 36, "small muted"),
        label(shorten(coming, 11, room), MARGIN, top + 50, "small muted"),
    )


def _held(lane: Lane, frame: Frame) -> str:
    value, _ = value_at(lane, frame.seen_at)
    words = tell(lane, value)
    if lane.style is LaneStyle.FIRINGS:
        return "nothing set yet" if value is None else f"last set {words}"
    return f"now {words}" if frame.holds(frame.now) else f"at first {words}"


def _coming(lane: Lane, frame: Frame) -> str:
    change = upcoming(lane, frame.seen_at)
    if change is None:
        return f"no more until {frame.clock.date(frame.until)}" if lane.next else format_never(lane)
    when = f"{frame.clock.date(change.at)} {frame.clock.time(change.at)}"
    if lane.style is LaneStyle.FIRINGS:
        return f"next {when}"
    value = "blocked" if is_blocked(lane, change.value) else value_forms(change.value)[-1]
    return f"{value} from {when}"
