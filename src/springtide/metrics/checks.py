"""What a process is asked about its health, and what it must not be blamed for.

A process that is not alive is killed and started again; one that is not ready gets no requests, and a rollout waits for
it. Neither helps when something else is broken. So nothing here asks whether the API server answers, and what was once
complete counts as complete: during an outage a process keeps what it knows, holds its writes back, and goes on by
itself. Nor is a process blamed for a controller that cannot be made, or for standing by: others of it do their work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from springtide.cluster.health import CacheHealth
from springtide.cluster.manager import Manager


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, and what is wrong with it."""

    name: str
    problem: str = ""
    """Empty where all is well."""


Check: TypeAlias = Callable[[], Iterable[Finding]]
"""Looks at something, now; quick, and with no question to anybody outside the process."""


def holds(name: str, fact: Callable[[], bool], otherwise: str) -> Check:
    """Make a check of one fact, with the words for when it is not so."""

    def check() -> Iterator[Finding]:
        yield Finding(name, "" if fact() else otherwise)

    return check


def caches_are_filled(manager: Manager) -> Check:
    """Make the check that a manager has read everything that its controllers need, at least once.

    A replica that stands by fills its caches as well, and is ready to take over when they are complete.
    """

    def check() -> Iterator[Finding]:
        for cache in manager.cache_health():
            yield Finding(f"cache {cache.selection}", _missing(cache))

    return check


def _missing(cache: CacheHealth) -> str:
    if cache.synced or cache.dispensable:
        return ""
    return cache.last_error or "not complete yet"
