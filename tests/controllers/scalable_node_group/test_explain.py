"""Explanations of ScalableNodeGroup."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.explained import GRANT, PEAK, POOL, WEB, explained, loaded, stops, written

from springtide.apis.scheduled.node_group import ScalableNodeGroup
from springtide.controllers.scalable_node_group.decide import GroupRequest, decide

AUTOSCALER = WEB.replace("apiVersion: apps/v1, kind: Deployment, name: web", "{target}").replace(
    "{{target}}", "{apiVersion: autoscaling.karpenter.sh/v1alpha1, kind: ScalableNodeGroup, name: pool}"
)
REFUSED = "no Grant lets objects of namespace shop reach it"


def test_explanation_names_the_autoscaler_and_the_ready_nodes() -> None:
    explanation = explained(POOL, AUTOSCALER, status={"replicas": 2})
    assert dict(explanation.wants) == {"replicas": 3}
    assert explanation.because == (
        "HorizontalAutoscaler `web` sets its replicas",
        "AWSEC2AutoScalingGroup shop-nodes has 2 nodes that are ready",
    )


def test_group_without_replicas_has_no_wanted_number() -> None:
    explanation = explained(POOL.replace("replicas: 3, ", ""), status={"replicas": 2})
    assert dict(explanation.wants) == {"replicas": None}
    assert explanation.because[0] == "`replicas` is not set: the group is left alone"


def test_one_message_of_two_conditions_is_listed_once() -> None:
    group = loaded(POOL).view
    assert isinstance(group, ScalableNodeGroup)
    decision = decide(GroupRequest("uid", group.spec, refusal=REFUSED), None, now=0)
    explanation = explained(POOL, status=written(decision))
    assert stops(explanation) == ["Active and AbleToScale are False"]


@pytest.mark.parametrize(
    ("others", "status", "notes"),
    [
        pytest.param([GRANT], {}, ['the node group "shop-nodes" is allowed by Grant `for-shop`'], id="granted"),
        pytest.param(
            [GRANT.replace("[shop]", "[other]")],
            {"replicas": 3},
            [],
            id="no note when the group is observed without a Grant",
        ),
    ],
)
def test_notes_name_the_grant_that_allows_the_group(
    others: list[str], status: dict[str, Any], notes: list[str]
) -> None:
    assert list(explained(POOL, *others, status=status).notes) == notes


def test_missing_grant_is_noted_without_a_status() -> None:
    assert "under `nodeGroups` for namespace shop" in explained(POOL).notes[0]


def test_another_object_for_the_group_is_listed() -> None:
    duplicate = POOL.replace("name: pool, namespace: shop", "name: twin, namespace: other")
    assert stops(explained(POOL, duplicate)) == ["no controller has reported yet", "another object scales the group"]


def test_next_changes_are_those_of_the_autoscaler() -> None:
    explanation = explained(POOL, AUTOSCALER, PEAK, status={"replicas": 1}, at="2026-11-16T10:00:00Z")
    assert [one.value for one in explanation.next[:2]] == [8, 6]
    assert explanation.because[1] == "AWSEC2AutoScalingGroup shop-nodes has 1 node that is ready"
    later = explained(POOL, AUTOSCALER, PEAK, status={"replicas": 1}, at="2026-11-16T20:00:00Z", present=False)
    assert dict(later.wants) == {"replicas": 2}
    assert later.because[1].startswith("at present ")


def test_future_is_unknown_when_the_autoscaler_cannot_be_computed() -> None:
    unknown = explained(POOL, AUTOSCALER, status={"replicas": 1}, present=False)
    assert unknown.headline == "not known for that time"
    assert unknown.next_unknown.startswith(
        "HorizontalAutoscaler `web` sets its replicas, and no MetricsProducer `peak` exists"
    )


def test_group_without_autoscaler_keeps_its_replicas() -> None:
    explanation = explained(POOL, status={"replicas": 1}, present=False)
    assert (dict(explanation.wants), explanation.next_unknown) == ({"replicas": 3}, "")
