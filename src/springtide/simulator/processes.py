"""Processes of a simulated cluster: they start, crash, pause and start again."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, TypeAlias

from springtide.cluster.clock import Clock
from springtide.cluster.transport import Transport
from springtide.simulator.virtual_time import VirtualLoop


class Disconnectable(Transport, Protocol):
    """A transport that can be disconnected for good."""

    def cut(self) -> None:
        """Disconnect: nothing sent later, or still under way, takes effect."""
        ...


@dataclass(frozen=True, slots=True)
class ProcessRun:
    """One run of a process, from a start to its end."""

    identity: str
    """Unique among all runs of all processes, like a pod name."""
    transport: Transport
    clock: Clock
    random: Random


Main: TypeAlias = Callable[[ProcessRun], Coroutine[Any, Any, None]]


class Process:
    """A program in the simulated cluster; it acts only through its connection."""

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
        self._triggers: list[tuple[int, Callable[[], None]]] = []

    def start(self) -> None:
        """Start the program with a new connection and empty memory; does nothing while it runs."""
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
        """Kill it: the connection is cut first, so nothing that it still does takes effect."""
        if not self.alive:
            return
        self.alive = False
        if self._connection is not None:
            self._connection.cut()
        self._loop.thaw(self)
        for task in self._loop.tasks_of(self):
            task.cancel()

    def pause(self) -> None:
        """Freeze all of its tasks, like a suspended machine."""
        self._loop.freeze(self)

    def resume(self) -> None:
        """Continue after a pause; only the clock shows how long it lasted."""
        self._loop.thaw(self)

    def call_after_crossings(self, crossings: int, action: Callable[[], None]) -> None:
        """Call `action` after this many more requests, answers and events of the process."""
        self._triggers.append((self._crossings + crossings, action))

    def crossed(self) -> None:
        """Count one request, answer or event of the process."""
        self._crossings += 1
        if not self._triggers:
            return
        due = [action for at, action in self._triggers if at <= self._crossings]
        self._triggers = [(at, action) for at, action in self._triggers if at > self._crossings]
        for action in due:
            # One loop step later, when the process is at an await of its own and not inside this call.
            self._loop.call_soon(action)
