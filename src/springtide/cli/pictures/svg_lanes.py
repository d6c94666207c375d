"""Lanes as shapes: steps, bars, hatched blocks, each with the words it says when pointed at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from springtide.apis.forecast import LaneStyle
from springtide.cli.pictures.heights import FULL_HEIGHT, height_scale, is_blocked, tell
from springtide.cli.pictures.lettering import longest_fit
from springtide.cli.pictures.markup import Markup, number, tag
from springtide.cli.pictures.spans import Crowd, Span, crowd_together, lane_spans
from springtide.cli.pictures.svg_frame import Drawn, hover, label, level_line
from springtide.cli.pictures.svg_pins import PIN_LANE_HEIGHT, draw_pins
from springtide.cli.pictures.words import format_span, format_value, is_on, value_forms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from springtide.apis.forecast import Lane, LaneValue
    from springtide.cli.pictures.svg_frame import Frame

HEIGHTS: Final = {
    LaneStyle.LEVEL: 88,
    LaneStyle.ACTIVE: 58,
    LaneStyle.BUDGET: 64,
    LaneStyle.FIRINGS: PIN_LANE_HEIGHT,
}
"""How much of the drawing's height a lane takes."""

_PADDING: Final = 8
_HEADROOM: Final = 16  # above the tallest step, for its value
_LETTERS: Final = 12
_BAR: Final = 26
_NARROWEST: Final = 2  # pixels: what is narrower is drawn as a crowd
_LISTED_VALUES: Final = 6


def draw_lane(lane: Lane, frame: Frame, top: int) -> Drawn:
    """Draw what a lane does between the left and the right edge, its upper edge at ``top``."""
    if lane.style is LaneStyle.FIRINGS:
        return draw_pins(lane, frame, top)
    shown = crowd_together(lane_spans(lane, frame.start, frame.until), frame.seconds(_NARROWEST))
    if lane.style is LaneStyle.ACTIVE:
        return _draw_bars(lane, shown, frame, top)
    return _draw_steps(lane, shown, frame, top)


def _draw_steps(lane: Lane, shown: Sequence[Span | Crowd], frame: Frame, top: int) -> Drawn:
    drawn = Drawn()
    height = height_scale(lane)
    base = top + HEIGHTS[lane.style] - _PADDING
    tallest = HEIGHTS[lane.style] - 2 * _PADDING - _HEADROOM

    def y(value: LaneValue) -> float:
        return base - tallest * height(value) / FULL_HEIGHT

    outline = ""
    joined = False  # whether the outline goes on from the step before
    for part in shown:
        left, right = frame.x(part.start), frame.x(part.end)
        if isinstance(part, Crowd):
            _draw_crowd(lane, part, frame, top, y, drawn)
            joined = False
        elif is_blocked(lane, part.value):
            words = _span_words(lane, part, frame)
            drawn.shapes += _hatched(words, part.start, left, right, top)
            middle = top + HEIGHTS[lane.style] / 2 + 4
            drawn.words += _value(("blocked", "0"), left, right, middle, "value blocked-ink blocked-halo middle")
            joined = False
        else:
            step = y(part.value)
            box = {"x": left, "y": step, "width": right - left, "height": base - step}
            words = _span_words(lane, part, frame)
            drawn.shapes.append(tag("rect", hover(words), **box, class_=lane.style.value, data_at=part.start))
            drawn.words += _value(value_forms(part.value), left, right, step - 5, "value ink halo middle")
            outline += "" if joined else f"M{number(left)} {number(step)}"
            outline += f"V{number(step)}H{number(right)}"
            joined = True
    if outline:
        drawn.shapes.append(tag("path", d=outline, class_=f"line {lane.style.value}-line"))
    return drawn


def _draw_crowd(
    lane: Lane, crowd: Crowd, frame: Frame, top: int, y: Callable[[LaneValue], float], drawn: Drawn
) -> None:
    """Draw spans too short to be told apart: hatched if any of them blocks, else pale up to the tallest."""
    left, right = frame.x(crowd.start), frame.x(crowd.end)
    words = _crowd_words(crowd, frame)
    if any(is_blocked(lane, span.value) for span in crowd.spans):
        drawn.shapes += _hatched(words, crowd.start, left, right, top)
        drawn.words += _value(("blocked at times",), left, right, top + 14, "value blocked-ink blocked-halo middle")
        return
    values = sorted((span.value for span in crowd.spans), key=y)
    highest, lowest = y(values[0]), y(values[-1])
    base = top + HEIGHTS[lane.style] - _PADDING
    box = {"x": left, "width": right - left}
    style = lane.style.value
    drawn.shapes.append(tag("rect", **box, y=lowest, height=base - lowest, class_=style))
    whole = {**box, "y": highest, "height": base - highest}
    drawn.shapes.append(tag("rect", hover(words), **whole, class_=f"{style} pale", data_at=crowd.start))
    extremes = f"{format_value(values[-1])} … {format_value(values[0])}"
    drawn.words += _value((extremes,), left, right, highest - 5, "value ink halo middle")


def _hatched(words: str, at: int, left: float, right: float, top: int) -> list[Markup]:
    height = HEIGHTS[LaneStyle.BUDGET] - 2 * _PADDING
    box = {"x": left, "y": top + _PADDING, "width": right - left, "height": height}
    return [
        tag("rect", **box, class_="blocked"),
        tag("rect", hover(words), **box, fill="url(#hatch-blocked)", data_at=at),
    ]


def _draw_bars(lane: Lane, shown: Sequence[Span | Crowd], frame: Frame, top: int) -> Drawn:
    middle = top + HEIGHTS[LaneStyle.ACTIVE] / 2
    drawn = Drawn(shapes=[level_line(middle, frame.x(frame.start), frame.x(frame.until), "rule")])
    for part in shown:
        left, right = frame.x(part.start), frame.x(part.end)
        box = {"x": left, "y": middle - _BAR / 2, "width": right - left, "height": _BAR, "rx": 3}
        if isinstance(part, Crowd):
            words = hover(_crowd_words(part, frame))
            drawn.shapes.append(tag("rect", words, **box, class_="active pale", data_at=part.start))
        elif is_on(part.value):
            words = hover(_span_words(lane, part, frame))
            drawn.shapes.append(tag("rect", words, **box, class_="active", data_at=part.start))
            drawn.words += _value(("on",), left, right, middle + 4, "value active-ink middle")
    return drawn


def _value(forms: tuple[str, ...], left: float, right: float, y: float, classes: str) -> list[Markup]:
    text = longest_fit(forms, _LETTERS, right - left - 4, bold=True)
    return [label(text, (left + right) / 2, y, classes)] if text else []


def _span_words(lane: Lane, span: Span, frame: Frame) -> str:
    length = format_span(span.end - span.start)
    words = f"{tell(lane, span.value)}: {frame.clock.range(span.start, span.end)} ({length})"
    return f"{words}, {span.because}" if span.because else words


def _crowd_words(crowd: Crowd, frame: Frame) -> str:
    values = list(dict.fromkeys(format_value(span.value) for span in crowd.spans))
    listed = ", ".join(values[:_LISTED_VALUES]) + (", …" if len(values) > _LISTED_VALUES else "")
    return f"{len(crowd.spans):,} short spans ({listed}): {frame.clock.range(crowd.start, crowd.end)}"
