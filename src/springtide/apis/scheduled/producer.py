"""MetricsProducer: produces a metric for autoscalers from a schedule, a queue, pending pods, or reserved capacity."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal
from urllib.parse import urlsplit

from msgspec import Meta

from springtide.apis.kinds import (
    CelRule,
    Count,
    Int32,
    Int64,
    NonEmpty,
    Time,
    ValidationContext,
    View,
    Zone,
    at_most,
    by_key,
    doc,
    extension,
    stock,
)
from springtide.apis.meta.times import CalendarReference, Window
from springtide.apis.meta.types import KnativeConditions, Object
from springtide.apis.problems import Problem, error
from springtide.apis.scheduled.promql import MAX_QUERY, query_problems
from springtide.apis.scheduled.schedule import schedule_problems

_SQS_ARN = re.compile(r"arn:[a-z0-9-]+:sqs:[a-z0-9-]+:[0-9]+:[A-Za-z0-9_-]+(\.fifo)?")
_SQS_URL = re.compile(
    r"https://sqs\.(?P<region>[a-z0-9-]+)\.amazonaws\.com/(?P<account>[0-9]+)/(?P<name>[A-Za-z0-9_-]+(\.fifo)?)"
)
_JSON_POINTER = re.compile(r"(/([^~]|~[01])*)?")


class QueueSpec(View, kw_only=True):
    """A queue, and how its length is read."""

    __mistaken__ = {"arn": "write `id`", "url": "write `id`", "query": "write `id`"}

    type: Annotated[
        Literal["AWSSQSQueue", "Prometheus", "HTTP"],
        doc("The type of the queue, which decides how its length is read."),
        stock(type="string", enum=["AWSSQSQueue"]),
    ]
    id: Annotated[
        Annotated[NonEmpty, at_most(MAX_QUERY)],
        doc("The queue: ARN of an SQS queue, a PromQL query, or a URL that answers JSON."),
    ]
    pointer: Annotated[
        Annotated[str, at_most(1024)] | None,
        doc("JSON pointer to the number in an HTTP answer; the answer is the number if not set."),
        extension,
    ] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find ids that are not of the type."""
        match self.type:
            case "AWSSQSQueue" if not _SQS_ARN.fullmatch(self.id):
                yield error(("id",), f'"{self.id}" is not the ARN of an SQS queue', _sqs_arn_hint(self.id))
            case "Prometheus":
                yield from query_problems(self.id, ("id",))
            case "HTTP" if not _is_url(self.id):
                yield error(("id",), f'"{self.id}" is not a URL', "write http:// or https://, a host and a path")
        if self.pointer is None:
            return
        if self.type != "HTTP":
            yield error(("pointer",), f"`pointer` has no effect for a queue of type {self.type}", "remove it")
        elif not _JSON_POINTER.fullmatch(self.pointer):
            yield error(
                ("pointer",),
                f'"{self.pointer}" is not a JSON pointer',
                "begin each step with `/`, such as /data/length; write ~ as ~0 and / as ~1",
            )


def _sqs_arn_hint(id_: str) -> str:
    if url := _SQS_URL.fullmatch(id_):
        return f"write `arn:aws:sqs:{url['region']}:{url['account']}:{url['name']}`"
    return "write arn:aws:sqs:REGION:ACCOUNT:NAME"


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # an IPv6 address without a bracket, or a port that is not a number
        return False


class ScheduledBehavior(Window, kw_only=True):
    """A number of replicas, and the times at which it applies."""

    __mistaken__ = {
        "crontab": "write `start` and `end`: a schedule has no cron expressions",
        "timezone": "write `timezone` once, beside `behaviors`",
        "timeZone": "write `timezone` once, beside `behaviors`",
        "value": "write `replicas`",
    }
    __rules__ = (
        CelRule(
            "has(self.start) != has(self.from)",
            "Set either start and end, for a behaviour that recurs, or from and until, for one that happens once.",
            extension=True,
        ),
        CelRule("has(self.start) == has(self.end)", "Set both start and end.", extension=True),
        CelRule("has(self.from) == has(self.until)", "Set both from and until.", extension=True),
    )

    name: Annotated[NonEmpty | None, doc("Name of the behaviour in explanations; unique."), extension] = None
    replicas: Annotated[Count, doc("The value while the behaviour is active.")]
    priority: Annotated[
        Int32 | None, doc("The highest of the active behaviours wins, then the first listed; 0 if not set."), extension
    ] = None
    suspend: Annotated[bool, doc("Disables the behaviour."), extension] = False
    lead_seconds: Annotated[
        Count | None, doc("How much earlier the behaviour begins, so that capacity is there in time."), extension
    ] = None
    calendars: Annotated[
        Annotated[tuple[CalendarReference, ...], by_key("name")] | None,
        doc("Calendars that exclude days, or leave only theirs."),
        extension,
    ] = None


class ScheduleSpec(View, kw_only=True):
    """Replicas over time: those of the winning behaviour, else the default."""

    __mistaken__ = {"timeZone": "write `timezone`", "behaviours": "write `behaviors`", "rules": "write `behaviors`"}

    behaviors: Annotated[
        Annotated[tuple[ScheduledBehavior, ...], at_most(512)],
        doc("The behaviours; of equal ones the first listed wins."),
    ]
    timezone: Annotated[
        Zone | None, doc("IANA name of the zone that all patterns are read in, such as Europe/Berlin; UTC if not set.")
    ] = None
    default_replicas: Annotated[Count, doc("The value while no behaviour is active.")]
    match_policy: Annotated[
        Literal["Literal", "Window"],
        doc(
            "Literal: active while the next end comes before the next start. Window: active from a start until the"
            " end after it. Both are the same if starts and ends alternate."
        ),
        extension,
    ] = "Literal"

    def problems(self, context: ValidationContext) -> Iterator[Problem]:
        """Find behaviours with the same name, that collide, or that are ambiguous."""
        seen: dict[str, int] = {}
        for position, behavior in enumerate(self.behaviors):
            if behavior.name is None:
                continue
            if behavior.name in seen:
                first = context.position("behaviors", seen[behavior.name])
                yield error(
                    ("behaviors", position, "name"),
                    f'"{behavior.name}" is already the name of behaviors[{first}]',
                    "give each behaviour a name of its own",
                )
            seen.setdefault(behavior.name, position)
        if context.deep_search:
            yield from schedule_problems(self, context)


_PRODUCERS = ("pendingCapacity", "queue", "reservedCapacity", "schedule")


class PendingCapacitySpec(View, kw_only=True):
    """A signal of pods that wait for nodes of a group."""

    node_selector: Annotated[dict[str, str], doc("Labels of the group's nodes.")]


class ReservedCapacitySpec(View, kw_only=True):
    """How much of a group of nodes is requested by pods."""

    node_selector: Annotated[
        Annotated[dict[str, str], Meta(min_length=1, max_length=1)],
        doc("The label that selects the nodes of the group."),
    ]


class MetricsProducerSpec(View, kw_only=True):
    """The source of the metric: exactly one."""

    __mistaken__ = {
        "scheduleSpec": "write `schedule`",
        "scheduledCapacity": "write `schedule`, whose behaviors have `start` and `end`",
    }
    __rules__ = (
        CelRule(
            "[has(self.pendingCapacity), has(self.queue), has(self.reservedCapacity), has(self.schedule)]"
            ".filter(given, given).size() == 1",
            "Set exactly one of pendingCapacity, queue, reservedCapacity and schedule.",
            extension=True,
        ),
    )

    pending_capacity: Annotated[
        PendingCapacitySpec | None, doc("Whether growing a group of nodes would let pending pods run.")
    ] = None
    queue: Annotated[QueueSpec | None, doc("How long a queue is, and how old its oldest message.")] = None
    reserved_capacity: Annotated[
        ReservedCapacitySpec | None, doc("How much of the nodes' CPU, memory and pods is requested.")
    ] = None
    schedule: Annotated[ScheduleSpec | None, doc("A number of replicas for each time.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find producers without a source, or with several."""
        sources = (self.pending_capacity, self.queue, self.reserved_capacity, self.schedule)
        given = [name for name, source in zip(_PRODUCERS, sources, strict=True) if source is not None]
        if not given:
            yield error((), "the producer has no source", f"set one of {', '.join(_PRODUCERS)}")
        elif len(given) > 1:
            yield error(
                (given[1],),
                f"a producer has one source, this one has {len(given)}: {', '.join(given)}",
                "create a separate object for each",
            )


class PendingCapacityStatus(View, kw_only=True):
    """What was found among pending pods."""

    schedulable_pods: Annotated[
        Int64 | None, doc("How many pending pods would fit on a new node of the group."), extension
    ] = None


class QueueStatus(View, kw_only=True):
    """The last observation of the queue."""

    length: Annotated[Int64 | None, doc("How many messages wait.")] = None
    oldest_message_age_seconds: Annotated[Int64 | None, doc("How long the oldest has waited.")] = None


class UpcomingValue(View, kw_only=True):
    """A change that lies ahead."""

    at: Annotated[Time, doc("When.")]
    value: Annotated[Int32, doc("The value from then on.")]


class ScheduledCapacityStatus(View, kw_only=True):
    """The schedule's value, now and next."""

    current_value: Annotated[Int32 | None, doc("The value now.")] = None
    next_value_time: Annotated[Time | None, doc("When the value changes; not set if it never does.")] = None
    next_value: Annotated[Int32 | None, doc("The value after that.")] = None
    upcoming: Annotated[tuple[UpcomingValue, ...] | None, doc("The next changes, five at most."), extension] = None
    active_behavior: Annotated[
        str | None, doc("The behaviour that sets the value: its name, or its position in the list."), extension
    ] = None
    timezone: Annotated[str | None, doc("The zone that the schedule is read in."), extension] = None


class MetricsProducerStatus(View, kw_only=True):
    """What was produced last."""

    pending_capacity: Annotated[PendingCapacityStatus | None, doc("Of pending pods.")] = None
    queue: Annotated[QueueStatus | None, doc("Of a queue.")] = None
    reserved_capacity: Annotated[
        dict[str, str] | None, doc("For each resource the percentage, and what is reserved of what there is.")
    ] = None
    scheduled_capacity: Annotated[ScheduledCapacityStatus | None, doc("Of a schedule.")] = None
    conditions: Annotated[
        KnativeConditions | None,
        doc("Active and Calculable; Ready is both. Unambiguous is False if a schedule may be misread."),
    ] = None


class MetricsProducer(Object, kw_only=True):
    """Produces a metric that any number of autoscalers can follow."""

    spec: Annotated[MetricsProducerSpec, doc("What the metric is made from.")]
    status: Annotated[MetricsProducerStatus | None, doc("What was produced last.")] = None
