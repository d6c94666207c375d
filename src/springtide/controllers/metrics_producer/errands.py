"""Work that nobody waits for: done beside everything else, one piece after the other.

Whoever asks goes on with what is known, and is woken when more is.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from springtide.cluster.resources import Key
from springtide.cluster.tools import Tools

S = TypeVar("S", bound=Hashable)
R = TypeVar("R")


@dataclass(slots=True)
class _Asked(Generic[R]):
    work: Callable[[], Awaitable[R]]
    keys: dict[Key, None] = field(default_factory=dict)
    """Who asks, in order."""


class Errands(Generic[S, R]):
    """Does one piece of work for each subject, for all who ask about it meanwhile."""

    def __init__(self, tools: Tools, name: str, keep: Callable[[S, R], None]) -> None:
        self._tools = tools
        self._name = name
        self._keep = keep
        self._asked: OrderedDict[S, _Asked[R]] = OrderedDict()
        self._task: asyncio.Task[None] | None = None
        tools.when_released(self._stop)

    def ask(self, subject: S, key: Key, work: Callable[[], Awaitable[R]]) -> None:
        """Have work done, unless it is on its way; the key is woken when its result is kept."""
        self._asked.setdefault(subject, _Asked(work)).keys[key] = None
        if self._task is None:
            self._task = asyncio.ensure_future(self._work())

    async def _work(self) -> None:
        while self._asked:
            subject, asked = next(iter(self._asked.items()))
            try:
                self._keep(subject, await asked.work())
            except Exception:
                # Nobody is woken: whoever comes again, for whatever reason, asks again.
                self._tools.log.exception("%s failed; others go on", self._name)
                del self._asked[subject]
                continue
            # Not sooner: whoever has asked meanwhile is told as well.
            for key in self._asked.pop(subject).keys:
                self._tools.wake(key)
        self._task = None

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
