"""Waiting for whatever comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any


async def first_of(*awaitables: Awaitable[Any]) -> None:
    """Wait until one of several is done, and cancel the others; what became of it is not told.

    Futures of the caller's own that must go on are to be shielded. Which one was first is deliberately not given: it
    would depend on the order in which sets are iterated. Look at what has happened instead.
    """
    futures = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in futures:
            future.cancel()
