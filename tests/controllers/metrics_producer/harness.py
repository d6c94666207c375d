"""Harness for MetricsProducer tests: objects, scenarios with the controller, and the series that it exports."""

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
    """Build a MetricsProducer."""
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
    """Build the `schedule` of a spec."""
    zoned = {"timezone": zone} if zone else {}
    return {"behaviors": list(behaviors), "defaultReplicas": default, **zoned, **more}


def daily(replicas: int, start: str, end: str, **more: Any) -> Object:
    """Build a behavior that begins and ends every day at the given hours."""
    return {"replicas": replicas, "start": _time(start), "end": _time(end), **more}


def _time(text: str) -> Object:
    hours, _, minutes = text.partition(":")
    return {"hours": hours, "minutes": minutes} if minutes else {"hours": hours}


def calendar(name: str, *dates: str) -> Object:
    """Build a Calendar."""
    return {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Calendar",
        "metadata": {"name": name},
        "spec": {"dates": list(dates)},
    }


@dataclass(slots=True)
class ProducerHarness:
    """Runs the controller in scenarios and keeps the series store of each of its processes."""

    extra_services: tuple[object, ...] = (GrantPolicy(everything=True),)
    stores: list[SeriesStore] = field(default_factory=list)
    recorded: list[Any] = field(default_factory=list)
    value_changes: list[tuple[str, str, Any]] = field(default_factory=list)
    """Each change of a scheduled capacity: time, producer and new value."""

    def services(self, incarnation: ProcessRun) -> Services:
        """Return the services of a process, with its own series store."""
        store = SeriesStore()

        def record_change(key: Key, changed: frozenset[str]) -> None:
            series = store.get(key)
            if CAPACITY in changed and series is not None:
                now = format_instant(incarnation.clock.now())
                self.value_changes.append((now, key.name, series.values.get(CAPACITY)))

        store.subscribe(lambda change: record_change(*change))
        self.stores.append(store)
        return Services(store, *self.extra_services)

    def scenario(self, start: str, *objects: Object, **running: Any) -> Scenario:
        """Return a scenario with the controller and some objects."""
        story = Scenario("metrics producers", start=start).given(*objects)
        return story.running(MetricsProducerController, services=self.services, **running)

    def series(self, name: str = "web") -> ObjectSeries | None:
        """Return the series of a producer that the newest process exports."""
        return self.stores[-1].get(Key("default", name))

    def value(self, name: str = "web", metric: str = CAPACITY) -> Any:
        """Return the value of a metric, or `absent`."""
        series = self.series(name)
        return "absent" if series is None else series.values.get(metric, "absent")

    def record_value(self, name: str = "web", metric: str = CAPACITY) -> Action:
        """Return an action that records an exported value."""

        async def act(world: World) -> None:
            self.recorded.append(self.value(name, metric))

        return act

    def record_exported_at_end(self) -> Invariant:
        """Return an invariant that records the series of all processes at the end."""
        harness = self

        class RecordExported(Invariant):
            def end(self, world: World) -> None:
                harness.recorded += [series.values[CAPACITY] for store in harness.stores for _, series in store.items()]

        return RecordExported()

    def record_age(self, name: str = "web") -> Action:
        """Return an action that records a value and its age."""

        async def act(world: World) -> None:
            series = self.series(name)
            self.recorded.append("absent" if series is None else (self.value(name), series.age(world.clock.now())))

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
    """List the times of status writes of a producer."""
    return [
        format_instant(entry.at)
        for entry in outcome.trace
        if (entry.actor, entry.kind, entry.name) == (manager, "MetricsProducer", name)
    ]


def events_of(outcome: Outcome, *reasons: str) -> list[tuple[str, str, str]]:
    """List events in the order of their first occurrence: type, reason and message."""
    events = sorted(outcome.objects("Event"), key=lambda event: (event["firstTimestamp"], event["message"]))
    return [
        (event["type"], event["reason"], event["message"])
        for event in events
        if not reasons or event["reason"] in reasons
    ]
