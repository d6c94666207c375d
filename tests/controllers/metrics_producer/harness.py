"""A stage for MetricsProducers: how they are written, their controller in a simulated world, and what it exports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.cluster.context import Services
from springtide.cluster.resources import Key, Object
from springtide.controllers.grant.state import GrantPolicy
from springtide.controllers.metrics_producer import MetricsProducerController
from springtide.metrics.series import ObjectSeries, SeriesStore
from springtide.simulator.processes import ProcessRun
from springtide.simulator.scenario import Invariant, Outcome, Scenario
from springtide.simulator.scenario.actions import Action
from springtide.simulator.world import World

MANAGER = "springtide-metrics-producer"
CAPACITY = "karpenter_scheduled_capacity"


def producer(name: str = "web", *, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    """Write a MetricsProducer."""
    metadata: Object = {"name": name, "namespace": "default"}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "MetricsProducer",
        "metadata": metadata,
        "spec": spec,
    }


def schedule(*behaviors: Object, default: int = 1, zone: str | None = None, **more: Any) -> Object:
    """Write a schedule."""
    zoned = {"timezone": zone} if zone else {}
    return {"behaviors": list(behaviors), "defaultReplicas": default, **zoned, **more}


def daily(replicas: int, start: str, end: str, **more: Any) -> Object:
    """Write a behaviour of every day, from one time of day to another."""
    return {"replicas": replicas, "start": _time(start), "end": _time(end), **more}


def _time(text: str) -> Object:
    hours, _, minutes = text.partition(":")
    return {"hours": hours, "minutes": minutes} if minutes else {"hours": hours}


def calendar(name: str, *dates: str) -> Object:
    """Write a Calendar."""
    return {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Calendar",
        "metadata": {"name": name},
        "spec": {"dates": list(dates)},
    }


@dataclass(slots=True)
class Stage:
    """A controller that plays in scenarios, and the books that its incarnations export from."""

    offered: tuple[object, ...] = (GrantPolicy(everything=True),)
    books: list[SeriesStore] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)
    heard: list[tuple[str, str, Any]] = field(default_factory=list)
    """Every change of a scheduled capacity: when, of which producer, and to what."""

    def services(self, incarnation: ProcessRun) -> Services:
        """Return a process a book of its own."""
        book = SeriesStore()

        def hear(key: Key, changed: frozenset[str]) -> None:
            reading = book.get(key)
            if CAPACITY in changed and reading is not None:
                now = format_instant(incarnation.clock.now())
                self.heard.append((now, key.name, reading.values.get(CAPACITY)))

        book.subscribe(lambda change: hear(*change))
        self.books.append(book)
        return Services(book, *self.offered)

    def playing(self, start: str, *objects: Object, **running: Any) -> Scenario:
        """Begin a scenario with the controller and some objects."""
        scenario = Scenario("metrics producers", start=start).given(*objects)
        return scenario.running(MetricsProducerController, services=self.services, **running)

    def reading(self, name: str = "web") -> ObjectSeries | None:
        """Return what the newest process exports of a producer now."""
        return self.books[-1].get(Key("default", name))

    def value(self, name: str = "web", metric: str = CAPACITY) -> Any:
        """Return one value of it; `absent` where there is none."""
        reading = self.reading(name)
        return "absent" if reading is None else reading.values.get(metric, "absent")

    def note(self, name: str = "web", metric: str = CAPACITY) -> Action:
        """Write down, at some time of a scenario, what is exported then."""

        async def act(world: World) -> None:
            self.seen.append(self.value(name, metric))

        return act

    def exported_in_the_end(self) -> Invariant:
        """Write down, at the end of a scenario, all series of all processes."""
        stage = self

        class Noted(Invariant):
            def end(self, world: World) -> None:
                stage.seen += [reading.values[CAPACITY] for book in stage.books for _, reading in book.items()]

        return Noted()

    def note_age(self, name: str = "web") -> Action:
        """Write down a value and its age."""

        async def act(world: World) -> None:
            reading = self.reading(name)
            self.seen.append("absent" if reading is None else (self.value(name), reading.age(world.clock.now())))

        return act


def status_of(outcome: Outcome, name: str = "web") -> Any:
    """Return the status of a producer, with conditions by their types."""
    status = outcome.object("MetricsProducer", name)["status"]
    return {**status, "conditions": {entry["type"]: entry for entry in status["conditions"]}}


def conditions_of(outcome: Outcome, name: str = "web") -> dict[str, tuple[str, str]]:
    """Return the status and reason of each condition of a producer."""
    conditions = status_of(outcome, name)["conditions"]
    return {name: (entry["status"], entry["reason"]) for name, entry in conditions.items()}


def writes_of(outcome: Outcome, name: str = "web", manager: str = MANAGER) -> list[str]:
    """List when the status of a producer was written."""
    return [
        format_instant(entry.at)
        for entry in outcome.trace
        if (entry.actor, entry.kind, entry.name) == (manager, "MetricsProducer", name)
    ]


def events_of(outcome: Outcome, *reasons: str) -> list[tuple[str, str, str]]:
    """List events by when they were first seen: their type, reason and message."""
    events = sorted(outcome.objects("Event"), key=lambda event: (event["firstTimestamp"], event["message"]))
    return [
        (event["type"], event["reason"], event["message"])
        for event in events
        if not reasons or event["reason"] in reasons
    ]
