"""What people are told, and how often: once for what is new, and nothing of what is over before anybody could look."""

from __future__ import annotations

from copy import deepcopy

import pytest
from tests.controllers.horizontal_autoscaler.harness import (
    LOAD,
    SCHEDULED,
    Stage,
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


def _told(outcome: Outcome) -> list[tuple[str, int]]:
    """List the warnings about the autoscaler: why, and how often."""
    return [
        (event["reason"], event["count"])
        for event in outcome.objects("Event")
        if event["involvedObject"]["kind"] == "HorizontalAutoscaler" and event["type"] == "Warning"
    ]


def _statuses(outcome: Outcome) -> list[int]:
    """List when the status was written, in seconds since the start."""
    return [
        entry.at - outcome.world.clock.start
        for entry in outcome.trace
        if (entry.actor, entry.kind) == (MANAGER, "HorizontalAutoscaler")
    ]


def test_a_missing_metric_is_told_once_whatever_the_others_do() -> None:
    stage = Stage()
    stage.tell(LOAD, 2)
    story = stage.scenario(deployment(5), autoscaler(metric(), metric(LOAD)))
    for turn in range(1, 20):
        story = story.at(f"{turn * 15 - 5}s", stage.telling(LOAD, 2 + turn % 3))
    outcome = story.run("10m")

    assert _told(outcome) == [("NoSample", 1)]


def test_what_is_missing_is_told_again_when_it_is_something_else() -> None:
    stage = Stage()
    stage.tell(SCHEDULED, 2)
    story = stage.scenario(deployment(2), autoscaler(metric(), metric(LOAD))).at("5m", stage.telling(SCHEDULED, None))
    outcome = story.run("10m")

    assert _told(outcome) == [("NoSample", 1), ("NoSample", 1)]


def test_a_series_that_grows_old_is_told_once() -> None:
    """How old it is by now is told by a metric; the status says since when, which stays the same."""
    outcome = (
        Scenario("a producer that loses its schedule", start="2026-06-08T10:00:00Z")
        .given(node(), deployment(3), _producer("scheduling", OFFICE_HOURS))
        .given(autoscaler(metric('karpenter_scheduled_capacity{name="scheduling"}'), least=1, most=10))
        .behaving(*NODES, *SCHEDULING, *WORKLOADS)
        .running(MetricsProducerController, HorizontalAutoscalerController, services=_services)
        .at("5m", edit("MetricsProducer", "scheduling", NOWHERE, namespace="shop"))
        .run("1h")
    )

    assert _told(outcome) == [("Outdated", 1)]
    assert len(_statuses(outcome)) <= 4
    assert "since 2026-06-08T10:05:00Z" in conditions(outcome)["Active"]["message"]


def test_a_restart_is_no_reason_to_warn() -> None:
    """Producers tell their values one after the other; those who read the last of many say nothing meanwhile."""
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

    assert _told(outcome) == []
    assert scaled(outcome) == [(31 * 60, 3)]
    assert conditions(outcome)["Ready"]["status"] == "True"


def test_a_series_that_does_not_come_back_is_told_soon() -> None:
    stage = Stage()
    stage.tell(SCHEDULED, 5)
    story = stage.scenario(deployment(5), autoscaler(metric())).at("5m", crash("springtide-0", downtime=60))
    outcome = story.at("330s", stage.telling(SCHEDULED, None)).run("10m")

    assert _told(outcome) == [("NoSample", 1)]
    assert _statuses(outcome)[-1] == 360


def test_a_series_that_never_was_is_told_at_once() -> None:
    outcome = Stage().scenario(deployment(5), autoscaler(metric())).run("2m")

    assert _told(outcome) == [("NoSample", 1)]
    assert _statuses(outcome)[0] == 0


def test_a_query_that_nobody_answers_is_told_at_once_when_all_is_running() -> None:
    stage = Stage()
    stage.tell(SCHEDULED, 5)
    story = stage.scenario(deployment(5), autoscaler(metric())).at("5m", stage.telling(SCHEDULED, None))
    outcome = story.run("10m")

    assert _told(outcome) == [("NoSample", 1)]
    assert _statuses(outcome)[-1] == 300


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(
            ServerError('Internal error occurred: the spec replicas field ".spec.replicas" does not exist'),
            id="as-live-servers-say-it",
        ),
        pytest.param(
            NotFound('the spec replicas field ".spec.replicas" does not exist'), id="as-the-embedded-one-does"
        ),
    ],
)
def test_a_target_that_has_no_number_yet(failure: ServerError | NotFound, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows how many replicas it has, so nothing is set; what to do about it is said."""
    read = Client.get

    async def refuse(self: Client, resource: Resource, key: Key, *, subresource: str = "") -> Object:
        if subresource == "scale":
            raise failure
        return await read(self, resource, key, subresource=subresource)

    monkeypatch.setattr(Client, "get", refuse)
    stage = Stage()
    stage.tell(SCHEDULED, 3)
    outcome = stage.scenario(deployment(5), autoscaler(metric())).run("10m")

    able = conditions(outcome)["AbleToScale"]
    assert (able["status"], able["reason"]) == ("False", "NoReplicas")
    assert "set that once" in able["message"]
    assert _told(outcome) == [("NoReplicas", 1)]
    assert scaled(outcome) == []
