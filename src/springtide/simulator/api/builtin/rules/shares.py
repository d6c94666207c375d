"""Numbers of pods that may be given as a share of all: `3`, `25%`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from springtide.cluster.errors import Cause
from springtide.simulator.api.builtin.judging import invalid
from springtide.simulator.api.builtin.rules.making import AT_LEAST_ZERO

_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)


def count_or_share(value: Any, path: str) -> Iterator[Cause]:
    """Judge a number, or a share that is written as a percentage."""
    if isinstance(value, int):
        if value < 0:
            yield invalid(path, value, AT_LEAST_ZERO)
    elif value is not None and percent(value) is None:
        yield invalid(path, value, _PERCENT)


def not_more_than_all(value: Any, path: str) -> Iterator[Cause]:
    """Judge a share: there is not more than everything."""
    if (percent(value) or 0) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def percent(value: Any) -> int | None:
    """Read a percentage; None: it is not one."""
    if isinstance(value, str) and value.endswith("%") and value[:-1].isascii() and value[:-1].isdecimal():
        return int(value[:-1])
    return None


def is_none(value: Any) -> bool:
    """Tell whether a number or share is nothing at all, as what cannot be read is."""
    return not (value if isinstance(value, int) else percent(value))
