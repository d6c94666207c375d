"""Faults at random times: compactions, API server restarts, crashes, pauses and node losses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

from springtide.simulator.faults.profile import Faults, ServerAvailability
from springtide.simulator.processes import Process
from springtide.simulator.virtual_time import settle

_CROSSINGS = 40
_STEPS = 12
_IN_FLIGHT = 0.5
_JOURNEYS = 3


def disturbances(
    faults: Faults,
    *,
    random: Callable[[str], Random],
    availability: ServerAvailability,
    compact: Callable[[Random], None],
    processes: Sequence[Process],
    nodes: Callable[[], Sequence[str]],
    lose: Callable[[str], None],
    find: Callable[[str], None],
) -> list[Coroutine[Any, Any, None]]:
    """Return endless coroutines that cause faults, each with its own random source."""
    found: list[Coroutine[Any, Any, None]] = []
    if faults.compact_every:
        found.append(_compactions(faults, random("compactions"), compact))
    if faults.outage_every:
        found.append(_outages(faults, random("outages"), availability))
    if faults.node_loss_every:
        found.append(_losses(faults, random("node losses"), nodes, lose, find))
    for process in processes:
        if faults.crash_every:
            found.append(_crashes(faults, random(f"crashes of {process.name}"), process))
        if faults.pause_every:
            found.append(_pauses(faults, random(f"pauses of {process.name}"), process))
    return found


async def _compactions(faults: Faults, random: Random, compact: Callable[[Random], None]) -> None:
    while True:
        await _some_time(faults.compact_every, random)
        compact(random)


async def _losses(
    faults: Faults,
    random: Random,
    nodes: Callable[[], Sequence[str]],
    lose: Callable[[str], None],
    find: Callable[[str], None],
) -> None:
    while True:
        await _some_time(faults.node_loss_every, random)
        names = nodes()
        if names:
            name = names[random.randrange(len(names))]
            lose(name)
            await asyncio.sleep(random.random() * faults.longest_node_loss)
            find(name)


async def _outages(faults: Faults, random: Random, availability: ServerAvailability) -> None:
    while True:
        await _some_time(faults.outage_every, random)
        availability.go_down()
        await asyncio.sleep(random.random() * faults.longest_outage)
        availability.come_up()


async def _crashes(faults: Faults, random: Random, process: Process) -> None:
    while True:
        await _some_time(faults.crash_every, random)
        await _during_traffic(process, random, faults)
        process.crash()
        await asyncio.sleep(random.random() * faults.longest_downtime)
        process.start()


async def _pauses(faults: Faults, random: Random, process: Process) -> None:
    while True:
        await _some_time(faults.pause_every, random)
        await _during_traffic(process, random, faults)
        process.pause()
        await asyncio.sleep(random.random() * faults.longest_pause)
        process.resume()


async def _during_traffic(process: Process, random: Random, faults: Faults) -> None:
    """Wait until the process sends requests, then some steps longer, so that a fault can hit any await."""
    reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    process.call_after_crossings(1 + random.randrange(_CROSSINGS), lambda: settle(reached))
    await reached
    for _ in range(random.randrange(_STEPS)):
        await asyncio.sleep(0)
    if random.random() < _IN_FLIGHT:
        # Long enough to hit while a request or its answer is under way.
        await asyncio.sleep(random.random() * _JOURNEYS * faults.latency)


async def _some_time(mean: float, random: Random) -> None:
    # Uniform, not exponential: the last bit of a logarithm may differ between machines.
    await asyncio.sleep(random.random() * 2 * mean)
