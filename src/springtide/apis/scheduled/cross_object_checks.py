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
_QUOTED = r"(?:\"(?:\\.|[^\"\\])*+\"|'(?:\\.|[^'\\])*+'|`[^`]*+`)"
_SELECTOR = (
    r"(?<![\w:]){metric}(?![\w:])\s*+"
    rf"(?:\{{{{(?P<matchers>(?:[^{{{{}}}}\"'`]|{_QUOTED})*+)\}}}})?"
)
_ANY_SELECTOR = re.compile(_SELECTOR.format(metric=f"(?:{'|'.join(_FAMILIES.values())})"))
_OF_ONE_SAMPLE = re.compile(r"\s*+(?:sum|min|max|avg)\s*+\((?P<inner>.*)\)\s*", re.DOTALL | re.IGNORECASE)
"""An aggregation that returns the value of its argument, if that is one sample."""
_MATCHER = re.compile(
    rf"(?<!\w)(?P<label>\w++)\s*+(?P<operator>=~|!~|!=|=)\s*+(?P<value>{_QUOTED})",
    re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:(?P<letter>[abfnrtv\\\"'])|x(?P<byte>[0-9a-fA-F]{2})|(?P<octal>[0-7]{3})"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<invalid>.?))",
    re.DOTALL,
)
_LETTERS = dict(zip("abfnrtv\\\"'", "\a\b\f\n\r\t\v\\\"'", strict=True))


def query_reads(query: str, namespace: str | None, producer: MetricsProducer) -> bool:
    """Return whether a query of an object in a namespace mentions the metric of a producer."""
    return any(_matchers_select(found["matchers"], namespace, producer) for found in _selectors(query, producer))


def query_is_only(query: str, namespace: str | None, producer: MetricsProducer) -> bool:
    """Return whether a query is only the metric of a producer, selected by its name; `max(…)` of it is the same."""
    if (wrapped := _OF_ONE_SAMPLE.fullmatch(query)) is not None:
        query = wrapped["inner"]
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
                chosen[matcher["label"]] = _value_of(matcher["value"]) if matcher["operator"] == "=" else None
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


def _matches(operator: str, written: str, value: str) -> bool:
    wanted = _value_of(written)
    if wanted is None:
        return True
    if operator in ("=", "!="):
        return (wanted == value) is (operator == "=")
    try:
        return compile_pattern(wanted).matches(value) is (operator == "=~")
    except PatternError:
        return True


def _value_of(written: str) -> str | None:
    """Return the value of a string of PromQL, which has the escapes of Go; None where one is not valid."""
    quote, text = written[0], written[1:-1]
    if quote == "`":
        return text
    parts: list[bytes] = []
    end = 0
    try:
        for found in _ESCAPE.finditer(text):
            parts.append(text[end : found.start()].encode())
            parts.append(_escaped(found, quote))
            end = found.end()
        parts.append(text[end:].encode())
        return b"".join(parts).decode()
    except ValueError:
        return None


def _escaped(found: re.Match[str], quote: str) -> bytes:
    """Return the bytes of an escape; raises ValueError where it is not valid."""
    match found.lastgroup:
        case "letter" if found["letter"] not in "\"'" or found["letter"] == quote:
            return _LETTERS[found["letter"]].encode()
        case "byte":
            return bytes([int(found["byte"], 16)])
        case "octal":
            return bytes([int(found["octal"], 8)])
        case "short" | "long" as size:
            return chr(int(found[size], 16)).encode()
        case _:
            msg = f"invalid escape {found.group()!r}"
            raise ValueError(msg)


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
