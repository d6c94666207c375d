"""A simulated world: virtual time, an API server, and processes that live on both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any

from springtide.apiserver.conversion import convert
from springtide.apiserver.direct import DirectTransport
from springtide.apiserver.garbage_collection import GarbageCollector, NamespaceController
from springtide.apiserver.kinds import collection_id
from springtide.apiserver.server import ApiServer, CommittedWrite
from springtide.cluster.errors import NotFound
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Write
from springtide.simulator.behaviours import node_found_patch, node_lost_patch
from springtide.simulator.behaviours.resources import NODES
from springtide.simulator.bootstrap import DEFAULT_NAMESPACE, install, resource_of
from springtide.simulator.faults.connection import FaultyConnection, SentRequest
from springtide.simulator.faults.disturbances import disturbances
from springtide.simulator.faults.profile import Faults, ServerAvailability
from springtide.simulator.processes import Disconnectable, Main, Process
from springtide.simulator.trace import Trace, TraceEntry
from springtide.simulator.virtual_time import TICKS_PER_SECOND, VirtualClock, VirtualLoop, settle

_MACHINES_ACTOR = "machines"
_RECENT = 10


class World:
    """Everything there is; it runs on the loop that is running when it is made."""

    def __init__(
        self,
        *,
        start: int,
        seed: int = 0,
        faults: Faults | None = None,
        listener: Callable[[TraceEntry], None] | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)  # noqa: S101 - a world in real time would be another program
        self.loop = loop
        self.clock = VirtualClock(loop, start)
        self.seed = seed
        self.faults = faults or Faults()
        self.disturbed = self.faults != Faults()
        """Whether anything can go wrong in this world."""
        self.server = ApiServer(now=self.clock.now, random=self.random("server"), converter=convert)
        install(self.server)
        self.trace = Trace(listener)
        self.processes: list[Process] = []
        self._failure: BaseException | None = None
        self._waiting: asyncio.Future[None] | None = None
        self.weather = ServerAvailability(
            self.faults, watch_list=self.random("watch list").random() >= self.faults.no_watch_list
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._disturbing: list[asyncio.Task[None]] = []
        self._lost_by_chance: dict[str, None] = {}
        self._tellers: list[Callable[[CommittedWrite], None]] = []
        self._departures: list[Callable[[SentRequest], None]] = []

    def resource(self, kind: str, api_version: str = "") -> Resource:
        """Find what a kind is called in the API; where groups share a name, the `apiVersion` decides."""
        return resource_of(self.server, kind, api_version)

    def object(self, kind: str, name: str, *, namespace: str = "") -> Object:
        """Give an object as it is now; raises `NotFound`."""
        resource = self.resource(kind)
        key = Key((namespace or DEFAULT_NAMESPACE) if resource.namespaced else "", name)
        return self.server.get(resource, key)

    def objects(self, kind: str) -> list[Object]:
        """Give all objects of a kind, in all namespaces, in the order of their keys."""
        return [item for _, item in self.server.objects(collection_id(self.resource(kind)))]

    def process(self, name: str) -> Process:
        """Find a process by its name."""
        found = [process for process in self.processes if process.name == name]
        if not found:
            names = ", ".join(process.name for process in self.processes)
            msg = f"there is no process {name!r}, expected one of {names}"
            raise ValueError(msg)
        return found[0]

    def lose_node(self, name: str) -> None:
        """Let a node say nothing any more, from now on."""
        write = Write(_MACHINES_ACTOR, "the machine does not answer any more")
        self.server.patch(NODES, Key("", name), node_lost_patch(self.clock.now()), write)

    def find_node(self, name: str) -> None:
        """Let a lost node be heard again, if anybody still knows it."""
        with suppress(NotFound):
            self.server.patch(
                NODES, Key("", name), node_found_patch(), Write(_MACHINES_ACTOR, "the machine answers again")
            )

    def random(self, purpose: str) -> Random:
        """Make dice for one purpose, so that one more throw here changes nothing there."""
        return Random(f"{self.seed}/{purpose}")  # noqa: S311 - a simulation, not a secret

    def transport(self) -> DirectTransport:
        """Connect somebody to whom nothing ever happens: the user, or the cluster's own controllers."""
        return DirectTransport(self.server)

    def add_process(self, name: str, main: Main) -> Process:
        """Add a process that faults may strike, and start it."""
        process = Process(
            name,
            main,
            loop=self.loop,
            clock=self.clock,
            connect=self._connect,
            seed=str(self.seed),
            failed=self.fail,
        )
        self.processes.append(process)
        process.start()
        return process

    def run_beside(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something for as long as the world lasts; if it fails, the world does."""
        task = self.loop.create_task(coroutine)

        def ended(done: asyncio.Task[None]) -> None:
            if not done.cancelled() and (failure := done.exception()) is not None:
                self.fail(failure)

        task.add_done_callback(ended)
        self._tasks.append(task)
        return task

    def begin(self) -> None:
        """Take everything down that happens from now on, and clear away what nobody owns any more."""
        self.observe(self._take_down)
        self.run_beside(GarbageCollector(self.server).run(self.clock))
        self.run_beside(NamespaceController(self.server).run(self.clock))

    def observe_departures(self, watcher: Callable[[SentRequest], None]) -> None:
        """Tell somebody of every write that leaves a process, whatever becomes of it."""
        self._departures.append(watcher)

    def observe(self, teller: Callable[[CommittedWrite], None]) -> None:
        """Tell somebody of every write that takes effect, until the world is closed."""
        self._tellers.append(teller)
        self.server.observers.append(teller)

    def disturb(self) -> None:
        """Let the faults begin that happen by themselves."""
        for disturbance in disturbances(
            self.faults,
            random=self.random,
            weather=self.weather,
            compact=self._compact,
            processes=self.processes,
            nodes=lambda: [key.name for key, _ in self.server.objects(collection_id(NODES))],
            lose=self._lose_by_chance,
            find=self._find_by_chance,
        ):
            self._disturbing.append(self.run_beside(disturbance))

    def calm(self) -> None:
        """End all faults: whoever is down is started, whoever stands still goes on, what chance has lost is found."""
        for task in self._disturbing:
            task.cancel()
        self.faults = Faults()
        self.weather.calm()
        for process in self.processes:
            process.resume()
            if not process.alive:
                process.start()
        for name in list(self._lost_by_chance):
            self._find_by_chance(name)

    def fail(self, failure: BaseException) -> None:
        """End the world: something in it is broken. What failed first is what counts."""
        if self._failure is None:
            self._failure = failure
            if self._waiting is not None and not self._waiting.done():
                self._waiting.set_exception(failure)

    async def until(self, at: int) -> None:
        """Let the world go on until an instant; raises what broke it, if anything does."""
        if self._failure is not None:
            raise self._failure
        waiting = self._waiting = self.loop.create_future()
        ticks = (at - self.clock.start) * TICKS_PER_SECOND
        timer = self.loop.call_at_ticks(ticks, settle, waiting)
        try:
            await waiting
        finally:
            timer.cancel()

    async def close(self) -> None:
        """Stop everything, in the order in which it was started; nothing of this is part of the story."""
        self.server.observers[:] = [observer for observer in self.server.observers if observer not in self._tellers]
        for process in self.processes:
            process.crash()
        for task in self._tasks:
            task.cancel()
        while any(self.loop.tasks_of(process) for process in self.processes) or not all(
            task.done() for task in self._tasks
        ):
            await asyncio.sleep(1)

    def _connect(self, process: Process) -> Disconnectable:
        return FaultyConnection(
            self.transport(),
            loop=self.loop,
            random=self.random(f"connection of {process.identity}"),
            weather=self.weather,
            identity=process.identity,
            left=self._left,
            crossed=process.crossed,
        )

    def _lose_by_chance(self, name: str) -> None:
        self._lost_by_chance[name] = None
        self.lose_node(name)

    def _find_by_chance(self, name: str) -> None:
        self._lost_by_chance.pop(name, None)
        self.find_node(name)

    def _left(self, sent: SentRequest) -> None:
        for watcher in self._departures:
            watcher(sent)

    def _take_down(self, written: CommittedWrite) -> None:
        try:
            self.trace.record(written)
        except Exception as failure:
            # The listener's: it is not the business of whoever wrote.
            self.fail(failure)

    def _compact(self, random: Random) -> None:
        """Forget history up to some recent version, or all of it."""
        self.server.compact(self.server.revision - random.randrange(_RECENT))
