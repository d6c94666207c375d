"""The grid of a terminal picture: which column an instant falls into, and rows of characters to draw into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from springtide.cli.pictures.terminal_canvas import Ink

if TYPE_CHECKING:
    from springtide.cli.pictures.terminal_canvas import Piece

_BLANK: Final[Piece] = (" ", Ink.PLAIN)


@dataclass(frozen=True, slots=True)
class Columns:
    """A range of time laid over the columns of a terminal."""

    start: int
    until: int
    count: int

    @property
    def length(self) -> int:
        """How many seconds are drawn; never 0, so that an empty range is a picture too."""
        return max(1, self.until - self.start)

    @property
    def seconds(self) -> int:
        """How much time one column stands for."""
        return max(1, self.length // self.count)

    def at(self, instant: int) -> int:
        """Give the column that an instant falls into, the nearest one if it lies outside."""
        return min(max(0, (instant - self.start) * self.count // self.length), self.count - 1)

    def edge(self, instant: int) -> int:
        """Give the border between columns that is nearest to an instant."""
        return min(max(0, (2 * (instant - self.start) * self.count + self.length) // (2 * self.length)), self.count)

    def holds(self, instant: int) -> bool:
        """Tell whether an instant is in the drawing."""
        return self.start <= instant <= self.until


class Rows:
    """A block of characters that is drawn into, row by row from the top."""

    def __init__(self, height: int, width: int) -> None:
        self.cells: list[list[Piece]] = [[_BLANK] * width for _ in range(height)]

    def put(self, row: int, column: int, text: str, ink: Ink) -> None:
        """Write characters of width 1 from a column on; what falls outside is left out."""
        for place, character in enumerate(text, start=column):
            if 0 <= place < len(self.cells[row]):
                self.cells[row][place] = (character, ink)

    def is_blank(self, row: int, start: int, end: int) -> bool:
        """Tell whether nothing is written yet between two columns; the space in a label is not nothing."""
        return all(cell == _BLANK for cell in self.cells[row][max(0, start) : end])
