"""Collisions as they are shown: from when to when, and in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from springtide.apis.forecast import Collision, Forecast
    from springtide.cli.pictures.clock import WallClock


@dataclass(frozen=True, slots=True)
class Clash:
    """A collision with the number that it is referred to by."""

    number: int
    start: int
    end: int
    sentence: str
    drawn: bool
    """Whether it falls into the range of the picture; if not, it is only told."""


def clashes_of(forecast: Forecast, clock: WallClock) -> list[Clash]:
    """Number the collisions of a forecast and put them into words."""
    found: list[Clash] = []
    for number, collision in enumerate(forecast.collisions, start=1):
        end = _end(collision, forecast)
        if end == collision.at:
            when = clock.moment(collision.at, year=True)
        elif collision.until is None:
            when = f"from {clock.moment(collision.at, year=True)} on"
        else:
            when = clock.range(collision.at, end, year=True)
        drawn = collision.at <= forecast.until and end >= forecast.start
        found.append(Clash(number, collision.at, end, f"{when}: {collision.text}", drawn))
    return found


def _end(collision: Collision, forecast: Forecast) -> int:
    """Give the end of a collision; one that goes on ends with the picture."""
    return collision.until if collision.until is not None else max(collision.at, forecast.until)
