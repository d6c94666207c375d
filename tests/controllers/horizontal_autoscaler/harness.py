"""HorizontalAutoscalers as tests write them, and something for them to read and to scale."""

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
"""A query that only a server answers."""


def metric(query: str = SCHEDULED, type: str = "AverageValue", value: Any = 1) -> Object:  # noqa: A002
    """Write a metric."""
    return {"prometheus": {"query": query, "target": {"type": type, "value": value}}}


def autoscaler(*metrics: Object, least: int = 0, most: int = 1000, name: str = "web", **more: Any) -> Object:
    """Write an autoscaler of the Deployment `web`."""
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
    """Write a Deployment."""
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
    """Write a node that is large enough for everything."""
    room = {"cpu": "64", "memory": "256Gi", "pods": "500"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": room, "allocatable": room},
    }


class Meter(MetricReader):
    """Answers what the test says: series of a book by their object's name, and a server's numbers by the query."""

    def __init__(self, book: SeriesStore, server: dict[str, Fraction]) -> None:
        self._book = book
        self._server = server

    async def read(self, query: str, *, namespace: str) -> Fraction:
        """Look the query up."""
        found = _SERIES.fullmatch(query)
        if found is None:
            if query not in self._server:
                raise QueryError("NoSample", "the server has no sample")
            return self._server[query]
        reading = self._book.get(Key(namespace, found["name"]))
        value = None if reading is None else reading.values.get(found["metric"])
        if value is None:
            raise QueryError("NoSample", f"there is no series {found['name']}")
        return Fraction(value)

    def sources(self, query: str) -> tuple[OwnSeries, ...] | None:
        """Name a series."""
        found = _SERIES.fullmatch(query)
        return None if found is None else (OwnSeries(found["metric"], found["name"]),)

    def address(self, query: str) -> str | None:
        """Send everything else to the server."""
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


class Stage:
    """A shop with a Deployment, and the numbers that its autoscaler reads.

    Series are gone when a process dies, as its memory is; `tell` puts them into the book of whoever runs, and into the
    book of every process that starts later.
    """

    def __init__(self, *, everything: bool = True) -> None:
        self.series: dict[Key, dict[str, SeriesValue]] = {}
        self.server: dict[str, Fraction] = {}
        self._books: list[SeriesStore] = []
        self._everything = everything

    def services(self, incarnation: ProcessRun) -> Services:
        """Offer a book with the series, a reader and trust."""
        book = ProvidedSeries(self.series)
        self._books.append(book)
        return Services(book, Meter(book, self.server), GrantPolicy(everything=self._everything))

    def tell(self, query: str, value: str | int | None, namespace: str = "shop") -> None:
        """Let a query have a value from now on, or none."""
        found = _SERIES.fullmatch(query)
        if found is None:
            self.server.pop(query, None)
            if value is not None:
                self.server[query] = Fraction(value)
            return
        key = Key(namespace, found["name"])
        exact = None if value is None else Fraction(value)
        self.series[key] = {} if exact is None else {found["metric"]: exact}
        for book in self._books:
            book.put(key, self.series[key], fresh_until=None)

    def telling(self, query: str, value: str | int | None) -> Action:
        """Make an action of it."""

        async def act(world: World) -> None:
            self.tell(query, value)

        return act

    def scenario(self, *objects: Object, **running: Any) -> Scenario:
        """Begin a story with the real controller; workloads behave, and pods find a node."""
        return (
            Scenario("a shop", start=START)
            .given(node(), *objects)
            .behaving(*NODES, *SCHEDULING, *WORKLOADS)
            .running(HorizontalAutoscalerController, services=self.services, **running)
        )


def scaled(outcome: Outcome, name: str = "web", kind: str = "Deployment") -> list[tuple[int, int]]:
    """List when the autoscaler set the scale, in seconds since the start, and to what."""
    return [
        (entry.at - outcome.world.clock.start, entry.change["spec.replicas"][1])
        for entry in outcome.trace
        if entry.actor == "springtide-horizontal-autoscaler" and (entry.kind, entry.name) == (kind, name)
    ]


def conditions(outcome: Outcome, name: str = "web") -> dict[str, Object]:
    """Return the conditions of an autoscaler by their types."""
    status = outcome.object("HorizontalAutoscaler", name, namespace="shop")["status"]
    return {entry["type"]: entry for entry in status["conditions"]}
