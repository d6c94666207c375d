"""MetricsProducer: makes a metric that autoscalers follow, from a schedule, a queue, or the nodes that there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from springtide.apis.fields import Context, Int32, Int64, Rule, Time, View, doc, extension
from springtide.apis.meta.types import Object
from springtide.apis.problems import Problem, error
from springtide.apis.scheduled.behaviors import ScheduleSpec
from springtide.apis.scheduled.conditions import LivingConditions
from springtide.apis.scheduled.queue import QueueSpec

_PRODUCERS = ("pendingCapacity", "queue", "reservedCapacity", "schedule")


class PendingCapacitySpec(View, kw_only=True):
    """A signal of pods that wait for nodes of a group."""

    node_selector: Annotated[dict[str, str], doc("Labels of the group's nodes.")]


class ReservedCapacitySpec(View, kw_only=True):
    """How much of a group of nodes is spoken for."""

    node_selector: Annotated[
        Annotated[dict[str, str], Meta(min_length=1, max_length=1)],
        doc("The one label that tells the group's nodes from all others."),
    ]


class MetricsProducerSpec(View, kw_only=True):
    """What the metric is made from: exactly one source."""

    __mistaken__ = {
        "scheduleSpec": "write `schedule`",
        "scheduledCapacity": "write `schedule`, whose behaviors have `start` and `end`",
    }
    __rules__ = (
        Rule(
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

    def problems(self, context: Context) -> Iterator[Problem]:  # noqa: ARG002
        """Find producers with no source, or with several."""
        sources = (self.pending_capacity, self.queue, self.reserved_capacity, self.schedule)
        given = [name for name, source in zip(_PRODUCERS, sources, strict=True) if source is not None]
        if not given:
            yield error((), "nothing is produced", f"set one of {', '.join(_PRODUCERS)}")
        elif len(given) > 1:
            yield error(
                (given[1],),
                f"a producer has one source, this one has {len(given)}: {', '.join(given)}",
                "make an object of its own for each",
            )


class PendingCapacityStatus(View, kw_only=True):
    """What was found among pending pods."""

    schedulable_pods: Annotated[
        Int64 | None, doc("How many pending pods a new node of the group would take."), extension
    ] = None


class QueueStatus(View, kw_only=True):
    """The queue as it was seen last."""

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
        LivingConditions | None,
        doc("Active and Calculable; Ready is both. Unambiguous tells whether a schedule may be misread."),
    ] = None


class MetricsProducer(Object, kw_only=True):
    """Makes a metric that any number of autoscalers can follow."""

    spec: Annotated[MetricsProducerSpec, doc("What the metric is made from.")]
    status: Annotated[MetricsProducerStatus | None, doc("What was produced last.")] = None
