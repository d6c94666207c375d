"""The metrics of one process: a registry of its own, what is counted as it happens, and what is read when asked for.

    metrics = Metrics()
    transport = metrics.measured(transport)
    manager = Manager(transport, clock, …, telemetry=metrics)
    metrics.follow(manager, clock)

Names start with `springtide_`; where controller-runtime has a metric of the same meaning, ours has its shape.
"""

from __future__ import annotations

import platform

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from springtide import __version__
from springtide.cluster.clock import Clock
from springtide.cluster.manager import Manager
from springtide.cluster.port import Transport
from springtide.cluster.telemetry import Result
from springtide.metrics.requests import MeasuredTransport, RequestMeter
from springtide.metrics.series import SeriesBook, SeriesCollector
from springtide.metrics.states import ManagerStates

# They double the number of series, and Prometheus makes nothing of them in its own format.
disable_created_metrics()  # type: ignore[no-untyped-call]

_RECONCILE_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """All metrics of a process; it is the `Telemetry` of its manager."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        Gauge(
            "springtide_build_info",
            "The version that runs; always 1.",
            ("version", "python"),
            registry=self.registry,
        ).labels(__version__, platform.python_version()).set(1)
        self._reconciles = Counter(
            "springtide_reconcile",
            "Reconciles that have ended, by how they did.",
            ("controller", "result"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "springtide_reconcile_time_seconds",
            "How long reconciles took.",
            ("controller",),
            buckets=_RECONCILE_SECONDS,
            registry=self.registry,
        )
        self._meter = RequestMeter(self.registry)

    def reconciled(self, controller: str, seconds: float, result: Result) -> None:
        """Count one reconcile."""
        self._reconciles.labels(controller, result.value).inc()
        self._seconds.labels(controller).observe(seconds)

    def measured(self, transport: Transport) -> Transport:
        """Count the requests that go through a transport."""
        return MeasuredTransport(transport, self._meter)

    def export(self, book: SeriesBook, clock: Clock) -> None:
        """Export the series of objects, as they are whenever somebody asks."""
        self.registry.register(SeriesCollector(book, clock))

    def follow(self, manager: Manager, clock: Clock) -> None:
        """Export the state of a manager, as it is whenever somebody asks."""
        for health in manager.health():
            # From zero on: a rate can only be seen of what was there before.
            self._seconds.labels(health.name)
            for result in Result:
                self._reconciles.labels(health.name, result.value)
        self.registry.register(ManagerStates(manager, clock))
