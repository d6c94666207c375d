"""Why a group of nodes has the size that it has."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.explained import GRANT, PEAK, POOL, WEB, explained, loaded, stops, written

from springtide.apis.scheduled.node_group import ScalableNodeGroup
from springtide.controllers.scalable_node_group.decide import GroupRequest, decide

MASTER = WEB.replace("apiVersion: apps/v1, kind: Deployment, name: web", "{target}").replace(
    "{{target}}", "{apiVersion: autoscaling.karpenter.sh/v1alpha1, kind: ScalableNodeGroup, name: pool}"
)
REFUSED = "no Grant lets objects of namespace shop reach it"


def test_who_sets_its_replicas_and_how_many_there_are() -> None:
    explanation = explained(POOL, MASTER, status={"replicas": 2})
    assert dict(explanation.wants) == {"replicas": 3}
    assert explanation.because == (
        "HorizontalAutoscaler `web` sets its replicas",
        "AWSEC2AutoScalingGroup shop-nodes has 2 nodes that are ready",
    )


def test_a_group_without_replicas_is_left_alone() -> None:
    explanation = explained(POOL.replace("replicas: 3, ", ""), status={"replicas": 2})
    assert dict(explanation.wants) == {"replicas": None}
    assert explanation.because[0] == "`replicas` is not set: the group is left alone"


def test_one_complaint_of_two_conditions_is_told_once() -> None:
    group = loaded(POOL).view
    assert isinstance(group, ScalableNodeGroup)
    decision = decide(GroupRequest("uid", group.spec, refusal=REFUSED), None, now=0)
    explanation = explained(POOL, status=written(decision))
    assert stops(explanation) == ["Active and AbleToScale are False"]


@pytest.mark.parametrize(
    ("others", "status", "notes"),
    [
        pytest.param([GRANT], {}, ['the node group "shop-nodes" is allowed by Grant `for-shop`'], id="granted"),
        pytest.param([GRANT.replace("[shop]", "[other]")], {"replicas": 3}, [], id="not needed, as it seems"),
    ],
)
def test_the_grants_that_allow_it(others: list[str], status: dict[str, Any], notes: list[str]) -> None:
    assert list(explained(POOL, *others, status=status).notes) == notes


def test_a_missing_grant_is_told_where_nobody_has_tried() -> None:
    assert "under `nodeGroups` for namespace shop" in explained(POOL).notes[0]


def test_a_second_object_for_the_group_is_told() -> None:
    twin = POOL.replace("name: pool, namespace: shop", "name: twin, namespace: other")
    assert stops(explained(POOL, twin)) == ["no controller has reported yet", "another object scales the group"]


def test_it_will_have_what_its_autoscaler_will_ask_for() -> None:
    explanation = explained(POOL, MASTER, PEAK, status={"replicas": 1}, at="2026-11-16T10:00:00Z")
    assert [one.value for one in explanation.next[:2]] == [8, 6]
    assert explanation.because[1] == "AWSEC2AutoScalingGroup shop-nodes has 1 node that is ready"
    later = explained(POOL, MASTER, PEAK, status={"replicas": 1}, at="2026-11-16T20:00:00Z", present=False)
    assert dict(later.wants) == {"replicas": 2}
    assert later.because[1].startswith("at present ")


def test_what_comes_is_not_known_where_its_autoscaler_does_not_tell() -> None:
    unknown = explained(POOL, MASTER, status={"replicas": 1}, present=False)
    assert unknown.headline == "not known for that time"
    assert unknown.next_unknown.startswith(
        "HorizontalAutoscaler `web` sets its replicas, and no MetricsProducer `peak` exists"
    )


def test_a_group_that_nobody_scales_keeps_its_size() -> None:
    alone = explained(POOL, status={"replicas": 1}, present=False)
    assert (dict(alone.wants), alone.next_unknown) == ({"replicas": 3}, "")
