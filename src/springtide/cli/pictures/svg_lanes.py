"""Draws lanes as SVG: steps, bars, hatched blocks and pins, each with a tooltip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from springtide.apis.forecast import LaneStyle
from springtide.cli.pictures.formatting import format_span, format_value, is_on, value_forms
from springtide.cli.pictures.lanes import (
    FULL_HEIGHT,
    DenseSpans,
    Span,
    describe_value,
    firing_group_forms,
    group_firings,
    height_scale,
    is_blocked,
    is_unset,
    lane_spans,
    merge_short_spans,
)
from springtide.cli.pictures.svg_canvas import (
    RIGHT,
    Markup,
    SvgLayers,
    label,
    level_line,
    longest_fit,
    number,
    tag,
    tooltip,
    vertical_line,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from springtide.apis.forecast import Lane, LaneChange, LaneValue
    from springtide.cli.pictures.svg_canvas import SvgFrame


PIN_LANE_HEIGHT: Final = 64

_GROUND: Final = 52  # these four: pixels below the upper edge of the lane
_HEAD: Final = 20
_STRIP: Final = 32
_STRIP_WORDS: Final = 24
_APART: Final = 7  # pixels: pins that are closer become a strip
_DRAWN_APART: Final = 3  # pixels: within a strip, firings that are closer are not drawn one by one
_VALUE_LETTERS: Final = 12
_TIME_LETTERS: Final = 11


def draw_pins(lane: Lane, frame: SvgFrame, top: int) -> SvgLayers:
    """Draw the firings of a lane, whose upper edge is at ``top``."""
    ground = level_line(top + _GROUND, frame.x(frame.start), frame.x(frame.until), "rule")
    drawn = SvgLayers(shapes=[ground])
    groups = group_firings(lane.changes, frame.seconds(_APART))
    for place, group in enumerate(groups, start=1):
        end = frame.x(groups[place][0].at) if place < len(groups) else RIGHT
        if len(group) == 1:
            _draw_pin(group[0], frame, top, end, drawn)
        else:
            _draw_strip(group, frame, top, end, drawn)
    return drawn


def _draw_pin(change: LaneChange, frame: SvgFrame, top: int, end: float, drawn: SvgLayers) -> None:
    x, head = frame.x(change.at), top + _HEAD
    reason = f", {change.because}" if change.because else ""
    words = tooltip(f"{format_value(change.value)} at {frame.clock.moment(change.at)}{reason}")
    drawn.shapes.append(vertical_line(x, head, top + _GROUND, "pin-line"))
    drawn.shapes.append(tag("circle", words, cx=x, cy=head, r=4.5, class_="pin", data_at=change.at))
    room = end - x - 14
    if value := longest_fit(value_forms(change.value), _VALUE_LETTERS, room, bold=True):
        drawn.texts.append(label(value, x + 8, head + 4, "value ink halo"))
    if time := longest_fit((frame.clock.time(change.at),), _TIME_LETTERS, room):
        drawn.texts.append(label(time, x + 8, head + 18, "small muted halo"))


def _draw_strip(group: Sequence[LaneChange], frame: SvgFrame, top: int, end: float, drawn: SvgLayers) -> None:
    left, right = frame.x(group[0].at), frame.x(group[-1].at)
    forms = firing_group_forms(group)
    reason = f", {group[0].because}" if group[0].because else ""
    words = tooltip(f"{forms[0]}: {frame.clock.range(group[0].at, group[-1].at)}{reason}")
    box = {"x": left - 1, "y": top + _STRIP, "width": right - left + 2, "height": _GROUND - _STRIP}
    drawn.shapes.append(tag("rect", words, **box, rx=2, class_="pin pale", data_at=group[0].at))
    if (group[-1].at - group[0].at) // (len(group) - 1) >= frame.seconds(_DRAWN_APART):
        lines = "".join(f"M{number(frame.x(one.at))} {top + _STRIP}V{top + _GROUND}" for one in group)
        drawn.shapes.append(tag("path", d=lines, class_="pin-line"))
    if text := longest_fit(forms, _VALUE_LETTERS, end - left - 8, bold=True):
        drawn.texts.append(label(text, left, top + _STRIP_WORDS, "value ink halo"))


HEIGHTS: Final = {
    LaneStyle.LEVEL: 88,
    LaneStyle.ACTIVE: 58,
    LaneStyle.BUDGET: 64,
    LaneStyle.FIRINGS: PIN_LANE_HEIGHT,
}
"""The heights of lanes by style."""

_PADDING: Final = 8
_HEADROOM: Final = 16  # above the tallest step, for its value
_LETTERS: Final = 12
_BAR: Final = 26
_NARROWEST: Final = 2  # pixels: narrower spans are merged
_LISTED_VALUES: Final = 6


def draw_lane(lane: Lane, frame: SvgFrame, top: int) -> SvgLayers:
    """Draw a lane, whose upper edge is at ``top``."""
    if lane.style is LaneStyle.FIRINGS:
        return draw_pins(lane, frame, top)
    shown = merge_short_spans(lane_spans(lane, frame.start, frame.until), frame.seconds(_NARROWEST))
    if lane.style is LaneStyle.ACTIVE:
        return _draw_bars(lane, shown, frame, top)
    return _draw_steps(lane, shown, frame, top)


def _draw_steps(lane: Lane, shown: Sequence[Span | DenseSpans], frame: SvgFrame, top: int) -> SvgLayers:
    drawn = SvgLayers()
    height = height_scale(lane)
    base = top + HEIGHTS[lane.style] - _PADDING
    tallest = HEIGHTS[lane.style] - 2 * _PADDING - _HEADROOM

    def y(value: LaneValue) -> float:
        return base - tallest * height(value) / FULL_HEIGHT

    outline = ""
    joined = False  # whether the outline continues from the previous step
    for part in shown:
        left, right = frame.x(part.start), frame.x(part.end)
        if isinstance(part, DenseSpans):
            _draw_dense(lane, part, frame, top, y, drawn)
            joined = False
        elif is_blocked(lane, part.value):
            words = _span_text(lane, part, frame)
            drawn.shapes += _hatched(words, part.start, left, right, top)
            middle = top + HEIGHTS[lane.style] / 2 + 4
            drawn.texts += _value(("blocked", "0"), left, right, middle, "value blocked-ink blocked-halo middle")
            joined = False
        elif is_unset(lane, part.value):
            joined = False
        else:
            step = y(part.value)
            box = {"x": left, "y": step, "width": right - left, "height": base - step}
            words = _span_text(lane, part, frame)
            drawn.shapes.append(tag("rect", tooltip(words), **box, class_=lane.style.value, data_at=part.start))
            drawn.texts += _value(value_forms(part.value), left, right, step - 5, "value ink halo middle")
            outline += "" if joined else f"M{number(left)} {number(step)}"
            outline += f"V{number(step)}H{number(right)}"
            joined = True
    if outline:
        drawn.shapes.append(tag("path", d=outline, class_=f"line {lane.style.value}-line"))
    return drawn


def _draw_dense(
    lane: Lane, dense: DenseSpans, frame: SvgFrame, top: int, y: Callable[[LaneValue], float], drawn: SvgLayers
) -> None:
    """Draw merged spans: hatched if any of them is blocked, else pale up to the largest value."""
    left, right = frame.x(dense.start), frame.x(dense.end)
    words = _dense_text(dense, frame)
    if any(is_blocked(lane, span.value) for span in dense.spans):
        drawn.shapes += _hatched(words, dense.start, left, right, top)
        drawn.texts += _value(("blocked at times",), left, right, top + 14, "value blocked-ink blocked-halo middle")
        return
    values = sorted((span.value for span in dense.spans), key=y)
    highest, lowest = y(values[0]), y(values[-1])
    base = top + HEIGHTS[lane.style] - _PADDING
    box = {"x": left, "width": right - left}
    style = lane.style.value
    drawn.shapes.append(tag("rect", **box, y=lowest, height=base - lowest, class_=style))
    whole = {**box, "y": highest, "height": base - highest}
    drawn.shapes.append(tag("rect", tooltip(words), **whole, class_=f"{style} pale", data_at=dense.start))
    extremes = f"{format_value(values[-1])} … {format_value(values[0])}"
    drawn.texts += _value((extremes,), left, right, highest - 5, "value ink halo middle")


def _hatched(words: str, at: int, left: float, right: float, top: int) -> list[Markup]:
    height = HEIGHTS[LaneStyle.BUDGET] - 2 * _PADDING
    box = {"x": left, "y": top + _PADDING, "width": right - left, "height": height}
    return [
        tag("rect", **box, class_="blocked"),
        tag("rect", tooltip(words), **box, fill="url(#hatch-blocked)", data_at=at),
    ]


def _draw_bars(lane: Lane, shown: Sequence[Span | DenseSpans], frame: SvgFrame, top: int) -> SvgLayers:
    middle = top + HEIGHTS[LaneStyle.ACTIVE] / 2
    drawn = SvgLayers(shapes=[level_line(middle, frame.x(frame.start), frame.x(frame.until), "rule")])
    for part in shown:
        left, right = frame.x(part.start), frame.x(part.end)
        box = {"x": left, "y": middle - _BAR / 2, "width": right - left, "height": _BAR, "rx": 3}
        if isinstance(part, DenseSpans):
            words = tooltip(_dense_text(part, frame))
            drawn.shapes.append(tag("rect", words, **box, class_="active pale", data_at=part.start))
        elif is_on(part.value):
            words = tooltip(_span_text(lane, part, frame))
            drawn.shapes.append(tag("rect", words, **box, class_="active", data_at=part.start))
            drawn.texts += _value(("on",), left, right, middle + 4, "value active-ink middle")
    return drawn


def _value(forms: tuple[str, ...], left: float, right: float, y: float, classes: str) -> list[Markup]:
    text = longest_fit(forms, _LETTERS, right - left - 4, bold=True)
    return [label(text, (left + right) / 2, y, classes)] if text else []


def _span_text(lane: Lane, span: Span, frame: SvgFrame) -> str:
    length = format_span(span.end - span.start)
    words = f"{describe_value(lane, span.value)}: {frame.clock.range(span.start, span.end)} ({length})"
    return f"{words}, {span.because}" if span.because else words


def _dense_text(dense: DenseSpans, frame: SvgFrame) -> str:
    values = list(dict.fromkeys(format_value(span.value) for span in dense.spans))
    listed = ", ".join(values[:_LISTED_VALUES]) + (", …" if len(values) > _LISTED_VALUES else "")
    return f"{len(dense.spans):,} short spans ({listed}): {frame.clock.range(dense.start, dense.end)}"
