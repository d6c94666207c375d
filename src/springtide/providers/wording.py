"""Words that the sentences of all providers share."""

from __future__ import annotations


def nodes(count: int) -> str:
    """Write a number of nodes."""
    return f"{count} node" if count == 1 else f"{count} nodes"


def ready_of(ready: int, wanted: int) -> str:
    """Write how many nodes of those that are wanted are ready."""
    return f"{ready} of {nodes(wanted)} {'is' if wanted == 1 else 'are'} ready"
