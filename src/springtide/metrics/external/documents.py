"""What `external.metrics.k8s.io/v1beta1` says: which metrics there are, and their values, as JSON objects.

Everything here is a pure function of the book and the time.

A book of series where simulated autoscalers read: what the aggregated API is on a live cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor

from springtide.apis.forecast import format_instant
from springtide.cluster.errors import NotFound, ServerError
from springtide.cluster.resources import Key, Object
from springtide.metrics.series import HELP, STALENESS_LIMIT, SeriesStore

GROUP = "external.metrics.k8s.io"
VERSION = "v1beta1"
GROUP_VERSION = f"{GROUP}/{VERSION}"
PATH = f"/apis/{GROUP_VERSION}"

LabelPredicate = Callable[[Mapping[str, str]], bool]
"""Tells by the labels of a series whether it is meant."""


def group_list() -> Object:
    """Say which groups this server has."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group()]}


def group() -> Object:
    """Say which versions the group has."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_group()}


def resource_list() -> Object:
    """Say which metrics there can be.

    These are all that objects can have, whether one has it now or not: a replica that does not lead has no series, and
    discovery that changes with who answers is worse than none.
    """
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": GROUP_VERSION,
        "resources": [
            {"name": name, "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList", "verbs": ["get"]}
            for name in sorted(HELP)
        ],
    }


def value_list(book: SeriesStore, metric: str, namespace: str, selects: LabelPredicate, now: int) -> Object:
    """Give the series of a metric that are meant, of one namespace.

    Whoever asks adds them up. So a series that has no value, or one that has been old for too long or is not known yet,
    fails the whole answer: a sum without it would be too small, and an autoscaler that is told nothing leaves
    everything as it is.
    """
    if metric not in HELP:
        raise NotFound(f"there is no external metric {metric!r}, expected one of {', '.join(sorted(HELP))}")
    items = [
        {
            "metricName": metric,
            "metricLabels": labels,
            "timestamp": format_instant(now - age),
            "value": amount(value),
        }
        for labels, value, age in series(book, metric, namespace, selects, now)
    ]
    return {"kind": "ExternalMetricValueList", "apiVersion": GROUP_VERSION, "metadata": {}, "items": items}


def series(
    book: SeriesStore, metric: str, namespace: str, selects: LabelPredicate, now: int
) -> Iterator[tuple[dict[str, str], int | Fraction, int]]:
    """Give the labels, the value and the age of every series that is meant."""
    if not book.is_open:
        raise _unavailable("it is not known yet which MetricsProducers there are", retry_after=1)
    for key in book.awaited(metric, namespace):
        if selects(_labels(key)):
            raise _unavailable(f"the value of {metric} of MetricsProducer {key} is not known yet", retry_after=1)
    for key, value in book.of(metric, namespace):
        labels = _labels(key)
        if not selects(labels):
            continue
        if value is None:
            raise _unavailable(f"{metric} of MetricsProducer {key} has no value now: its status says why")
        age = book.age(key, now)
        if age > STALENESS_LIMIT:
            raise _unavailable(
                f"the value of {metric} of MetricsProducer {key} has been old for {age} s: its conditions say why"
            )
        yield labels, value, age


def amount(value: int | Fraction) -> str:
    """Write a value as a quantity, in thousandths where it is not whole; finer than that rounds away from zero."""
    thousandths = milli(value)
    return str(thousandths // 1000) if thousandths % 1000 == 0 else f"{thousandths}m"


def milli(value: int | Fraction) -> int:
    """Give a value in thousandths, away from zero, as autoscalers read quantities."""
    return ceil(value * 1000) if value >= 0 else floor(value * 1000)


def _group() -> Object:
    version = {"groupVersion": GROUP_VERSION, "version": VERSION}
    return {"name": GROUP, "versions": [version], "preferredVersion": version}


def _labels(key: Key) -> dict[str, str]:
    return {"name": key.name, "namespace": key.namespace}


def _unavailable(words: str, retry_after: float | None = None) -> ServerError:
    return ServerError(words, code=503, reason="ServiceUnavailable", retry_after=retry_after)


class SeriesMetrics:
    """External metrics from the books of all processes, of which the leader's is open; nothing else is measured."""

    def __init__(self, books: Sequence[SeriesStore]) -> None:
        self._books = books

    def of_pods(self, metric: str, namespace: str, pods: Sequence[str], container: str, now: int) -> Mapping[str, int]:  # noqa: ARG002
        """Read nothing."""
        return {}

    def of_object(self, metric: str, namespace: str, kind: str, name: str, now: int) -> int | None:  # noqa: ARG002
        """Read nothing."""
        return None

    def external(self, metric: str, namespace: str, selects: LabelPredicate, now: int) -> int | None:
        """Add up, in thousandths, the series of a namespace that are meant; none where there are none to rely on."""
        try:
            values = [
                value
                for book in self._books
                if book.is_open
                for _, value, _ in series(book, metric, namespace, selects, now)
            ]
        except ServerError:
            return None
        return sum(map(milli, values)) if values else None
