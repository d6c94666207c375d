"""A simulated cluster: an API server in virtual time, and the processes that use it."""

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
from springtide.cluster.resources import NODES, Key, Object, Resource
from springtide.cluster.transport import Write
from springtide.simulator.behaviours import node_found_patch, node_lost_patch
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
    """A simulated cluster with its processes and faults; it uses the running event loop."""

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
        """Whether any fault is switched on."""
        self.server = ApiServer(now=self.clock.now, random=self.random("server"), converter=convert)
        install(self.server)
        self.trace = Trace(listener)
        self.processes: list[Process] = []
        self._failure: BaseException | None = None
        self._waiting: asyncio.Future[None] | None = None
        self.availability = ServerAvailability(
            self.faults, watch_list=self.random("watch list").random() >= self.faults.no_watch_list
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._disturbing: list[asyncio.Task[None]] = []
        self._nodes_lost_by_fault: dict[str, None] = {}
        self._write_listeners: list[Callable[[CommittedWrite], None]] = []
        self._send_listeners: list[Callable[[SentRequest], None]] = []

    def resource(self, kind: str, api_version: str = "") -> Resource:
        """Find the resource of a kind; `api_version` decides where several groups have the kind."""
        return resource_of(self.server, kind, api_version)

    def object(self, kind: str, name: str, *, namespace: str = "") -> Object:
        """Return an object; raises `NotFound`."""
        resource = self.resource(kind)
        key = Key((namespace or DEFAULT_NAMESPACE) if resource.namespaced else "", name)
        return self.server.get(resource, key)

    def objects(self, kind: str) -> list[Object]:
        """Return all objects of a kind in all namespaces, ordered by key."""
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
        """Stop the heartbeats of a node."""
        write = Write(_MACHINES_ACTOR, "the machine stopped responding")
        self.server.patch(NODES, Key("", name), node_lost_patch(self.clock.now()), write)

    def find_node(self, name: str) -> None:
        """Resume the heartbeats of a lost node, if its Node object still exists."""
        with suppress(NotFound):
            self.server.patch(
                NODES, Key("", name), node_found_patch(), Write(_MACHINES_ACTOR, "the machine responds again")
            )

    def random(self, purpose: str) -> Random:
        """Return a seeded random source for one purpose; draws from it do not affect other purposes."""
        return Random(f"{self.seed}/{purpose}")  # noqa: S311 - a simulation, not a secret

    def transport(self) -> DirectTransport:
        """Return a transport without faults, for the user and for Kubernetes' own controllers."""
        return DirectTransport(self.server)

    def add_process(self, name: str, main: Main) -> Process:
        """Add a process that is subject to faults, and start it."""
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
        """Start to record writes, and to collect garbage."""
        self.observe(self._record)
        self.run_beside(GarbageCollector(self.server).run(self.clock))
        self.run_beside(NamespaceController(self.server).run(self.clock))

    def observe_sends(self, watcher: Callable[[SentRequest], None]) -> None:
        """Call `watcher` for each write that leaves a process, whether or not it takes effect."""
        self._send_listeners.append(watcher)

    def observe(self, listener: Callable[[CommittedWrite], None]) -> None:
        """Call `listener` for each write that takes effect, until the world is closed."""
        self._write_listeners.append(listener)
        self.server.observers.append(listener)

    def disturb(self) -> None:
        """Start the tasks that cause faults at random times."""
        for disturbance in disturbances(
            self.faults,
            random=self.random,
            availability=self.availability,
            compact=self._compact,
            processes=self.processes,
            nodes=lambda: [key.name for key, _ in self.server.objects(collection_id(NODES))],
            lose=self._lose_by_fault,
            find=self._find_after_fault,
        ):
            self._disturbing.append(self.run_beside(disturbance))

    def calm(self) -> None:
        """End all faults: start crashed processes, resume paused ones, bring lost nodes back."""
        for task in self._disturbing:
            task.cancel()
        self.faults = Faults()
        self.availability.calm()
        for process in self.processes:
            process.resume()
            if not process.alive:
                process.start()
        for name in list(self._nodes_lost_by_fault):
            self._find_after_fault(name)

    def fail(self, failure: BaseException) -> None:
        """End the run with a failure; the first failure is the one reported."""
        if self._failure is None:
            self._failure = failure
            if self._waiting is not None and not self._waiting.done():
                self._waiting.set_exception(failure)

    async def until(self, at: int) -> None:
        """Run until an instant; raises the failure that ended the run, if any."""
        if self._failure is not None:
            raise self._failure
        waiting = self._waiting = self.loop.create_future()
        ticks = (at - self.clock.start) * TICKS_PER_SECOND
        timer = self.loop.call_at_ticks(ticks, settle, waiting)
        try:
            await waiting
        finally:
            timer.cancel()

    async def reach(self, second: int) -> None:
        """Wait until a second of the run, whatever the clock shows then."""
        if second * TICKS_PER_SECOND <= self.loop.ticks:
            await asyncio.sleep(0)
            return
        reached: asyncio.Future[None] = self.loop.create_future()
        timer = self.loop.call_at_ticks(second * TICKS_PER_SECOND, settle, reached)
        try:
            await reached
        finally:
            timer.cancel()

    async def close(self) -> None:
        """Stop all processes and tasks in the order of their start; the trace does not include this."""
        self.server.observers[:] = [
            observer for observer in self.server.observers if observer not in self._write_listeners
        ]
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
            availability=self.availability,
            identity=process.identity,
            left=self._left,
            crossed=process.crossed,
        )

    def _lose_by_fault(self, name: str) -> None:
        self._nodes_lost_by_fault[name] = None
        self.lose_node(name)

    def _find_after_fault(self, name: str) -> None:
        self._nodes_lost_by_fault.pop(name, None)
        self.find_node(name)

    def _left(self, sent: SentRequest) -> None:
        for watcher in self._send_listeners:
            watcher(sent)

    def _record(self, written: CommittedWrite) -> None:
        try:
            self.trace.record(written)
        except Exception as failure:
            # A failing listener ends the run; the client that wrote must not see the failure.
            self.fail(failure)

    def _compact(self, random: Random) -> None:
        """Compact the history up to a random recent version, or all of it."""
        self.server.compact(self.server.revision - random.randrange(_RECENT))
