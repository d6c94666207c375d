"""From v1beta1 to v1 and back: what each version says, and that nothing is lost."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.karpenter.samples import beta_pool, limits, node_pool
from tests.apis.manifests import problems_of

from springtide.apis.karpenter.conversion import V1_FIELDS, V1BETA1_FIELDS, to_v1, to_v1beta1
from springtide.apis.karpenter.forecast import pool_budgets


def written(value: Any) -> bytes:
    """Write a tree as the server stores it."""
    return json.dumps(value, sort_keys=True).encode()


def annotations_of(value: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = value["metadata"].get("annotations", {})
    return found


class TestUp:
    """What v1 says about a pool of v1beta1."""

    def test_c1_budgets_without_reasons_stay_a_fallback(self) -> None:
        """The reading of v1beta1 is written down, as v1's own is another."""
        assert to_v1(beta_pool({}))["spec"]["disruption"]["budgetDefault"] == "Fallback"

    def test_c14_expiry_stays_graceful(self) -> None:
        """Likewise for what expired nodes wait for."""
        assert to_v1(beta_pool())["spec"]["disruption"]["expirationPolicy"] == "Graceful"

    @pytest.mark.parametrize("given", ["Floor", "Fallback"])
    def test_set_fields_are_kept(self, given: str) -> None:
        """A reading that the pool names is kept."""
        assert given == to_v1(beta_pool({"budgetDefault": given}))["spec"]["disruption"]["budgetDefault"]

    def test_expiry_moves_to_the_template(self) -> None:
        """In v1 it is a property of the nodes."""
        spec = to_v1(beta_pool({"expireAfter": "1h"}))["spec"]

        assert spec["template"]["spec"]["expireAfter"] == "1h"
        assert "expireAfter" not in spec["disruption"]

    def test_the_policy_is_renamed(self) -> None:
        """WhenUnderutilized has a longer name in v1."""
        spec = to_v1(beta_pool({"consolidationPolicy": "WhenUnderutilized"}))["spec"]

        assert spec["disruption"]["consolidationPolicy"] == "WhenEmptyOrUnderutilized"

    def test_node_classes_have_a_group(self) -> None:
        """The version of the node class is not part of the reference any more."""
        assert to_v1(beta_pool())["spec"]["template"]["spec"]["nodeClassRef"] == {
            "group": "karpenter.k8s.aws",
            "kind": "EC2NodeClass",
            "name": "default",
        }

    def test_settings_of_the_kubelet_are_noted(self) -> None:
        """v1 has no place for them but the annotation."""
        value = beta_pool()
        value["spec"]["template"]["spec"]["kubelet"] = {"maxPods": 42}

        made = to_v1(value)

        assert "kubelet" not in made["spec"]["template"]["spec"]
        assert '{"maxPods":42}' in annotations_of(made)[V1BETA1_FIELDS]

    def test_c6_lone_schedules_become_always(self) -> None:
        """What they mean is kept, and how they were written is noted."""
        made = to_v1(beta_pool({"budgets": [{"nodes": "5", "schedule": "@daily", "timeZone": "UTC"}]}))

        assert made["spec"]["disruption"]["budgets"] == [{"nodes": "5"}]
        assert "@daily" in annotations_of(made)[V1BETA1_FIELDS]

    def test_plain_pools_carry_no_notes(self) -> None:
        """What both versions can say leaves no trace."""
        value = beta_pool(
            {"budgets": [{"nodes": "5"}], "expireAfter": "1h", "consolidationPolicy": "WhenUnderutilized"}
        )

        assert annotations_of(to_v1(value)) == {}

    def test_the_result_is_sound(self) -> None:
        """A complete pool stays one."""
        value = beta_pool({"budgets": [{"nodes": "5", "schedule": "@daily"}], "expireAfter": "1h"})

        assert problems_of(to_v1(value)) == []


class TestDown:
    """What v1beta1 says about a pool of v1."""

    def test_c1_budgets_without_reasons_stay_a_floor(self) -> None:
        """Where v1 says nothing, v1beta1 must say what it means."""
        disruption = to_v1beta1(node_pool({}))["spec"]["disruption"]

        assert (disruption["budgetDefault"], disruption["expirationPolicy"]) == ("Floor", "Forceful")

    def test_what_v1beta1_means_anyway_is_left_out(self) -> None:
        """Its own defaults need not be written."""
        made = to_v1beta1(node_pool({"budgetDefault": "Fallback", "expirationPolicy": "Graceful"}))

        assert "disruption" not in made["spec"]

    @pytest.mark.parametrize("policy", ["WhenEmptyOrUnderutilized", "Balanced"])
    def test_the_policy_is_renamed(self, policy: str) -> None:
        """Balanced is nearest to WhenUnderutilized."""
        made = to_v1beta1(node_pool({"consolidationPolicy": policy}))

        assert made["spec"]["disruption"]["consolidationPolicy"] == "WhenUnderutilized"

    def test_our_node_classes_have_our_version(self) -> None:
        """The version that a group's node class has."""
        made = to_v1beta1(node_pool())["spec"]["template"]["spec"]["nodeClassRef"]

        assert made == {"apiVersion": "springtide.dev/v1alpha1", "kind": "NodeClass", "name": "default"}

    def test_the_result_is_sound(self) -> None:
        """A complete pool stays one."""
        value = node_pool({"consolidationPolicy": "Balanced", "budgets": [{"nodes": "5"}]}, replicas=3)
        value["spec"]["template"]["spec"] |= {"expireAfter": "1h", "terminationGracePeriod": "5m"}

        assert problems_of(to_v1beta1(value)) == []


class TestEdits:
    """Round-trip annotations after a user edited the converted object."""

    def pool(self) -> dict[str, Any]:
        value = beta_pool({"budgets": [{"nodes": "5", "schedule": "@daily"}, {"nodes": "9"}]})
        value["spec"]["template"]["spec"]["kubelet"] = {"maxPods": 42}
        value["spec"]["template"]["spec"]["nodeClassRef"]["apiVersion"] = "example.com/v2"
        return value

    def test_other_parts_are_still_restored(self) -> None:
        """An edit elsewhere leaves the notes alone."""
        value, converted = self.pool(), to_v1(self.pool())
        converted["spec"]["weight"] = 7
        value["spec"]["weight"] = 7

        assert value == to_v1beta1(converted)

    def test_an_edited_budget_is_not_undone(self) -> None:
        """A budget that is not what the conversion wrote keeps the edit, whole."""
        converted = to_v1(self.pool())
        converted["spec"]["disruption"]["budgets"][0]["nodes"] = "6"

        assert to_v1beta1(converted)["spec"]["disruption"]["budgets"] == [{"nodes": "6"}, {"nodes": "9"}]

    def test_a_removed_budget_does_not_pass_its_schedule_on(self) -> None:
        """A note never lands on another budget."""
        converted = to_v1(self.pool())
        del converted["spec"]["disruption"]["budgets"][0]

        assert to_v1beta1(converted)["spec"]["disruption"]["budgets"] == [{"nodes": "9"}]

    def test_another_node_class_keeps_its_group(self) -> None:
        """The version that is restored belongs to the group it was noted for."""
        converted = to_v1(self.pool())
        converted["spec"]["template"]["spec"]["nodeClassRef"]["group"] = "other.io"

        made = to_v1beta1(converted)["spec"]["template"]["spec"]["nodeClassRef"]

        assert made["apiVersion"] == "other.io/v1beta1"

    def test_annotations_of_others_stay(self) -> None:
        """Only the note itself comes and goes."""
        value = self.pool()
        value["metadata"]["annotations"] = {"team": "a"}

        assert annotations_of(to_v1beta1(to_v1(value))) == {"team": "a"}


@pytest.mark.parametrize(
    "note",
    [
        pytest.param("", id="empty"),
        pytest.param("[]", id="nothing"),
        pytest.param("{}", id="object"),
        pytest.param("[1]", id="number"),
        pytest.param('[{"path": []}]', id="root"),
        pytest.param('[{"path": [[1]]}]', id="unhashable"),
        pytest.param('[{"path": null}]', id="null"),
        pytest.param("{not json", id="text"),
    ],
)
def test_notes_that_are_not_ours_stay(note: str) -> None:
    """An annotation that cannot be read is like any other."""
    value = node_pool({})
    value["metadata"]["annotations"] = {V1BETA1_FIELDS: note}

    assert note == annotations_of(to_v1beta1(value))[V1BETA1_FIELDS]


def test_node_claims_are_converted_too() -> None:
    """They refer to node classes and may hold settings of the kubelet."""
    template = beta_pool()["spec"]["template"]["spec"] | {"kubelet": {"maxPods": 42}}
    claim = {"apiVersion": "karpenter.sh/v1beta1", "kind": "NodeClaim", "metadata": {"name": "a"}, "spec": template}

    made = to_v1(claim)

    assert made["apiVersion"] == "karpenter.sh/v1"
    assert {"requirements", "nodeClassRef"} == set(made["spec"])
    assert made["spec"]["nodeClassRef"]["group"] == "karpenter.k8s.aws"
    assert written(claim) == written(to_v1beta1(made))


# Any tree at all

NAMES = st.sampled_from(["a", "nodes", "schedule", "kubelet", "group", "apiVersion", "expireAfter", "annotations"])
VALUES = st.sampled_from(
    ["", "5", "@daily", "karpenter.sh/v1", "a/b", "Floor", "Fallback", "Forceful", "WhenUnderutilized", "Balanced"]
)
PARTS = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
CHOICE = {
    "budgetDefault": st.sampled_from(["Floor", "Fallback"]) | PARTS,
    "expirationPolicy": st.sampled_from(["Forceful", "Graceful"]) | PARTS,
    "consolidationPolicy": VALUES | st.sampled_from(["WhenEmpty", "WhenEmptyOrUnderutilized"]),
    "expireAfter": VALUES | PARTS,
    "budgets": st.lists(st.dictionaries(st.sampled_from(["nodes", "schedule", "duration", "timeZone"]), VALUES))
    | PARTS,
    "other": PARTS,
}
TEMPLATE_SPEC = st.fixed_dictionaries(
    {},
    optional={
        "nodeClassRef": st.dictionaries(st.sampled_from(["group", "apiVersion", "name"]), VALUES | PARTS) | PARTS,
        "kubelet": PARTS,
        "expireAfter": VALUES,
        "other": PARTS,
    },
)
METADATA = st.fixed_dictionaries(
    {}, optional={"name": st.just("p"), "annotations": st.dictionaries(st.sampled_from(["a", "b"]), VALUES)}
)


def objects(version: str) -> st.SearchStrategy[dict[str, Any]]:
    spec = st.fixed_dictionaries(
        {},
        optional={
            "disruption": st.fixed_dictionaries({}, optional=CHOICE) | PARTS,
            "template": st.fixed_dictionaries({}, optional={"spec": TEMPLATE_SPEC | PARTS, "metadata": PARTS}) | PARTS,
            "other": PARTS,
        },
    )
    return st.fixed_dictionaries(
        {"apiVersion": st.just(f"karpenter.sh/{version}"), "kind": st.sampled_from(["NodePool", "NodeClaim"])},
        optional={"metadata": METADATA, "spec": spec | TEMPLATE_SPEC | PARTS, "status": PARTS},
    )


@given(objects("v1beta1"))
def test_up_and_down_again_is_the_same(value: dict[str, Any]) -> None:
    """Byte for byte, whatever the object holds; the input is not touched."""
    before = copy.deepcopy(value)

    assert written(value) == written(to_v1beta1(to_v1(value)))
    assert before == value


@given(objects("v1"))
def test_down_and_up_again_is_the_same(value: dict[str, Any]) -> None:
    """Byte for byte, whatever the object holds; the input is not touched."""
    before = copy.deepcopy(value)

    assert written(value) == written(to_v1(to_v1beta1(value)))
    assert before == value


def without_notes(value: dict[str, Any]) -> dict[str, Any]:
    """Leave out our annotations, which an edit may make shorter."""
    left = copy.deepcopy(value)
    metadata = left.get("metadata", {})
    for name in (V1_FIELDS, V1BETA1_FIELDS):
        metadata.get("annotations", {}).pop(name, None)
    if metadata.get("annotations") == {}:
        del metadata["annotations"]
    if left.get("metadata") == {}:
        del left["metadata"]
    return left


@given(objects("v1beta1"), st.sampled_from(["disruption", "template", "other"]), PARTS)
def test_edits_in_between_survive_as_well(value: dict[str, Any], key: str, part: Any) -> None:
    """What was edited in v1 comes back to v1 as it was left, notes or not."""
    converted = to_v1(value)
    if isinstance(converted.get("spec"), dict):
        converted["spec"][key] = part

    assert written(without_notes(converted)) == written(without_notes(to_v1(to_v1beta1(converted))))


MEANINGFUL = st.fixed_dictionaries(
    {"nodes": st.sampled_from(["0", "5", "10%", "50%"])},
    optional={
        "reasons": st.lists(st.sampled_from(["Empty", "Drifted", "Underutilized", "Expired"]), unique=True),
        "schedule": st.sampled_from(["0 9 * * *", "@hourly"]),
        "duration": st.sampled_from(["30m", "8h"]),
        "mode": st.sampled_from(["Limit", "Allow"]),
    },
)


@given(
    st.lists(MEANINGFUL, max_size=4),
    st.fixed_dictionaries({}, optional={"budgetDefault": st.sampled_from(["Floor", "Fallback"])}),
    st.integers(0, 86400),
)
def test_converted_budgets_mean_the_same(listed: list[dict[str, Any]], more: dict[str, str], at: int) -> None:
    """At any time both versions of a pool allow the same."""
    beta = beta_pool({"budgets": listed, **more})

    assert limits(pool_budgets(beta), at, 30) == limits(pool_budgets(to_v1(beta)), at, 30)


@pytest.mark.parametrize("metadata", [{"name": "a", "annotations": None}, None])
def test_nothing_is_lost_where_annotations_are_null(metadata: Any) -> None:
    """Fields that v1 does not have go into an annotation, also if its value was empty."""
    pool = {
        "apiVersion": "karpenter.sh/v1beta1",
        "kind": "NodePool",
        "metadata": metadata,
        "spec": {
            "template": {"spec": {"kubelet": {"maxPods": 50}}},
            "disruption": {"budgets": [{"nodes": "5", "schedule": "0 0 * * *"}]},
        },
    }

    back = to_v1beta1(to_v1(pool))

    assert back["spec"] == pool["spec"]
