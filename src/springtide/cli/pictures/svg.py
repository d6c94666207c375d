"""A forecast as a drawing for a design document: one SVG file that needs nothing but itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from springtide.cli.pictures.lettering import shorten
from springtide.cli.pictures.markup import Markup, escape, join, tag
from springtide.cli.pictures.svg_frame import MARGIN, RIGHT, WIDTH, label
from springtide.cli.pictures.svg_panel import draw_panel
from springtide.cli.pictures.svg_style import look
from springtide.cli.pictures.words import format_subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from springtide.apis.forecast import Forecast

_NAMESPACE: Final = "http://www.w3.org/2000/svg"
_BETWEEN_PANELS: Final = 30


def render_svg(forecasts: Sequence[Forecast], *, zone: str | None, now: int, title: str | None) -> str:
    """Draw forecasts below each other; ``zone`` overrides the zone that each object is written in."""
    return draw(forecasts, zone=zone, now=now, title=title, with_look=True) + "\n"


def draw(forecasts: Sequence[Forecast], *, zone: str | None, now: int, title: str | None, with_look: bool) -> Markup:
    """Draw forecasts; without the look, the drawing stands in a page that has it already."""
    y = MARGIN
    panels: list[Markup] = []
    if title:
        panels.append(label(shorten(title, 20, RIGHT - MARGIN, bold=True), MARGIN, y + 16, "title ink"))
        y += 40
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
        look() if with_look else Markup(""),
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
    lanes = sum(len(forecast.lanes) for forecast in forecasts)
    changes = sum(len(lane.changes) for forecast in forecasts for lane in forecast.lanes)
    return f"What {_names(forecasts)} will do over time: {lanes} lanes with {changes} changes."
