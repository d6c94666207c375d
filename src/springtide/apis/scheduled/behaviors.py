"""The schedule of a MetricsProducer: behaviours that set a number of replicas while they are active."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from springtide.apis.fields import (
    Context,
    Count,
    Int32,
    NonEmpty,
    Rule,
    View,
    Zone,
    at_most,
    by_key,
    doc,
    extension,
)
from springtide.apis.meta.windows import CalendarReference, Window
from springtide.apis.problems import Problem, error
from springtide.apis.scheduled.conflicts import schedule_problems


class ScheduledBehavior(Window, kw_only=True):
    """A number of replicas, and the times at which it is wanted."""

    __mistaken__ = {
        "crontab": "write `start` and `end`: a schedule has no cron expressions",
        "timezone": "`timezone` stands once, beside `behaviors`",
        "timeZone": "`timezone` stands once, beside `behaviors`",
        "value": "write `replicas`",
    }
    __rules__ = (
        Rule(
            "has(self.start) != has(self.from)",
            "Set either start and end, for a behaviour that recurs, or from and until, for one that happens once.",
            extension=True,
        ),
        Rule("has(self.start) == has(self.end)", "Set both start and end.", extension=True),
        Rule("has(self.from) == has(self.until)", "Set both from and until.", extension=True),
    )

    name: Annotated[NonEmpty | None, doc("Name of the behaviour in explanations; unique."), extension] = None
    replicas: Annotated[Count, doc("The value while the behaviour is active.")]
    priority: Annotated[
        Int32 | None, doc("The highest of the active behaviours wins, then the first listed; 0 if not set."), extension
    ] = None
    suspend: Annotated[bool, doc("Leaves the behaviour out, as if it were not there."), extension] = False
    lead_seconds: Annotated[
        Count | None, doc("How much earlier the behaviour begins, so that capacity is there in time."), extension
    ] = None
    calendars: Annotated[
        Annotated[tuple[CalendarReference, ...], by_key("name")] | None,
        doc("Calendars that take days away, or leave only theirs."),
        extension,
    ] = None


class ScheduleSpec(View, kw_only=True):
    """A number of replicas for each time: that of the behaviour that wins, else the default."""

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
            " end after it. Both are the same where starts and ends take turns."
        ),
        extension,
    ] = "Literal"

    def problems(self, context: Context) -> Iterator[Problem]:
        """Find behaviours that share a name, that get in each other's way, or that are not what they seem."""
        seen: dict[str, int] = {}
        for position, behavior in enumerate(self.behaviors):
            if behavior.name is None:
                continue
            if behavior.name in seen:
                first = context.position("behaviors", seen[behavior.name])
                yield error(
                    ("behaviors", position, "name"),
                    f'"{behavior.name}" is the name of behaviors[{first}] already',
                    "give each behaviour a name of its own",
                )
            seen.setdefault(behavior.name, position)
        if context.thorough:
            yield from schedule_problems(self, context)
