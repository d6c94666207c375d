"""How long the controller takes, under the names that upstream gives these metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from prometheus_client import CollectorRegistry, Histogram

_SECONDS = tuple(0.001 * 2**step for step in range(12))
_RESULTS = ("success", "error")


class CronMetrics:
    """A service of the process: what is measured of CronFederatedHPAs. Without a registry nothing is."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._objects = self._rules = None
        if registry is not None:
            self._objects = _histogram(
                "cronfederatedhpa_process_duration_seconds", "How long it took to look after an object.", registry
            )
            self._rules = _histogram(
                "cronfederatedhpa_rule_process_duration_seconds", "How long it took to apply a firing.", registry
            )

    @contextmanager
    def looking_after(self) -> Iterator[None]:
        """Measure what happens in the block as the time for one object."""
        began = perf_counter()
        result = "error"
        try:
            yield
            result = "success"
        finally:
            if self._objects is not None:
                self._objects.labels(result).observe(perf_counter() - began)

    def applied(self, seconds: float, *, success: bool) -> None:
        """Take note of one try to apply one firing."""
        if self._rules is not None:
            self._rules.labels("success" if success else "error").observe(seconds)


def _histogram(name: str, words: str, registry: CollectorRegistry) -> Histogram:
    histogram = Histogram(name, words, ("result",), buckets=_SECONDS, registry=registry)
    for result in _RESULTS:
        histogram.labels(result)
    return histogram
