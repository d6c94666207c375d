"""Firings as pins: each with its value and time while there is room, as one strip where they come too thick."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from springtide.cli.pictures.firings import cluster, cluster_forms
from springtide.cli.pictures.lettering import longest_fit
from springtide.cli.pictures.markup import number, tag
from springtide.cli.pictures.svg_frame import RIGHT, Drawn, hover, label, level_line, upright
from springtide.cli.pictures.words import format_value, value_forms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from springtide.apis.forecast import Change, Lane
    from springtide.cli.pictures.svg_frame import Frame

PIN_LANE_HEIGHT: Final = 64

_GROUND: Final = 52  # all four: pixels below the upper edge of the lane
_HEAD: Final = 20
_STRIP: Final = 32
_STRIP_WORDS: Final = 24
_APART: Final = 7  # pixels: pins that stand closer become a strip
_TOLD_APART: Final = 3  # pixels: within a strip, firings that stand closer are not drawn one by one
_VALUE_LETTERS: Final = 12
_TIME_LETTERS: Final = 11


def draw_pins(lane: Lane, frame: Frame, top: int) -> Drawn:
    """Draw the firings of a lane, its upper edge at ``top``."""
    ground = level_line(top + _GROUND, frame.x(frame.start), frame.x(frame.until), "rule")
    drawn = Drawn(shapes=[ground])
    groups = cluster(lane.changes, frame.seconds(_APART))
    for place, group in enumerate(groups, start=1):
        end = frame.x(groups[place][0].at) if place < len(groups) else RIGHT
        if len(group) == 1:
            _draw_pin(group[0], frame, top, end, drawn)
        else:
            _draw_strip(group, frame, top, end, drawn)
    return drawn


def _draw_pin(change: Change, frame: Frame, top: int, end: float, drawn: Drawn) -> None:
    x, head = frame.x(change.at), top + _HEAD
    reason = f", {change.because}" if change.because else ""
    words = hover(f"{format_value(change.value)} at {frame.clock.moment(change.at)}{reason}")
    drawn.shapes.append(upright(x, head, top + _GROUND, "pin-line"))
    drawn.shapes.append(tag("circle", words, cx=x, cy=head, r=4.5, class_="pin", data_at=change.at))
    room = end - x - 14
    if value := longest_fit(value_forms(change.value), _VALUE_LETTERS, room, bold=True):
        drawn.words.append(label(value, x + 8, head + 4, "value ink halo"))
    if time := longest_fit((frame.clock.time(change.at),), _TIME_LETTERS, room):
        drawn.words.append(label(time, x + 8, head + 18, "small muted halo"))


def _draw_strip(group: Sequence[Change], frame: Frame, top: int, end: float, drawn: Drawn) -> None:
    left, right = frame.x(group[0].at), frame.x(group[-1].at)
    forms = cluster_forms(group)
    reason = f", {group[0].because}" if group[0].because else ""
    words = hover(f"{forms[0]}: {frame.clock.range(group[0].at, group[-1].at)}{reason}")
    box = {"x": left - 1, "y": top + _STRIP, "width": right - left + 2, "height": _GROUND - _STRIP}
    drawn.shapes.append(tag("rect", words, **box, rx=2, class_="pin pale", data_at=group[0].at))
    if (group[-1].at - group[0].at) // (len(group) - 1) >= frame.seconds(_TOLD_APART):
        lines = "".join(f"M{number(frame.x(one.at))} {top + _STRIP}V{top + _GROUND}" for one in group)
        drawn.shapes.append(tag("path", d=lines, class_="pin-line"))
    if text := longest_fit(forms, _VALUE_LETTERS, end - left - 8, bold=True):
        drawn.words.append(label(text, left, top + _STRIP_WORDS, "value ink halo"))
