"""How a scenario ended.

A scenario: what is there, what runs, what happens when, and what must hold; played in virtual time.

Scenarios are values: every word gives a new one, so that tests can share a beginning.

Scenarios over many seeds: a seed that breaks something tells the one command that plays it again.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import parse_instant
from springtide.cluster.client import Mode
from springtide.cluster.context import NO_SERVICES, Services
from springtide.cluster.controller import Cached, Controller
from springtide.cluster.leader_election import LeaderElector
from springtide.cluster.manager import Manager, ManagerSettings
from springtide.cluster.reflector import ReflectorSettings
from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Store
from springtide.quantity import parse_span
from springtide.simulator.behaviours import measuring
from springtide.simulator.behaviours.autoscaling.metrics import MetricSteps, ScriptedMetrics
from springtide.simulator.faults.profile import Faults, Severity
from springtide.simulator.processes import Main, ProcessRun
from springtide.simulator.scenario.actions import Action, create
from springtide.simulator.scenario.invariants import Invariant, InvariantViolated, LoggedTracebacks, WatchedStore
from springtide.simulator.trace import TraceEntry
from springtide.simulator.virtual_time import VirtualClock, run
from springtide.simulator.world import World


@dataclass(frozen=True, slots=True)
class Outcome:
    """The world as it was at the end, and how it came to that."""

    world: World
    seed: int

    @property
    def trace(self) -> list[TraceEntry]:
        """Every write that had an effect, in order."""
        return self.world.trace.entries

    def trace_bytes(self) -> bytes:
        """Give the trace as JSON lines: what two runs are compared by."""
        return self.world.trace.as_bytes()

    def object(self, kind: str, name: str, *, namespace: str = "") -> Object:
        """Give an object as it was at the end; raises `NotFound`."""
        return self.world.object(kind, name, namespace=namespace)

    def objects(self, kind: str) -> list[Object]:
        """Give all objects of a kind, in all namespaces, in the order of their keys."""
        return self.world.objects(kind)


T = TypeVar("T")

_LINES_OF_A_FAILURE = 12
_CALM_WATCH = 86_400
_SMALL_PAGE = 2


@dataclass(frozen=True, slots=True)
class _Event:
    """Something that happens once, or (with a period) again and again, from some second on."""

    after: int
    action: Action
    every: int | None = None


@dataclass(frozen=True, slots=True)
class _Replicas:
    """Processes that run the same controllers, of which one leads."""

    controllers: tuple[type[Controller], ...]
    name: str
    count: int
    mode: Mode
    default_zone: str
    services: Callable[[ProcessRun], Services]


def _no_services(incarnation: ProcessRun) -> Services:  # noqa: ARG001
    return NO_SERVICES


@dataclass(frozen=True, slots=True)
class Scenario:
    """A story. Times are spans since its start (`90s`, `2h`, `1d12h`)."""

    name: str
    start: str = "2026-01-05T00:00:00Z"
    objects: tuple[Object, ...] = ()
    replicas: tuple[_Replicas, ...] = ()
    programs: tuple[tuple[str, Main], ...] = ()
    behaviours: tuple[type[Controller], ...] = ()
    events: tuple[_Event, ...] = ()
    faults: Faults = Faults()  # noqa: RUF009 - it is frozen
    invariants: tuple[Callable[[], Invariant], ...] = ()
    settle: int = 0
    loads: tuple[tuple[str, str, str], ...] = ()
    tolerated: tuple[type[BaseException], ...] = ()
    listener: Callable[[TraceEntry], None] | None = None

    def given(self, *objects: Object) -> Scenario:
        """Have objects in the cluster from the start; namespaces that they name are made."""
        return replace(self, objects=(*self.objects, *objects))

    def running(
        self,
        *controllers: type[Controller],
        replicas: int = 1,
        name: str = "springtide",
        mode: Mode = Mode.ACT,
        default_zone: str = "UTC",
        services: Callable[[ProcessRun], Services] = _no_services,
    ) -> Scenario:
        """Run controllers, in so many processes (`springtide-0`, …); with more than one, they elect a leader.

        `services` makes what each process offers them, anew whenever it is started: it dies with the process.
        """
        group = _Replicas(controllers, name, replicas, mode, default_zone, services)
        return replace(self, replicas=(*self.replicas, group))

    def running_program(self, name: str, main: Main) -> Scenario:
        """Run a process of any other kind, under the same faults."""
        return replace(self, programs=(*self.programs, (name, main)))

    def behaving(self, *behaviours: type[Controller]) -> Scenario:
        """Let the cluster itself do something: nodes, workloads, scheduling; nothing ever happens to these."""
        return replace(self, behaviours=(*self.behaviours, *behaviours))

    def measuring(self, metric: str, steps: Mapping[str, str]) -> Scenario:
        """Let HorizontalPodAutoscalers measure a load that all pods share: `{"0s": "1", "30m": "2500m"}` by time."""
        return replace(self, loads=(*self.loads, *((metric, when, load) for when, load in steps.items())))

    def at(self, when: str, *actions: Action) -> Scenario:
        """Let something happen at a time."""
        return replace(self, events=(*self.events, *(_Event(parse_span(when), action) for action in actions)))

    def every(self, period: str, *actions: Action) -> Scenario:
        """Let something happen again and again, the first time after one period."""
        seconds = parse_span(period)
        if not seconds:
            msg = f"{period!r} between two events is no time at all, expected at least 1s"
            raise ValueError(msg)
        return replace(self, events=(*self.events, *(_Event(seconds, action, seconds) for action in actions)))

    def under(self, faults: Faults | Severity) -> Scenario:
        """Let things go wrong."""
        return replace(self, faults=Faults.of(faults) if isinstance(faults, Severity) else faults)

    def always(self, *invariants: Callable[[], Invariant]) -> Scenario:
        """Demand something of every step; an invariant is made anew for every run."""
        for made in invariants:
            if isinstance(made, Invariant):
                msg = f"{type(made).__name__} would serve all runs at once, expected the class or what makes one"
                raise TypeError(msg)
        return replace(self, invariants=(*self.invariants, *invariants))

    def settling(self, span: str) -> Scenario:
        """End all faults and events before the end, so that everything can come to rest; part of the duration."""
        return replace(self, settle=parse_span(span))

    def tolerating(self, *failures: type[BaseException]) -> Scenario:
        """Let a process go on although it has logged such a failure with its stack; any other ends the scenario."""
        return replace(self, tolerated=(*self.tolerated, *failures))

    def told_to(self, listener: Callable[[TraceEntry], None]) -> Scenario:
        """Tell somebody of every entry of the trace as it is made."""
        return replace(self, listener=listener)

    def run(self, duration: str, *, seed: int = 0) -> Outcome:
        """Play it; raises `Broken` where an invariant does not hold, and whatever a process failed with."""
        start, length = parse_instant(self.start), parse_span(duration)
        self._check_times(duration, length)
        return run(lambda clock: self._play(clock, length, seed), start=start)

    def _check_times(self, duration: str, length: int) -> None:
        """Refuse what could never happen: a test would pass, and show nothing."""
        if self.settle >= length:
            msg = f"a run of {duration} has no time for anything before it settles, for {self.settle} s"
            raise ValueError(msg)
        late = [event.after for event in self.events if event.after > length - self.settle]
        if late:
            msg = f"something is to happen after {late[0]} s, but a run of {duration} ends"
            raise ValueError(f"{msg}, or settles, after {length - self.settle} s")

    async def _play(self, clock: VirtualClock, duration: int, seed: int) -> Outcome:
        world = World(start=clock.start, seed=seed, faults=self.faults, listener=self.listener)
        with LoggedTracebacks(world.fail, self.tolerated):
            return await self._play_in(world, duration)

    async def _play_in(self, world: World, duration: int) -> Outcome:
        clock, seed = world.clock, world.seed
        judges = [invariant() for invariant in self.invariants]
        try:
            await self._set_up(world, judges)
            for event in self.events:
                world.run_beside(_happen(world, event, duration - self.settle))
            world.disturb()
            if self.settle:
                await world.until(clock.start + duration - self.settle)
                world.calm()
            await world.until(clock.start + duration)
            for judge in judges:
                _put(lambda judge, world: judge.end(world), judge, world)
        except InvariantViolated as broken:
            raise InvariantViolated(self._account(world, seed, str(broken))) from None
        except Exception as failure:
            failure.add_note(self._account(world, seed, "something failed that is no invariant"))
            raise
        finally:
            await world.close()
        return Outcome(world, seed)

    async def _set_up(self, world: World, judges: list[Invariant]) -> None:
        for judge in judges:
            judge.begin(world)
        world.observe(_with_invariants(world, lambda judge, written: judge.wrote(world, written), judges))
        world.observe_departures(_with_invariants(world, lambda judge, sent: judge.left(world, sent), judges))
        world.begin()
        await create(*self.objects)(world)
        if self.behaviours:
            world.run_beside(_run_behaviours(world, _measured(self.behaviours, self.loads, world.clock.start)))
        for group in self.replicas:
            for number in range(group.count):
                world.add_process(f"{group.name}-{number}", _managing(world, group, judges))
        for name, main in self.programs:
            world.add_process(name, main)

    def _account(self, world: World, seed: int, words: str) -> str:
        lines = [entry.as_line() for entry in world.trace.entries[-_LINES_OF_A_FAILURE:]]
        at = format_instant(world.clock.now())
        return "\n".join([f"{self.name}: {words}", f"  at {at}, with seed {seed}; the last writes were:", *lines])


def _managing(world: World, group: _Replicas, judges: list[Invariant]) -> Main:
    """Make the program of a replica: a manager with the controllers of its group."""

    async def main(incarnation: ProcessRun) -> None:
        def make_store(cached: Cached) -> Store[Any]:
            def stepped(judge: Invariant, step: tuple[Store[Any], Key | None]) -> None:
                judge.stepped(world, incarnation.identity, cached.selection, *step)

            store = WatchedStore(cached, _with_invariants(world, stepped, judges))
            for judge in judges:
                judge.opened(world, incarnation.identity, cached.selection, store)
            return store

        transport, clock, random = incarnation.transport, incarnation.clock, incarnation.random
        elected = (
            LeaderElector(transport, clock, identity=incarnation.identity, random=random) if group.count > 1 else None
        )
        await Manager(
            transport,
            clock,
            group.controllers,
            random=random,
            election=elected,
            mode=group.mode,
            settings=replace(_settings(world), default_zone=group.default_zone),
            make_store=make_store,
            services=group.services(incarnation),
        ).run()

    return main


def _settings(world: World) -> ManagerSettings:
    """Read in pages of two where things may go wrong, in half of the worlds: a few objects then take many pages."""
    if not world.disturbed:
        return _calm()
    size = _SMALL_PAGE if world.random("page size").random() < 0.5 else ReflectorSettings().page_size
    return ManagerSettings(reflector=ReflectorSettings(page_size=size))


def _calm() -> ManagerSettings:
    """Let watches last: they are begun anew to spread clients over servers, and here is one, which never tires."""
    return ManagerSettings(reflector=ReflectorSettings(shortest_watch=_CALM_WATCH, longest_watch=_CALM_WATCH))


def _measured(
    behaviours: tuple[type[Controller], ...], loads: tuple[tuple[str, str, str], ...], start: int
) -> tuple[type[Controller], ...]:
    """Give the same behaviours, of which autoscalers read these loads."""
    if not loads:
        return behaviours
    script = ScriptedMetrics(
        loads={
            metric: MetricSteps.of(*((start + parse_span(when), load) for one, when, load in loads if one == metric))
            for metric, _, _ in loads
        }
    )
    return measuring(script, behaviours)


async def _run_behaviours(world: World, behaviours: tuple[type[Controller], ...]) -> None:
    """Run what Kubernetes itself does, out of reach of all faults."""
    settings = replace(_calm(), pausable=False, field_manager_prefix="")
    await Manager(
        world.transport(), world.clock, behaviours, random=world.random("behaviours"), settings=settings
    ).run()


def _with_invariants(world: World, ask: Callable[[Invariant, T], None], judges: list[Invariant]) -> Callable[[T], None]:
    """Put a question to all judges; the world ends where one of them finds something broken."""

    def observe(observed: T) -> None:
        try:
            for judge in judges:
                _put(ask, judge, observed)
        except Exception as failure:
            # Not raised here: this is in the middle of a verb or a process, which would take it for an answer.
            world.fail(failure)

    return observe


def _put(ask: Callable[[Invariant, T], None], judge: Invariant, observed: T) -> None:
    """Put a question to one judge, whose verdict says whose it is."""
    try:
        ask(judge, observed)
    except InvariantViolated as broken:
        msg = f"{type(judge).__name__}: {broken}"
        raise InvariantViolated(msg) from None


async def _happen(world: World, event: _Event, last: int) -> None:
    at = event.after
    while at <= last:
        await world.clock.sleep_until(world.clock.start + at)
        await event.action(world)
        if event.every is None:
            return
        at += event.every


SEED = "SPRINGTIDE_SEED"
"""The environment variable that makes a test play this one seed instead of its own."""


def play(scenario: Scenario, duration: str, seeds: Iterable[int]) -> list[Outcome]:
    """Play a scenario with every seed, or with the one that the environment names; for tests that pytest runs."""
    chosen = [int(os.environ[SEED])] if SEED in os.environ else seeds
    return [_play(scenario, duration, seed) for seed in chosen]


def _play(scenario: Scenario, duration: str, seed: int) -> Outcome:
    try:
        return scenario.run(duration, seed=seed)
    except Exception as failure:
        # pytest names the test that is running here, and the phase it is in.
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        failure.add_note(f"play it again with: {SEED}={seed} .venv/bin/python -m pytest -n0 {shlex.quote(test)}")
        raise
