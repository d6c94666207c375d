"""What can stop any object."""

from __future__ import annotations

from tests.apis.explaining.building import PEAK, condition, explained, stops

from springtide.apis.explaining import Happening
from springtide.apis.meta.instants import parse_instant


def test_a_pause_and_a_deletion_are_told_first() -> None:
    going = PEAK.replace("namespace: shop}", "namespace: shop, deletionTimestamp: 2026-11-16T11:00:00Z}")
    explanation = explained(going, paused="the annotation pauses it", status={"conditions": []} | {"queue": {}})
    assert stops(explanation)[:2] == ["no controller touches it", "it is being deleted"]


def test_surprises_and_sums_stop_nothing() -> None:
    conditions = [condition("Ready", "False"), condition("Unambiguous", "False"), condition("Active", "Unknown")]
    assert stops(explained(PEAK, status={"conditions": conditions})) == []


def test_ready_comes_first_among_conditions() -> None:
    conditions = [condition("Active", "True"), condition("Ready", "True"), condition("Calculable", "True")]
    shown = explained(PEAK, status={"conditions": conditions}).conditions
    assert [one.type for one in shown] == ["Ready", "Active", "Calculable"]


def test_events_and_what_could_not_be_seen_are_handed_on() -> None:
    happened = Happening(parse_instant("2026-11-16T11:00:00Z"), "ValueChanged: from 6 to 9 replicas")
    explanation = explained(PEAK, events=(happened,), unknown=("events are not looked at: forbidden",))
    assert explanation.history == (happened,)
    assert explanation.notes[-1] == "events are not looked at: forbidden"


def test_who_is_paused_does_not_miss_a_controller() -> None:
    assert stops(explained(PEAK, paused="the annotation pauses it")) == ["no controller touches it"]
    (missed,) = explained(PEAK).stopped
    assert missed.why.endswith("and does more than observe")


def test_what_is_reported_stops_nothing_at_another_time() -> None:
    status = {"conditions": [condition("Calculable", "False")]}
    assert stops(explained(PEAK, status=status, present=False)) == []
    assert stops(explained(PEAK, present=False)) == []
