"""Runs the controllers of a process: caches, leader election, work queues, modes, pauses, and an orderly stop.

    run ──► fill caches ──► leader election ──► run controllers ──► stop: no new keys, finish, flush events,
                                   ▲                  │                   release the lease
                                   └──────────────────┘ the lease is lost: stop at once, send nothing more

A standby keeps its caches filled, so that a takeover is quick. Controllers are re-created for every term: what they
keep in memory may be stale, and the API has what matters. Every object is enqueued once at the beginning of a term.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from types import MappingProxyType
from typing import Any

from springtide.cluster.caches import Caches, plain_store
from springtide.cluster.client import Mode
from springtide.cluster.clock import Backoff, Clock, first_of
from springtide.cluster.compute import Compute, InlineCompute
from springtide.cluster.context import NO_SERVICES, Services, check_needs
from springtide.cluster.controller import Cached, Controller, SingletonController
from springtide.cluster.events import EventRecorder, EventSink, normal
from springtide.cluster.health import NO_METRICS, CacheHealth, ControllerHealth, ReconcileMetrics
from springtide.cluster.leader_election import Election, LeadershipTerm, NoElection
from springtide.cluster.pausing import CONFIG_MAPS, GlobalPause, PausedObjects
from springtide.cluster.reflector import ReflectorSettings
from springtide.cluster.runner import ControllerRunner, SharedRuntime
from springtide.cluster.state import SharedStates, StateT, sources_of
from springtide.cluster.store import Store
from springtide.cluster.transport import ObjectVersion, Transport
from springtide.cluster.trials import Trials

NAMESPACE = "springtide-system"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """Settings of a manager."""

    sync_timeout: float = 30.0
    """Seconds to wait for all caches before leader election. A cache that does not sync (its kind is not installed)
    holds back only the controllers that depend on it."""
    grace: float = 20.0
    """Seconds that a stop leaves to reconciles that are under way; then they are cancelled."""
    flush: float = 5.0
    """Seconds that a stop leaves to send queued events."""
    pausable: bool = True
    """Whether it obeys pauses; off for simulated parts of Kubernetes itself."""
    field_manager_prefix: str = "springtide-"
    """The prefix of the field managers of controllers."""
    default_zone: str = "UTC"
    """The time zone of objects that name none; the commands have `--default-timezone` for it."""
    backoff: Backoff = field(default_factory=lambda: Backoff(longest=60.0))
    """The backoff of a key that keeps failing. Kubernetes' own controllers wait up to a quarter of an hour; due
    capacity must not wait so long after an outage."""
    reflector: ReflectorSettings = field(default_factory=ReflectorSettings)


_DEFAULTS = ManagerSettings()
_NO_MODES: Mapping[str, Mode] = MappingProxyType({})


class Manager:
    """The controllers of one process."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        controllers: Sequence[type[Controller]],
        *,
        random: Random,
        election: Election | None = None,
        mode: Mode = Mode.ACT,
        modes: Mapping[str, Mode] = _NO_MODES,
        compute: Compute | None = None,
        namespace: str = NAMESPACE,
        settings: ManagerSettings = _DEFAULTS,
        make_store: Callable[[Cached], Store[Any]] = plain_store,
        metrics: ReconcileMetrics = NO_METRICS,
        services: Services = NO_SERVICES,
    ) -> None:
        """Check and connect the controllers.

        Without an `election` the process leads at once. `modes` are those of single controllers, by name. `make_store`
        and `metrics` are for observers, and must not change what controllers see. `services` are what the process
        offers its controllers besides the cluster.
        """
        _check_names(controllers, modes)
        check_needs(controllers, services)
        self._transport = transport
        self._clock = clock
        self._settings = settings
        self._election = election or NoElection(clock)
        self._pause = GlobalPause(namespace)
        self._states = SharedStates(controllers, services)
        self._compute = compute or InlineCompute(clock)
        self._trials = Trials(self._compute, clock, default_zone=settings.default_zone)
        needed = _caches(controllers)
        watched = [cached for cached, _ in needed]
        # Pauses of single objects, by the cache of the controller that they pause.
        self._paused: dict[Cached, PausedObjects] = {}
        if settings.pausable:
            watched.append(self._pause.cached)
            self._paused = {
                kind.watches[0].cached: PausedObjects()
                for kind in controllers
                if not issubclass(kind, SingletonController)
            }
        self._caches = Caches(
            transport,
            clock,
            watched,
            optional={cached for cached, _ in needed} - {cached for cached, optional in needed if not optional},
            random=random,
            settings=settings.reflector,
            make_store=lambda cached: make_store(self._preparing(cached)),
        )
        self._states.bind(self._caches.stores)
        self._trials.bind(self._caches.stores)
        runtime = SharedRuntime(
            transport=transport,
            clock=clock,
            compute=self._compute,
            pause=self._pause,
            backoff=settings.backoff,
            field_manager_prefix=settings.field_manager_prefix,
            default_zone=settings.default_zone,
            metrics=metrics,
            services=services,
            states=self._states,
        )
        self._runners = [
            ControllerRunner(
                kind,
                runtime,
                mode=modes.get(kind.name, mode),
                stores=self._caches.stores,
                paused=self._paused_objects(kind),
            )
            for kind in controllers
        ]
        for cached, paused in self._paused.items():
            paused.attach(self._caches.stores[cached])
        if settings.pausable:
            self._pause.attach(self._caches.stores[self._pause.cached], self._pause_changed)
        self._acts = any(modes.get(kind.name, mode) is not Mode.OBSERVE for kind in controllers)
        if not self._acts:
            self._election.observe()
        self._recorder: EventRecorder | None = None
        self._term: LeadershipTerm | None = None
        self._stopping = asyncio.Event()
        self._stopped = asyncio.Event()
        self._running = False

    async def run(self) -> None:
        """Run until `stop` is called. Cancelling it is a crash: nothing is finished, and the lease expires."""
        self._running = True
        self._caches.start()
        try:
            await self._sync()
            while not self._stopping.is_set():
                acquired = await self._unless_stopped(self._election.acquire())
                if acquired is not None:
                    await self._lead(acquired)
            # Also without a term: an attempt that was under way may have acquired the lease.
            await self._election.release()
        finally:
            self._caches.stop()
            self._trials.stop()
            self._running = False
            self._stopped.set()

    async def stop(self) -> None:
        """Stop in order, and return when everything has stopped."""
        self._stopping.set()
        if self._running:
            await self._stopped.wait()

    def health(self) -> tuple[ControllerHealth, ...]:
        """Return the state of every controller."""
        return tuple(runner.measure() for runner in self._runners)

    def cache_health(self) -> tuple[CacheHealth, ...]:
        """Return the state of every cache."""
        return self._caches.health()

    def state(self, kind: type[StateT]) -> StateT:
        """Return a shared state of this process; outside a leadership term it is empty."""
        return self._states.get(kind)

    @property
    def leading(self) -> bool:
        """Whether this process is the leader now; never where all its controllers observe."""
        return self._acts and self._term is not None and self._term.valid

    @property
    def paused(self) -> bool:
        """Whether everything is paused."""
        return self._pause.on

    async def _sync(self) -> None:
        """Wait until the caches are synced, up to a timeout."""
        await first_of(
            self._caches.wait_settled(), self._stopping.wait(), self._clock.sleep(self._settings.sync_timeout)
        )
        missing = self._caches.missing()
        if missing and not self._stopping.is_set():
            log.warning("cache not synced: %s; dependent controllers are waiting", ", ".join(missing))

    async def _unless_stopped(self, acquiring: Coroutine[Any, Any, LeadershipTerm]) -> LeadershipTerm | None:
        task = asyncio.ensure_future(acquiring)
        await first_of(task, self._stopping.wait())
        await asyncio.wait((task,))
        return task.result() if task.done() and not task.cancelled() else None

    async def _lead(self, term: LeadershipTerm) -> None:
        """Run all controllers until the lease is lost or the manager is stopped."""
        self._term = term
        sink = EventSink(self._transport, self._clock, permit=term.permit)
        self._recorder = EventRecorder(f"{self._settings.field_manager_prefix}manager", sink, self._clock)
        holding = asyncio.ensure_future(self._hold())
        sending = asyncio.ensure_future(sink.run())
        stepping = asyncio.ensure_future(self._follow_clock_steps())
        fresh = {
            cached: asyncio.ensure_future(self._caches.catch_up(cached, asking=not term.uncontested))
            for cached in self._caches.stores
        }

        async def synced(cached: Cached, optional: bool) -> None:
            caught_up = asyncio.shield(fresh[cached])
            await (first_of(caught_up, self._caches.wait_absent(cached)) if optional else caught_up)
            await self._trials.wait_decided(cached)

        for runner in self._runners:
            runner.begin_term()
        self._states.begin(synced, self._former_gone, self._first_pass)
        serving = [asyncio.ensure_future(self._serve(runner, term, sink, synced)) for runner in self._runners]
        try:
            try:
                await first_of(asyncio.shield(holding), self._stopping.wait())
                if not holding.done():
                    await self._wind_down(holding, serving, sink)
            finally:
                for task in (*serving, *fresh.values(), sending, holding, stepping):
                    # Once: a task that is cancelled a second time cannot finish its cleanup.
                    if not task.cancelling():
                        task.cancel()
                self._recorder = None
                self._term = None
            await asyncio.gather(*serving, sending, holding, stepping, return_exceptions=True)
        finally:
            self._states.release()

    async def _wind_down(
        self, holding: asyncio.Future[None], serving: Sequence[asyncio.Future[None]], sink: EventSink
    ) -> None:
        for runner in self._runners:
            runner.finish()
        for task, runner in zip(serving, self._runners, strict=True):
            if not runner.working:
                task.cancel()
        done = asyncio.gather(*serving, return_exceptions=True)
        await first_of(done, asyncio.shield(holding), self._clock.sleep(self._settings.grace))
        await first_of(sink.flushed(), asyncio.shield(holding), self._clock.sleep(self._settings.flush))

    async def _follow_clock_steps(self) -> None:
        """Reconcile every object again after the clock was set, forward or back.

        What a key waits for was computed from the former time: after a step back, the next change may come long before.
        """
        while True:
            step = await self._clock.stepped()
            log.warning(
                "the clock was set %s by %d s: every object is reconciled again",
                "forward" if step > 0 else "back",
                abs(step),
            )
            for runner in self._runners:
                runner.enqueue_all()

    async def _hold(self) -> None:
        try:
            await self._election.hold()
        except Exception:
            log.exception("holding the lease failed; the term is over")

    async def _serve(
        self,
        runner: ControllerRunner,
        term: LeadershipTerm,
        sink: EventSink,
        synced: Callable[[Cached, bool], Awaitable[None]],
    ) -> None:
        try:
            if self._settings.pausable:
                # A controller must not act before it is known whether everything is paused.
                await synced(self._pause.cached, False)
            await runner.serve(term, sink, synced, self._all_idle)
        except Exception:
            log.exception("the controller %s has stopped; other controllers are not affected", runner.health.name)

    async def _all_idle(self) -> None:
        for runner in self._runners:
            await runner.idle()

    async def _former_gone(self, kind: type[Controller]) -> None:
        await self._runner_of(kind).former_gone()

    async def _first_pass(self, kind: type[Controller]) -> None:
        await self._runner_of(kind).first_pass()

    def _runner_of(self, kind: type[Controller]) -> ControllerRunner:
        return next(runner for runner in self._runners if runner.kind is kind)

    def _paused_objects(self, kind: type[Controller]) -> PausedObjects:
        if issubclass(kind, SingletonController) or not self._settings.pausable:
            return PausedObjects()
        return self._paused[kind.watches[0].cached]

    def _preparing(self, cached: Cached) -> Cached:
        """Let the informer try large objects, and note the pause annotation of those that can be paused."""
        gated, paused = self._trials.gated(cached), self._paused.get(cached)
        return replace(gated, record=paused.noting(gated.record)) if paused is not None else gated

    def _pause_changed(self, version: ObjectVersion) -> None:
        on = self._pause.on
        change = "everything is paused" if on else "the pause of everything is over"
        log.warning("%s: by the ConfigMap %s", change, self._pause.key)
        if self._recorder is not None:
            content = normal("Paused" if on else "Resumed", f"{change}: reconciles of all controllers of this process")
            self._recorder.record(CONFIG_MAPS, version, content)
        if not on:
            for runner in self._runners:
                runner.enqueue_all()


def _caches(controllers: Sequence[type[Controller]]) -> list[tuple[Cached, bool]]:
    """List every cache that a controller or one of its shared states needs, each with whether it is optional."""
    watched = [(watch.cached, watch.optional) for kind in controllers for watch in kind.watches]
    return [*watched, *(source for kind in controllers for source in sources_of(kind))]


def _check_names(controllers: Sequence[type[Controller]], modes: Mapping[str, Mode]) -> None:
    names = [kind.name for kind in controllers]
    for name in names:
        if names.count(name) > 1:
            msg = f"there are two controllers named {name!r}, expected different names"
            raise ValueError(msg)
    for name in modes:
        if name not in names:
            msg = f"there is no controller named {name!r} to give a mode to, expected one of {', '.join(names)}"
            raise ValueError(msg)
