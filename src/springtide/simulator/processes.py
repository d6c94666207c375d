"""The processes of a simulated world: they are started, they crash or stop for a while, and are started again."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeAlias

from springtide.cluster.clock import Clock
from springtide.cluster.transport import Transport
from springtide.simulator.virtual_time import VirtualLoop


class Disconnectable(Transport, Protocol):
    """A transport that can be cut for good."""

    def cut(self) -> None:
        """Let nothing more take effect."""
        ...


@dataclass(frozen=True, slots=True)
class ProcessRun:
    """What a process has from one start to its end."""

    identity: str
    """Unique among all incarnations of all processes, as the name of a pod is."""
    transport: Transport
    clock: Clock
    random: Random


Main: TypeAlias = Callable[[ProcessRun], Coroutine[Any, Any, None]]


class Process:
    """A program that runs in the world; all that others see of it goes through its connection."""

    def __init__(
        self,
        name: str,
        main: Main,
        *,
        loop: VirtualLoop,
        clock: Clock,
        connect: Callable[[Process], Disconnectable],
        seed: str,
        failed: Callable[[BaseException], None],
    ) -> None:
        self.name = name
        self.identity = ""
        self.alive = False
        self.starts = 0
        self._main = main
        self._loop = loop
        self._clock = clock
        self._connect = connect
        self._seed = seed
        self._failed = failed
        self._connection: Disconnectable | None = None
        self._crossings = 0
        self._ambushes: list[tuple[int, Callable[[], None]]] = []

    def start(self) -> None:
        """Start it, with a new connection and nothing in memory; one that runs is left alone."""
        if self.alive:
            return
        self.starts += 1
        self.identity = f"{self.name}-{self.starts}"
        self.alive = True
        self._connection = self._connect(self)
        random = Random(f"{self._seed}/{self.identity}")  # noqa: S311 - a simulation, not a secret
        incarnation = ProcessRun(self.identity, self._connection, self._clock, random)
        task = self._loop.create_owned_task(self, self._main(incarnation))
        identity = self.identity

        def ended(done: Any) -> None:
            if not done.cancelled() and (failure := done.exception()) is not None and identity == self.identity:
                self._failed(failure)

        task.add_done_callback(ended)

    def crash(self) -> None:
        """End it as a kill does: its connection is cut first, so that nothing it still does has any effect."""
        if not self.alive:
            return
        self.alive = False
        if self._connection is not None:
            self._connection.cut()
        self._loop.thaw(self)
        for task in self._loop.tasks_of(self):
            task.cancel()

    def pause(self) -> None:
        """Stop everything in it, as when a machine is suspended."""
        self._loop.freeze(self)

    def resume(self) -> None:
        """Let it go on where it stood; it does not know how long it was away, but for the clock."""
        self._loop.thaw(self)

    def ambush(self, crossings: int, action: Callable[[], None]) -> None:
        """Do something to the process amidst its work: when so many requests, answers and events have come and gone."""
        self._ambushes.append((self._crossings + crossings, action))

    def crossed(self) -> None:
        """Count a request, an answer or an event at the boundary of the process."""
        self._crossings += 1
        if not self._ambushes:
            return
        due = [action for at, action in self._ambushes if at <= self._crossings]
        self._ambushes = [(at, action) for at, action in self._ambushes if at > self._crossings]
        for action in due:
            # A step later: the process is then at some await of its own, not inside this call.
            self._loop.call_soon(action)
