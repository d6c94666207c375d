"""Cross-object checks of this group: schedules with their calendars, and two objects for one node group.

Also which queries read the metric of which producer. That is no PromQL parser: it searches for the names of our own
metrics and the matchers behind them, which is enough to show users which objects depend on each other. The autoscaler
itself parses the query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.times import KnownCalendars
from springtide.apis.objects import LoadedObject
from springtide.apis.problems import Problem, warning
from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler
from springtide.apis.scheduled.label_patterns import PatternError, compile_pattern
from springtide.apis.scheduled.node_group import GroupId, ScalableNodeGroup, may_be_same, read_group_id
from springtide.apis.scheduled.producer import MetricsProducer
from springtide.apis.scheduled.schedule import schedule_findings

_FAMILIES = {
    "schedule": r"karpenter_scheduled_(?:capacity|replicas_value)",
    "queue": r"karpenter_queue_(?:length|oldest_message_age_seconds)",
    "reserved_capacity": r"karpenter_reserved_capacity_(?:cpu|memory|pods)_(?:reserved|capacity|utilization)",
    "pending_capacity": r"karpenter_pending_capacity_schedulable_pods",
}
_SELECTOR = (
    r"(?<![\w:]){metric}(?![\w:])\s*+"
    r"(?:\{{(?P<matchers>(?:[^{{}}\"']|\"(?:\\.|[^\"\\])*+\"|'(?:\\.|[^'\\])*+')*+)\}})?"
)
_ANY_SELECTOR = re.compile(_SELECTOR.format(metric=f"(?:{'|'.join(_FAMILIES.values())})"))
_MATCHER = re.compile(
    # An unclosed quote reaches to the end; otherwise every later matcher would be read to the end, too.
    r"(?<!\w)(?P<label>\w++)\s*+(?P<operator>=~|!~|!=|=)\s*+(?P<quote>[\"'])"
    r"(?P<value>(?:\\.|(?!(?P=quote)).)*+)(?:(?P=quote)|\\?\Z)"
)


def query_reads(query: str, namespace: str | None, producer: MetricsProducer) -> bool:
    """Return whether a query of an object in a namespace mentions the metric of a producer."""
    return any(_matchers_select(found["matchers"], namespace, producer) for found in _selectors(query, producer))


def query_is_only(query: str, namespace: str | None, producer: MetricsProducer) -> bool:
    """Return whether a query is only the metric of a producer, selected by its name."""
    for found in _selectors(query, producer):
        matchers = _MATCHER.finditer(found["matchers"] or "")
        named = any(one["label"] == "name" and one["operator"] == "=" for one in matchers)
        return named and found.group() == query.strip() and _matchers_select(found["matchers"], namespace, producer)
    return False


def producers_named_in(query: str, namespace: str | None) -> Iterator[tuple[str | None, str]]:
    """Yield namespace and name of every producer whose metric a query in a namespace selects by name."""
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
    """Return the queries of an autoscaler, in their order."""
    return tuple(one.prometheus.query for one in autoscaler.spec.metrics or () if one.prometheus is not None)


def _selectors(query: str, producer: MetricsProducer) -> Iterator[re.Match[str]]:
    for source, family in _FAMILIES.items():
        if getattr(producer.spec, source) is not None:
            yield from re.finditer(_SELECTOR.format(metric=family), query)


def _matchers_select(matchers: str | None, namespace: str | None, producer: MetricsProducer) -> bool:
    """Return whether matchers select a producer; without a namespace matcher, only in their own namespace."""
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
        return compile_pattern(wanted).matches(value) is (operator == "=~")
    except PatternError:
        return True


def schedule_problems_with_calendars(
    objects: Sequence[LoadedObject], context: ValidationContext, calendars: KnownCalendars
) -> Iterator[tuple[int, Problem]]:
    """Find behaviours with calendars that collide with others or never take effect."""
    for position, loaded in enumerate(objects):
        view = loaded.view
        schedule = view.spec.schedule if isinstance(view, MetricsProducer) and loaded.sound else None
        if schedule is None or not any(behavior.calendars for behavior in schedule.behaviors):
            continue
        known = {problem.message for problem in loaded.problems}
        for found in schedule_findings(schedule, context, calendars):
            if found.dated not in known:
                yield position, warning(("spec", "schedule", *found.path), found.dated, found.hint)


def node_group_problems(objects: Sequence[LoadedObject]) -> Iterator[tuple[int, Problem]]:
    """Find several objects for one node group; each problem has the position of its object."""
    by_place: dict[tuple[str, str], list[tuple[int, GroupId]]] = {}
    for position, loaded in enumerate(objects):
        if not isinstance(loaded.view, ScalableNodeGroup) or not loaded.sound:
            continue
        group = read_group_id(loaded.view.spec.type, loaded.view.spec.id)
        if group is not None:
            by_place.setdefault((type(group).__name__, group.place), []).append((position, group))
    for claims in by_place.values():
        for position, group in claims:
            others = [objects[other] for other, its in claims if other != position and may_be_same(group, its)]
            if others:
                conflicting = ", ".join(
                    f"`{other.name}`{_namespace_suffix(other, objects[position])}" for other in others
                )
                message = (
                    f"this is also the node group of ScalableNodeGroup {conflicting}:"
                    " only the object that was created first scales it"
                )
                yield position, warning(("spec", "id"), message, "keep one object for each node group")


def _namespace_suffix(other: LoadedObject, one: LoadedObject) -> str:
    return "" if other.namespace == one.namespace else f" in namespace {other.namespace}"
