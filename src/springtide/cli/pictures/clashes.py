"""Collisions as they are shown: from when to when, and in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from springtide.apis.forecast import Collision, Forecast
    from springtide.cli.pictures.clock import WallClock


_SPELT: Final = 3


@dataclass(frozen=True, slots=True)
class Clash:
    """A collision with the number that it is referred to by."""

    number: int
    """The same for all that differ in nothing but their time."""
    start: int
    end: int
    when: str
    text: str
    drawn: bool
    """Whether it falls into the range of the picture; if not, it is only told."""

    @property
    def sentence(self) -> str:
        """When, and what."""
        return f"{self.when}: {self.text}"


def clashes_of(forecast: Forecast, clock: WallClock) -> list[Clash]:
    """Number the collisions of a forecast and put them into words."""
    found: list[Clash] = []
    numbers: dict[str, int] = {}
    for collision in forecast.collisions:
        number = numbers.setdefault(collision.text, len(numbers) + 1)
        end = _end(collision, forecast)
        if end == collision.at:
            when = clock.moment(collision.at, year=True)
        elif collision.until is None:
            when = f"from {clock.moment(collision.at, year=True)} on"
        else:
            when = clock.range(collision.at, end, year=True)
        drawn = collision.at <= forecast.until and end >= forecast.start
        found.append(Clash(number, collision.at, end, when, collision.text, drawn))
    return found


def told(clashes: Sequence[Clash]) -> list[tuple[int, str]]:
    """Put collisions into words, each number once: its first times, how many more there are, and what it is."""
    by_number: dict[int, list[Clash]] = {}
    for clash in clashes:
        by_number.setdefault(clash.number, []).append(clash)
    return [(number, _sentence(listed)) for number, listed in by_number.items()]


def _sentence(clashes: Sequence[Clash]) -> str:
    spelt, more = "; ".join(clash.when for clash in clashes[:_SPELT]), len(clashes) - _SPELT
    return (
        f"{spelt}{f' and {more} more times' if more > 1 else ' and once more' if more == 1 else ''}: {clashes[0].text}"
    )


def _end(collision: Collision, forecast: Forecast) -> int:
    """Give the end of a collision; one that goes on ends with the picture."""
    return collision.until if collision.until is not None else max(collision.at, forecast.until)
