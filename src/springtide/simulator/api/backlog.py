"""What the server's own housekeepers have still to look at, in the order in which it came up."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Backlog(Generic[T]):
    """Items, each at most once, and one waiter; nothing is polled."""

    def __init__(self) -> None:
        self._items: dict[T, None] = {}
        self._waiter: asyncio.Future[None] | None = None

    def add(self, item: T) -> None:
        """Note an item, and wake who waits."""
        self._items.setdefault(item)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def filled(self) -> None:
        """Wait until there is something."""
        if not self._items:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def take(self) -> T | None:
        """Give the oldest item and forget it; None where nothing is left."""
        for item in self._items:
            del self._items[item]
            return item
        return None
