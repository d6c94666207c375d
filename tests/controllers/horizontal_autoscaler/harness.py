"""Harness for HorizontalAutoscaler tests: objects, metric values, and scenarios with the real controller."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import msgspec

from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler, HorizontalAutoscalerSpec
from springtide.cluster.context import Services
from springtide.cluster.resources import Key, Object
from springtide.controllers.grant.state import GrantPolicy
from springtide.controllers.horizontal_autoscaler import HorizontalAutoscalerController
from springtide.metrics.reading.port import MetricReader, OwnSeries, QueryError
from springtide.metrics.series import SeriesStore, SeriesValue
from springtide.simulator.behaviours import NODES, SCHEDULING, WORKLOADS
from springtide.simulator.processes import ProcessRun
from springtide.simulator.scenario import Scenario
from springtide.simulator.scenario.actions import Action
from springtide.simulator.scenario.scenario import Outcome
from springtide.simulator.world import World

START = "2026-06-01T00:00:00Z"
SERVER = "https://prom.example.com/"
SCHEDULED = 'karpenter_scheduled_capacity{name="peak"}'
QUEUED = 'karpenter_queue_length{name="jobs"}'
LOAD = "cluster_load"
"""A query that only the Prometheus server answers."""


def metric(query: str = SCHEDULED, type: str = "AverageValue", value: Any = 1) -> Object:  # noqa: A002
    """Build a metric."""
    return {"prometheus": {"query": query, "target": {"type": type, "value": value}}}


def autoscaler(*metrics: Object, least: int = 0, most: int = 1000, name: str = "web", **more: Any) -> Object:
    """Build an autoscaler of the Deployment `web`."""
    spec: Object = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": least,
        "maxReplicas": most,
        "metrics": list(metrics),
    }
    return {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "HorizontalAutoscaler",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec | more,
    }


def spec_of(written: Object) -> HorizontalAutoscalerSpec:
    """Read the spec of an autoscaler."""
    return msgspec.convert(written, HorizontalAutoscaler).spec


def deployment(replicas: int, name: str = "web") -> Object:
    """Build a Deployment."""
    labels = {"app": name}
    container = {"name": "main", "image": "example.com/app:1", "resources": {"requests": {"cpu": "10m"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def node(name: str = "n1") -> Object:
    """Build a node that is large enough for all pods."""
    room = {"cpu": "64", "memory": "256Gi", "pods": "500"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": room, "allocatable": room},
    }


class FakeMetricReader(MetricReader):
    """Answers queries from a series store by object name, and all other queries from fixed server values."""

    def __init__(self, series: SeriesStore, server: dict[str, Fraction]) -> None:
        self._series = series
        self._server = server

    async def read(self, query: str, *, namespace: str) -> Fraction:
        """Look the query up."""
        found = _SERIES.fullmatch(query)
        if found is None:
            if query not in self._server:
                raise QueryError("NoSample", "the server has no sample")
            return self._server[query]
        reading = self._series.get(Key(namespace, found["name"]))
        value = None if reading is None else reading.values.get(found["metric"])
        if value is None:
            raise QueryError("NoSample", f"there is no series {found['name']}")
        return Fraction(value)

    def sources(self, query: str) -> tuple[OwnSeries, ...] | None:
        """Return the series that a query reads."""
        found = _SERIES.fullmatch(query)
        return None if found is None else (OwnSeries(found["metric"], found["name"]),)

    def address(self, query: str) -> str | None:
        """Return the server's address for all other queries."""
        return None if _SERIES.fullmatch(query) else SERVER


_SERIES = re.compile(r'(?P<metric>karpenter_\w+)\{name="(?P<name>\w+)"\}')


class ProvidedSeries(SeriesStore):
    """A store that has the series of a test from the beginning of each leadership term, without a provider."""

    def __init__(self, series: dict[Key, dict[str, SeriesValue]]) -> None:
        super().__init__()
        self._provided = series
        self.reset()

    def reset(self) -> None:
        """Begin with the series of the test."""
        super().reset()
        for key, values in self._provided.items():
            self.put(key, values, fresh_until=None)
        self.mark_synced()


class AutoscalerHarness:
    """Scenarios with a Deployment, and the metric values that its autoscaler reads.

    A process loses its series when it stops; `set_metric` writes a value to the series store of every running process
    and of every process that starts later.
    """

    def __init__(self, *, everything: bool = True) -> None:
        self.series: dict[Key, dict[str, SeriesValue]] = {}
        self.server: dict[str, Fraction] = {}
        self._stores: list[SeriesStore] = []
        self._everything = everything

    def services(self, incarnation: ProcessRun) -> Services:
        """Return a series store, a metric reader and grants for a process."""
        store = ProvidedSeries(self.series)
        self._stores.append(store)
        return Services(store, FakeMetricReader(store, self.server), GrantPolicy(everything=self._everything))

    def set_metric(self, query: str, value: str | int | None, namespace: str = "shop") -> None:
        """Set the value of a query, or remove it."""
        found = _SERIES.fullmatch(query)
        if found is None:
            self.server.pop(query, None)
            if value is not None:
                self.server[query] = Fraction(value)
            return
        key = Key(namespace, found["name"])
        exact = None if value is None else Fraction(value)
        self.series[key] = {} if exact is None else {found["metric"]: exact}
        for store in self._stores:
            store.put(key, self.series[key], fresh_until=None)

    def metric_change(self, query: str, value: str | int | None) -> Action:
        """Return `set_metric` as an action of a scenario."""

        async def act(world: World) -> None:
            self.set_metric(query, value)

        return act

    def scenario(self, *objects: Object, **running: Any) -> Scenario:
        """Return a scenario with the real controller and simulated nodes, scheduling and workloads."""
        return (
            Scenario("a shop", start=START)
            .given(node(), *objects)
            .behaving(*NODES, *SCHEDULING, *WORKLOADS)
            .running(HorizontalAutoscalerController, services=self.services, **running)
        )


def scaled(outcome: Outcome, name: str = "web", kind: str = "Deployment") -> list[tuple[int, int]]:
    """List the scale changes of the autoscaler: seconds since the start, and replicas."""
    return [
        (entry.at - outcome.world.clock.start, entry.change["spec.replicas"][1])
        for entry in outcome.trace
        if entry.actor == "springtide-horizontal-autoscaler" and (entry.kind, entry.name) == (kind, name)
    ]


def conditions(outcome: Outcome, name: str = "web") -> dict[str, Object]:
    """Return the conditions of an autoscaler by their types."""
    status = outcome.object("HorizontalAutoscaler", name, namespace="shop")["status"]
    return {entry["type"]: entry for entry in status["conditions"]}
