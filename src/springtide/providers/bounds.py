"""The bounds that a provider sets to a group: asking for more or less is refused before anybody is asked."""

from __future__ import annotations

from springtide.providers.port import ProviderError
from springtide.providers.wording import nodes


def check_bounds(replicas: int, *, least: int, most: int, fix: str) -> None:
    """Refuse a number of nodes that a group does not take; the fix says where the bounds are changed."""
    if replicas > most:
        msg = f"{nodes(replicas)} cannot be had, the group may have {most} at most: {fix}"
        raise ProviderError("AboveMaximum", msg, retryable=False)
    if replicas < least:
        msg = f"{nodes(replicas)} cannot be had, the group must have {least} at least: {fix}"
        raise ProviderError("BelowMinimum", msg, retryable=False)
