"""Keys that wait for their time: one heap and at most one sleeping task, however many they are."""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_FEW = 16


class Delays(Generic[K]):
    """Wakes each key at the earliest of the times that were asked for it; equal times wake in the order of asking."""

    def __init__(
        self,
        now: Callable[[], float],
        sleep_until: Callable[[float], Awaitable[None]],
        wake: Callable[[K], None],
    ) -> None:
        self._now = now
        self._sleep_until = sleep_until
        self._wake = wake
        self._asked = 0
        self._earliest: dict[K, tuple[float, int, K]] = {}
        self._heap: list[tuple[float, int, K]] = []
        """Also holds entries that an earlier one has replaced: taking them out at once would cost a search."""
        self._sleeper: asyncio.Task[None] | None = None
        self._until = math.inf

    def __len__(self) -> int:
        return len(self._earliest)

    def add(self, key: K, when: float) -> None:
        """Wake a key at a time, unless it is woken earlier anyway."""
        held = self._earliest.get(key)
        if held is not None and held[0] <= when:
            return
        self._asked += 1
        entry = (when, self._asked, key)
        self._earliest[key] = entry
        heapq.heappush(self._heap, entry)
        if len(self._heap) > 2 * len(self._earliest) + _FEW:
            self._heap = list(self._earliest.values())
            heapq.heapify(self._heap)
        if when < self._until:
            self._sleep_again(when)

    def clear(self) -> None:
        """Wake nobody any more."""
        self._earliest.clear()
        self._heap.clear()
        self._until = math.inf
        if self._sleeper is not None:
            self._sleeper.cancel()
            self._sleeper = None

    def _sleep_again(self, until: float) -> None:
        if self._sleeper is not None:
            self._sleeper.cancel()
        self._until = until
        self._sleeper = asyncio.get_running_loop().create_task(self._ring())

    async def _ring(self) -> None:
        while self._heap:
            self._until = self._heap[0][0]
            await self._sleep_until(self._until)
            # The sleep is over, so its time has come: a clock that rounds must not make us sleep for nothing again.
            self._wake_all(max(self._now(), self._until))
        self._until = math.inf
        self._sleeper = None

    def _wake_all(self, now: float) -> None:
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            key = entry[2]
            if self._earliest.get(key) is entry:
                del self._earliest[key]
                self._wake(key)
