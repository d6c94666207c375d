"""Explanations of HorizontalAutoscaler."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from tests.controllers.explained import MONDAY, NIGHTLY, PEAK, WEB, explained, loaded, stops, written

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import parse_instant
from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler, HorizontalAutoscalerSpec
from springtide.controllers.conflicts import AutoscalerRecord
from springtide.controllers.decision import ObservedScale
from springtide.controllers.explanation import TargetState
from springtide.controllers.horizontal_autoscaler import forecast
from springtide.controllers.horizontal_autoscaler.decide import decide, decide_not_scalable
from springtide.controllers.horizontal_autoscaler.recommendation import MissingMetric
from springtide.scaling import RecommendationSteps, ReplicaHistory

READ = '`karpenter_scheduled_capacity{name="peak"}` is 6, at 1 for each replica: 6 replicas'
HELD = "fewer than 8 not before 2026-11-16T12:04:00Z: within the last 300 s more replicas were asked for than now"
DEPLOYMENT = TargetState("Deployment `web`", {"replicas": 6}, 6)


def spec(text: str = WEB) -> HorizontalAutoscalerSpec:
    view = loaded(text).view
    assert isinstance(view, HorizontalAutoscaler)
    return view.spec


def status(
    *readings: int | MissingMetric,
    text: str = WEB,
    scale: int = 6,
    at: str = MONDAY,
    since: str = "2026-11-16T08:00:00Z",
    conflicts: tuple[AutoscalerRecord, ...] = (),
) -> dict[str, Any]:
    """Return the status that the controller writes, for a target that has been asked for the same since a time."""
    values = [one if isinstance(one, MissingMetric) else Fraction(one) for one in readings]
    history = ReplicaHistory(RecommendationSteps(((parse_instant(since), scale),)))
    now = parse_instant(at)
    decision = decide(spec(text), ObservedScale(scale, scale), values, history, now, conflicts=conflicts)
    return written(decision, lastScaleTime="2026-11-16T08:00:00Z")


STATUS = status(6)


def test_reason_is_the_message_of_the_controller() -> None:
    explanation = explained(WEB, status=STATUS, target=DEPLOYMENT)
    assert dict(explanation.wants) == {"replicas": 6}
    assert explanation.because == (
        READ,
        "the bounds are 1 and 8",
        "Deployment `web` has 6 replicas",
        "it scaled last at 2026-11-16T08:00:00Z",
    )
    assert explanation.stopped == ()


def test_every_metric_has_its_own_reason() -> None:
    both = WEB + "  - prometheus: {query: queue, target: {type: AverageValue, value: 4}}\n"
    explanation = explained(both, status=status(6, 20, text=both))
    assert explanation.because[:2] == (READ, "`queue` is 20, at 4 for each replica: 5 replicas")


@pytest.mark.parametrize(
    ("reported", "name", "message", "until"),
    [
        pytest.param(
            status(6, scale=8, at="2026-11-16T11:59:00Z"), "AbleToScale", HELD, "2026-11-16T12:04:00Z", id="held"
        ),
        pytest.param(
            status(6, scale=8, at="2026-11-16T10:59:00Z"),
            "AbleToScale",
            HELD.replace("12:04", "11:04"),
            None,
            id="no longer held",
        ),
        pytest.param(
            status(12, scale=8),
            "ScalingUnbounded",
            "12 replicas are asked for, more than maxReplicas 8",
            None,
            id="bounded",
        ),
        pytest.param(
            status(MissingMetric("NoSample", "there is no series")),
            "Active",
            "there is no series; nothing is scaled down meanwhile",
            None,
            id="a metric is missing",
        ),
    ],
)
def test_limiting_condition_is_listed_with_its_end(
    reported: dict[str, Any], name: str, message: str, until: str | None
) -> None:
    (stop,) = explained(WEB, status=reported).stopped
    assert (stop.what, stop.why) == (f"{name} is False", message)
    assert stop.until == (None if until is None else parse_instant(until))


def test_next_changes_follow_the_schedule_within_the_bounds() -> None:
    explanation = explained(WEB, PEAK, status=STATUS, at="2026-11-16T10:00:00Z")
    assert [(one.value, one.because) for one in explanation.next[:2]] == [
        (8, "behaviour `lunch` starts (12:00 Europe/Berlin); 9 are asked for, cut to maxReplicas 8"),
        (
            6,
            "window of behaviour `lunch` over (14:00 Europe/Berlin): behaviour `day` continues;"
            " after the stabilization window of 300 s",
        ),
    ]
    assert format_instant(explanation.next[1].at) == "2026-11-16T13:05:00Z"
    assert explanation.zone == "Europe/Berlin"


@pytest.mark.parametrize(
    "query",
    [
        pytest.param('max(karpenter_scheduled_capacity{name="peak"} or vector(3))', id="more than the schedule"),
        pytest.param("karpenter_scheduled_capacity", id="no name: there may be several"),
    ],
)
def test_complex_queries_have_no_next_changes(query: str) -> None:
    explanation = explained(WEB.replace('karpenter_scheduled_capacity{name="peak"}', query), PEAK, status=STATUS)
    assert explanation.next == ()
    assert (
        explanation.next_unknown
        == f"`{query}` is not just the schedule of one MetricsProducer, so the next change is unknown"
    )
    assert any("reads what MetricsProducer `peak` makes: 9 now, 6 from" in note for note in explanation.notes)


def test_proportional_targets_have_no_next_changes() -> None:
    explanation = explained(WEB.replace("AverageValue", "Value"), PEAK, status=STATUS)
    assert explanation.next == ()
    assert "depends on how many replicas there are then (target Value)" in explanation.next_unknown


@pytest.mark.parametrize(
    ("value", "wants"),
    [pytest.param("1", 8, id="bounded"), pytest.param("2", 5, id="shared"), pytest.param("500m", 8, id="half each")],
)
def test_wanted_replicas_are_computed_from_the_schedule_without_a_status(value: str, wants: int) -> None:
    explanation = explained(WEB.replace("value: 1}", f"value: {value}}}"), PEAK, at="2026-11-16T11:30:00Z")
    assert dict(explanation.wants) == {"replicas": wants}
    assert "has not been read yet; its schedule says 9" in explanation.because[0]
    assert stops(explanation) == ["no controller has reported yet"]


def test_wanted_replicas_are_unknown_without_a_status_and_a_schedule() -> None:
    explanation = explained(WEB)
    assert dict(explanation.wants) == {"replicas": None}
    assert explanation.headline == "not known yet"


def test_other_autoscalers_of_the_target_are_listed() -> None:
    twin = WEB.replace("name: web, namespace", "name: twin, namespace")
    conditions = [one for one in STATUS["conditions"] if one["type"] != "Unopposed"]  # as an upstream controller writes
    explanation = explained(WEB, twin, NIGHTLY, status={**STATUS, "conditions": conditions}, target=DEPLOYMENT)
    assert stops(explanation) == ["another autoscaler scales Deployment `web`"]
    assert "also scaled by HorizontalAutoscaler `twin`" in explanation.stopped[0].why
    assert "CronFederatedHPA `nightly` sets Deployment `web` too" in explanation.notes[0]


@pytest.mark.parametrize(
    ("behavior", "expected_text"),
    [
        pytest.param("{}", "the highest counts", id="default"),
        pytest.param("{scaleDown: {selectPolicy: Min}}", "the highest on the way up and the lowest on", id="down"),
        pytest.param("{scaleUp: {selectPolicy: Min}, scaleDown: {selectPolicy: Min}}", "the lowest counts", id="both"),
    ],
)
def test_select_policy_of_several_metrics_is_explained(behavior: str, expected_text: str) -> None:
    several = WEB + "  - prometheus: {query: other, target: {type: AverageValue, value: 1}}\n"
    explanation = explained(f"{several}  behavior: {behavior}\n", status=STATUS)
    assert any(expected_text in sentence for sentence in explanation.because)


def test_json_document_has_every_key_of_the_contract() -> None:
    reported = status(6, scale=8, at="2026-11-16T11:59:00Z")
    document = explained(WEB, PEAK, status=reported).document()
    assert list(document) == [
        "apiVersion",
        "kind",
        "namespace",
        "name",
        "at",
        "wants",
        "because",
        "next",
        "nextUnknown",
        "stopped",
        "conditions",
        "history",
        "notes",
    ]
    assert document["at"] == "2026-11-16T12:00:00Z"
    assert document["stopped"] == [{"what": "AbleToScale is False", "why": HELD, "until": "2026-11-16T12:04:00Z"}]
    assert [one["type"] for one in document["conditions"]] == [
        "Ready",
        "Active",
        "AbleToScale",
        "ScalingUnbounded",
        "Unopposed",
    ]
    assert document["conditions"][2] == {
        "type": "AbleToScale",
        "status": "False",
        "reason": "ScaleDownStabilized",
        "message": HELD,
        "since": "2026-11-16T11:00:00Z",
    }


EARLY = """
apiVersion: autoscaling.karpenter.sh/v1alpha1
kind: MetricsProducer
metadata: {name: early, namespace: shop}
spec:
  schedule:
    timezone: Europe/Berlin
    defaultReplicas: 1
    behaviors: [{name: shift, replicas: 7, start: {hours: 13}, end: {hours: 15}}]
"""
BOTH = (
    WEB
    + """  - prometheus: {query: 'karpenter_scheduled_capacity{name="early"}', target: {type: AverageValue, value: 1}}
"""
)


@pytest.mark.parametrize(
    ("behavior", "ahead"),
    [
        pytest.param(
            "{}",
            [
                (
                    "11:00",
                    8,
                    "MetricsProducer `peak`: behaviour `lunch` starts (12:00 Europe/Berlin);"
                    " 9 are asked for, cut to maxReplicas 8",
                ),
                (
                    "13:05",
                    7,
                    "MetricsProducer `peak`: window of behaviour `lunch` over (14:00 Europe/Berlin):"
                    " behaviour `day` continues; after the stabilization window of 300 s",
                ),
                (
                    "14:05",
                    6,
                    "MetricsProducer `early`: window of behaviour `shift` over (15:00 Europe/Berlin):"
                    " back to the default of 1; after the stabilization window of 300 s",
                ),
            ],
            id="the highest counts",
        ),
        pytest.param(
            "{scaleUp: {selectPolicy: Min}, scaleDown: {selectPolicy: Min}}",
            [
                ("12:00", 7, "MetricsProducer `early`: behaviour `shift` starts (13:00 Europe/Berlin)"),
                (
                    "13:05",
                    6,
                    "MetricsProducer `peak`: window of behaviour `lunch` over (14:00 Europe/Berlin):"
                    " behaviour `day` continues; after the stabilization window of 300 s",
                ),
                (
                    "14:05",
                    1,
                    "MetricsProducer `early`: window of behaviour `shift` over (15:00 Europe/Berlin):"
                    " back to the default of 1; after the stabilization window of 300 s",
                ),
            ],
            id="the lowest counts",
        ),
    ],
)
def test_next_changes_combine_several_schedules(behavior: str, ahead: list[tuple[str, int, str]]) -> None:
    explanation = explained(f"{BOTH}  behavior: {behavior}\n", PEAK, EARLY, status=STATUS, at="2026-11-16T10:00:00Z")
    found = [(format_instant(one.at)[11:16], one.value, one.because) for one in explanation.next[:3]]
    assert found == ahead
    assert explanation.next_unknown == ""


def test_two_schedules_have_no_next_changes_when_select_policies_differ() -> None:
    explanation = explained(f"{BOTH}  behavior: {{scaleDown: {{selectPolicy: Min}}}}\n", PEAK, EARLY, status=STATUS)
    assert explanation.next == ()
    assert "depends on whether it goes up or down" in explanation.next_unknown


def test_next_changes_in_one_direction_when_the_other_is_disabled() -> None:
    disabled = f"{WEB}  behavior: {{scaleDown: {{selectPolicy: Disabled}}}}\n"
    known = explained(disabled, PEAK, status=STATUS, at="2026-11-16T10:00:00Z")
    assert [(format_instant(one.at), one.value) for one in known.next] == [("2026-11-16T11:00:00Z", 8)]
    assert known.next_unknown.startswith("nothing more changes until 20")
    unknown = explained(disabled, PEAK)
    assert unknown.next == ()
    assert "`scaleDown` is disabled" in unknown.next_unknown


TOLERANT = WEB.replace("maxReplicas: 8", "maxReplicas: 20") + "  behavior: {scaleUp: {tolerance: 0.5}}\n"


@pytest.mark.parametrize(
    ("replicas", "wants", "ahead"),
    [
        pytest.param(6, 6, ("2026-11-16T17:05:00Z", 2), id="9 is within the tolerance of 6"),
        pytest.param(5, 9, ("2026-11-16T13:05:00Z", 6), id="9 is beyond the tolerance of 5"),
    ],
)
def test_tolerance_is_that_of_the_present_replicas(replicas: int, wants: int, ahead: tuple[str, int]) -> None:
    target = TargetState("Deployment `web`", {"replicas": replicas}, replicas)
    explanation = explained(TOLERANT, PEAK, target=target, at="2026-11-16T11:30:00Z")
    assert dict(explanation.wants) == {"replicas": wants}
    assert (format_instant(explanation.next[0].at), explanation.next[0].value) == ahead


def test_tolerance_without_known_replicas_has_no_next_changes() -> None:
    explanation = explained(TOLERANT, PEAK)
    assert (dict(explanation.wants), explanation.next) == ({"replicas": None}, ())
    assert explanation.next_unknown == "a `tolerance` is set, so that it depends on where it is then"


def test_later_time_is_reached_from_the_present_replicas() -> None:
    later = {"at": "2026-11-17T11:30:00Z", "present": False, "read_at": MONDAY, "target": DEPLOYMENT}
    explanation = explained(TOLERANT, PEAK, status=STATUS, **later)
    # Overnight it goes down to 2, so that 9 is beyond the tolerance of the 6 replicas of the morning.
    assert dict(explanation.wants) == {"replicas": 6}
    assert (format_instant(explanation.next[0].at), explanation.next[0].value) == ("2026-11-17T17:05:00Z", 2)


@pytest.mark.parametrize(
    ("reported", "at"),
    [
        pytest.param(status(6, scale=8, at="2026-11-16T11:59:00Z"), "2026-11-16T12:04:00Z", id="held for 4 minutes"),
        pytest.param(status(6, scale=8, at="2026-11-16T11:56:30Z"), "2026-11-16T12:01:30Z", id="held for 90 seconds"),
    ],
)
def test_next_change_comes_when_the_condition_says(reported: dict[str, Any], at: str) -> None:
    calm = PEAK.replace("    - {name: lunch, replicas: 9, priority: 5, start: {hours: 12}, end: {hours: 14}}\n", "")
    explanation = explained(WEB, calm, status=reported, target=TargetState("Deployment `web`", {"replicas": 8}, 8))
    first = explanation.next[0]
    assert (format_instant(first.at), first.value) == (at, 6)
    assert first.because == "behaviour `day` is active (13:00 Europe/Berlin); after the stabilization window of 300 s"


def test_status_is_not_used_for_another_time() -> None:
    known = explained(WEB, PEAK, status=STATUS, target=DEPLOYMENT, at="2026-11-16T20:00:00Z", present=False)
    assert dict(known.wants) == {"replicas": 2}
    assert known.because == (
        '`karpenter_scheduled_capacity{name="peak"}` is not read for another time than the present;'
        " its schedule says 2, which recommends 2",
        "the bounds are 1 and 8",
        "at present Deployment `web` has 6 replicas",
    )
    unknown = explained(WEB.replace("AverageValue", "Value"), PEAK, status=STATUS, present=False)
    assert (unknown.headline, dict(unknown.wants)) == ("not known for that time", {"replicas": None})


def test_conflict_reported_by_the_controller_is_listed_once() -> None:
    twin = WEB.replace("name: web, namespace", "name: twin, namespace")
    reported = status(6, conflicts=(AutoscalerRecord("HorizontalAutoscaler", "twin", None),))
    assert stops(explained(WEB, twin, status=reported, target=DEPLOYMENT)) == ["Unopposed is False"]


def test_incomplete_search_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shortened list would look as if no change followed it."""
    monkeypatch.setattr(forecast, "_MOST_STEPS", 3)

    explanation = explained(BOTH, PEAK, EARLY, status=STATUS, at="2026-11-16T10:00:00Z")

    assert len(explanation.next) < 5
    assert "was given up" in explanation.next_unknown


def test_without_metrics_nothing_is_wanted() -> None:
    idle = WEB[: WEB.index("  metrics:")]
    explanation = explained(idle, status=status(text=idle), target=DEPLOYMENT)
    assert (explanation.headline, dict(explanation.wants)) == ("nothing: it has no metrics", {"replicas": None})
    assert stops(explanation) == ["Active is False"]
    assert explained(idle).headline == "nothing: it has no metrics"


GONE = TargetState("Deployment `web`", trouble="there is no Deployment `web` in namespace shop")
MISTYPED = WEB.replace("peak", "peek")


def test_missing_target_and_mistyped_metric_are_both_told() -> None:
    unread = explained(MISTYPED, PEAK, target=GONE)
    assert stops(unread)[1:] == [
        "Deployment `web` cannot be scaled",
        '`karpenter_scheduled_capacity{name="peek"}` cannot be read',
    ]
    assert unread.stopped[-1].why == "there is no MetricsProducer `peek` (did you mean peak?)"
    missing = MissingMetric("NoSample", "no such series")
    decision = decide_not_scalable(spec(MISTYPED), "NotFound", "no such Deployment", [missing], parse_instant(MONDAY))
    reported = explained(MISTYPED, PEAK, target=GONE, status=written(decision))
    assert [(one.what, one.why) for one in reported.stopped[:2]] == [
        ("Active is False", "no such series"),
        ("AbleToScale is False", "no such Deployment"),
    ]
