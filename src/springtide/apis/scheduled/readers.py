"""Which queries read the metric of which producer, and what follows from its value.

This is no parser of PromQL: it looks for the names of our own metrics and the matchers behind them. That is enough to
tell people who depends on whom; whoever scales reads the query properly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler
from springtide.apis.scheduled.producer import MetricsProducer

_FAMILIES = {
    "schedule": r"karpenter_scheduled_(?:capacity|replicas_value)",
    "queue": r"karpenter_queue_(?:length|oldest_message_age_seconds)",
    "reserved_capacity": r"karpenter_reserved_capacity_(?:cpu|memory|pods)_(?:reserved|capacity|utilization)",
    "pending_capacity": r"karpenter_pending_capacity_schedulable_pods",
}
_SELECTOR = (
    r"(?<![\w:]){metric}(?![\w:])\s*(?:\{{(?P<matchers>(?:[^{{}}\"']|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')*)\}})?"
)
_ANY_SELECTOR = re.compile(_SELECTOR.format(metric=f"(?:{'|'.join(_FAMILIES.values())})"))
_MATCHER = re.compile(
    r"(?P<label>\w+)\s*(?P<operator>=~|!~|!=|=)\s*(?P<quote>[\"'])(?P<value>(?:\\.|(?!(?P=quote)).)*)(?P=quote)"
)


def reads(query: str, namespace: str | None, producer: MetricsProducer) -> bool:
    """Tell whether a query of an object in a namespace mentions the metric of a producer."""
    return any(_agrees(found["matchers"], namespace, producer) for found in _selectors(query, producer))


def reads_only(query: str, namespace: str | None, producer: MetricsProducer) -> bool:
    """Tell whether a query is nothing but the metric of a producer, chosen by its name."""
    for found in _selectors(query, producer):
        matchers = _MATCHER.finditer(found["matchers"] or "")
        named = any(one["label"] == "name" and one["operator"] == "=" for one in matchers)
        return named and found.group() == query.strip() and _agrees(found["matchers"], namespace, producer)
    return False


def named_producers(query: str, namespace: str | None) -> Iterator[tuple[str | None, str]]:
    """Give the namespace and the name of every producer whose metric a query of a namespace asks for by name."""
    for found in _ANY_SELECTOR.finditer(query):
        chosen = {"namespace": namespace}
        for matcher in _MATCHER.finditer(found["matchers"] or ""):
            if matcher["label"] in ("name", "namespace"):
                exact = matcher["operator"] == "=" and "\\" not in matcher["value"]
                chosen[matcher["label"]] = matcher["value"] if exact else None
        name = chosen.get("name")
        if name and chosen["namespace"] is not None:
            yield chosen["namespace"], name


def queries_of(autoscaler: HorizontalAutoscaler) -> tuple[str, ...]:
    """Give the queries of an autoscaler, in their order."""
    return tuple(one.prometheus.query for one in autoscaler.spec.metrics or () if one.prometheus is not None)


def _selectors(query: str, producer: MetricsProducer) -> Iterator[re.Match[str]]:
    for source, family in _FAMILIES.items():
        if getattr(producer.spec, source) is not None:
            yield from re.finditer(_SELECTOR.format(metric=family), query)


def _agrees(matchers: str | None, namespace: str | None, producer: MetricsProducer) -> bool:
    """Tell whether matchers choose a producer; without a word about namespaces, only their own is meant."""
    labels = {"name": producer.metadata.name or "", "namespace": producer.metadata.namespace or "default"}
    written = list(_MATCHER.finditer(matchers or ""))
    if labels["namespace"] != namespace and not any(one["label"] == "namespace" for one in written):
        return False
    return all(
        _matches(one["operator"], one["value"], labels[one["label"]]) for one in written if one["label"] in labels
    )


def _matches(operator: str, wanted: str, value: str) -> bool:
    if operator in ("=", "!="):
        return (wanted == value) is (operator == "=")
    try:
        return (re.fullmatch(wanted, value) is not None) is (operator == "=~")
    except re.error:
        return True
