"""Runs the controllers of a process: caches, leadership, queues, modes, pauses, and an orderly end.

    run ──► fill caches ──► wait for leadership ──► work ──► stop: no new keys, finish, flush events, give the lease up
                                   ▲                  │
                                   └──────────────────┘ the lease is lost: stop at once, send nothing more

The caches are kept while standing by, so that a takeover is quick. Controllers are made anew for every term: what they
kept in memory may be wrong by now, and what matters is in the API. Everything they look after is queued once then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from types import MappingProxyType
from typing import Any

from springtide.cluster.caches import Caches, plain_store
from springtide.cluster.client import Mode
from springtide.cluster.clock import Backoff, Clock, first_of
from springtide.cluster.compute import Compute, InlineCompute
from springtide.cluster.context import NO_SERVICES, Services
from springtide.cluster.controller import Cached, Controller, Watch
from springtide.cluster.events import EventRecorder, EventSink, normal
from springtide.cluster.health import NO_METRICS, CacheHealth, ControllerHealth, ReconcileMetrics
from springtide.cluster.leader_election import Election, LeadershipTerm, NoElection
from springtide.cluster.pausing import CONFIG_MAPS, GlobalPause, PausedObjects
from springtide.cluster.reflector import ReflectorSettings
from springtide.cluster.runner import ControllerRunner, SharedRuntime
from springtide.cluster.store import Store
from springtide.cluster.transport import ObjectVersion, Transport

NAMESPACE = "springtide-system"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """How a manager treats its controllers."""

    patience: float = 30.0
    """Seconds to wait for all caches before leadership is sought. A cache that never comes (its kind is not installed)
    holds back only the controllers that need it."""
    grace: float = 20.0
    """Seconds that a stop leaves to reconciles that are under way; what is not done then is cancelled."""
    flush: float = 5.0
    """Seconds that a stop leaves to events that wait to be sent."""
    pausable: bool = True
    """Whether people can pause it; off for what stands for a part of Kubernetes itself."""
    field_manager_prefix: str = "springtide-"
    """What the field managers of controllers begin with."""
    default_zone: str = "UTC"
    """The time zone of objects that name none; the commands have `--default-timezone` for it."""
    backoff: Backoff = field(default_factory=lambda: Backoff(longest=60.0))
    """Delays of a key that keeps failing. Kubernetes' own controllers wait up to a quarter of an hour; capacity that is
    due now must not wait so long after an outage that is over."""
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
        leadership: Election | None = None,
        mode: Mode = Mode.ACT,
        modes: Mapping[str, Mode] = _NO_MODES,
        compute: Compute | None = None,
        namespace: str = NAMESPACE,
        settings: ManagerSettings = _DEFAULTS,
        make_store: Callable[[Cached], Store[Any]] = plain_store,
        telemetry: ReconcileMetrics = NO_METRICS,
        services: Services = NO_SERVICES,
    ) -> None:
        """Put the controllers together.

        Without `leadership` the process has no rival. `modes` are those of single controllers, by name. `make_store`
        and `telemetry` are for those who want to look on: a store must behave as any other, and nothing depends on who
        is told. `services` are what the process offers its controllers besides the cluster.
        """
        _check_names(controllers, modes)
        self._transport = transport
        self._clock = clock
        self._settings = settings
        self._election = leadership or NoElection(clock)
        self._switch = GlobalPause(namespace)
        watched = [watch.cached for kind in controllers for watch in kind.watches]
        if settings.pausable:
            watched.append(self._switch.cached)
            self._marks = {kind.watches[0].cached: PausedObjects() for kind in controllers}
        else:
            self._marks = {}
        self._caches = Caches(
            transport,
            clock,
            watched,
            optional=_optional(controllers),
            random=random,
            settings=settings.reflector,
            make_store=lambda cached: make_store(self._marked(cached)),
        )
        workplace = SharedRuntime(
            transport,
            clock,
            compute or InlineCompute(clock),
            self._switch,
            settings.backoff,
            settings.field_manager_prefix,
            settings.default_zone,
            telemetry,
            services,
        )
        self._posts = [
            ControllerRunner(
                kind,
                workplace,
                mode=modes.get(kind.name, mode),
                stores=self._caches.stores,
                marks=self._marks.get(kind.watches[0].cached) or PausedObjects(),
            )
            for kind in controllers
        ]
        for cached, marks in self._marks.items():
            marks.attach(self._caches.stores[cached])
        if settings.pausable:
            self._switch.attach(self._caches.stores[self._switch.cached], self._switched)
        if all(modes.get(kind.name, mode) is Mode.OBSERVE for kind in controllers):
            self._election.observe()
        self._recorder: EventRecorder | None = None
        self._term: LeadershipTerm | None = None
        self._stopping = asyncio.Event()
        self._stopped = asyncio.Event()
        self._running = False

    async def run(self) -> None:
        """Run until `stop` is called. Cancelling it is a crash: nothing is finished, and the lease runs out."""
        self._running = True
        self._caches.start()
        try:
            await self._sync()
            while not self._stopping.is_set():
                acquired = await self._unless_stopped(self._election.acquire())
                if acquired is not None:
                    await self._lead(acquired)
            # Also where nobody has led: what was under way to get the lease may have got it.
            await self._election.release()
        finally:
            self._caches.stop()
            self._running = False
            self._stopped.set()

    async def stop(self) -> None:
        """Come to an orderly end, and return when it is reached."""
        self._stopping.set()
        if self._running:
            await self._stopped.wait()

    def health(self) -> tuple[ControllerHealth, ...]:
        """Tell how the controllers are doing, in their order."""
        return tuple(post.measure() for post in self._posts)

    def cache_health(self) -> tuple[CacheHealth, ...]:
        """Tell how the caches are doing."""
        return self._caches.health()

    @property
    def leading(self) -> bool:
        """Whether this process is the one that acts, now."""
        return self._term is not None and self._term.lasting

    @property
    def paused(self) -> bool:
        """Whether people have paused everything."""
        return self._switch.on

    async def _sync(self) -> None:
        """Wait until the caches are complete, within reason."""
        await first_of(self._caches.wait_settled(), self._stopping.wait(), self._clock.sleep(self._settings.patience))
        missing = self._caches.missing()
        if missing and not self._stopping.is_set():
            log.warning("going on without %s: those who need it wait", ", ".join(missing))

    async def _unless_stopped(self, acquiring: Coroutine[Any, Any, LeadershipTerm]) -> LeadershipTerm | None:
        task = asyncio.ensure_future(acquiring)
        await first_of(task, self._stopping.wait())
        await asyncio.wait((task,))
        return task.result() if task.done() and not task.cancelled() else None

    async def _lead(self, term: LeadershipTerm) -> None:
        """Let all controllers work until the lease is lost or the manager is stopped."""
        self._term = term
        sink = EventSink(self._transport, self._clock, permit=term.permit)
        self._recorder = EventRecorder(f"{self._settings.field_manager_prefix}manager", sink, self._clock)
        holding = asyncio.ensure_future(self._hold())
        sending = asyncio.ensure_future(sink.run())
        catching_up = {
            cached: asyncio.ensure_future(self._caches.catch_up(cached, asking=term.contested))
            for cached in self._caches.stores
        }
        serving = [asyncio.ensure_future(self._serve(post, term, sink, catching_up)) for post in self._posts]
        try:
            await first_of(asyncio.shield(holding), self._stopping.wait())
            if not holding.done():
                await self._wind_down(holding, serving, sink)
        finally:
            for task in (*serving, *catching_up.values(), sending, holding):
                # Once: whoever is cancelled a second time is torn away from what he does to end in order.
                if not task.cancelling():
                    task.cancel()
            self._recorder = None
            self._term = None
        await asyncio.gather(*serving, sending, holding, return_exceptions=True)

    async def _wind_down(
        self, holding: asyncio.Future[None], serving: Sequence[asyncio.Future[None]], sink: EventSink
    ) -> None:
        for post in self._posts:
            post.finish()
        for task, post in zip(serving, self._posts, strict=True):
            if not post.working:
                task.cancel()
        done = asyncio.gather(*serving, return_exceptions=True)
        await first_of(done, asyncio.shield(holding), self._clock.sleep(self._settings.grace))
        await first_of(sink.flushed(), asyncio.shield(holding), self._clock.sleep(self._settings.flush))

    async def _hold(self) -> None:
        try:
            await self._election.hold()
        except Exception:
            log.exception("holding the lease failed; the term is over")

    async def _serve(
        self,
        post: ControllerRunner,
        term: LeadershipTerm,
        sink: EventSink,
        catching_up: Mapping[Cached, asyncio.Future[None]],
    ) -> None:
        async def ready(watch: Watch) -> None:
            caught_up = asyncio.shield(catching_up[watch.cached])
            await (first_of(caught_up, self._caches.wait_absent(watch.cached)) if watch.optional else caught_up)

        try:
            if self._settings.pausable:
                # Whoever cannot tell whether everything is paused must not act.
                await asyncio.shield(catching_up[self._switch.cached])
            await post.serve(term, sink, ready, self._all_idle)
        except Exception:
            log.exception("the controller %s has stopped; others go on without it", post.health.name)

    async def _all_idle(self) -> None:
        for post in self._posts:
            await post.idle()

    def _marked(self, cached: Cached) -> Cached:
        """Let the records of objects that can be paused be made with an eye on their annotations."""
        marks = self._marks.get(cached)
        return replace(cached, record=marks.marking(cached.record)) if marks is not None else cached

    def _switched(self, origin: ObjectVersion) -> None:
        on = self._switch.on
        words = "everything is paused" if on else "everything goes on"
        log.warning("%s: by the ConfigMap %s", words, self._switch.key)
        if self._recorder is not None:
            notice = normal("Paused" if on else "Resumed", f"{words} that these controllers look after")
            self._recorder.record(CONFIG_MAPS, origin, notice)
        if not on:
            for post in self._posts:
                post.enqueue_all()


def _optional(controllers: Sequence[type[Controller]]) -> frozenset[Cached]:
    """Give what everybody who watches it can do without."""
    watches = [watch for kind in controllers for watch in kind.watches]
    needed = {watch.cached for watch in watches if not watch.optional}
    return frozenset(watch.cached for watch in watches if watch.cached not in needed)


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
