"""Mistakes in MetricsProducers."""

from __future__ import annotations

from typing import Any

from tests.e2e.refusals.rows import KARPENTER, Refused, but, written

from springtide.cluster.resources import Object

SCHEDULE = "spec.schedule"
BEHAVIOR = f"{SCHEDULE}.behaviors[0]"
_ONCE = {"start": None, "end": None}


def scheduled(behavior: dict[str, Any] | None = None, *more: dict[str, Any], **schedule: Any) -> Object:
    """Write a MetricsProducer whose first behaviour is right but for some fields."""
    right = {"replicas": 3, "start": {"hours": "9"}, "end": {"hours": "17"}}
    made = {"behaviors": [but(right, behavior or {}), *more], "defaultReplicas": 1}
    return producer(schedule=but(made, schedule))


def producer(**spec: Any) -> Object:
    """Write a MetricsProducer."""
    return written("MetricsProducer", KARPENTER, spec)


ROWS = (
    *(
        Refused(id_, scheduled({"start": {field: value}}), f"{BEHAVIOR}.start.{field}", words)
        for id_, field, value, words in (
            ("V02-range-of-weekdays", "weekdays", "Mon-Fri", "only lists are understood: Mon,Tue,Wed,Thu,Fri"),
            ("V02-range-of-months", "months", "Jan-Mar", "only lists are understood: Jan,Feb,Mar"),
            ("V02-step", "hours", "*/2", "only lists are understood: 0,2,4,6,8,10,12,14,16,18,20,22"),
            ("V02-star", "hours", "*", "only lists are understood: 0,1,2,3"),
            ("V03-eighth-weekday", "weekdays", "8", "choose a value from 0 to 6"),
            ("V06-empty", "hours", "", "leave hours out"),
            ("V06-gap", "hours", "9,,10", "remove the extra comma"),
            ("hour-24", "hours", "24", "choose a value from 0 to 23"),
            ("minute-60", "minutes", "60", "choose a value from 0 to 59"),
            ("day-0", "days", "0", "choose a value from 1 to 31"),
            ("month-13", "months", "13", "choose a value from 1 to 12"),
        )
    ),
    Refused(
        "never-a-date",
        scheduled({"start": {"days": "30", "months": "Feb"}}),
        f"{BEHAVIOR}.start",
        "choose a day that one of the months has",
    ),
    Refused("V09-replicas", scheduled({"replicas": -1}), f"{BEHAVIOR}.replicas", "greater than or equal to 0", True),
    Refused(
        "V09-default", scheduled(defaultReplicas=-1), f"{SCHEDULE}.defaultReplicas", "greater than or equal to 0", True
    ),
    Refused("no-replicas", scheduled({"replicas": None}), f"{BEHAVIOR}.replicas", "Required value", True),
    Refused("no-default", scheduled(defaultReplicas=None), f"{SCHEDULE}.defaultReplicas", "Required value", True),
    Refused("zone", scheduled(timezone="Moon/Base"), f"{SCHEDULE}.timezone", "expected an IANA name"),
    Refused(
        "policy",
        scheduled(matchPolicy="Loose"),
        f"{SCHEDULE}.matchPolicy",
        'supported values: "Literal", "Window"',
        True,
    ),
    Refused("no-end", scheduled({"end": None}), BEHAVIOR, "Set both start and end", True),
    Refused("no-times", scheduled(_ONCE), BEHAVIOR, "Set either start and end", True),
    Refused(
        "no-until", scheduled({**_ONCE, "from": "2100-01-01T00:00:00Z"}), BEHAVIOR, "Set both from and until", True
    ),
    Refused(
        "recurring-and-once",
        scheduled({"from": "2100-01-01T00:00:00Z", "until": "2100-01-02T00:00:00Z"}),
        BEHAVIOR,
        "Set either start and end",
        True,
    ),
    Refused(
        "ends-before-it-begins",
        scheduled({**_ONCE, "from": "2100-01-02T00:00:00Z", "until": "2100-01-01T00:00:00Z"}),
        f"{BEHAVIOR}.until",
        "write a later `until`",
    ),
    Refused(
        "same-name",
        scheduled({"name": "a"}, {"name": "a", "replicas": 1, "start": {"hours": "1"}, "end": {"hours": "2"}}),
        f"{SCHEDULE}.behaviors[1].name",
        "give each behaviour a name of its own",
    ),
    Refused(
        "lead-below-zero",
        scheduled({"leadSeconds": -1}),
        f"{BEHAVIOR}.leadSeconds",
        "greater than or equal to 0",
        True,
    ),
    Refused("nothing", producer(), "spec", "Set exactly one of", True),
    Refused(
        "two-sources",
        producer(queue={"type": "HTTP", "id": "http://q/"}, reservedCapacity={"nodeSelector": {"a": "b"}}),
        "spec",
        "Set exactly one of",
        True,
    ),
    Refused(
        "queue-type",
        producer(queue={"type": "Kafka", "id": "q"}),
        "spec.queue.type",
        'supported values: "AWSSQSQueue", "HTTP", "Prometheus"',
        True,
    ),
    Refused(
        "queue-arn",
        producer(queue={"type": "AWSSQSQueue", "id": "https://sqs.eu-west-1.amazonaws.com/1/q"}),
        "spec.queue.id",
        "write `arn:aws:sqs:eu-west-1:1:q`",
    ),
    Refused(
        "queue-query",
        producer(queue={"type": "Prometheus", "id": "max("}),
        "spec.queue.id",
        "unclosed left parenthesis",
    ),
    Refused(
        "queue-url", producer(queue={"type": "HTTP", "id": "ftp://q/"}), "spec.queue.id", "write http:// or https://"
    ),
    Refused(
        "queue-pointer",
        producer(queue={"type": "HTTP", "id": "http://q/", "pointer": "length"}),
        "spec.queue.pointer",
        "begin each step with `/`",
    ),
    Refused(
        "pointer-of-no-use",
        producer(queue={"type": "Prometheus", "id": "up", "pointer": "/a"}),
        "spec.queue.pointer",
        "remove it",
    ),
    Refused(
        "two-labels",
        producer(reservedCapacity={"nodeSelector": {"a": "b", "c": "d"}}),
        "spec.reservedCapacity.nodeSelector",
        "at most 1 item",
        True,
    ),
)
