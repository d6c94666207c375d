"""Decisions of single behaviours: deletion order, predicates, taints, evictions, counts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.simulator.behaviours.objects import NOW, live_pod, record_of

from springtide.apis.core.nodes import NodeTaint
from springtide.apis.core.pod_record import TaintToleration, pod_class_of
from springtide.apis.forecast import format_instant
from springtide.cluster.resources import Object
from springtide.packing.columns import rule_of
from springtide.packing.predicates import is_tolerated_by
from springtide.simulator.behaviours import replica_sets
from springtide.simulator.behaviours import stateful_sets as ordinals
from springtide.simulator.behaviours.node_lifecycle import leaves_at, silent_at, wanted_taints
from springtide.simulator.behaviours.ownership import (
    DELETION_COST,
    TemplateRevision,
    as_object,
    by_deletion_order,
    child_name,
    free_names,
    scaled_count,
    template_hash,
)
from springtide.simulator.behaviours.resources import STATEFUL_SETS, selects
from springtide.simulator.behaviours.settings import LOST, BehaviourSettings
from springtide.simulator.behaviours.stateful_sets import StatefulSetShape, shape_of

SPARED = live_pod("spared", uid="0")


@pytest.mark.parametrize(
    "victim",
    [
        pytest.param(live_pod("v", node=None, phase="Pending"), id="unbound"),
        pytest.param(live_pod("v", phase="Pending"), id="pending"),
        pytest.param(live_pod("v", ready_for=None), id="unready"),
        pytest.param(live_pod("v", annotations={DELETION_COST: "-5"}), id="cheap"),
        pytest.param(live_pod("v", ready_for=10), id="ready for a short time"),
        pytest.param(live_pod("v", restarts=3), id="restarted"),
        pytest.param(live_pod("v", age=3, ready_for=900), id="young"),
        pytest.param(live_pod("v", uid="-"), id="alike but for the uid"),
    ],
)
def test_the_deletion_order_prefers_less_valuable_pods(victim: Object) -> None:
    assert by_deletion_order([SPARED, victim], NOW) == [victim, SPARED]


def test_the_deletion_order_prefers_pods_that_share_a_node() -> None:
    pods = [live_pod("a", node="x"), live_pod("b", node="y"), live_pod("c", node="y")]
    assert by_deletion_order(pods, NOW)[0]["metadata"]["name"] == "b"


@pytest.mark.parametrize(
    ("replicas", "pods", "missing", "surplus"),
    [
        pytest.param(2, [live_pod("a")], 1, [], id="one is missing"),
        pytest.param(1, [live_pod("a"), live_pod("b", ready_for=None)], 0, ["b"], id="one too many"),
        pytest.param(1, [live_pod("a", going=True)], 1, [], id="one that goes does not count"),
        pytest.param(1, [live_pod("a", phase="Failed")], 1, [], id="one that failed does not count"),
        pytest.param(0, [live_pod("a", phase="Succeeded")], 0, [], id="one that ended is not deleted"),
    ],
)
def test_a_replica_set_creates_missing_and_deletes_surplus_pods(
    replicas: int, pods: list[Object], missing: int, surplus: list[str]
) -> None:
    item = {"metadata": {}, "spec": {"replicas": replicas, "template": {}}}
    plan = replica_sets.decide(item, pods, NOW)
    assert (plan.missing, [pod["metadata"]["name"] for pod in plan.surplus]) == (missing, surplus)


def test_a_pod_is_available_after_min_ready_seconds() -> None:
    item = {"metadata": {}, "spec": {"replicas": 2, "template": {}, "minReadySeconds": 60}}
    plan = replica_sets.decide(item, [live_pod("a", ready_for=60), live_pod("b", ready_for=50)], NOW)
    assert (plan.status["readyReplicas"], plan.status["availableReplicas"]) == (2, 1)
    assert plan.again is not None
    assert plan.again.requeue_at == NOW + 10


@pytest.mark.parametrize(
    ("value", "total", "up", "expected"),
    [
        pytest.param(3, 10, True, 3, id="count"),
        pytest.param("3", 10, True, 3, id="count as text"),
        pytest.param("25%", 10, True, 3, id="up"),
        pytest.param("25%", 10, False, 2, id="down"),
        pytest.param("50%", 10, True, 5, id="exact"),
    ],
)
def test_percentages_are_rounded_up_or_down(value: Any, total: int, up: bool, expected: int) -> None:
    assert scaled_count(value, total, up=up) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, False, id="none selects nothing"),
        pytest.param({}, True, id="empty selects everything"),
        pytest.param({"matchLabels": {"app": "web"}}, True, id="label"),
        pytest.param({"matchLabels": {"app": "db"}}, False, id="other label"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, True, id="In"),
        pytest.param({"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["web"]}]}, True, id="NotIn"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False, id="DoesNotExist"),
        pytest.param({"matchExpressions": [{"key": "n", "operator": "Gt", "values": ["4"]}]}, True, id="Gt"),
        pytest.param({"matchExpressions": [{"key": "n", "operator": "Lt", "values": ["5"]}]}, False, id="Lt"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "Gt", "values": ["1"]}]}, False, id="no number"),
    ],
)
def test_a_selector_matches_labels(selector: Object | None, expected: bool) -> None:
    assert selects(selector, {"app": "web", "n": "5"}) is expected


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param([{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}], True, id="label"),
        pytest.param([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}], True, id="name"),
        pytest.param([{}], False, id="an empty term takes no node"),
        pytest.param([], False, id="no terms"),
        pytest.param([{}, {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}], True, id="one of two"),
    ],
)
def test_required_affinity_chooses_nodes(terms: list[Object], expected: bool) -> None:
    node = record_of({"metadata": {"labels": {"zone": "z"}}})
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    rule = rule_of(pod_class_of({"containers": [], "affinity": {"nodeAffinity": required}}))
    assert rule.matches(node.name, node.labels) is expected


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param({"operator": "Exists"}, True, id="everything"),
        pytest.param({"key": "k", "operator": "Exists"}, True, id="any value"),
        pytest.param({"key": "k", "value": "v"}, True, id="Equal is understood"),
        pytest.param({"key": "k", "value": "w"}, False, id="another value"),
        pytest.param({"key": "l", "operator": "Exists"}, False, id="another key"),
        pytest.param({"key": "k", "value": "v", "effect": "NoExecute"}, False, id="another effect"),
    ],
)
def test_a_toleration_matches_taints(toleration: Object, expected: bool) -> None:
    assert is_tolerated_by(msgspec.convert(toleration, TaintToleration), NodeTaint("k", "NoSchedule", "v")) is expected


UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": format_instant(NOW)}
FOREIGN = {"key": "x", "effect": "NoExecute", "timeAdded": format_instant(NOW)}


@pytest.mark.parametrize(
    ("taints", "tolerations", "expected"),
    [
        pytest.param([], [], None, id="no taints"),
        pytest.param([{**FOREIGN, "effect": "NoSchedule"}], [], None, id="another effect"),
        pytest.param([FOREIGN], [], NOW, id="at once"),
        pytest.param([UNREACHABLE], [], NOW + 300, id="unreachable is tolerated by default"),
        pytest.param([UNREACHABLE], [{"operator": "Exists"}], None, id="for ever"),
        pytest.param([UNREACHABLE], [{"operator": "Exists", "tolerationSeconds": 7}], NOW + 7, id="limited toleration"),
        pytest.param([UNREACHABLE, FOREIGN], [{"key": "x", "operator": "Exists"}], NOW + 300, id="the first of two"),
        pytest.param([{"key": "x", "effect": "NoExecute"}], [], None, id="not before its time is written"),
    ],
)
def test_pods_are_evicted_when_their_toleration_ends(
    taints: list[Object], tolerations: list[Object], expected: int | None
) -> None:
    pod = live_pod(tolerations=tolerations)
    assert leaves_at(pod, record_of({"spec": {"taints": taints}}), BehaviourSettings()) == expected


@pytest.mark.parametrize(
    ("ready", "spec", "expected"),
    [
        pytest.param("True", {}, [], id="ready"),
        pytest.param(None, {}, [("not-ready", "NoSchedule")], id="not booted"),
        pytest.param("False", {}, [("not-ready", "NoSchedule"), ("not-ready", "NoExecute")], id="not ready"),
        pytest.param("Unknown", {}, [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")], id="silent"),
        pytest.param("True", {"unschedulable": True}, [("unschedulable", "NoSchedule")], id="cordoned"),
        pytest.param(
            "True",
            {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}, {"key": "x", "effect": "y"}]},
            [("x", "y")],
            id="outdated taints are removed and foreign ones kept",
        ),
    ],
)
def test_taints_follow_the_condition(ready: str | None, spec: Object, expected: list[tuple[str, str]]) -> None:
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    taints = wanted_taints({"spec": spec, "status": {"conditions": conditions}}, "now")
    assert [(taint["key"].removeprefix("node.kubernetes.io/"), taint["effect"]) for taint in taints] == expected
    assert all(("timeAdded" in taint) is (taint["effect"] == "NoExecute") for taint in taints)


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({}, None, id="not lost"),
        pytest.param({LOST: format_instant(NOW)}, NOW + 40, id="lost"),
        pytest.param({LOST: "true"}, 0, id="lost at an unknown time"),
    ],
)
def test_a_lost_node_is_unreachable_after_the_grace_period(annotations: dict[str, str], expected: int | None) -> None:
    assert silent_at({"metadata": {"annotations": annotations}}, BehaviourSettings()) == expected


def stateful(replicas: int, **spec: Any) -> Object:
    return {"metadata": {"name": "db"}, "spec": {"replicas": replicas, "template": {}, **spec}}


def member(number: int, revision: str = "new", **more: Any) -> Object:
    return live_pod(f"db-{number}", labels={"controller-revision-hash": revision}, **more)


PARALLEL = {"podManagementPolicy": "Parallel"}


@pytest.mark.parametrize(
    ("item", "pods", "create", "delete"),
    [
        pytest.param(stateful(3), [], (0,), [], id="one at a time"),
        pytest.param(stateful(3, **PARALLEL), [], (0, 1, 2), [], id="all at once"),
        pytest.param(stateful(3), [member(0, ready_for=None)], (), [], id="wait for the first"),
        pytest.param(stateful(3, **PARALLEL), [member(0, ready_for=None)], (1, 2), [], id="parallel does not wait"),
        pytest.param(stateful(2, ordinals={"start": 5}), [member(5)], (6,), [], id="from another ordinal on"),
        pytest.param(stateful(1), [member(0), member(1), member(2)], (), ["db-2"], id="the highest goes first"),
        pytest.param(stateful(1), [member(0), member(1), member(2, going=True)], (), [], id="one goes at a time"),
        pytest.param(stateful(1, **PARALLEL), [member(0), member(1), member(2)], (), ["db-2", "db-1"], id="all go"),
        pytest.param(stateful(1), [member(0, phase="Failed")], (), ["db-0"], id="what failed is replaced"),
        pytest.param(stateful(2), [member(0, "old"), member(1, "old")], (), ["db-1"], id="update from the top"),
        pytest.param(stateful(2), [member(0, "old"), member(1)], (), ["db-0"], id="update the next"),
        pytest.param(
            stateful(2, updateStrategy={"type": "OnDelete"}), [member(0, "old"), member(1)], (), [], id="no update"
        ),
        pytest.param(
            stateful(2, updateStrategy={"rollingUpdate": {"partition": 1}}),
            [member(0, "old"), member(1)],
            (),
            [],
            id="down to the partition",
        ),
    ],
)
def test_a_stateful_set_takes_one_step(
    item: Object, pods: list[Object], create: tuple[int, ...], delete: list[str]
) -> None:
    plan = ordinals.decide(item, pods, "old", "new", NOW)
    assert (plan.create, [pod["metadata"]["name"] for pod in plan.delete]) == (create, delete)


def test_child_names_derive_from_the_owner_and_skip_taken_ones() -> None:
    owner = {"metadata": {"name": "web", "uid": "u"}}
    first, second = child_name(owner, 0), child_name(owner, 1)
    names = free_names(owner, lambda name: name == first)
    assert next(names) == second
    assert child_name({"metadata": {"name": "web", "uid": "v"}}, 0) != first
    assert len(child_name({"metadata": {"name": "x" * 253, "uid": "u"}}, 0)) == 63


def test_template_hashes_ignore_the_order_of_fields() -> None:
    assert template_hash({"a": 1, "b": 2}) == template_hash({"b": 2, "a": 1})
    assert template_hash({"a": 1}) != template_hash({"a": 2})
    assert template_hash({"a": 1}) != template_hash({"a": 1}, salt=1)


def test_a_stateful_set_without_optional_fields_has_the_defaults_of_the_api() -> None:
    """An object that was stored before a default existed has none of them."""
    assert shape_of({"spec": {}}) == StatefulSetShape(
        0, 1, ordered=True, rolling=True, partition=0, min_ready_seconds=0
    )


@pytest.mark.parametrize(("existing", "expected"), [([], 1), ([{"revision": 3}, {"revision": 2}], 4)])
def test_revisions_are_numbered_from_one(existing: list[Object], expected: int) -> None:
    """A new one gets the next number, also where earlier ones are gone."""
    metadata = {"name": "db", "namespace": "default", "uid": "u"}
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", **stateful(1), "metadata": metadata}

    made = as_object(owner, STATEFUL_SETS, TemplateRevision("db-1", {}), existing)

    assert made["revision"] == expected
