"""The controller in a simulated world: when it sets the scale, and what it says."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.horizontal_autoscaler.harness import (
    LOAD,
    QUEUED,
    SCHEDULED,
    Stage,
    autoscaler,
    conditions,
    deployment,
    metric,
    scaled,
)

from springtide.cluster.client import Client, Mode
from springtide.cluster.errors import Forbidden
from springtide.cluster.kinds import CUSTOM_RESOURCE_DEFINITIONS
from springtide.cluster.resources import Object
from springtide.controllers.conflicts import FEDERATED_HPAS, HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS
from springtide.controllers.grant.state import GRANTS
from springtide.controllers.horizontal_autoscaler import HORIZONTAL_AUTOSCALERS, HorizontalAutoscalerController
from springtide.simulator.scenario import crash, create, delete, edit, scale
from springtide.simulator.scenario.actions import Action
from springtide.simulator.world import World

MANAGER = "springtide-horizontal-autoscaler"
BUSY = 'karpenter_reserved_capacity_cpu_utilization{name="peak"}'
AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}
LOWEST = {"scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "Min"}}


@pytest.mark.parametrize(
    ("written", "replicas", "told", "expected", "unhappy"),
    [
        pytest.param(
            autoscaler(metric(BUSY, "Utilization", 60), least=3, most=23),
            5,
            [(0, BUSY, "0.6"), (60, BUSY, "0.85"), (61, BUSY, "0.6")],
            [(60, 8)],
            {},
            id="H05",
        ),
        pytest.param(
            autoscaler(metric(BUSY, "Utilization", 60), least=3, most=23),
            5,
            [(0, BUSY, "0.6"), (60, BUSY, "0.85")],
            [(60, 8), (75, 12), (90, 17), (105, 23)],
            {"ScalingUnbounded": "TooManyReplicas"},
            id="in-proportion-once-a-period",
        ),
        pytest.param(
            autoscaler(metric(BUSY, "Utilization", 60), most=100),
            5,
            [(0, BUSY, "0.6"), *((60 + turn, BUSY, f"0.85{turn}") for turn in range(9)), (70, BUSY, "0.6")],
            [(60, 8)],
            {},
            id="in-proportion-however-often-the-value-changes",
        ),
        pytest.param(autoscaler(metric(QUEUED, value=4)), 1, [(0, QUEUED, 41)], [(0, 11)], {}, id="H06"),
        pytest.param(
            autoscaler(metric()),
            3,
            [(0, SCHEDULED, 3), (100, SCHEDULED, 5), (160, SCHEDULED, 3)],
            [(100, 5)],
            {"AbleToScale": "ScaleDownStabilized"},
            id="H07",
        ),
        pytest.param(
            autoscaler(metric()),
            3,
            [(0, SCHEDULED, 3), (100, SCHEDULED, 5), (105, SCHEDULED, 8)],
            [(100, 5), (105, 8)],
            {},
            id="H09",
        ),
        pytest.param(
            autoscaler(metric(), least=1, most=10),
            5,
            [(0, SCHEDULED, 12)],
            [(0, 10)],
            {"ScalingUnbounded": "TooManyReplicas"},
            id="H10",
        ),
        pytest.param(
            autoscaler(metric(), metric(QUEUED), behavior=AT_ONCE),
            5,
            [(0, SCHEDULED, 3), (0, QUEUED, 4)],
            [(0, 4)],
            {},
            id="H12-highest",
        ),
        pytest.param(
            autoscaler(metric(), metric(QUEUED), behavior=LOWEST),
            5,
            [(0, SCHEDULED, 3), (0, QUEUED, 4)],
            [(0, 3)],
            {},
            id="H12-lowest",
        ),
        pytest.param(
            autoscaler(metric(), behavior={"scaleUp": {"selectPolicy": "Disabled"}}),
            5,
            [(0, SCHEDULED, 8)],
            [],
            {"ScalingUnbounded": "ScaleUpDisabled"},
            id="H13",
        ),
        pytest.param(autoscaler(), 5, [], [], {"Active": "NoMetrics"}, id="H15"),
        pytest.param(autoscaler(metric()), 0, [(0, SCHEDULED, 4)], [(0, 4)], {}, id="from-none"),
        pytest.param(autoscaler(metric(), behavior=AT_ONCE), 4, [(0, SCHEDULED, 0)], [(0, 0)], {}, id="to-none"),
        pytest.param(
            autoscaler(
                metric(), behavior={"scaleUp": {"policies": [{"type": "Count", "value": 2, "periodSeconds": 40}]}}
            ),
            1,
            [(0, SCHEDULED, 6)],
            [(0, 3), (40, 5), (80, 6)],
            {},
            id="policies-to-the-second",
        ),
        pytest.param(
            autoscaler(metric(), behavior={"scaleDown": {"stabilizationWindowSeconds": 50}}),
            4,
            [(0, SCHEDULED, 4), (107, SCHEDULED, 3), (120, SCHEDULED, 1)],
            [(157, 3), (170, 1)],
            {},
            id="windows-to-the-second",
        ),
        pytest.param(
            autoscaler(metric(), behavior={"scaleDown": {"stabilizationWindowSeconds": 50}}),
            5,
            [(0, SCHEDULED, 5), *((100 + turn, SCHEDULED, 3 + turn % 2) for turn in range(0, 61, 3))],
            [(150, 4), (210, 3)],
            {},
            id="changes-in-between-shorten-nothing",
        ),
    ],
)
def test_rows(
    written: Object,
    replicas: int,
    told: list[tuple[int, str, Any]],
    expected: list[tuple[int, int]],
    unhappy: dict[str, str],
) -> None:
    stage = Stage()
    scenario = stage.scenario(deployment(replicas), written)
    for at, query, value in told:
        if at:
            scenario = scenario.at(f"{at}s", stage.telling(query, value))
        else:
            stage.tell(query, value)
    outcome = scenario.run("300s")

    assert scaled(outcome) == expected
    said = {kind: one["reason"] for kind, one in conditions(outcome).items() if one["status"] == "False"}
    assert {kind: reason for kind, reason in said.items() if kind != "Ready"} == unhappy
    assert ("Ready" in said) is bool(unhappy)


def test_the_whole_status() -> None:
    """It says what was seen and done, when, and why; the Deployment has its pods."""
    stage = Stage()
    stage.tell(SCHEDULED, 5)
    outcome = stage.scenario(deployment(3), autoscaler(metric(), least=1, most=10)).run("60s")

    status = outcome.object("HorizontalAutoscaler", "web", namespace="shop")["status"]
    words = f"`{SCHEDULED}` is 5, at 1 for each replica: 5 replicas"
    happy = {"status": "True", "lastTransitionTime": "2026-06-01T00:00:00Z"}
    able, bounds = "what the metrics ask for can be done now", "what is asked for lies between minReplicas 1 and"
    assert status == {
        "currentReplicas": 5,
        "desiredReplicas": 5,
        "lastScaleTime": "2026-06-01T00:00:00Z",
        "currentMetrics": [{"prometheus": {"query": SCHEDULED, "current": {"value": "5", "averageValue": "1"}}}],
        "conditions": [
            {"type": "Ready", "reason": "Ready", "message": f"{words}; {able}; {bounds} maxReplicas 10", **happy},
            {"type": "Active", "reason": "MetricsRead", "message": words, **happy},
            {"type": "AbleToScale", "reason": "ReadyForNewScale", "message": able, **happy},
            {
                "type": "ScalingUnbounded",
                "reason": "WithinBounds",
                "message": f"{bounds} maxReplicas 10",
                **happy,
            },
            {
                "type": "Unopposed",
                "reason": "NoOtherAutoscaler",
                "message": "no other autoscaler is known to scale Deployment web",
                **happy,
            },
        ],
    }
    (event,) = [one for one in outcome.objects("Event") if one["involvedObject"]["kind"] == "HorizontalAutoscaler"]
    assert (event["type"], event["reason"]) == ("Normal", "SuccessfulRescale")
    assert event["message"] == f"scaled Deployment web from 3 to 5: {words}"
    assert sum(pod["metadata"]["namespace"] == "shop" for pod in outcome.objects("Pod")) == 5


def test_an_idle_autoscaler_writes_nothing() -> None:
    """It looks every fifteen seconds, for six hours."""
    stage = Stage()
    stage.tell(SCHEDULED, 3)
    stage.tell(LOAD, "1/3")
    outcome = stage.scenario(deployment(3), autoscaler(metric(), metric(LOAD))).run("6h")

    ours = [entry.at for entry in outcome.trace if entry.actor == MANAGER]
    # At first the pods are not there yet, and then they are.
    assert 1 <= len(ours) <= 2
    assert all(at < outcome.world.clock.start + 60 for at in ours)


def test_a_server_is_asked_every_period() -> None:
    """Nobody tells when its numbers change."""
    stage = Stage()
    stage.tell(LOAD, 3)
    outcome = stage.scenario(deployment(3), autoscaler(metric(LOAD))).at("20s", stage.telling(LOAD, 7)).run("60s")

    assert scaled(outcome) == [(30, 7)]


def test_what_somebody_else_sets_is_set_right() -> None:
    stage = Stage()
    stage.tell(SCHEDULED, 5)
    outcome = (
        stage.scenario(deployment(5), autoscaler(metric()))
        .at("100s", scale("Deployment", "web", 2, namespace="shop"))
        .at("1000s", scale("Deployment", "web", 9, namespace="shop"))
        .run("1200s")
    )

    # Everything that was recommended for long is five, so that nothing holds it back either way; a series of ours tells
    # of its changes, so that the target is looked at once a minute only.
    assert scaled(outcome) == [(120, 5), (1035, 5)]


def test_after_a_restart_a_whole_window_is_seen_first() -> None:
    """The window of the process that died does not count, nor does the time of the last scale in the status."""
    stage = Stage()
    stage.tell(SCHEDULED, 5)
    story = (
        stage.scenario(deployment(3), autoscaler(metric()))
        .at("1000s", stage.telling(SCHEDULED, 3))
        .at("1200s", crash("springtide-0", downtime=10))
    )
    held = story.run("1400s")
    stage.tell(SCHEDULED, 5)
    done = story.run("1600s")

    able = conditions(held)["AbleToScale"]
    assert (able["status"], able["reason"]) == ("False", "ScaleDownStabilized")
    assert able["message"] == (
        "fewer than 5 not before 2026-06-01T00:25:10Z: the metrics have not been watched for 300 s yet"
    )
    assert scaled(done) == [(0, 5), (1510, 3)]


def test_a_missing_metric_takes_nothing_away() -> None:
    """It says why, in a condition and an event; when it is back, a whole window is waited for."""
    stage = Stage()
    stage.tell(SCHEDULED, 5)
    story = (
        stage.scenario(deployment(5), autoscaler(metric()))
        .at("400s", stage.telling(SCHEDULED, None))
        .at("900s", stage.telling(SCHEDULED, 2))
    )
    blind = story.run("901s")
    stage.tell(SCHEDULED, 5)
    done = story.run("1300s")

    assert scaled(blind) == []
    assert scaled(done) == [(1200, 2)]
    (event,) = [one for one in done.objects("Event") if one["reason"] == "NoSample"]
    assert (event["type"], event["message"]) == (
        "Warning",
        f"`{SCHEDULED}` cannot be read: there is no series peak; nothing is scaled down meanwhile",
    )


@pytest.mark.parametrize(
    ("reference", "reason", "words"),
    [
        pytest.param(
            {"apiVersion": "shop.example.com/v1", "kind": "Till"}, "UnknownKind", "no kind Till", id="unknown"
        ),
        pytest.param(
            {"apiVersion": "autoscaling.karpenter.sh/v1alpha1", "kind": "MetricsProducer"},
            "NotScalable",
            "no scale",
            id="not-scalable",
        ),
        pytest.param({"apiVersion": "apps/v1", "kind": "StatefulSet"}, "NotFound", "not found", id="not-there"),
        pytest.param(
            {"apiVersion": "karpenter.sh/v1", "kind": "NodePool"}, "NotScalable", "no namespace", id="no-one's"
        ),
    ],
)
def test_a_target_that_cannot_be_scaled(reference: Object, reason: str, words: str) -> None:
    stage = Stage()
    stage.tell(SCHEDULED, 5)
    outcome = stage.scenario(autoscaler(metric(), scaleTargetRef={**reference, "name": "web"})).run("60s")

    said = conditions(outcome)
    assert (said["AbleToScale"]["status"], said["AbleToScale"]["reason"]) == ("False", reason)
    assert words in said["AbleToScale"]["message"]
    assert (said["Active"]["status"], said["Ready"]["reason"]) == ("Unknown", reason)
    status = outcome.object("HorizontalAutoscaler", "web", namespace="shop")["status"]
    assert set(status) == {"conditions"}
    assert [one["type"] for one in outcome.objects("Event") if one["reason"] == reason] == ["Warning"]


@pytest.mark.parametrize(("method", "reason"), [("get", "Forbidden"), ("scale", "FailedRescale")])
def test_a_right_that_is_missing_is_named(method: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is given; and nothing is claimed to have been done, not even if somebody else does the same."""

    async def refuse(*positional: object, **named: object) -> None:
        raise Forbidden('User "springtide" cannot touch resource "deployments/scale"')

    monkeypatch.setattr(Client, method, refuse)
    stage = Stage()
    stage.tell(SCHEDULED, 5)
    story = stage.scenario(deployment(3), autoscaler(metric()))
    outcome = story.run("60s")
    helped = story.at("20s", scale("Deployment", "web", 5, namespace="shop")).run("60s")

    able = conditions(outcome)["AbleToScale"]
    assert (able["status"], able["reason"]) == ("False", reason)
    assert not [one for one in helped.objects("Event") if one["reason"] == "SuccessfulRescale"]
    assert able["message"].endswith(
        'cannot touch resource "deployments/scale": rights on */scale are given by group in the chart, list apps there'
    )
    assert [one["reason"] for one in outcome.objects("Event") if one["source"]["component"] == MANAGER] == [reason]


def test_a_target_that_comes_is_found() -> None:
    stage = Stage()
    stage.tell(SCHEDULED, 5)
    outcome = stage.scenario(autoscaler(metric())).at("20s", create(deployment(1))).run("60s")

    assert scaled(outcome) == [(30, 5)]
    assert conditions(outcome)["Ready"]["status"] == "True"


def test_anything_with_a_scale_is_scaled() -> None:
    """A ScalableNodeGroup is a kind of its own, and has one."""
    group = {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "ScalableNodeGroup",
        "metadata": {"name": "workers", "namespace": "shop"},
        "spec": {"type": "Simulated", "id": "workers", "replicas": 1},
    }
    reference = {key: group[key] for key in ("apiVersion", "kind")} | {"name": "workers"}
    stage = Stage()
    stage.tell(SCHEDULED, 5)
    outcome = stage.scenario(group, autoscaler(metric(), scaleTargetRef=reference)).run("60s")

    assert scaled(outcome, "workers", "ScalableNodeGroup") == [(0, 5)]


def test_an_object_that_is_wrong_scales_nothing_until_it_is_mended() -> None:
    stage = Stage()
    stage.tell(SCHEDULED, 5)
    story = stage.scenario(deployment(1), autoscaler(metric(value=0))).at(
        "100s", edit("HorizontalAutoscaler", "web", {"spec": {"metrics": [metric()]}}, namespace="shop")
    )
    wrong, mended = story.run("100s"), story.run("200s")

    active = conditions(wrong)["Active"]
    assert (active["status"], active["reason"]) == ("False", "Invalid")
    assert "spec.metrics[0].prometheus.target.value: a target must be positive" in active["message"]
    assert scaled(mended) == [(100, 5)]


def test_servers_need_a_grant() -> None:
    """What no grant allows is not asked; a grant counts at once."""
    stage = Stage(everything=False)
    stage.tell(LOAD, 5)
    grant = {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Grant",
        "metadata": {"name": "shop"},
        "spec": {"namespaces": ["shop"], "urls": ["https://prom.example.com/"]},
    }
    story = stage.scenario(deployment(1), autoscaler(metric(LOAD))).at("100s", create(grant))
    refused, granted = story.run("100s"), story.run("200s")

    active = conditions(refused)["Active"]
    assert (active["status"], active["reason"]) == ("False", "NotGranted")
    assert "https://prom.example.com/" in active["message"]
    assert scaled(granted) == [(100, 5)]


def test_an_autoscaler_that_goes_leaves_its_target_alone() -> None:
    stage = Stage()
    stage.tell(SCHEDULED, 5)
    outcome = (
        stage.scenario(deployment(5), autoscaler(metric()))
        .at("50s", delete("HorizontalAutoscaler", "web", namespace="shop"))
        .at("60s", stage.telling(SCHEDULED, 9))
        .run("200s")
    )

    assert scaled(outcome) == []


def test_one_that_is_made_again_has_no_past() -> None:
    """Another one of the same name has seen nothing: the window begins anew, with what its namesake waited for."""
    stage = Stage()
    stage.tell(SCHEDULED, 5)
    outcome = (
        stage.scenario(deployment(5), autoscaler(metric()))
        .at("900s", stage.telling(SCHEDULED, 3))
        .at("1000s", _replaced(autoscaler(metric())))
        .run("1400s")
    )

    assert scaled(outcome) == [(1300, 3)]


def _replaced(written: Object) -> Action:
    """Delete an autoscaler and create it again, before anybody can have seen that it was gone."""

    async def act(world: World) -> None:
        await delete("HorizontalAutoscaler", "web", namespace="shop")(world)
        await create(written)(world)

    return act


def test_another_target_has_no_past_either() -> None:
    stage = Stage()
    stage.tell(SCHEDULED, 5)
    reference = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}}
    outcome = (
        stage.scenario(deployment(5), deployment(5, "api"), autoscaler(metric()))
        .at("900s", stage.telling(SCHEDULED, 3))
        .at("1000s", edit("HorizontalAutoscaler", "web", {"spec": reference}, namespace="shop"))
        .run("1400s")
    )

    assert (scaled(outcome), scaled(outcome, "api")) == ([], [(1300, 3)])


def test_series_of_other_namespaces_wake_nobody() -> None:
    """And changes of series that the query does not read do not, either."""
    stage = Stage()
    stage.tell(SCHEDULED, 5)

    async def others(world: World) -> None:
        stage.tell(SCHEDULED, 9, namespace="elsewhere")
        stage.tell(QUEUED, 9)

    quiet = stage.scenario(deployment(5), autoscaler(metric())).run("60s")
    disturbed = stage.scenario(deployment(5), autoscaler(metric())).at("20s", others).run("60s")

    assert quiet.trace_bytes() == disturbed.trace_bytes()


def test_in_observe_mode_nothing_is_done_and_nothing_is_claimed() -> None:
    stage = Stage()
    stage.tell(SCHEDULED, 5)
    outcome = stage.scenario(deployment(3), autoscaler(metric()), mode=Mode.OBSERVE).run("120s")

    assert outcome.object("Deployment", "web", namespace="shop")["spec"]["replicas"] == 3
    assert not [one for one in outcome.objects("Event") if one["reason"] == "SuccessfulRescale"]


def test_the_permissions_are_those_that_are_used() -> None:
    """Rights on the scale of others are given by group, where the controller is installed."""
    needed = {
        (permission.resource, verb, permission.subresource)
        for permission in HorizontalAutoscalerController.permissions
        for verb in permission.verbs
    }

    rivals = (HORIZONTAL_POD_AUTOSCALERS, FEDERATED_HPAS, SCALED_OBJECTS)
    watched = (HORIZONTAL_AUTOSCALERS, CUSTOM_RESOURCE_DEFINITIONS, GRANTS, *rivals)
    assert needed == {(resource, verb, "") for resource in watched for verb in ("get", "list", "watch")} | {
        (HORIZONTAL_AUTOSCALERS, "patch", "status")
    }
