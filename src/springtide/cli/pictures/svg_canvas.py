"""The basics of SVG and HTML output: escaped markup, text widths, the style sheet, and the time scale of a drawing.

Text becomes markup only in `escape`. Widths are estimates for the widest of the usual system fonts, since SVG text
cannot be measured. Colours are CSS classes rather than variables, which many programs for documents cannot read; there
is a light and a dark palette, and the hues follow Okabe and Ito, for any colour vision.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NewType

from springtide.cli.pictures.formatting import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from springtide.cli.pictures.time_axis import ZoneClock


Markup = NewType("Markup", str)
"""Valid XML; only `escape`, `tag` and `join` create it."""

_SHAPES: Final = frozenset(("circle", "path", "rect"))
"""Elements that may be self-closing; HTML parsers ignore the slash of others, such as ``<code/>``."""

_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def escape(text: str) -> Markup:
    """Escape text."""
    return Markup(printable(text).translate(_ESCAPES))


def join(parts: Iterable[Markup]) -> Markup:
    """Concatenate markup."""
    return Markup("".join(parts))


def tag(name: str, *children: Markup, **attributes: str | int | float | None) -> Markup:
    """Write an element; ``class_`` becomes ``class``, ``stroke_width`` ``stroke-width``, None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _SHAPES and not children:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{join(children)}</{name}>")


def number(value: float) -> str:
    """Write a coordinate with at most two decimals, without trailing zeros, never ``-0``."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _attribute(value: str | int | float) -> str:
    return escape(value) if isinstance(value, str) else number(value)


_BREAKABLE: Final = re.compile(r"[^-./_]+[-./_]*|[-./_]+")
_BOLD: Final = 1.12  # how much wider heavy letters are
_CLASSES: Final = (("ijlI.,:;|!'", 0.32), ('frt()[]/-" ', 0.41), ("mwMW%@∞→—…×", 0.95))


@lru_cache(maxsize=1024)
def _ems(character: str) -> float:
    for members, width in _CLASSES:
        if character in members:
            return width
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in ("W", "F"):
        return 1.05
    return 0.72 if character.isupper() else 0.63


def text_width(text: str, size: int, *, bold: bool = False) -> float:
    """Estimate the width of text in a sans-serif font of a size in pixels."""
    return sum(map(_ems, text)) * size * (_BOLD if bold else 1)


def longest_fit(forms: Iterable[str], size: int, room: float, *, bold: bool = False) -> str | None:
    """Return the first form that fits, if any does."""
    return next((form for form in forms if text_width(form, size, bold=bold) <= room), None)


def wrap(text: str, size: int, room: float, *, bold: bool = False) -> list[str]:
    """Wrap text between words; a word that is too long for a line is broken, after a hyphen or a dot if it has any."""
    lines: list[str] = []
    line = ""
    for word in printable(text).split():
        between = " " if line else ""
        fits = text_width(word, size, bold=bold) <= room
        for part in (word,) if fits else _parts(word, size, room, bold=bold):
            longer = f"{line}{between}{part}"
            if text_width(longer, size, bold=bold) <= room:
                line = longer
            else:
                lines += [line] if line else []
                line = part
            between = ""
    return [*lines, line] if line else lines


def _parts(word: str, size: int, room: float, *, bold: bool) -> Iterator[str]:
    """Split a word after hyphens, dots and slashes, and parts that are still too long anywhere."""
    for part in _BREAKABLE.findall(word):
        start, width = 0, 0.0
        for place, character in enumerate(part):
            wide = text_width(character, size, bold=bold)
            if width + wide > room and place > start:
                yield part[start:place]
                start, width = place, 0.0
            width += wide
        yield part[start:]


FONT: Final = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','Noto Sans',Arial,sans-serif"

# class: (property, light, dark)
_COLOURS: Final = (
    ("paper", "fill", "#ffffff", "#14181f"),
    ("ink", "fill", "#1c2430", "#e8ecf2"),
    ("muted", "fill", "#5c6878", "#9aa7b8"),
    ("halo", "stroke", "#ffffff", "#14181f"),
    ("weekend", "fill", "#f3f5f8", "#1b212b"),
    ("rule", "stroke", "#c9d1db", "#3a4454"),
    ("hair", "stroke", "#e7ebf0", "#262e3a"),
    ("level", "fill", "#bcdcf0", "#1d4a68"),
    ("level-line", "stroke", "#0072b2", "#56b4e9"),
    ("active", "fill", "#7fcdb4", "#12755a"),
    ("active-ink", "fill", "#08402f", "#d9f7ec"),
    ("budget", "fill", "#dfe6c9", "#3d4a22"),
    ("budget-line", "stroke", "#6b8012", "#b5cc5a"),
    ("blocked", "fill", "#f9d9c6", "#552813"),
    ("blocked-line", "stroke", "#d55e00", "#f08a4b"),
    ("blocked-halo", "stroke", "#f9d9c6", "#552813"),
    ("blocked-ink", "fill", "#8f3d00", "#ffc8a6"),
    ("pin", "fill", "#b3588c", "#e08fbd"),
    ("pin-line", "stroke", "#b3588c", "#e08fbd"),
    ("now", "stroke", "#d1242f", "#ff7b72"),
    ("now-fill", "fill", "#d1242f", "#c93c37"),
    ("clock-change", "stroke", "#6f5bb5", "#b3a3f0"),
    ("clock-change-ink", "fill", "#5b47a3", "#c9bdf7"),
    ("collision", "fill", "#e69f00", "#e69f00"),
    ("collision-line", "stroke", "#b57d00", "#f0b93a"),
)

_SHAPE_STYLES: Final = (
    f"text{{font-family:{FONT};font-variant-numeric:tabular-nums}}"
    ".title{font-size:20px;font-weight:650}"
    ".name{font-size:17px;font-weight:650}"
    ".lane{font-size:13px;font-weight:600}"
    ".value{font-size:12px;font-weight:600}"
    ".day{font-size:12px;font-weight:600}"
    ".note{font-size:12px}"
    ".small{font-size:11px}"
    ".middle{text-anchor:middle}"
    ".end{text-anchor:end}"
    ".on-colour{fill:#ffffff}"
    ".badge{fill:#2b1d00;font-weight:650}"
    ".line{fill:none;stroke-width:1.75;stroke-linejoin:round}"
    ".rule,.hair{stroke-width:1}"
    ".now{stroke-width:1.5}"
    ".clock-change{stroke-width:1.5;stroke-dasharray:4 3}"
    ".pin-line{stroke-width:1.5}"
    ".pale{fill-opacity:0.45}"
    # The halo keeps lines behind a value from crossing its digits.
    ".halo,.blocked-halo{paint-order:stroke;stroke-width:3;stroke-linejoin:round}"
)


def style_sheet() -> Markup:
    """Write the style element of a drawing."""
    light = "".join(f".{name}{{{prop}:{colour}}}" for name, prop, colour, _ in _COLOURS)
    dark = "".join(f".{name}{{{prop}:{colour}}}" for name, prop, _, colour in _COLOURS)
    return tag("style", Markup(f"{_SHAPE_STYLES}{light}@media(prefers-color-scheme:dark){{{dark}}}"))


def hatchings() -> Markup:
    """Define two hatchings: leaning right for blocked budgets, leaning left for collisions."""
    return tag(
        "defs",
        _hatching("hatch-blocked", "blocked-line", angle=45, width=7, opacity=0.5),
        _hatching("hatch-collision", "collision-line", angle=-45, width=6, opacity=0.3),
    )


def _hatching(name: str, stroke: str, *, angle: int, width: int, opacity: float) -> Markup:
    line = tag("path", d=f"M{width / 2:g} 0V{width}", class_=stroke, stroke_width=1.5, opacity=opacity)
    return tag(
        "pattern",
        line,
        id=name,
        width=width,
        height=width,
        patternUnits="userSpaceOnUse",
        patternTransform=f"rotate({angle})",
    )


def style_element() -> Markup:
    """Write the style sheet and the hatchings of a drawing."""
    return join((style_sheet(), hatchings()))


WIDTH: Final = 1200
MARGIN: Final = 28
LEFT: Final = 212
RIGHT: Final = WIDTH - MARGIN


@dataclass(frozen=True, slots=True)
class SvgFrame:
    """The time scale of a drawing, and the clock of its zone."""

    start: int
    until: int
    now: int
    clock: ZoneClock

    @property
    def length(self) -> int:
        """The range in seconds, at least 1."""
        return max(1, self.until - self.start)

    def x(self, at: int) -> float:
        """Return the coordinate of an instant; outside the range, that of the nearest edge."""
        inside = min(max(at, self.start), self.until)
        return LEFT + (RIGHT - LEFT) * (inside - self.start) / self.length

    def seconds(self, pixels: int) -> int:
        """Return the duration that a width stands for."""
        return max(1, pixels * self.length // (RIGHT - LEFT))

    def holds(self, at: int) -> bool:
        """Return whether an instant is in the range."""
        return self.start <= at <= self.until

    @property
    def seen_at(self) -> int:
        """The instant of the values beside the names of lanes: now, or the nearest one in the range."""
        return min(max(self.now, self.start), self.until)


@dataclass(slots=True)
class SvgLayers:
    """Shapes, and the texts above them; marks that cross all lanes are drawn between the two."""

    shapes: list[Markup] = field(default_factory=list)
    texts: list[Markup] = field(default_factory=list)


def label(text: str, x: float, y: float, classes: str) -> Markup:
    """Write text at a position."""
    return tag("text", escape(text), x=x, y=y, class_=classes)


def tooltip(text: str) -> Markup:
    """Write the tooltip of a shape, which screen readers read as well."""
    return tag("title", escape(text))


def vertical_line(x: float, top: float, bottom: float, classes: str) -> Markup:
    """Draw a vertical line."""
    return tag("path", d=f"M{number(x)} {number(top)}V{number(bottom)}", class_=classes)


def level_line(y: float, left: float, right: float, classes: str) -> Markup:
    """Draw a horizontal line."""
    return tag("path", d=f"M{number(left)} {number(y)}H{number(right)}", class_=classes)
