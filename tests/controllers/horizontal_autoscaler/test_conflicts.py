"""Two autoscalers of one target: nobody can please both, but both of ours say so."""

from __future__ import annotations

import pytest
from tests.controllers.horizontal_autoscaler.harness import (
    QUEUED,
    SCHEDULED,
    Stage,
    autoscaler,
    conditions,
    deployment,
    metric,
)

from springtide.cluster.resources import Object
from springtide.simulator.scenario import Outcome, create, delete

OTHER = autoscaler(metric(QUEUED), name="other")
ELSEWHERE = autoscaler(
    metric(QUEUED), name="other", scaleTargetRef={"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}
)
STOCK: Object = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "stock", "namespace": "shop"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 5,
    },
}


def _warned(outcome: Outcome, name: str = "web") -> list[tuple[str, int]]:
    return [
        (event["message"], event["count"])
        for event in outcome.objects("Event")
        if event["involvedObject"]["name"] == name and event["reason"] == "AlsoScaled"
    ]


@pytest.mark.parametrize(
    ("rival", "words"),
    [
        pytest.param(OTHER, "HorizontalAutoscaler `other`", id="one-of-ours"),
        pytest.param(STOCK, "HorizontalPodAutoscaler `stock`", id="a-stock-one"),
    ],
)
def test_a_rival_is_told_of_as_soon_as_it_comes_and_as_it_goes(rival: Object, words: str) -> None:
    stage = Stage()
    stage.tell(SCHEDULED, 3)
    stage.tell(QUEUED, 3)
    story = stage.scenario(deployment(3), autoscaler(metric())).at("100s", create(rival))
    opposed = story.run("105s")
    alone = story.at("200s", delete(rival["kind"], rival["metadata"]["name"], namespace="shop")).run("205s")

    told = conditions(opposed)["Unopposed"]
    assert (told["status"], told["reason"]) == ("False", "AlsoScaled")
    assert told["message"].startswith(f"Deployment web is also scaled by {words}, and each undoes what the other sets")
    assert conditions(opposed)["Ready"]["status"] == "True"
    assert _warned(opposed) == [(told["message"], 1)]
    assert conditions(alone)["Unopposed"]["status"] == "True"


def test_both_of_ours_say_so_and_the_fight_is_no_faster_for_it() -> None:
    """Each looks when it would look anyway: what one writes wakes nobody."""
    stage = Stage()
    stage.tell(SCHEDULED, 3)
    stage.tell(QUEUED, 5)
    at_once = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    one, two = autoscaler(metric(), behavior=at_once), autoscaler(metric(QUEUED), name="other", behavior=at_once)
    outcome = stage.scenario(deployment(3), one, two).run("10m")

    assert [len(_warned(outcome, name)) for name in ("web", "other")] == [1, 1]
    changes = [
        entry
        for entry in outcome.trace
        if entry.actor == "springtide-horizontal-autoscaler" and entry.kind == "Deployment"
    ]
    assert len(changes) <= 2 * 600 // 15


def test_autoscalers_of_other_targets_are_no_rivals() -> None:
    stage = Stage()
    stage.tell(SCHEDULED, 3)
    outcome = stage.scenario(deployment(3), autoscaler(metric()), ELSEWHERE).run("2m")

    assert conditions(outcome)["Unopposed"]["status"] == "True"
    assert _warned(outcome) == []
