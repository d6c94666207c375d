"""How tall a value is drawn, and which values let nothing through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from springtide.apis.forecast import LaneStyle
from springtide.cli.pictures.words import format_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from springtide.apis.forecast import Lane, LaneValue

FULL_HEIGHT: Final = 1000
"""The height of the tallest value of a lane. Heights are whole numbers: a picture is the same anywhere."""

_TALLEST_LIMIT: Final = 700  # a budget that limits stays visibly below one that does not
_SHORTEST_LIMIT: Final = 150  # and visibly above one that blocks


def height_scale(lane: Lane) -> Callable[[LaneValue], int]:
    """Choose how tall each value of a lane is drawn, from 0 to `FULL_HEIGHT`."""
    values = [lane.current, *(change.value for change in lane.changes)]
    if lane.style is LaneStyle.BUDGET:
        return _budget_scale(values)
    most = max(map(_count, values)) or 1
    return lambda value: _count(value) * FULL_HEIGHT // most


def is_blocked(lane: Lane, value: LaneValue) -> bool:
    """Tell whether a budget's value lets nothing through."""
    return lane.style is LaneStyle.BUDGET and any(amount == 0 for _, amount in _limits(value))


def is_ever_blocked(lane: Lane) -> bool:
    """Tell whether a lane is a budget that lets nothing through at some time."""
    return is_blocked(lane, lane.current) or any(is_blocked(lane, change.value) for change in lane.changes)


def tell(lane: Lane, value: LaneValue, *, unicode: bool = True) -> str:
    """Write a value of a lane in full, and what it means where that is more than its number."""
    words = format_value(value, unicode=unicode)
    return f"{words} (blocked)" if is_blocked(lane, value) else words


def _count(value: LaneValue) -> int:
    return max(0, value) if isinstance(value, int) else 0


def _budget_scale(values: Iterable[LaneValue]) -> Callable[[LaneValue], int]:
    # Counts and percentages cannot be compared while the number of nodes is unknown: each has its own scale.
    most: dict[str, int] = {}
    for value in values:
        for unit, amount in _limits(value):
            most[unit] = max(most.get(unit, 1), amount)

    def height(value: LaneValue) -> int:
        return min((_limit_height(amount, most[unit]) for unit, amount in _limits(value)), default=FULL_HEIGHT)

    return height


def _limit_height(amount: int, most: int) -> int:
    return max(_SHORTEST_LIMIT, amount * _TALLEST_LIMIT // most) if amount else 0


def _limits(value: LaneValue) -> Sequence[tuple[str, int]]:
    """Read a budget's value as limits by unit; none means unlimited."""
    match value:
        case bool() | None:
            return ()
        case int():
            return (("nodes", max(0, value)),)
        case str():
            unit, digits = ("%", value[:-1]) if value.endswith("%") else ("nodes", value)
            return ((unit, int(digits)),) if digits.isascii() and digits.isdigit() else ()
        case {"min": list() | tuple() as parts}:
            return tuple(limit for part in parts for limit in _limits(part))
        case _:
            return ()
