"""Metrics that are a state: read from the manager at the moment when they are asked for, and kept nowhere.

So they cost nothing between two scrapes, cannot go stale, and go when what they speak of goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from springtide.cluster.clock import Clock
from springtide.cluster.health import CacheHealth, Health, State
from springtide.cluster.manager import Manager

_Family: TypeAlias = type[CounterMetricFamily] | type[GaugeMetricFamily]

_OF_CONTROLLERS: tuple[tuple[_Family, str, str, Callable[[Health], int]], ...] = (
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
        "Keys that came again because of a failure, a conflict or a lost lease.",
        lambda health: health.retries,
    ),
    (
        GaugeMetricFamily,
        "springtide_paused_objects",
        "Objects that people have paused by their annotation.",
        lambda health: health.paused,
    ),
)


class ManagerStates(Collector):
    """The state of one manager as metrics."""

    def __init__(self, manager: Manager, clock: Clock) -> None:
        self._manager = manager
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Read everything now."""
        yield _one("springtide_leader", "Whether this process is the one that acts.", self._manager.leading)
        yield _one("springtide_paused", "Whether everything is paused by the ConfigMap.", self._manager.paused)
        yield from _controllers(self._manager.health())
        yield from _caches(self._manager.cache_health(), self._clock.monotonic())


def _controllers(healths: Sequence[Health]) -> Iterator[Metric]:
    for family, name, help_, read in _OF_CONTROLLERS:
        yield _family(family, name, help_, ("controller",), (((one.name,), read(one)) for one in healths))
    yield _family(
        GaugeMetricFamily,
        "springtide_controller_state",
        "What a controller is doing: 1 for the state that it is in.",
        ("controller", "state"),
        (((one.name, state.replace(" ", "_")), one.state is state) for one in healths for state in State),
    )
    yield _family(
        CounterMetricFamily,
        "springtide_writes",
        "Writes that controllers sent, or held back because they only observe.",
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
        "Whether a cache has been complete once.",
        ("cache",),
        (((label,), one.synced) for label, one in caches),
    )
    yield _family(
        GaugeMetricFamily,
        "springtide_cache_objects",
        "Objects in a cache, by whether a record could be made of them.",
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
        "How often everything was read again, after the first time.",
        ("cache",),
        (((label,), one.relists) for label, one in caches),
    )
    yield _family(
        GaugeMetricFamily,
        "springtide_cache_last_contact_age_seconds",
        "Seconds since the API server told a cache anything. Bookmarks come about once a minute.",
        ("cache",),
        (((label,), now - one.last_contact) for label, one in caches if one.last_contact is not None),
    )
    yield _family(
        GaugeMetricFamily,
        "springtide_cache_last_event_age_seconds",
        "Seconds since the API server told a cache of an object.",
        ("cache",),
        (((label,), now - one.last_event) for label, one in caches if one.last_event is not None),
    )


def _labels(healths: Iterable[CacheHealth]) -> list[str]:
    """Name the caches; of those that select the same and keep different records, the later ones get a number."""
    seen: Counter[str] = Counter()
    labels = []
    for one in healths:
        seen[one.selection] += 1
        number = seen[one.selection]
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
