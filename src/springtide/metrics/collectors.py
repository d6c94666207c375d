"""The metrics of one process: its registry, and the collectors of its manager and its requests.

    metrics = ProcessMetrics()
    transport = metrics.measured(transport)
    manager = Manager(transport, clock, …, metrics=metrics)
    metrics.follow(manager, clock)

Reconciles and requests are counted as they happen. The state of the manager is collected at every scrape: it costs
nothing in between, and its series disappear with what they describe.

Names start with `springtide_`; metrics that controller-runtime has, too, have the same types and labels.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from time import perf_counter
from typing import TypeAlias, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from springtide import __version__
from springtide.cluster.clock import Clock
from springtide.cluster.errors import ApiError, ClusterError, RequestTimeout, TransportError
from springtide.cluster.health import CacheHealth, ControllerHealth, ControllerState, ReconcileOutcome
from springtide.cluster.manager import Manager
from springtide.cluster.resources import Resource
from springtide.cluster.transport import ApiRequest, Transport, WatchEvent, WrappingTransport
from springtide.metrics.series import SeriesCollector, SeriesStore

_Family: TypeAlias = type[CounterMetricFamily] | type[GaugeMetricFamily]
_OF_CONTROLLERS: tuple[tuple[_Family, str, str, Callable[[ControllerHealth], int]], ...] = (
    (
        CounterMetricFamily,
        "springtide_reconcile_errors",
        "Reconciles that failed, conflicts not counted.",
        lambda health: health.errors,
    ),
    (
        GaugeMetricFamily,
        "springtide_workqueue_depth",
        "Keys that wait for a worker.",
        lambda health: health.queued,
    ),
    (
        GaugeMetricFamily,
        "springtide_workqueue_delayed",
        "Keys that wait for their time: a schedule, or a pause after a failure.",
        lambda health: health.delayed,
    ),
    (
        CounterMetricFamily,
        "springtide_workqueue_retries",
        "Keys that were requeued because of a failure, a conflict or a lost lease.",
        lambda health: health.retries,
    ),
    (
        GaugeMetricFamily,
        "springtide_paused_objects",
        "Objects that are paused by their annotation.",
        lambda health: health.paused,
    ),
)
T = TypeVar("T")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_OK = "200"
# They double the number of series, and Prometheus does not use them in its text format.
disable_created_metrics()  # type: ignore[no-untyped-call]
_RECONCILE_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class ProcessMetrics:
    """All metrics of a process, and the `Telemetry` of its manager."""

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
            "Finished reconciles, by result.",
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
        self._meter = RequestMetrics(self.registry)

    def reconciled(self, controller: str, seconds: float, result: ReconcileOutcome) -> None:
        """Count one reconcile."""
        self._reconciles.labels(controller, result.value).inc()
        self._seconds.labels(controller).observe(seconds)

    def measured(self, transport: Transport) -> Transport:
        """Count the requests that go through a transport."""
        return MeasuredTransport(transport, self._meter)

    def export(self, store: SeriesStore, clock: Clock) -> None:
        """Export the series of objects at every scrape."""
        self.registry.register(SeriesCollector(store, clock))

    def follow(self, manager: Manager, clock: Clock) -> None:
        """Export the state of a manager at every scrape."""
        for health in manager.health():
            # Counters start at zero, so that rate() sees the first increase.
            self._seconds.labels(health.name)
            for result in ReconcileOutcome:
                self._reconciles.labels(health.name, result.value)
        self.registry.register(ManagerCollector(manager, clock))


class RequestMetrics:
    """Counts and times requests. A request that the transport retries counts once."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "springtide_api_requests",
            "Requests to the API server, by how they ended: a status code, `timeout`, `no_answer`, `not_sent` or"
            " `given_up`.",
            ("verb", "resource", "code"),
            registry=registry,
        )
        self._seconds = Histogram(
            "springtide_api_request_duration_seconds",
            "How long requests took until their response was read; without watches.",
            ("verb",),
            buckets=_SECONDS,
            registry=registry,
        )

    @contextmanager
    def request(self, verb: str, resource: Resource, subresource: str = "") -> Iterator[None]:
        """Count and time what happens in the block as one request."""
        began = perf_counter()
        with self.counting(verb, resource, subresource):
            try:
                yield
            finally:
                self._seconds.labels(verb).observe(perf_counter() - began)

    @contextmanager
    def counting(self, verb: str, resource: Resource, subresource: str = "") -> Iterator[None]:
        """Count what happens in the block as one request, however long it takes."""
        target = f"{resource}/{subresource}" if subresource else str(resource)
        code = _OK
        try:
            yield
        except ClusterError as failure:
            code = _code(failure)
            raise
        except asyncio.CancelledError:
            # The caller stopped waiting, as a leader does that has to renew its lease.
            code = "given_up"
            raise
        finally:
            self._requests.labels(verb, target, code).inc()


class MeasuredTransport(WrappingTransport):
    """A transport whose requests are counted; a watch is counted when it ends."""

    def __init__(self, inner: Transport, meter: RequestMetrics) -> None:
        super().__init__(inner)
        self._meter = meter

    async def intercept(self, request: ApiRequest, send: Callable[[], Awaitable[T]]) -> T:
        """Count and time a request."""
        with self._meter.request(request.verb, request.resource, request.subresource):
            return await send()

    async def intercept_watch(
        self, request: ApiRequest, events: AsyncGenerator[WatchEvent, None]
    ) -> AsyncGenerator[WatchEvent, None]:
        """Count a watch, however long it lasts."""
        with self._meter.counting(request.verb, request.resource):
            async with aclosing(events) as stream:
                async for event in stream:
                    yield event


class ManagerCollector(Collector):
    """The state of one manager as metrics."""

    def __init__(self, manager: Manager, clock: Clock) -> None:
        self._manager = manager
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Yield the current state."""
        yield _one("springtide_leader", "Whether this process is the leader; 0 in observe mode.", self._manager.leading)
        yield _one("springtide_paused", "Whether everything is paused by the ConfigMap.", self._manager.paused)
        yield from _controllers(self._manager.health())
        yield from _caches(self._manager.cache_health(), self._clock.monotonic())


def _controllers(healths: Sequence[ControllerHealth]) -> Iterator[Metric]:
    for family, name, help_, read in _OF_CONTROLLERS:
        yield _family(family, name, help_, ("controller",), (((one.name,), read(one)) for one in healths))
    yield _family(
        GaugeMetricFamily,
        "springtide_controller_state",
        "The state of a controller: 1 for the current state, 0 for all others.",
        ("controller", "state"),
        (((one.name, state.replace(" ", "_")), one.state is state) for one in healths for state in ControllerState),
    )
    yield _family(
        CounterMetricFamily,
        "springtide_writes",
        "Writes that controllers sent, or withheld in observe mode.",
        ("controller", "outcome"),
        (
            sample
            for one in healths
            for sample in (
                ((one.name, "sent"), one.traffic.sent),
                ((one.name, "held_back"), one.traffic.held_back),
            )
        ),
    )


def _caches(healths: Sequence[CacheHealth], now: float) -> Iterator[Metric]:
    caches = list(zip(_labels(healths), healths, strict=True))
    yield _family(
        GaugeMetricFamily,
        "springtide_cache_synced",
        "Whether a cache has synced.",
        ("cache",),
        (((label,), one.synced) for label, one in caches),
    )
    yield _family(
        GaugeMetricFamily,
        "springtide_cache_objects",
        "Objects in a cache, by whether they could be decoded.",
        ("cache", "readable"),
        (
            sample
            for label, one in caches
            for sample in (((label, "true"), one.objects), ((label, "false"), one.unreadable))
        ),
    )
    yield _family(
        CounterMetricFamily,
        "springtide_cache_relists",
        "How often a cache was listed again, after the first list.",
        ("cache",),
        (((label,), one.relists) for label, one in caches),
    )
    yield _family(
        GaugeMetricFamily,
        "springtide_cache_last_contact_age_seconds",
        "Seconds since a cache received anything from the API server. Bookmarks arrive about once a minute.",
        ("cache",),
        (((label,), now - one.last_contact) for label, one in caches if one.last_contact is not None),
    )
    yield _family(
        GaugeMetricFamily,
        "springtide_cache_last_event_age_seconds",
        "Seconds since a cache received an object from the API server.",
        ("cache",),
        (((label,), now - one.last_event) for label, one in caches if one.last_event is not None),
    )


def _labels(healths: Iterable[CacheHealth]) -> list[str]:
    """Name the caches by their selections; further caches of the same selection get a number."""
    seen: dict[str, int] = {}
    labels = []
    for one in healths:
        number = seen[one.selection] = seen.get(one.selection, 0) + 1
        labels.append(one.selection if number == 1 else f"{one.selection} #{number}")
    return labels


def _one(name: str, help_: str, value: bool) -> Metric:
    return _family(GaugeMetricFamily, name, help_, (), [((), value)])


def _family(
    family: _Family,
    name: str,
    help_: str,
    labels: Sequence[str],
    samples: Iterable[tuple[tuple[str, ...], float]],
) -> Metric:
    made = family(name, help_, labels=labels)
    for values, value in samples:
        made.add_metric(values, value)
    return made


def _code(failure: ClusterError) -> str:
    if isinstance(failure, ApiError):
        return str(failure.code)
    if isinstance(failure, TransportError):
        return "timeout" if isinstance(failure, RequestTimeout) else "no_answer"
    return "not_sent"
