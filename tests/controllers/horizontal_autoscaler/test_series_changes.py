"""Warnings about metrics: one event for each new problem, and none for problems that end before they are reported."""

from __future__ import annotations

from copy import deepcopy

import pytest
from tests.controllers.horizontal_autoscaler.harness import (
    LOAD,
    SCHEDULED,
    AutoscalerHarness,
    autoscaler,
    conditions,
    deployment,
    metric,
    node,
    scaled,
)
from tests.controllers.horizontal_autoscaler.test_with_producer import PRODUCER

from springtide.cluster.client import Client
from springtide.cluster.context import Services
from springtide.cluster.errors import NotFound, ServerError
from springtide.cluster.resources import Key, Object, Resource
from springtide.controllers.grant.state import GrantPolicy
from springtide.controllers.horizontal_autoscaler import HorizontalAutoscalerController
from springtide.controllers.metrics_producer import MetricsProducerController
from springtide.metrics.reading.queries import QueryReader
from springtide.metrics.series import SeriesStore
from springtide.simulator.behaviours import NODES, SCHEDULING, WORKLOADS
from springtide.simulator.processes import ProcessRun
from springtide.simulator.scenario import Outcome, Scenario, crash, create, edit

MANAGER = "springtide-horizontal-autoscaler"
OFFICE_HOURS: Object = {"replicas": 3, "start": {"hours": "9"}, "end": {"hours": "17"}}
NOWHERE: Object = {"spec": {"schedule": {"timezone": "Nowhere/Land"}}}


def _services(incarnation: ProcessRun) -> Services:
    book = SeriesStore()
    return Services(book, QueryReader(book, now=incarnation.clock.now), GrantPolicy(everything=True))


def _producer(name: str, *behaviors: Object) -> Object:
    written = deepcopy(PRODUCER)
    written["metadata"]["name"] = name
    written["spec"]["schedule"] = {"defaultReplicas": 1, "behaviors": list(behaviors)}
    return written


def _warnings(outcome: Outcome) -> list[tuple[str, int]]:
    """List the warnings about the autoscaler: reason and count."""
    return [
        (event["reason"], event["count"])
        for event in outcome.objects("Event")
        if event["involvedObject"]["kind"] == "HorizontalAutoscaler" and event["type"] == "Warning"
    ]


def _statuses(outcome: Outcome) -> list[int]:
    """List the times of status writes, in seconds since the start."""
    return [
        entry.at - outcome.world.clock.start
        for entry in outcome.trace
        if (entry.actor, entry.kind) == (MANAGER, "HorizontalAutoscaler")
    ]


def test_missing_metric_is_warned_about_once_while_others_change() -> None:
    harness = AutoscalerHarness()
    harness.set_metric(LOAD, 2)
    scenario = harness.scenario(deployment(5), autoscaler(metric(), metric(LOAD)))
    for turn in range(1, 20):
        scenario = scenario.at(f"{turn * 15 - 5}s", harness.metric_change(LOAD, 2 + turn % 3))
    outcome = scenario.run("10m")

    assert _warnings(outcome) == [("NoSample", 1)]


def test_another_missing_metric_is_warned_about_again() -> None:
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 2)
    scenario = harness.scenario(deployment(2), autoscaler(metric(), metric(LOAD))).at(
        "5m", harness.metric_change(SCHEDULED, None)
    )
    outcome = scenario.run("10m")

    assert _warnings(outcome) == [("NoSample", 1), ("NoSample", 1)]


def test_stale_series_is_warned_about_once() -> None:
    """A metric exports its age; the status has the time of the last value, which does not change."""
    outcome = (
        Scenario("a producer that loses its schedule", start="2026-06-08T10:00:00Z")
        .given(node(), deployment(3), _producer("scheduling", OFFICE_HOURS))
        .given(autoscaler(metric('karpenter_scheduled_capacity{name="scheduling"}'), least=1, most=10))
        .behaving(*NODES, *SCHEDULING, *WORKLOADS)
        .running(MetricsProducerController, HorizontalAutoscalerController, services=_services)
        .at("5m", edit("MetricsProducer", "scheduling", NOWHERE, namespace="shop"))
        .run("1h")
    )

    assert _warnings(outcome) == [("Outdated", 1)]
    assert len(_statuses(outcome)) <= 4
    assert "since 2026-06-08T10:05:00Z" in conditions(outcome)["Active"]["message"]


def test_restart_causes_no_warning() -> None:
    """Producers export their values one after another; autoscalers of later ones do not warn meanwhile."""
    names = [f"p{number:03}" for number in range(60)]
    query = f'karpenter_scheduled_capacity{{name="{names[-1]}"}}'
    outcome = (
        Scenario("many producers", start="2026-06-08T08:30:00Z")
        .given(node(), deployment(1), *(_producer(name, OFFICE_HOURS) for name in names))
        .behaving(*NODES, *SCHEDULING, *WORKLOADS)
        .running(MetricsProducerController, HorizontalAutoscalerController, services=_services)
        .at("1m", create(autoscaler(metric(query), least=1, most=10)))
        .at("29m", crash("springtide-0", downtime=120))
        .run("40m")
    )

    assert _warnings(outcome) == []
    assert scaled(outcome) == [(31 * 60, 3)]
    assert conditions(outcome)["Ready"]["status"] == "True"


def test_removed_series_is_warned_about_soon() -> None:
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 5)
    scenario = harness.scenario(deployment(5), autoscaler(metric())).at("5m", crash("springtide-0", downtime=60))
    outcome = scenario.at("330s", harness.metric_change(SCHEDULED, None)).run("10m")

    assert _warnings(outcome) == [("NoSample", 1)]
    assert _statuses(outcome)[-1] == 360


def test_series_without_a_producer_is_warned_about_at_once() -> None:
    outcome = AutoscalerHarness().scenario(deployment(5), autoscaler(metric())).run("2m")

    assert _warnings(outcome) == [("NoSample", 1)]
    assert _statuses(outcome)[0] == 0


def test_query_without_a_result_is_warned_about_at_once_after_startup() -> None:
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 5)
    scenario = harness.scenario(deployment(5), autoscaler(metric())).at("5m", harness.metric_change(SCHEDULED, None))
    outcome = scenario.run("10m")

    assert _warnings(outcome) == [("NoSample", 1)]
    assert _statuses(outcome)[-1] == 300


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(
            ServerError('Internal error occurred: the spec replicas field ".spec.replicas" does not exist'),
            id="error of a live server",
        ),
        pytest.param(
            NotFound('the spec replicas field ".spec.replicas" does not exist'), id="error of the embedded server"
        ),
    ],
)
def test_target_without_replicas_is_not_scaled(
    failure: ServerError | NotFound, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The present number is unknown; the condition says what to do."""
    read = Client.get

    async def refuse(self: Client, resource: Resource, key: Key, *, subresource: str = "") -> Object:
        if subresource == "scale":
            raise failure
        return await read(self, resource, key, subresource=subresource)

    monkeypatch.setattr(Client, "get", refuse)
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 3)
    outcome = harness.scenario(deployment(5), autoscaler(metric())).run("10m")

    able = conditions(outcome)["AbleToScale"]
    assert (able["status"], able["reason"]) == ("False", "NoReplicas")
    assert "set that once" in able["message"]
    assert _warnings(outcome) == [("NoReplicas", 1)]
    assert scaled(outcome) == []
