"""The looks of a drawing: one palette for light and one for dark, told apart by shape as well as by colour.

Colours are written out per class rather than as CSS variables, because many programs that put drawings into
documents read classes but not variables. The hues follow Okabe and Ito, whose colours people with any colour
vision can tell apart.
"""

from __future__ import annotations

from typing import Final

from springtide.cli.pictures.markup import Markup, join, tag

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
    ("shift", "stroke", "#6f5bb5", "#b3a3f0"),
    ("shift-ink", "fill", "#5b47a3", "#c9bdf7"),
    ("clash", "fill", "#e69f00", "#e69f00"),
    ("clash-line", "stroke", "#b57d00", "#f0b93a"),
)

_SHAPES: Final = (
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
    ".shift{stroke-width:1.5;stroke-dasharray:4 3}"
    ".pin-line{stroke-width:1.5}"
    ".pale{fill-opacity:0.45}"
    # A line that runs behind a value must not run through its digits.
    ".halo,.blocked-halo{paint-order:stroke;stroke-width:3;stroke-linejoin:round}"
)


def style_sheet() -> Markup:
    """Write the style element of a drawing."""
    light = "".join(f".{name}{{{prop}:{colour}}}" for name, prop, colour, _ in _COLOURS)
    dark = "".join(f".{name}{{{prop}:{colour}}}" for name, prop, _, colour in _COLOURS)
    return tag("style", Markup(f"{_SHAPES}{light}@media(prefers-color-scheme:dark){{{dark}}}"))


def hatchings() -> Markup:
    """Define the two hatchings: leaning right where a budget blocks, leaning left where claims collide."""
    return tag(
        "defs",
        _hatching("hatch-blocked", "blocked-line", angle=45, width=7, opacity=0.5),
        _hatching("hatch-clash", "clash-line", angle=-45, width=6, opacity=0.3),
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


def look() -> Markup:
    """Everything that a drawing needs before its first shape."""
    return join((style_sheet(), hatchings()))
