"""Decisions about node groups as tables: which object owns a group, what is requested, and when it is requeued."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.scalable_node_group.node_groups import node_group

from springtide.apis.scheduled.node_group import ScalableNodeGroupSpec
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.resources import Key
from springtide.cluster.store import Store
from springtide.controllers.scalable_node_group.decide import GroupRequest, decide
from springtide.controllers.scalable_node_group.ownership import BY_GROUP, group_index, owner_of_group, younger_objects
from springtide.providers import GroupState, ProviderError

ARN = "arn:aws:autoscaling:{}:{}:autoScalingGroup:{}:autoScalingGroupName/pool"
NOW = 1_000
HERE = ARN.format("eu-west-1", "123456789012", "0b66")


def request(replicas: int | None = 3, **more: Any) -> GroupRequest:
    return GroupRequest("uid", ScalableNodeGroupSpec(type="Simulated", id="pool", replicas=replicas), **more)


@pytest.mark.parametrize(
    ("entitled", "state", "expected"),
    [
        pytest.param(request(3), GroupState(0, 0, True), 3, id="up"),
        pytest.param(request(3), GroupState(10, 10, True), 3, id="down"),
        pytest.param(request(0), GroupState(1, 1, True), 0, id="to-zero"),
        pytest.param(request(3), GroupState(3, 3, True), None, id="as-requested"),
        pytest.param(request(3), GroupState(0, 3, False), None, id="under-way"),
        pytest.param(request(3), GroupState(3, 5, False), 3, id="ready-but-the-provider-works-towards-more"),
        pytest.param(request(3), GroupState(1, 2, False), 3, id="unstable"),
        pytest.param(request(None), GroupState(7, 7, True), None, id="no-replicas"),
        pytest.param(request(3, owner=Key("a", "b")), GroupState(1, 1, True), None, id="another-object-owns-the-group"),
        pytest.param(GroupRequest("uid", None, errors="wrong"), GroupState(1, 1, True), None, id="invalid"),
    ],
)
def test_resize_is_requested_when_replicas_differ_from_the_target(
    entitled: GroupRequest, state: GroupState, expected: int | None
) -> None:
    """`replicas` is compared with what the provider works towards."""
    actions = decide(entitled, state, now=NOW).actions

    assert ([] if expected is None else [expected]) == [action.nodes for action in actions]


@pytest.mark.parametrize(
    ("retryable", "failures", "expected"),
    [
        pytest.param(True, 1, 5, id="first"),
        pytest.param(True, 2, 10, id="second"),
        pytest.param(True, 6, 160, id="sixth"),
        pytest.param(True, 50, 300, id="capped"),
        pytest.param(False, 1, 300, id="permanent"),
    ],
)
def test_delay_after_a_failure(retryable: bool, failures: int, expected: int) -> None:
    """Retryable failures get a growing backoff, permanent ones are retried every five minutes."""
    failure = ProviderError("Code", "expected_text", retryable=retryable)

    assert decide(request(), failure, now=NOW, failures=failures).requeue_at == NOW + expected


def test_group_without_a_grant_is_not_requeued() -> None:
    """A change of the object or of a Grant enqueues it."""
    decision = decide(request(refusal="no grant"), None, now=NOW)

    assert decision.requeue_at is None
    assert decision.conditions[0] == Condition("Ready", ConditionStatus.FALSE, "NotGranted", "no grant")


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(GroupState(3, 3, True), 60, id="stable"),
        pytest.param(GroupState(1, 3, False), 10, id="under-way"),
        pytest.param(GroupState(1, 1, True), 10, id="resized-now"),
    ],
)
def test_observation_interval(state: GroupState, expected: int) -> None:
    """A changing group is observed more often."""
    assert decide(request(3), state, now=NOW).requeue_at == NOW + expected


@pytest.mark.parametrize(
    ("code", "retryable", "replicas"),
    [
        pytest.param("Timeout", True, 4, id="retryable"),
        pytest.param("AccessDenied", False, 4, id="permanent"),
        pytest.param("GroupNotFound", False, None, id="missing"),
    ],
)
def test_last_replicas_stay_unless_the_group_is_not_found(code: str, retryable: bool, replicas: int | None) -> None:
    """Only a missing group has no number of nodes."""
    failure = ProviderError(code, "expected_text", retryable=retryable)

    assert decide(request(), failure, now=NOW, failures=1, last_replicas=4).status == {"replicas": replicas}


def made(name: str, at: str, id_: str = "pool", type_: str = "AWSEC2AutoScalingGroup", space: str = "default") -> Any:
    item = node_group(name, 1, id_=id_, type_=type_, namespace=space)
    item["metadata"] |= {"creationTimestamp": f"2026-01-05T00:00:{at}Z", "resourceVersion": "1", "uid": name}
    return item


def stored(*items: Any) -> Store[Any]:
    store: Store[Any] = Store(indexes={BY_GROUP: group_index})
    store.replace(items, 1)
    return store


def others(item: Any, store: Store[Any]) -> list[Any]:
    """Find the objects that may be for the same group, as the controller does."""
    return [other for value in group_index(item) for other in store.by(BY_GROUP, value)]


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
            made("a", "01", HERE), made("b", "02", ARN.format("eu-west-1", "123456789012", "new")), True, id="recreated"
        ),
        pytest.param(made("a", "01"), made("b", "02", type_="Simulated"), False, id="two-types"),
        pytest.param(
            made("a", "01", "x/y", "ClusterAPI"), made("b", "02", "x/y", "ClusterAPI"), True, id="cluster-api"
        ),
        pytest.param(
            made("a", "01", "x/y", "ClusterAPI"), made("b", "02", "z/y", "ClusterAPI"), False, id="another-namespace"
        ),
        pytest.param(
            made("a", "01", "arn:aws:eks:r:1:nodegroup/c/n/u1", "AWSEKSNodeGroup"),
            made("b", "02", "arn:aws:eks:r:1:nodegroup/c/n", "AWSEKSNodeGroup"),
            True,
            id="eks",
        ),
        pytest.param(made("a", "01", "a/b"), made("b", "02", "a:b", "ClusterAPI"), False, id="invalid-id"),
    ],
)
def test_objects_that_name_the_same_group_are_duplicates(one: Any, other: Any, same: bool) -> None:
    """Then the older object owns the group, and the younger one names it."""
    store = stored(one, other)

    assert list(younger_objects(one, others(one, store))) == ([other] if same else [])
    assert list(younger_objects(other, others(other, store))) == []
    assert owner_of_group(one, others(one, store), lambda item: True) is None
    oldest = Key(one["metadata"]["namespace"], "a")
    assert owner_of_group(other, others(other, store), lambda item: True) == (oldest if same else None)


def test_type_and_id_are_read_from_the_extensions_annotation() -> None:
    """A cluster with the upstream CRD stores them there."""
    plain, extended = made("a", "01", "x", "Simulated"), made("b", "02")
    extended["metadata"]["annotations"] = {"springtide.dev/extensions": "{type: Simulated, id: x}"}

    assert list(younger_objects(plain, [plain, extended])) == [extended]


def test_name_breaks_ties_of_creation_time() -> None:
    """Creation times have a resolution of one second."""
    items = [made("a", "01"), made("b", "01"), made("c", "01")]
    store = stored(*items)

    assert [owner_of_group(item, others(item, store), lambda item: True) for item in items] == [
        None, Key("default", "a"), Key("default", "a")
    ]  # fmt: skip


def test_objects_without_a_grant_own_no_group() -> None:
    """The oldest object with a Grant owns it."""
    items = [made("a", "01"), made("b", "02"), made("c", "03")]

    assert owner_of_group(items[2], items, lambda item: item["metadata"]["name"] != "a") == Key("default", "b")


@pytest.mark.parametrize(
    "item",
    [
        pytest.param({"metadata": {"name": "a"}}, id="no-spec"),
        pytest.param({"metadata": {"name": "a"}, "spec": None}, id="null-spec"),
        pytest.param({"metadata": {"name": "a"}, "spec": {"type": 1, "id": []}}, id="other-types"),
        pytest.param({"metadata": {"name": "a"}, "spec": {"type": "Simulated"}}, id="no-id"),
        pytest.param({"metadata": {"name": "a"}, "spec": {"type": "Unknown", "id": "a"}}, id="unknown-type"),
    ],
)
def test_object_without_a_valid_group_has_no_duplicates(item: Any) -> None:
    """The spec may have any form."""
    assert list(group_index(item)) == []
    assert list(younger_objects(item, [])) == []
