"""What a MetricsProducer's schedule will do: one lane of replicas, with the behaviour behind every change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from springtide.almanac import Zone
from springtide.apis.forecast import Collision, LaneStyle, Outlook, Question
from springtide.apis.meta.clock_times import clock_time
from springtide.apis.meta.lanes import level_lane
from springtide.apis.scheduled.conflicts import collisions
from springtide.apis.scheduled.schedule import Claim, active_behaviors, claims_of, replicas_over_time, zone_of

if TYPE_CHECKING:
    from springtide.apis.scheduled.producer import MetricsProducer


def forecast(producer: MetricsProducer, question: Question) -> Outlook:
    """Look ahead; producers of other metrics do not depend on time and have no lanes."""
    schedule = producer.spec.schedule
    if schedule is None:
        return Outlook(zones=(question.default_zone,), lanes=())
    zone = zone_of(schedule, question.default_zone)
    claims = claims_of(schedule, zone, question.calendars)
    lane = level_lane(
        "replicas",
        LaneStyle.LEVEL,
        replicas_over_time(claims, schedule.default_replicas),
        question,
        because=lambda at, _: _why_changed(claims, at, zone),
        because_now=_why_now(claims, question.start, zone),
    )
    return Outlook((zone.name,), (lane,), tuple(_collisions(claims, question)))


def _why_changed(claims: Sequence[Claim], at: int, zone: Zone) -> str:
    """Say who begins or ends at an instant, and so sets the value."""
    before, after = active_behaviors(claims, at - 1), active_behaviors(claims, at)
    clock = clock_time(at, zone)
    if after and after[0] not in before:
        lead = after[0].behavior.lead_seconds
        early = f", {lead} seconds early" if lead else ""
        return f"{after[0].label} starts ({clock}{early})"
    heir = f"{after[0].label} goes on" if after else "the default"
    return f"{before[0].label} ends ({clock}): {heir}"


def _why_now(claims: Sequence[Claim], at: int, zone: Zone) -> str:
    active = active_behaviors(claims, at)
    who = f"{active[0].label} is active" if active else "no behaviour is active: the default"
    return f"{who} ({clock_time(at, zone)})"


def _collisions(claims: Sequence[Claim], question: Question) -> Iterator[Collision]:
    for winner, loser, overlap in collisions(claims, question.start, question.until):
        reason = "by priority" if winner.priority != loser.priority else "being listed first"
        for at, until in overlap.spans:
            yield Collision(
                at,
                until,
                f"{winner.label} (replicas {winner.replicas}) wins over {loser.label} (replicas {loser.replicas}),"
                f" {reason}",
            )
