"""Pieces of text as they stand in messages."""

from __future__ import annotations

from typing import Final

_MAX_LENGTH: Final = 60


def clipped(text: str) -> str:
    """A text that is never longer than a line."""
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"
