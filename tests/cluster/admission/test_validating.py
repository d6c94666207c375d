"""Validation: what is refused, what gets warnings, and what is always allowed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.apis.karpenter.samples import beta_pool, node_pool
from tests.apis.manifests import problems_of
from tests.cluster.admission.review_requests import foreign_pool, validated

from springtide.apis.problems import format_path
from springtide.apis.validation import ANNOTATION
from springtide.cluster.admission.reviews import MOST_LISTED

BAD = {"budgets": [{"nodes": "many"}, {"nodes": "5", "schedule": "@daily"}]}


def changed(item: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """Return a copy with other metadata."""
    made = copy.deepcopy(item)
    made["metadata"] |= metadata
    return made


CALENDAR = {"apiVersion": "springtide.dev/v1alpha1", "kind": "Calendar", "metadata": {"name": "a"}}


def test_a_valid_object_is_allowed_without_warnings() -> None:
    assert validated({**CALENDAR, "spec": {"dates": ["2026-12-24"]}}).keys() == {"uid", "allowed"}


def test_a_kind_without_controller_is_allowed_with_a_warning() -> None:
    pool = node_pool({"budgets": [{"nodes": "5"}]})
    warning = "no controller acts on NodePool yet: such objects are only validated and stored"
    assert validated(pool)["warnings"] == [warning]
    assert validated(node_pool({"budgets": [{"nodes": "6"}]}), pool)["warnings"] == [warning]
    # Neither where the object is refused, nor where nothing of it changes, nor of another project's.
    assert warning not in validated(node_pool(BAD)).get("warnings", [])
    assert "warnings" not in validated(changed(pool, labels={"a": "b"}), pool)
    assert "warnings" not in validated(foreign_pool({"budgets": [{"nodes": "5"}]}))


def test_all_problems_are_reported_at_once() -> None:
    """In the message, which kubectl shows, and as causes, which it lists where it can."""
    response = validated(node_pool(BAD))

    status = response["status"]
    assert not response["allowed"]
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert {"name": "default", "group": "karpenter.sh", "kind": "NodePool"}.items() <= status["details"].items()
    fields = [cause["field"] for cause in status["details"]["causes"]]
    assert fields == ["spec.disruption.budgets[0].nodes", "spec.disruption.budgets[1].schedule"]
    assert status["message"].startswith('NodePool.karpenter.sh "default" is invalid: [')
    assert all(f"{field}: " in status["message"] for field in fields)


def test_the_problems_are_those_of_check() -> None:
    """The same list in both."""
    pool = node_pool({"budgets": [{"nodes": 5, "reasons": ["drift"]}, {"nodes": "many"}], "consolidateAfter": "soon"})
    found = problems_of(pool)

    response = validated(pool)

    causes = {(cause["field"], cause["message"]) for cause in response["status"]["details"]["causes"]}
    errors = [problem for problem in found if problem.severity == "error"]
    assert causes == {
        (format_path(problem.path), f"{problem.message} ({problem.hint})" if problem.hint else problem.message)
        for problem in errors
    }
    assert len(response["warnings"]) == len(found) - len(errors)


def test_warnings_do_not_refuse() -> None:
    """An old name of a class still works."""
    request = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": "a", "namespace": "work"},
        "spec": {
            "provisioningClassName": "check-capacity.kubernetes.io",
            "podSets": [{"podTemplateRef": {"name": "a"}, "count": 1}],
        },
    }

    response = validated(request)

    assert response["allowed"]
    assert "is a former name of" in response["warnings"][0]


def test_objects_that_are_not_owned_get_warnings_only() -> None:
    response = validated(foreign_pool(BAD))

    assert response["allowed"]
    assert [line.partition(": ")[0] for line in response["warnings"]] == [
        "spec.disruption.budgets[0].nodes",
        "spec.disruption.budgets[1].schedule",
    ]


@pytest.mark.parametrize(
    ("item", "old", "request_"),
    [
        pytest.param(node_pool(BAD), node_pool(BAD), {}, id="nothing changes"),
        pytest.param(changed(node_pool(BAD), labels={"a": "b"}), node_pool(BAD), {}, id="labels"),
        pytest.param(changed(node_pool(BAD), finalizers=[]), node_pool(BAD), {}, id="finalizers"),
        pytest.param({**node_pool(BAD), "status": {"nodes": 3}}, node_pool(BAD), {}, id="status"),
        pytest.param(node_pool(BAD), node_pool(), {"subResource": "scale"}, id="subresource"),
        pytest.param(
            changed(node_pool(BAD), deletionTimestamp="2026-01-01T00:00:00Z"), node_pool(), {}, id="being deleted"
        ),
        pytest.param(None, node_pool(BAD), {"operation": "DELETE"}, id="deletion"),
        pytest.param({"apiVersion": "apps/v1", "kind": "Deployment", "spec": 1}, None, {}, id="built-in kind"),
        pytest.param({"apiVersion": "x.io/v1", "kind": "Thing"}, None, {}, id="unknown kind"),
        pytest.param({"apiVersion": ["v1"], "kind": {}}, None, {}, id="no kind at all"),
    ],
)
def test_writes_that_are_always_allowed(item: Any, old: Any, request_: dict[str, Any]) -> None:
    """Without warnings: otherwise an invalid object could not be deleted."""
    assert validated(item, old, **request_).keys() == {"uid", "allowed"}


def test_a_change_of_the_extensions_is_validated() -> None:
    """Although they are in the metadata."""
    bad = changed(node_pool(), annotations={ANNOTATION: "disruption: {budgetDefault: Nowhere}"})

    assert not validated(bad, node_pool())["allowed"]


class TestExistingErrors:
    """A change is refused only for new errors."""

    def test_lingering_errors_are_warnings(self) -> None:
        response = validated(node_pool(BAD, weight=5), node_pool(BAD))

        assert response["allowed"]
        assert len(response["warnings"]) == 3  # one of them says that no controller acts on NodePools yet

    def test_they_may_move_within_their_list(self) -> None:
        moved = {"budgets": [{"nodes": "1"}, *BAD["budgets"]]}

        assert validated(node_pool(moved), node_pool(BAD))["allowed"]

    def test_a_second_one_of_the_same_is_new(self) -> None:
        """As many equal errors are allowed as there were before."""
        more = {"budgets": [*BAD["budgets"], {"nodes": "many"}]}

        response = validated(node_pool(more), node_pool(BAD))

        assert [cause["field"] for cause in response["status"]["details"]["causes"]] == [
            "spec.disruption.budgets[2].nodes"
        ]

    def test_another_error_in_the_same_place_is_new(self) -> None:
        other = {"budgets": [{"nodes": "few"}, BAD["budgets"][1]]}

        assert not validated(node_pool(other), node_pool(BAD))["allowed"]


def test_v1beta1_has_its_own_rules() -> None:
    """A schedule without a duration is an error in v1 only."""
    ours = beta_pool({"budgets": [{"nodes": "5", "schedule": "@daily"}]})
    ours["spec"]["template"]["spec"]["nodeClassRef"] = {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "NodeClass",
        "name": "a",
    }

    response = validated(ours)

    assert response["allowed"]
    assert response["warnings"]


def test_the_number_of_listed_problems_is_limited() -> None:
    """The first hundred problems are listed, and the number of the others."""
    response = validated(node_pool({f"unknown{i}": "many" for i in range(1001)}))

    assert len(response["status"]["details"]["causes"]) == MOST_LISTED
    assert "and 901 more]" in response["status"]["message"]


def test_warnings_fit_into_a_header() -> None:
    """The API server passes them on in a header, which cannot contain line breaks."""
    response = validated(foreign_pool({"budgets": [{"nodes": "a\nb\x00c\u2028d"}]}))

    assert all(line.isprintable() for line in response["warnings"])
