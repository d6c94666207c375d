"""Counts that may be written as a percentage of something, in the two roundings that rollouts need."""

from __future__ import annotations

from typing import Any


def share(value: Any, total: int, *, up: bool) -> int:
    """Tell what a count or a percentage comes to when there are `total`."""
    text = str(value)
    if not text.endswith("%"):
        return int(text)
    parts = int(text[:-1]) * total
    return -(-parts // 100) if up else parts // 100
