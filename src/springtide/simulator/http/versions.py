"""In which order versions of a group are named: what is stable before what is not, and newer before older."""

from __future__ import annotations

import re

_SHAPE = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STABILITY = {"alpha": 0, "beta": 1, None: 2}


def newest_first(versions: set[str]) -> list[str]:
    """Order versions by preference; names that are no versions come last, by the alphabet."""
    known = [version for version in versions if _SHAPE.fullmatch(version)]
    return sorted(known, key=_rank, reverse=True) + sorted(versions - set(known))


def _rank(version: str) -> tuple[int, int, int]:
    shape = _SHAPE.fullmatch(version)
    assert shape is not None  # noqa: S101 - only versions of this shape are ranked
    major, stability, minor = shape.groups()
    return _STABILITY[stability], int(major), int(minor or 0)
