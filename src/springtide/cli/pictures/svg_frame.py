"""The sheet that a drawing is made on: where instants fall on it, and what every part of it is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from springtide.cli.pictures.markup import Markup, escape, number, tag

if TYPE_CHECKING:
    from springtide.cli.pictures.clock import WallClock

WIDTH: Final = 1200
MARGIN: Final = 28
LEFT: Final = 212
RIGHT: Final = WIDTH - MARGIN


@dataclass(frozen=True, slots=True)
class Frame:
    """A range of time laid over the width of the drawing, read by the clock of a zone."""

    start: int
    until: int
    now: int
    clock: WallClock

    @property
    def length(self) -> int:
        """How many seconds are drawn; never 0, so that an empty range is a picture too."""
        return max(1, self.until - self.start)

    def x(self, at: int) -> float:
        """Place an instant, at the nearest edge if it lies outside."""
        inside = min(max(at, self.start), self.until)
        return LEFT + (RIGHT - LEFT) * (inside - self.start) / self.length

    def seconds(self, pixels: int) -> int:
        """Tell how much time a width stands for."""
        return max(1, pixels * self.length // (RIGHT - LEFT))

    def holds(self, at: int) -> bool:
        """Tell whether an instant is in the drawing."""
        return self.start <= at <= self.until

    @property
    def seen_at(self) -> int:
        """The instant whose values the names of the lanes speak of: now, or the nearest one that is drawn."""
        return min(max(self.now, self.start), self.until)


@dataclass(slots=True)
class Drawn:
    """What was drawn, in two layers: marks that cross all lanes come between shapes and their words."""

    shapes: list[Markup] = field(default_factory=list)
    words: list[Markup] = field(default_factory=list)


def label(text: str, x: float, y: float, classes: str) -> Markup:
    """Write text at a place."""
    return tag("text", escape(text), x=x, y=y, class_=classes)


def hover(text: str) -> Markup:
    """Write what a shape says when it is pointed at or read aloud."""
    return tag("title", escape(text))


def upright(x: float, top: float, bottom: float, classes: str) -> Markup:
    """Draw a vertical line."""
    return tag("path", d=f"M{number(x)} {number(top)}V{number(bottom)}", class_=classes)


def level_line(y: float, left: float, right: float, classes: str) -> Markup:
    """Draw a horizontal line."""
    return tag("path", d=f"M{number(left)} {number(y)}H{number(right)}", class_=classes)
