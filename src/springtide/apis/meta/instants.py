"""Instants as objects write them: RFC 3339, read as Kubernetes reads them."""

from __future__ import annotations

import datetime
import re

_RFC_3339 = re.compile(
    r"(?P<moment>\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:[.,]\d+)?(?P<offset>Z|[+-]\d{2}:\d{2})", re.ASCII
)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_SECOND = datetime.timedelta(seconds=1)


def parse_instant(text: str) -> int:
    """Read an RFC 3339 time as whole seconds since the epoch; fractions are cut off. Raises `ValueError`."""
    match = _RFC_3339.fullmatch(text)
    if match is None:
        msg = f"`{text}` is not an RFC 3339 time such as 2026-11-27T06:00:00Z"
        raise ValueError(msg)
    offset = "+00:00" if match["offset"] == "Z" else match["offset"]
    try:
        moment = datetime.datetime.fromisoformat(match["moment"] + offset).astimezone(datetime.UTC)
    except (ValueError, OverflowError) as failure:
        msg = f"`{text}` is not a time of any day: {failure}"
        raise ValueError(msg) from failure
    return (moment - _EPOCH) // _SECOND


def instant_in(text: object) -> int | None:
    """Read a time that somebody may have left in a status; None where it is none.

    API servers take times that no clock shows, such as one with the offset +99:99.
    """
    try:
        return parse_instant(text) if isinstance(text, str) else None
    except ValueError:
        return None
