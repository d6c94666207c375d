"""Scenarios: initial objects, processes, events over time, faults and invariants, run in virtual time.

A Scenario is a value: each method returns a new one, so tests can share a beginning. `play` runs one over many seeds; a
failing seed reports the command that repeats it.
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
from springtide.cluster.compute import Compute, InlineCompute
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
    """The simulated cluster at the end of a run, with its trace."""

    world: World
    seed: int

    @property
    def trace(self) -> list[TraceEntry]:
        """All writes that took effect, in order."""
        return self.world.trace.entries

    def trace_bytes(self) -> bytes:
        """Return the trace as JSON lines, to compare runs."""
        return self.world.trace.as_bytes()

    def object(self, kind: str, name: str, *, namespace: str = "") -> Object:
        """Return an object as it was at the end; raises `NotFound`."""
        return self.world.object(kind, name, namespace=namespace)

    def objects(self, kind: str) -> list[Object]:
        """Return all objects of a kind in all namespaces, ordered by key."""
        return self.world.objects(kind)


T = TypeVar("T")

_LINES_OF_A_FAILURE = 12
_CALM_WATCH = 86_400
_SMALL_PAGE = 2


@dataclass(frozen=True, slots=True)
class _Event:
    """An action at a second of the run, repeated if it has a period."""

    after: int
    action: Action
    every: int | None = None


@dataclass(frozen=True, slots=True)
class _Replicas:
    """Replicas of a process with the same controllers; they elect a leader."""

    controllers: tuple[type[Controller], ...]
    name: str
    count: int
    mode: Mode
    default_zone: str
    services: Callable[[ProcessRun], Services]
    compute: Callable[[ProcessRun], Compute]


def _no_services(run: ProcessRun) -> Services:  # noqa: ARG001
    return NO_SERVICES


def _inline(run: ProcessRun) -> Compute:
    return InlineCompute(run.clock)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario. Times are durations since its start (`90s`, `2h`, `1d12h`)."""

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
        """Add objects that exist from the start; their namespaces are created."""
        return replace(self, objects=(*self.objects, *objects))

    def running(
        self,
        *controllers: type[Controller],
        replicas: int = 1,
        name: str = "springtide",
        mode: Mode = Mode.ACT,
        default_zone: str = "UTC",
        services: Callable[[ProcessRun], Services] = _no_services,
        compute: Callable[[ProcessRun], Compute] = _inline,
    ) -> Scenario:
        """Run controllers in a number of processes (`springtide-0`, …); several elect a leader.

        `services` and `compute` create what a process has of these at each of its starts.
        """
        group = _Replicas(controllers, name, replicas, mode, default_zone, services, compute)
        return replace(self, replicas=(*self.replicas, group))

    def running_program(self, name: str, main: Main) -> Scenario:
        """Run another program as a process, under the same faults."""
        return replace(self, programs=(*self.programs, (name, main)))

    def behaving(self, *behaviours: type[Controller]) -> Scenario:
        """Run controllers of Kubernetes itself (nodes, workloads, scheduling), exempt from faults."""
        return replace(self, behaviours=(*self.behaviours, *behaviours))

    def measuring(self, metric: str, steps: Mapping[str, str]) -> Scenario:
        """Set a metric for HorizontalPodAutoscalers, a total over all pods by time: `{"0s": "1", "30m": "2500m"}`."""
        return replace(self, loads=(*self.loads, *((metric, when, load) for when, load in steps.items())))

    def at(self, when: str, *actions: Action) -> Scenario:
        """Run actions at a time."""
        return replace(self, events=(*self.events, *(_Event(parse_span(when), action) for action in actions)))

    def every(self, period: str, *actions: Action) -> Scenario:
        """Run actions periodically, first after one period."""
        seconds = parse_span(period)
        if not seconds:
            msg = f"{period!r} is too short a period, expected at least 1s"
            raise ValueError(msg)
        return replace(self, events=(*self.events, *(_Event(seconds, action, seconds) for action in actions)))

    def under(self, faults: Faults | Severity) -> Scenario:
        """Switch faults on."""
        return replace(self, faults=Faults.of(faults) if isinstance(faults, Severity) else faults)

    def always(self, *invariants: Callable[[], Invariant]) -> Scenario:
        """Check invariants at every step; each run creates its own instances."""
        for made in invariants:
            if isinstance(made, Invariant):
                msg = f"{type(made).__name__} is an instance that all runs would share, expected the class or a factory"
                raise TypeError(msg)
        return replace(self, invariants=(*self.invariants, *invariants))

    def settling(self, span: str) -> Scenario:
        """End faults and events this long before the end, so that the cluster can settle."""
        return replace(self, settle=parse_span(span))

    def tolerating(self, *failures: type[BaseException]) -> Scenario:
        """Allow exceptions of these types to be logged with a traceback; others end the scenario."""
        return replace(self, tolerated=(*self.tolerated, *failures))

    def traced_to(self, listener: Callable[[TraceEntry], None]) -> Scenario:
        """Call `listener` with each entry of the trace as it is recorded."""
        return replace(self, listener=listener)

    def run(self, duration: str, *, seed: int = 0) -> Outcome:
        """Run the scenario; raises `InvariantViolated`, or the exception that a process failed with."""
        start, length = parse_instant(self.start), parse_span(duration)
        self._check_times(duration, length)
        return run(lambda clock: self._play(clock, length, seed), start=start)

    def _check_times(self, duration: str, length: int) -> None:
        """Refuse events after the end: such a test would pass without testing anything."""
        if self.settle >= length:
            msg = f"a run of {duration} is not longer than the time to settle, {self.settle} s"
            raise ValueError(msg)
        late = [event.after for event in self.events if event.after > length - self.settle]
        if late:
            msg = f"an event is due after {late[0]} s, but a run of {duration} ends"
            raise ValueError(f"{msg}, or settles, after {length - self.settle} s")

    async def _play(self, clock: VirtualClock, duration: int, seed: int) -> Outcome:
        world = World(start=clock.start, seed=seed, faults=self.faults, listener=self.listener)
        with LoggedTracebacks(world.fail, self.tolerated):
            return await self._play_in(world, duration)

    async def _play_in(self, world: World, duration: int) -> Outcome:
        clock, seed = world.clock, world.seed
        invariants = [invariant() for invariant in self.invariants]
        try:
            await self._set_up(world, invariants)
            for event in self.events:
                world.run_beside(_happen(world, event, duration - self.settle))
            world.disturb()
            if self.settle:
                await world.until(clock.start + duration - self.settle)
                world.calm()
            await world.until(clock.start + duration)
            for invariant in invariants:
                _put(lambda invariant, world: invariant.end(world), invariant, world)
        except InvariantViolated as broken:
            raise InvariantViolated(self._account(world, seed, str(broken))) from None
        except Exception as failure:
            failure.add_note(self._account(world, seed, "a failure outside the invariants"))
            raise
        finally:
            await world.close()
        return Outcome(world, seed)

    async def _set_up(self, world: World, invariants: list[Invariant]) -> None:
        for invariant in invariants:
            invariant.begin(world)
        world.observe(_with_invariants(world, lambda invariant, written: invariant.wrote(world, written), invariants))
        world.observe_sends(_with_invariants(world, lambda invariant, sent: invariant.left(world, sent), invariants))
        world.begin()
        await create(*self.objects)(world)
        if self.behaviours:
            world.run_beside(_run_behaviours(world, _measured(self.behaviours, self.loads, world.clock.start)))
        for group in self.replicas:
            for number in range(group.count):
                world.add_process(f"{group.name}-{number}", _managing(world, group, invariants))
        for name, main in self.programs:
            world.add_process(name, main)

    def _account(self, world: World, seed: int, message: str) -> str:
        lines = [entry.as_line() for entry in world.trace.entries[-_LINES_OF_A_FAILURE:]]
        at = format_instant(world.clock.now())
        return "\n".join([f"{self.name}: {message}", f"  at {at}, with seed {seed}; the last writes were:", *lines])


def _managing(world: World, group: _Replicas, invariants: list[Invariant]) -> Main:
    """Return the program of a replica: a manager with its controllers."""

    async def main(run: ProcessRun) -> None:
        def make_store(cached: Cached) -> Store[Any]:
            def stepped(invariant: Invariant, step: tuple[Store[Any], Key | None]) -> None:
                invariant.stepped(world, run.identity, cached.selection, *step)

            store = WatchedStore(cached, _with_invariants(world, stepped, invariants))
            for invariant in invariants:
                invariant.opened(world, run.identity, cached.selection, store)
            return store

        transport, clock, random = run.transport, run.clock, run.random
        elected = LeaderElector(transport, clock, identity=run.identity, random=random) if group.count > 1 else None
        await Manager(
            transport,
            clock,
            group.controllers,
            random=random,
            election=elected,
            mode=group.mode,
            settings=replace(_settings(world), default_zone=group.default_zone),
            compute=group.compute(run),
            make_store=make_store,
            services=group.services(run),
        ).run()

    return main


def _settings(world: World) -> ManagerSettings:
    """With faults, half of the seeds list in pages of two, so that few objects take many pages."""
    if not world.disturbed:
        return _calm()
    size = _SMALL_PAGE if world.random("page size").random() < 0.5 else ReflectorSettings().page_size
    return ManagerSettings(reflector=ReflectorSettings(page_size=size))


def _calm() -> ManagerSettings:
    """Let watches last: clients restart watches to spread over servers, and here is only one server."""
    return ManagerSettings(reflector=ReflectorSettings(shortest_watch=_CALM_WATCH, longest_watch=_CALM_WATCH))


def _measured(
    behaviours: tuple[type[Controller], ...], loads: tuple[tuple[str, str, str], ...], start: int
) -> tuple[type[Controller], ...]:
    """Return the behaviours, with autoscalers that read these metrics."""
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
    """Run the controllers of Kubernetes itself, without faults."""
    settings = replace(_calm(), pausable=False, field_manager_prefix="")
    await Manager(
        world.transport(), world.clock, behaviours, random=world.random("behaviours"), settings=settings
    ).run()


def _with_invariants(
    world: World, ask: Callable[[Invariant, T], None], invariants: list[Invariant]
) -> Callable[[T], None]:
    """Return a listener that calls all invariants; a violation ends the run."""

    def observe(observed: T) -> None:
        try:
            for invariant in invariants:
                _put(ask, invariant, observed)
        except Exception as failure:
            # Not raised here: the caller is an API verb or a process, which would handle it as an answer.
            world.fail(failure)

    return observe


def _put(ask: Callable[[Invariant, T], None], invariant: Invariant, observed: T) -> None:
    """Call one invariant; its violation names it."""
    try:
        ask(invariant, observed)
    except InvariantViolated as broken:
        msg = f"{type(invariant).__name__}: {broken}"
        raise InvariantViolated(msg) from None


async def _happen(world: World, event: _Event, last: int) -> None:
    at = event.after
    while at <= last:
        await world.reach(at)
        await event.action(world)
        if event.every is None:
            return
        at += event.every


SEED = "SPRINGTIDE_SEED"
"""The environment variable that makes a test run this seed instead of its own."""


def play(scenario: Scenario, duration: str, seeds: Iterable[int]) -> list[Outcome]:
    """Run a scenario with each seed, or with the seed of the environment variable; for pytest."""
    chosen = [int(os.environ[SEED])] if SEED in os.environ else seeds
    return [_play(scenario, duration, seed) for seed in chosen]


def _play(scenario: Scenario, duration: str, seed: int) -> Outcome:
    try:
        return scenario.run(duration, seed=seed)
    except Exception as failure:
        # pytest puts the name and phase of the running test here.
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        failure.add_note(f"repeat it with: {SEED}={seed} .venv/bin/python -m pytest -n0 {shlex.quote(test)}")
        raise
