"""The documents of `external.metrics.k8s.io/v1beta1`: discovery and values, as pure functions of a store and the time.

`SeriesMetrics` gives simulated HorizontalPodAutoscalers the same values without HTTP.
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
"""Tells whether a series with these labels is selected."""


def group_list() -> Object:
    """Return the APIGroupList."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group()]}


def group() -> Object:
    """Return the APIGroup."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_group()}


def resource_list() -> Object:
    """Return the APIResourceList with all metrics that MetricsProducers can have.

    It does not depend on the existing series: a replica that does not lead has none, and all replicas must give the
    same answer.
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


def value_list(store: SeriesStore, metric: str, namespace: str, selects: LabelPredicate, now: int) -> Object:
    """Return the selected series of a metric in a namespace as an ExternalMetricValueList.

    Autoscalers add the values up. So a selected series that is pending, outdated or without a value fails the whole
    request: a sum without it would be too small, while an autoscaler without an answer keeps its replicas.
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
        for labels, value, age in series(store, metric, namespace, selects, now)
    ]
    return {"kind": "ExternalMetricValueList", "apiVersion": GROUP_VERSION, "metadata": {}, "items": items}


def series(
    store: SeriesStore, metric: str, namespace: str, selects: LabelPredicate, now: int
) -> Iterator[tuple[dict[str, str], int | Fraction, int]]:
    """Yield the labels, the value and the age of every selected series."""
    if not store.synced:
        raise _unavailable("the MetricsProducers of the cluster have not been read yet", retry_after=1)
    for key in store.pending(metric, namespace):
        if selects(_labels(key)):
            raise _unavailable(f"the value of {metric} of MetricsProducer {key} is not known yet", retry_after=1)
    for key, value in store.of(metric, namespace):
        labels = _labels(key)
        if not selects(labels):
            continue
        if value is None:
            raise _unavailable(f"{metric} of MetricsProducer {key} has no value now: its status says why")
        age = store.age(key, now)
        if age > STALENESS_LIMIT:
            raise _unavailable(
                f"the value of {metric} of MetricsProducer {key} has been outdated for {age} s: its conditions say why"
            )
        yield labels, value, age


def amount(value: int | Fraction) -> str:
    """Format a value as a quantity, in thousandths if it is not whole; rounded away from zero."""
    thousandths = milli(value)
    return str(thousandths // 1000) if thousandths % 1000 == 0 else f"{thousandths}m"


def milli(value: int | Fraction) -> int:
    """Return a value in thousandths, rounded away from zero, as autoscalers read quantities."""
    return ceil(value * 1000) if value >= 0 else floor(value * 1000)


def _group() -> Object:
    version = {"groupVersion": GROUP_VERSION, "version": VERSION}
    return {"name": GROUP, "versions": [version], "preferredVersion": version}


def _labels(key: Key) -> dict[str, str]:
    return {"name": key.name, "namespace": key.namespace}


def _unavailable(message: str, retry_after: float | None = None) -> ServerError:
    return ServerError(message, code=503, reason="ServiceUnavailable", retry_after=retry_after)


class SeriesMetrics:
    """External metrics from the stores of all processes, of which that of the leader is synced."""

    def __init__(self, stores: Sequence[SeriesStore]) -> None:
        self._stores = stores

    def of_pods(self, metric: str, namespace: str, pods: Sequence[str], container: str, now: int) -> Mapping[str, int]:  # noqa: ARG002
        """Return nothing."""
        return {}

    def of_object(self, metric: str, namespace: str, kind: str, name: str, now: int) -> int | None:  # noqa: ARG002
        """Return nothing."""
        return None

    def external(self, metric: str, namespace: str, selects: LabelPredicate, now: int) -> int | None:
        """Add up the selected series of a namespace, in thousandths; None if there is no reliable sum."""
        try:
            values = [
                value
                for store in self._stores
                if store.synced
                for _, value, _ in series(store, metric, namespace, selects, now)
            ]
        except ServerError:
            return None
        return sum(map(milli, values)) if values else None
