"""What is decided about node groups, by tables: who rules, what is ordered, and when to look again."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.scalable_node_group.node_groups import node_group

from springtide.apis.scheduled.node_group import ScalableNodeGroupSpec
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.resources import Key
from springtide.cluster.store import Store
from springtide.controllers.scalable_node_group.conflicts import BY_GROUP, group_index, owner_of_group, younger_objects
from springtide.controllers.scalable_node_group.decide import (
    GroupRequest,
    decide_failed,
    decide_not_asked,
    decide_observed,
    replicas_to_request,
)
from springtide.providers import GroupState, ProviderError

ARN = "arn:aws:autoscaling:{}:{}:autoScalingGroup:{}:autoScalingGroupName/pool"
HERE = ARN.format("eu-west-1", "123456789012", "0b66")


def standing(replicas: int | None = 3, **more: Any) -> GroupRequest:
    return GroupRequest("uid", ScalableNodeGroupSpec(type="Simulated", id="pool", replicas=replicas), **more)


@pytest.mark.parametrize(
    ("entitled", "state", "expected"),
    [
        pytest.param(standing(3), GroupState(0, 0, True), 3, id="up"),
        pytest.param(standing(3), GroupState(10, 10, True), 3, id="down"),
        pytest.param(standing(0), GroupState(1, 1, True), 0, id="to-nothing"),
        pytest.param(standing(3), GroupState(3, 3, True), None, id="as-wished"),
        pytest.param(standing(3), GroupState(0, 3, False), None, id="under-way"),
        pytest.param(standing(3), GroupState(3, 5, False), 3, id="ready-as-wished-but-more-are-wanted"),
        pytest.param(standing(3), GroupState(1, 2, False), 3, id="unstable"),
        pytest.param(standing(None), GroupState(7, 7, True), None, id="no-wish"),
        pytest.param(standing(3, ruler=Key("a", "b")), GroupState(1, 1, True), None, id="somebody-else-rules"),
        pytest.param(GroupRequest("uid", None, errors="wrong"), GroupState(1, 1, True), None, id="wrong"),
    ],
)
def test_orders(entitled: GroupRequest, state: GroupState, expected: int | None) -> None:
    """The wish is compared with what the provider works towards."""
    assert expected == replicas_to_request(entitled, state)


@pytest.mark.parametrize(
    ("retryable", "failures", "expected"),
    [
        pytest.param(True, 1, 5, id="first"),
        pytest.param(True, 2, 10, id="second"),
        pytest.param(True, 6, 160, id="sixth"),
        pytest.param(True, 50, 300, id="never-longer"),
        pytest.param(False, 1, 300, id="for-good"),
    ],
)
def test_when_a_failure_is_tried_again(retryable: bool, failures: int, expected: int) -> None:
    """What passes is tried soon and then later, what lasts only slowly."""
    failure = ProviderError("Code", "words", retryable=retryable)

    assert decide_failed(standing(), failure, None, failures).again == expected


def test_a_group_that_may_not_be_asked_waits_for_a_change() -> None:
    """A change of the object or of a grant tells of itself."""
    report = decide_not_asked(standing(refusal="no grant"))

    assert report.again is None
    assert report.conditions[0] == Condition("Ready", ConditionStatus.FALSE, "NotGranted", "no grant")


@pytest.mark.parametrize(
    ("state", "ordered", "expected"),
    [
        pytest.param(GroupState(3, 3, True), None, 60, id="at-rest"),
        pytest.param(GroupState(1, 3, False), None, 10, id="under-way"),
        pytest.param(GroupState(1, 1, True), 3, 10, id="just-ordered"),
    ],
)
def test_when_a_group_is_looked_at_again(state: GroupState, ordered: int | None, expected: int) -> None:
    """More often while something happens."""
    assert decide_observed(standing(), state, ordered).again == expected


@pytest.mark.parametrize(
    ("code", "retryable", "gone"),
    [
        pytest.param("Timeout", True, False, id="passing"),
        pytest.param("AccessDenied", False, False, id="lasting"),
        pytest.param("GroupNotFound", False, True, id="not-there"),
    ],
)
def test_what_was_last_seen_stays_while_there_may_be_a_group(code: str, retryable: bool, gone: bool) -> None:
    """Nobody who could not look knows of fewer nodes; a number of a group that is gone would be a lie."""
    report = decide_failed(standing(), ProviderError(code, "words", retryable=retryable), None, 1)

    assert (report.replicas, report.gone) == (None, gone)


def made(name: str, at: str, id_: str = "pool", type_: str = "AWSEC2AutoScalingGroup", space: str = "default") -> Any:
    item = node_group(name, 1, id_=id_, type_=type_, namespace=space)
    item["metadata"] |= {"creationTimestamp": f"2026-01-05T00:00:{at}Z", "resourceVersion": "1", "uid": name}
    return item


def stored(*items: Any) -> Store[Any]:
    store: Store[Any] = Store(indexes={BY_GROUP: group_index})
    store.replace(items, 1)
    return store


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param(made("a", "01"), made("b", "02"), True, id="one-name"),
        pytest.param(made("a", "01"), made("b", "02", "pool2"), False, id="two-names"),
        pytest.param(made("a", "01"), made("a", "02", space="team"), True, id="two-namespaces"),
        pytest.param(made("a", "01", HERE), made("b", "02"), True, id="arn-and-name"),
        pytest.param(made("a", "01", HERE), made("b", "02", HERE), True, id="one-arn"),
        pytest.param(
            made("a", "01", HERE), made("b", "02", ARN.format("us-east-1", "123456789012", "0b66")), False, id="regions"
        ),
        pytest.param(
            made("a", "01", HERE),
            made("b", "02", ARN.format("eu-west-1", "999999999999", "0b66")),
            False,
            id="accounts",
        ),
        pytest.param(
            made("a", "01", HERE), made("b", "02", ARN.format("eu-west-1", "123456789012", "new")), True, id="made-anew"
        ),
        pytest.param(made("a", "01"), made("b", "02", type_="Simulated"), False, id="two-types"),
        pytest.param(
            made("a", "01", "x/y", "ClusterAPI"), made("b", "02", "x/y", "ClusterAPI"), True, id="cluster-api"
        ),
        pytest.param(made("a", "01", "x/y", "ClusterAPI"), made("b", "02", "z/y", "ClusterAPI"), False, id="elsewhere"),
        pytest.param(
            made("a", "01", "arn:aws:eks:r:1:nodegroup/c/n/u1", "AWSEKSNodeGroup"),
            made("b", "02", "arn:aws:eks:r:1:nodegroup/c/n", "AWSEKSNodeGroup"),
            True,
            id="eks",
        ),
        pytest.param(made("a", "01", "a/b"), made("b", "02", "a:b", "ClusterAPI"), False, id="not-an-id"),
    ],
)
def test_which_objects_are_for_one_group(one: Any, other: Any, same: bool) -> None:
    """Then the older one rules, and the younger one knows."""
    store = stored(one, other)

    assert list(younger_objects(one, store)) == ([other] if same else [])
    assert list(younger_objects(other, store)) == []
    assert owner_of_group(one, store, lambda item: True) is None
    oldest = Key(one["metadata"]["namespace"], "a")
    assert owner_of_group(other, store, lambda item: True) == (oldest if same else None)


def test_what_extensions_say_counts() -> None:
    """On a cluster with somebody else's CRD, type and id stand in the annotation."""
    plain, extended = made("a", "01", "x", "Simulated"), made("b", "02")
    extended["metadata"]["annotations"] = {"springtide.dev/extensions": "{type: Simulated, id: x}"}

    assert list(younger_objects(plain, stored(plain, extended))) == [extended]


def test_of_objects_of_one_second_the_name_decides() -> None:
    """One of them must."""
    items = [made("a", "01"), made("b", "01"), made("c", "01")]
    store = stored(*items)

    assert [owner_of_group(item, store, lambda item: True) for item in items] == [
        None, Key("default", "a"), Key("default", "a")
    ]  # fmt: skip


def test_those_who_may_not_scale_do_not_rule() -> None:
    """The oldest of those who may does."""
    items = [made("a", "01"), made("b", "02"), made("c", "03")]

    assert owner_of_group(items[2], stored(*items), lambda item: item["metadata"]["name"] != "a") == Key("default", "b")


@pytest.mark.parametrize(
    "item",
    [
        pytest.param({"metadata": {"name": "a"}}, id="no-spec"),
        pytest.param({"metadata": {"name": "a"}, "spec": None}, id="nothing"),
        pytest.param({"metadata": {"name": "a"}, "spec": {"type": 1, "id": []}}, id="other-types"),
        pytest.param({"metadata": {"name": "a"}, "spec": {"type": "Simulated"}}, id="no-id"),
        pytest.param({"metadata": {"name": "a"}, "spec": {"type": "Unknown", "id": "a"}}, id="unknown-type"),
    ],
)
def test_an_object_that_names_no_group_has_no_rivals(item: Any) -> None:
    """Whatever stands in it."""
    assert list(group_index(item)) == []
    assert list(younger_objects(item, stored())) == []
