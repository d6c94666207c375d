"""Drawing with characters: styled pieces of text put together to lines that never exceed a width.

Everything is drawn in Unicode; a terminal that cannot show it gets another character of the same width.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeAlias

from rich.cells import cell_len, chop_cells, set_cell_size

from springtide.cli.pictures.words import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Ink(StrEnum):
    """What a piece of text is, as the codes that a terminal shows it by; there are fewer colours than meanings."""

    PLAIN = ""
    STRONG = "1"
    FAINT = "2"
    LEVEL = "94"
    ACTIVE = "32"
    BUDGET = "36"
    BLOCKED = "31"
    PIN = "35"
    NOW = "1;31"
    SHIFT = "35"
    CLASH = "33"
    ERROR = "1;31"
    WARNING = "33"


Piece: TypeAlias = tuple[str, Ink]
Line: TypeAlias = list[Piece]

_ASCII: Final = str.maketrans(
    {"█": "#"}
    | dict.fromkeys("▇▆▅▄", "=")
    | dict.fromkeys("▃▂▁", "_")
    | dict.fromkeys("─╌", "-")
    | dict.fromkeys("│┊", "|")
    | dict.fromkeys("├┼", "+")
    | {
        "╳": "x",
        "▒": ":",
        "●": "*",
        "▼": "v",
        "▲": "^",
        "→": ">",
        "–": "-",
        "…": "~",
        "×": "x",
        "·": "-",
        "≥": ">",
        "≤": "<",
    }
)


def fit(text: str, width: int) -> str:
    """Cut or pad text to an exact width, with an ellipsis where something was cut."""
    text = plain(text)
    if cell_len(text) > width > 0:
        text = f"{set_cell_size(text, width - 1).rstrip()}…"
    return set_cell_size(text, width)


def shorten(text: str, width: int) -> str:
    """Cut text to a width at most."""
    return fit(text, width).rstrip() if cell_len(plain(text)) > width else plain(text)


def wrap(text: str, width: int) -> list[str]:
    """Break text into lines between words; only a word longer than a line is broken itself."""
    lines: list[str] = []
    line = ""
    for word in plain(text).split():
        for part in chop_cells(word, width) if cell_len(word) > width else [word]:
            longer = f"{line} {part}" if line else part
            if cell_len(longer) <= width:
                line = longer
            else:
                lines.append(line)
                line = part
    return [*lines, line] if line else lines


def paint(lines: Iterable[Line], *, width: int, colour: bool, unicode: bool) -> str:
    """Turn lines into the text that a terminal is sent."""
    return "".join(f"{_paint_line(line, width, colour=colour, unicode=unicode)}\n" for line in lines)


def _paint_line(line: Line, width: int, *, colour: bool, unicode: bool) -> str:
    painted: list[str] = []
    left = width
    for text, ink in _without_trailing_space(line):
        shown = text if cell_len(text) <= left else fit(text, left)
        left -= cell_len(shown)
        shown = shown if unicode else _as_ascii(shown)
        painted.append(f"\x1b[{ink.value}m{shown}\x1b[0m" if colour and ink.value and shown else shown)
    return "".join(painted)


def _without_trailing_space(line: Line) -> Line:
    kept = list(line)
    while kept and not kept[-1][0].strip():
        kept.pop()
    if kept:
        kept[-1] = (kept[-1][0].rstrip(), kept[-1][1])
    return kept


def _as_ascii(text: str) -> str:
    translated = text.translate(_ASCII)
    return "".join(c if c.isascii() else "?" * cell_len(c) for c in translated)


def pieces(cells: Sequence[Piece]) -> Line:
    """Join single characters that share an ink."""
    return [("".join(text for text, _ in run), ink) for ink, run in groupby(cells, key=lambda cell: cell[1])]
