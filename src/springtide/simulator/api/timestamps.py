"""Instants as objects write them: RFC 3339, UTC, whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=1024)
def timestamp(instant: int) -> str:
    """Write an instant."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def instant(text: str) -> int:
    """Read an instant."""
    return int(datetime.fromisoformat(text).timestamp())
