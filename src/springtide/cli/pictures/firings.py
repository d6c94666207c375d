"""Firings that come too thick to be drawn one by one: grouped, and told by how often they come."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from springtide.cli.pictures.words import format_span, format_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from springtide.apis.forecast import Change


def cluster(changes: Iterable[Change], nearest: int) -> list[tuple[Change, ...]]:
    """Group changes of which each follows the one before within less than ``nearest`` seconds."""
    groups: list[list[Change]] = []
    for change in changes:
        if groups and change.at - groups[-1][-1].at < nearest:
            groups[-1].append(change)
        else:
            groups.append([change])
    return [tuple(group) for group in groups]


def cluster_forms(group: Sequence[Change]) -> tuple[str, ...]:
    """Say what a group of firings applies, and how often, in ever fewer words."""
    count = f"{len(group):,}×"
    steps = {later.at - earlier.at for earlier, later in pairwise(group)}
    even = len(group) > 2 and len(steps) == 1
    often = (f"every {format_span(steps.pop())} ({count})", count) if even else (count,)
    values = {format_value(change.value) for change in group}
    return often if len(values) > 1 else (f"{values.pop()}, {often[0]}", *often)
