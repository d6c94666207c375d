"""Findings about recurring schedules: the short search against a long reference search."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controllers.metrics_producer.harness import producer, schedule

from springtide.almanac import MatchPolicy, first_difference, load_zone, merged
from springtide.apis.kinds import ValidationContext
from springtide.apis.scheduled.producer import MetricsProducer
from springtide.apis.scheduled.schedule import active_times, schedule_findings
from springtide.controllers.validated import validated

NOW = 1_772_000_000  # 2026-02-25: clocks change in the weeks that follow
YEAR = 366 * 86_400

days = st.lists(st.sampled_from(("Mon", "Wed", "Sun")), unique=True, max_size=3).map(",".join)
hours = st.lists(st.integers(0, 4), unique=True, min_size=1, max_size=2).map(lambda found: ",".join(map(str, found)))
patterns = st.builds(
    lambda weekdays, hours, minutes: (
        {"hours": hours, "minutes": minutes} | ({"weekdays": weekdays} if weekdays else {})
    ),
    days,
    hours,
    st.sampled_from(("0", "30")),
)
behaviors = st.builds(lambda start, end: {"start": start, "end": end}, patterns, patterns)
zones = st.sampled_from(("UTC", "America/New_York", "Europe/Berlin", "America/Santiago", "Australia/Lord_Howe"))


@settings(max_examples=60, deadline=None)
@given(st.lists(behaviors, min_size=1, max_size=3), zones)
def test_short_search_finds_all_collisions_and_alternations(found: list[dict[str, Any]], zone_name: str) -> None:
    """A search of more than a year finds no other collisions and no other behaviors that do not alternate."""
    written = [{**behavior, "replicas": position} for position, behavior in enumerate(found)]
    item = producer(schedule={"behaviors": written, "defaultReplicas": 9, "timezone": zone_name})
    sound = validated(item, MetricsProducer, now=NOW, default_zone="UTC").sound
    assert sound is not None
    assert sound.spec.schedule is not None
    spec, zone = sound.spec.schedule, load_zone(zone_name)

    findings = list(schedule_findings(spec, ValidationContext(now=NOW)))

    alternating = {
        position
        for position, one in enumerate(spec.behaviors)
        if one.start is not None and one.end is not None
        if first_difference(one.start.parse(), one.end.parse(), zone, NOW, 2) is None
    }
    assert {one.path[1] for one in findings if one.reason == "NotAlternating"} == set(range(len(written))) - alternating
    shadowed = {one.path[1] for one in findings if one.reason == "NeverTakesEffect"}
    clashing = set()
    for first, second in combinations([p for p in range(len(written)) if p not in shadowed], 2):
        timelines = [active_times(spec.behaviors[p], MatchPolicy.LITERAL, zone, {}) for p in (first, second)]
        for at, states in merged(timelines, NOW):
            if all(states):
                clashing.add(second)
            if at > NOW + YEAR or all(states):
                break
    assert {one.path[1] for one in findings if one.reason == "Collision"} == clashing


def test_lead_collides_only_at_a_clock_change() -> None:
    """Two hours before 03:00 is 01:00, but midnight in the night that is an hour shorter, nine months later."""
    evening = {"name": "evening", "replicas": 1, "start": {"hours": "22"}, "end": {"hours": "1"}}
    morning = {"name": "morning", "replicas": 2, "start": {"hours": "3"}, "end": {"hours": "6"}, "leadSeconds": 7200}
    item = producer(schedule=schedule(evening, morning, zone="America/New_York"))
    june = 1_780_300_800
    sound = validated(item, MetricsProducer, now=june, default_zone="UTC").sound
    assert sound is not None
    assert sound.spec.schedule is not None

    (found,) = schedule_findings(sound.spec.schedule, ValidationContext(now=june))

    assert found.reason == "Collision"
    assert "first on Sun 2027-03-14 00:00" in found.dated
