"""How long ago something was, in as few letters as say enough."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


class Ages:
    """Measures from the present."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now

    def since(self, written: str | None) -> str:
        """Tell how long ago an instant was; it is unknown where none is written."""
        if not written:
            return "<unknown>"
        instant = read_instant(written)
        return "<invalid>" if instant is None else duration(int(self._now() - instant))


def read_instant(written: str) -> float | None:
    """Read an instant; None for what is none."""
    try:
        read = datetime.fromisoformat(written)
    except ValueError:
        return None
    return read.timestamp() if read.tzinfo is not None else None


def duration(seconds: int) -> str:
    """Write a duration: the longer it is, the coarser."""
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def _two(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    whole, rest = divmod(seconds, large)
    return f"{whole}{large_name}" + (f"{rest // small}{small_name}" if rest >= small else "")
