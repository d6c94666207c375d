"""What concerns all lanes at once: now, changes of the clocks, collisions; as marks and as notes below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from springtide.cli.pictures.clashes import clashes_of, told
from springtide.cli.pictures.heights import is_ever_blocked
from springtide.cli.pictures.lettering import text_width, wrap
from springtide.cli.pictures.markup import Markup, join, tag
from springtide.cli.pictures.svg_frame import LEFT, MARGIN, RIGHT, Drawn, hover, label, upright

if TYPE_CHECKING:
    from springtide.apis.forecast import Forecast
    from springtide.cli.pictures.clock import Shift
    from springtide.cli.pictures.svg_frame import Frame

_LINE: Final = 19
_LETTERS: Final = 12
_INDENT: Final = 26
_NARROWEST_CLASH: Final = 3  # pixels: an instant is drawn this wide
_PILL: Final = 17  # half its width


def draw_marks(forecast: Forecast, frame: Frame, top: int, bottom: int) -> Drawn:
    """Draw the line of now, collisions, and the lines at which the clocks change; words go where there is room."""
    drawn = Drawn()
    taken: list[tuple[float, float]] = []
    if frame.holds(frame.now):
        _draw_now(frame, top, bottom, taken, drawn)
    _draw_clashes(forecast, frame, top, bottom, taken, drawn)
    for shift in frame.clock.shifts(frame.start, frame.until):
        _draw_shift(shift, frame, top, bottom, taken, drawn)
    return drawn


def _draw_clashes(
    forecast: Forecast, frame: Frame, top: int, bottom: int, taken: list[tuple[float, float]], drawn: Drawn
) -> None:
    for clash in clashes_of(forecast, frame.clock):
        if not clash.drawn:
            continue
        left = frame.x(clash.start)
        right = max(frame.x(clash.end), left + _NARROWEST_CLASH)
        box = {"x": left, "y": top + 20, "width": right - left, "height": bottom - top - 20}
        words = hover(clash.sentence)
        drawn.shapes.append(tag("rect", words, **box, fill="url(#hatch-clash)", data_at=clash.start))
        # At its beginning, else right of what stands there; collisions that come thick share the number of the first.
        spots = [left, *(end + 1 for _, end in taken if left < end < right)]
        spot = next((spot for spot in spots if _is_free((spot - 1, spot + 17), taken)), None)
        if spot is not None:
            taken.append((spot - 1, spot + 17))
            drawn.words.append(_badge(clash.number, spot + 8, top + 10))


def _draw_now(frame: Frame, top: int, bottom: int, taken: list[tuple[float, float]], drawn: Drawn) -> None:
    x = frame.x(frame.now)
    pill = min(max(x, LEFT + _PILL), RIGHT - _PILL)
    taken.append((pill - _PILL - 2, pill + _PILL + 2))
    title = hover(f"now: {frame.clock.moment(frame.now, year=True)}")
    drawn.shapes.append(tag("g", title, upright(x, top + 16, bottom, "now"), data_mark="now", data_at=frame.now))
    drawn.words.append(tag("rect", x=pill - _PILL, y=top + 2, width=2 * _PILL, height=16, rx=8, class_="now-fill"))
    drawn.words.append(label("now", pill, top + 14, "small on-colour middle"))


def _draw_shift(
    shift: Shift, frame: Frame, top: int, bottom: int, taken: list[tuple[float, float]], drawn: Drawn
) -> None:
    x = frame.x(shift.at)
    line = upright(x, top + 4, bottom, "shift")
    drawn.shapes.append(tag("g", hover(shift.sentence), line, data_mark="clocks", data_at=shift.at))
    for form in shift.forms:
        width = text_width(form, 11)
        for place, classes, room in (
            (x + 5, "small shift-ink", (x, x + width + 8)),
            (x - 5, "small shift-ink end", (x - width - 8, x)),
        ):
            if _is_free(room, taken):
                taken.append(room)
                drawn.words.append(label(form, place, top + 14, classes))
                return


def _is_free(wanted: tuple[float, float], taken: list[tuple[float, float]]) -> bool:
    inside = wanted[0] >= LEFT - 2 and wanted[1] <= RIGHT + 2
    return inside and all(wanted[1] <= start or wanted[0] >= end for start, end in taken)


def draw_notes(forecast: Forecast, frame: Frame, top: int) -> tuple[Markup, int]:
    """Write what the marks mean, collisions in full; gives the markup and where it ends."""
    shapes: list[Markup] = []
    y = top
    if any(is_ever_blocked(lane) for lane in forecast.lanes):
        swatch = {"x": MARGIN, "y": y + 2, "width": 18, "height": 12}
        shapes += [tag("rect", **swatch, class_="blocked"), tag("rect", **swatch, fill="url(#hatch-blocked)")]
        shapes.append(label("blocked: no node may be disrupted", MARGIN + _INDENT, y + 12, "note muted"))
        y += _LINE
    for shift in frame.clock.shifts(frame.start, frame.until):
        shapes.append(upright(MARGIN + 9, y + 1, y + 15, "shift"))
        shapes.append(label(shift.sentence, MARGIN + _INDENT, y + 12, "note muted"))
        y += _LINE
    for number, sentence in told(clashes_of(forecast, frame.clock)):
        shapes.append(_badge(number, MARGIN + 9, y + 8))
        for line in wrap(sentence, _LETTERS, RIGHT - MARGIN - _INDENT):
            shapes.append(label(line, MARGIN + _INDENT, y + 12, "note ink"))
            y += _LINE
    return join(shapes), y


def _badge(count: int, x: float, y: float) -> Markup:
    disc = tag("circle", cx=x, cy=y, r=8, class_="clash")
    return join((disc, label(str(count), x, y + 4, "badge small middle")))
