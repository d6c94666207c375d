"""Draws forecasts as one SVG without external resources: for each a heading, the axis, lanes, marks and notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from springtide.apis.forecast import LaneStyle
from springtide.cli.pictures.formatting import format_never, format_span, format_subject, value_forms, why_empty
from springtide.cli.pictures.lanes import (
    collision_sentences,
    describe_value,
    is_blocked,
    is_ever_blocked,
    next_change_after,
    number_collisions,
    value_at,
)
from springtide.cli.pictures.svg_canvas import (
    LEFT,
    MARGIN,
    RIGHT,
    WIDTH,
    Markup,
    SvgFrame,
    SvgLayers,
    escape,
    join,
    label,
    level_line,
    longest_fit,
    style_element,
    tag,
    text_width,
    tooltip,
    vertical_line,
    wrap,
)
from springtide.cli.pictures.svg_lanes import HEIGHTS, draw_lane
from springtide.cli.pictures.time_axis import clock_for, lay_out_axis

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from springtide.apis.forecast import Forecast, Lane
    from springtide.cli.pictures.time_axis import ClockChange, TimeAxis


_LINE: Final = 19
_LETTERS: Final = 12
_INDENT: Final = 26
_NARROWEST_COLLISION: Final = 3  # pixels: the width of a collision at an instant
_PILL: Final = 17  # half of its width


def draw_marks(forecast: Forecast, frame: SvgFrame, top: int, bottom: int) -> SvgLayers:
    """Draw now, collisions and clock changes across all lanes, with labels where there is room."""
    drawn = SvgLayers()
    taken: list[tuple[float, float]] = []
    if frame.holds(frame.now):
        _draw_now(frame, top, bottom, taken, drawn)
    _draw_collisions(forecast, frame, top, bottom, taken, drawn)
    for clock_change in frame.clock.clock_changes(frame.start, frame.until):
        _draw_clock_change(clock_change, frame, top, bottom, taken, drawn)
    return drawn


def _draw_collisions(
    forecast: Forecast, frame: SvgFrame, top: int, bottom: int, taken: list[tuple[float, float]], drawn: SvgLayers
) -> None:
    for collision in number_collisions(forecast, frame.clock):
        if not collision.drawn:
            continue
        left = frame.x(collision.start)
        right = max(frame.x(collision.end), left + _NARROWEST_COLLISION)
        box = {"x": left, "y": top + 20, "width": right - left, "height": bottom - top - 20}
        words = tooltip(collision.sentence)
        drawn.shapes.append(tag("rect", words, **box, fill="url(#hatch-collision)", data_at=collision.start))
        # At the start of the collision, else to the right of other labels; dense collisions share the first number.
        spots = [left, *(end + 1 for _, end in taken if left < end < right)]
        spot = next((spot for spot in spots if _is_free((spot - 1, spot + 17), taken)), None)
        if spot is not None:
            taken.append((spot - 1, spot + 17))
            drawn.texts.append(_badge(collision.number, spot + 8, top + 10))


def _draw_now(frame: SvgFrame, top: int, bottom: int, taken: list[tuple[float, float]], drawn: SvgLayers) -> None:
    x = frame.x(frame.now)
    pill = min(max(x, LEFT + _PILL), RIGHT - _PILL)
    taken.append((pill - _PILL - 2, pill + _PILL + 2))
    title = tooltip(f"now: {frame.clock.moment(frame.now, year=True)}")
    drawn.shapes.append(tag("g", title, vertical_line(x, top + 16, bottom, "now"), data_mark="now", data_at=frame.now))
    drawn.texts.append(tag("rect", x=pill - _PILL, y=top + 2, width=2 * _PILL, height=16, rx=8, class_="now-fill"))
    drawn.texts.append(label("now", pill, top + 14, "small on-colour middle"))


def _draw_clock_change(
    clock_change: ClockChange,
    frame: SvgFrame,
    top: int,
    bottom: int,
    taken: list[tuple[float, float]],
    drawn: SvgLayers,
) -> None:
    x = frame.x(clock_change.at)
    line = vertical_line(x, top + 4, bottom, "clock-change")
    drawn.shapes.append(tag("g", tooltip(clock_change.sentence), line, data_mark="clocks", data_at=clock_change.at))
    for form in clock_change.forms:
        width = text_width(form, 11)
        for place, classes, room in (
            (x + 5, "small clock-change-ink", (x, x + width + 8)),
            (x - 5, "small clock-change-ink end", (x - width - 8, x)),
        ):
            if _is_free(room, taken):
                taken.append(room)
                drawn.texts.append(label(form, place, top + 14, classes))
                return


def _is_free(wanted: tuple[float, float], taken: list[tuple[float, float]]) -> bool:
    inside = wanted[0] >= LEFT - 2 and wanted[1] <= RIGHT + 2
    return inside and all(wanted[1] <= start or wanted[0] >= end for start, end in taken)


def draw_notes(forecast: Forecast, frame: SvgFrame, top: int) -> tuple[Markup, int]:
    """Write the legend of the marks, and collisions in full; returns the markup and its lower edge."""
    shapes: list[Markup] = []
    y = top
    if any(is_ever_blocked(lane) for lane in forecast.drawn):
        swatch = {"x": MARGIN, "y": y + 2, "width": 18, "height": 12}
        shapes += [tag("rect", **swatch, class_="blocked"), tag("rect", **swatch, fill="url(#hatch-blocked)")]
        shapes.append(label("blocked: no node may be disrupted", MARGIN + _INDENT, y + 12, "note muted"))
        y += _LINE
    for clock_change in frame.clock.clock_changes(frame.start, frame.until):
        shapes.append(vertical_line(MARGIN + 9, y + 1, y + 15, "clock-change"))
        shapes.append(label(clock_change.sentence, MARGIN + _INDENT, y + 12, "note muted"))
        y += _LINE
    for number, sentence in collision_sentences(number_collisions(forecast, frame.clock)):
        shapes.append(_badge(number, MARGIN + 9, y + 8))
        for line in wrap(sentence, _LETTERS, RIGHT - MARGIN - _INDENT):
            shapes.append(label(line, MARGIN + _INDENT, y + 12, "note ink"))
            y += _LINE
    return join(shapes), y


def _badge(count: int, x: float, y: float) -> Markup:
    disc = tag("circle", cx=x, cy=y, r=8, class_="collision")
    return join((disc, label(str(count), x, y + 4, "badge small middle")))


_HEADING_LINE: Final = 21
_BELOW_HEADING: Final = 8
_AXIS: Final = 40
_MARKS: Final = 24
_NO_LANES: Final = 40
_TICK_ROOM: Final = (RIGHT - LEFT) // 34
_LEGIBLE_WEEKEND: Final = 3  # pixels


def draw_panel(forecast: Forecast, *, zone: str | None, now: int, top: int) -> tuple[Markup, int]:
    """Draw one forecast from ``top`` down; returns the markup and its lower edge."""
    clock = clock_for(forecast, zone)
    frame = SvgFrame(forecast.start, forecast.until, now, clock)
    axis = lay_out_axis(clock, forecast.start, forecast.until, room=_TICK_ROOM)
    heading, heading_bottom = _draw_heading(forecast, frame, top)
    axis_top = heading_bottom + _BELOW_HEADING
    marks_top = axis_top + _AXIS
    lanes_top = marks_top + _MARKS
    bottom = lanes_top + (sum(_lane_height(lane, frame) for lane in forecast.drawn) or _NO_LANES)
    marks = draw_marks(forecast, frame, marks_top, bottom)
    shapes, texts = _draw_lanes(forecast, frame, lanes_top)
    notes, end = draw_notes(forecast, frame, bottom + 12)
    panel = tag(
        "g",
        tooltip(format_subject(forecast)),
        heading,
        _draw_axis(axis, frame, axis_top, lanes_top, bottom),
        shapes,
        *marks.shapes,
        texts,
        *marks.texts,
        notes,
    )
    return panel, end


def _draw_heading(forecast: Forecast, frame: SvgFrame, top: int) -> tuple[Markup, int]:
    """Write what is drawn, and for which time; returns the markup and its lower edge."""
    clock = frame.clock
    where = f"namespace {forecast.namespace}" if forecast.namespace else "cluster-wide"
    about = f"{forecast.kind}, {where}, times in {clock.zone.name}"
    length = format_span(forecast.until - forecast.start)
    when = f"{clock.moment(forecast.start, year=True)} – {clock.moment(forecast.until, year=True)} ({length})"
    shapes: list[Markup] = []
    y = top
    for line in wrap(forecast.name, 17, RIGHT - MARGIN, bold=True) or [""]:
        shapes.append(label(line, MARGIN, y + 16, "name ink"))
        y += _HEADING_LINE
    room = RIGHT - MARGIN - text_width(when, 12) - 24
    beside = text_width(about, 12) <= room
    for line in (about,) if beside else wrap(about, 12, RIGHT - MARGIN):
        shapes.append(label(line, MARGIN, y + 15, "note muted"))
        y += _LINE
    shapes.append(
        label(when, RIGHT, y - _LINE + 15, "note muted end") if beside else label(when, MARGIN, y + 15, "note muted")
    )
    return join(shapes), y if beside else y + _LINE


def _draw_axis(axis: TimeAxis, frame: SvgFrame, top: int, lanes_top: int, bottom: int) -> Markup:
    shapes: list[Markup] = []
    for start, end in axis.weekends:
        left, right = frame.x(start), frame.x(end)
        if right - left >= _LEGIBLE_WEEKEND:
            box = {"x": left, "y": top + 4, "width": right - left, "height": bottom - top - 4}
            shapes.append(tag("rect", **box, class_="weekend"))
    free = float(LEFT)
    for tick in axis.ticks:
        x, half = frame.x(tick.at), text_width(tick.label, 11) / 2
        shapes.append(vertical_line(x, lanes_top, bottom, "hair"))
        if x - half >= free and x + half <= RIGHT:
            shapes.append(label(tick.label, x, top + 35, "small muted middle"))
            free = x + half + 6
    for cell in axis.cells:
        left, right = frame.x(cell.start), frame.x(cell.end)
        shapes.append(vertical_line(left, top + 4, bottom, "rule"))
        if text := longest_fit(cell.labels, 12, right - left - 8, bold=True):
            shapes.append(label(text, left + 6, top + 18, "day ink"))
    shapes.append(vertical_line(RIGHT, top + 4, bottom, "rule"))
    return join(shapes)


def _draw_lanes(forecast: Forecast, frame: SvgFrame, top: int) -> tuple[Markup, Markup]:
    """Draw lanes below each other; returns their shapes, and their texts, which go above the marks."""
    shapes: list[Markup] = []
    texts: list[Markup] = []
    for lane in forecast.drawn:
        drawn = draw_lane(lane, frame, top)
        rule = level_line(top, MARGIN, RIGHT, "rule")
        shapes.append(tag("g", rule, _draw_name(lane, frame, top), *drawn.shapes, data_lane=lane.name))
        texts += drawn.texts
        top += _lane_height(lane, frame)
    if not forecast.drawn:
        shapes.append(level_line(top, MARGIN, RIGHT, "rule"))
        texts.append(label(why_empty(forecast), LEFT + 12, top + 25, "note muted halo"))
        top += _NO_LANES
    shapes.append(level_line(top, MARGIN, RIGHT, "rule"))
    return join(shapes), join(texts)


_NAME_LINE: Final = 16
_SMALL_LINE: Final = 14
_NAME_ROOM: Final = LEFT - MARGIN - 12


def _name_lines(lane: Lane, frame: SvgFrame) -> Iterator[tuple[str, str, int]]:
    """Yield what is written to the left of a lane: lines, their classes, and their heights."""
    for line in wrap(lane.name, 13, _NAME_ROOM, bold=True):
        yield line, "lane ink", _NAME_LINE
    for text in (_current_text(lane, frame), _next_text(lane, frame)):
        for line in wrap(text, 11, _NAME_ROOM):
            yield line, "small muted", _SMALL_LINE


def _lane_height(lane: Lane, frame: SvgFrame) -> int:
    """Return the height of a lane: that of its style, or more where its name has many lines."""
    return max(HEIGHTS[lane.style], _NAME_LINE + sum(height for *_, height in _name_lines(lane, frame)))


def _draw_name(lane: Lane, frame: SvgFrame, top: int) -> Markup:
    current, upcoming = _current_text(lane, frame), _next_text(lane, frame)
    _, because = value_at(lane, frame.seen_at)
    shapes = [tooltip("; ".join(part for part in (f"{lane.name}: {current}", because, upcoming) if part))]
    y = top + 4
    for line, classes, height in _name_lines(lane, frame):
        y += height
        shapes.append(label(line, MARGIN, y, classes))
    return tag("g", *shapes)


def _current_text(lane: Lane, frame: SvgFrame) -> str:
    value, _ = value_at(lane, frame.seen_at)
    text = describe_value(lane, value)
    if lane.style is LaneStyle.FIRINGS:
        return "nothing set yet" if value is None else f"last set {text}"
    return f"now {text}" if frame.holds(frame.now) else f"at first {text}"


def _next_text(lane: Lane, frame: SvgFrame) -> str:
    change = next_change_after(lane, frame.seen_at)
    if change is None:
        return f"no change until {frame.clock.date(frame.until)}" if lane.next else format_never(lane)
    when = f"{frame.clock.date(change.at)} {frame.clock.time(change.at)}"
    if lane.style is LaneStyle.FIRINGS:
        return f"next {when}"
    value = "blocked" if is_blocked(lane, change.value) else value_forms(change.value)[-1]
    return f"{value} from {when}"


_NAMESPACE: Final = "http://www.w3.org/2000/svg"
_BETWEEN_PANELS: Final = 30


def render_svg(forecasts: Sequence[Forecast], *, zone: str | None, now: int, title: str | None) -> str:
    """Draw forecasts below each other; ``zone`` overrides the zone that each object is written in."""
    return draw(forecasts, zone=zone, now=now, title=title, with_style=True) + "\n"


def draw(forecasts: Sequence[Forecast], *, zone: str | None, now: int, title: str | None, with_style: bool) -> Markup:
    """Draw forecasts; a drawing in a page that has the style already is made without it."""
    y = MARGIN
    panels: list[Markup] = []
    if title:
        for line in wrap(title, 20, RIGHT - MARGIN, bold=True):
            panels.append(label(line, MARGIN, y + 16, "title ink"))
            y += 26
        y += 14
    for forecast in forecasts:
        panel, bottom = draw_panel(forecast, zone=zone, now=now, top=y)
        panels.append(panel)
        y = bottom + _BETWEEN_PANELS
    if not forecasts:
        panels.append(label("nothing to show", MARGIN, y + 12, "note muted"))
        y += 40
    height = y - _BETWEEN_PANELS + MARGIN
    return tag(
        "svg",
        tag("title", escape(title or _names(forecasts))),
        tag("desc", escape(_description(forecasts))),
        style_element() if with_style else Markup(""),
        tag("rect", width=WIDTH, height=height, rx=8, class_="paper"),
        join(panels),
        xmlns=_NAMESPACE,
        viewBox=f"0 0 {WIDTH} {height}",
        width=WIDTH,
        height=height,
        role="img",
        style="max-width:100%;height:auto",
    )


def _names(forecasts: Sequence[Forecast]) -> str:
    return ", ".join(format_subject(forecast) for forecast in forecasts) or "an empty preview"


def _description(forecasts: Sequence[Forecast]) -> str:
    lanes = sum(len(forecast.drawn) for forecast in forecasts)
    changes = sum(len(lane.changes) for forecast in forecasts for lane in forecast.drawn)
    return f"What {_names(forecasts)} will do over time: {lanes} lanes with {changes} changes."
