"""What is said about CronFederatedHPAs: targets, rules and the numbers that they set."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.karmada.objects import API, DEPLOYMENT, FEDERATED, HPA, SCALED_OBJECT, cron, rule
from tests.apis.manifests import problems_of, shown

from springtide.apis.karmada.cron import CronFederatedHPARule
from springtide.apis.problems import Problem
from springtide.apis.schema import schema_of, with_defaults

RULE = "spec.rules[0]"


def only(value: dict[str, Any]) -> Problem:
    found = problems_of(value)
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param(DEPLOYMENT, [], id="deployment"),
        pytest.param({**DEPLOYMENT, "kind": "StatefulSet"}, [], id="stateful-set"),
        pytest.param(
            {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "StatefulSet", "name": "a"},
            [],
            id="kind-of-another-group",
        ),
        pytest.param(
            {"apiVersion": "autoscaling.karpenter.sh/v1alpha1", "kind": "ScalableNodeGroup", "name": "a"},
            [],
            id="node-group",
        ),
        pytest.param({**FEDERATED, "kind": "Test"}, ["error spec.scaleTargetRef.kind"], id="unscalable-kind"),
        pytest.param({"apiVersion": "apps/v1", "name": "a"}, ["error spec.scaleTargetRef.kind"], id="no-kind"),
        pytest.param({**DEPLOYMENT, "kind": ""}, ["error spec.scaleTargetRef.kind"], id="empty-kind"),
        pytest.param({"apiVersion": "apps/v1", "kind": "a"}, ["error spec.scaleTargetRef.name"], id="no-name"),
        pytest.param({**DEPLOYMENT, "name": "a/b"}, ["error spec.scaleTargetRef.name"], id="not-a-path-segment"),
        pytest.param(
            {**DEPLOYMENT, "apiVersion": "app/v1"}, ["error spec.scaleTargetRef.apiVersion"], id="wrong-group"
        ),
        pytest.param(
            {**DEPLOYMENT, "apiVersion": "extensions/v1beta1"},
            ["error spec.scaleTargetRef.apiVersion"],
            id="extensions",
        ),
        pytest.param({**DEPLOYMENT, "apiVersion": "v1"}, ["error spec.scaleTargetRef.apiVersion"], id="core"),
        pytest.param({"kind": "Deployment", "name": "a"}, ["error spec.scaleTargetRef.apiVersion"], id="no-version"),
        pytest.param({**DEPLOYMENT, "namespace": "b"}, ["error spec.scaleTargetRef.namespace"], id="namespace"),
    ],
)
def test_targets(target: dict[str, Any], expected: list[str]) -> None:
    replicas: dict[str, Any] = {"targetMinReplicas": 1} if target.get("apiVersion") == API else {"targetReplicas": 1}

    assert expected == shown(problems_of(cron(rule(**replicas), target=target)))


def test_rules_of_an_invalid_target_are_not_checked() -> None:
    """Valid values depend on the target, so they are checked only once the target is valid."""
    assert only(cron(rule(targetReplicas=1), target={**FEDERATED, "kind": "Test"})).path[-1] == "kind"


def test_wrong_version_names_the_right_one() -> None:
    """`app/v1` is an error that gives the fix."""
    assert "apps/v1" in only(cron(rule(targetReplicas=1), target={**DEPLOYMENT, "apiVersion": "app/v1"})).hint


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"schedule": "0 0 13 * 5"}, [], id="valid-schedule"),
        pytest.param({"schedule": "0 0 13 *"}, [f"error {RULE}.schedule"], id="four-fields"),
        pytest.param({"schedule": "0 0 * * 7"}, [], id="seven-is-sunday"),
        pytest.param({"schedule": "0 0 * * 8"}, [f"error {RULE}.schedule"], id="eight"),
        pytest.param({"schedule": "0 0 30 2 *"}, [f"error {RULE}.schedule"], id="never"),
        pytest.param({"schedule": "1 1 * * 5L"}, [f"error {RULE}.schedule"], id="last"),
        pytest.param({"schedule": "@every 5m"}, [f"error {RULE}.schedule"], id="every"),
        pytest.param({"schedule": "TZ=UTC 0 0 * * *"}, [f"error {RULE}.schedule"], id="zone-in-schedule"),
        pytest.param({"schedule": "@daily"}, [], id="macro"),
        pytest.param({"timeZone": "A/B"}, [f"error {RULE}.timeZone"], id="unknown-zone"),
        pytest.param({"timeZone": "EST"}, [f"warning {RULE}.timeZone"], id="abbreviated-zone"),
        pytest.param({"timezone": "UTC"}, [f"error {RULE}.timezone"], id="case-of-time-zone"),
        pytest.param({"name": ""}, [f"error {RULE}.name"], id="empty-name"),
        pytest.param({"name": "x" * 33}, [f"error {RULE}.name"], id="name-too-long"),
        pytest.param({"name": "x" * 32}, [], id="longest-name"),
        pytest.param({"successfulHistoryLimit": 0}, [f"error {RULE}.successfulHistoryLimit"], id="success-0"),
        pytest.param({"successfulHistoryLimit": 32, "failedHistoryLimit": 32}, [], id="highest-limits"),
        pytest.param({"successfulHistoryLimit": 33}, [f"error {RULE}.successfulHistoryLimit"], id="limit-33"),
        pytest.param({"failedHistoryLimit": 0}, [], id="failed-0"),
        pytest.param({"failedHistoryLimit": -1}, [f"error {RULE}.failedHistoryLimit"], id="failed-negative"),
        pytest.param({"suspend": "yes"}, [f"error {RULE}.suspend"], id="suspend-is-a-boolean"),
        pytest.param({"calendars": [{"name": "a", "mode": "Never"}]}, [f"error {RULE}.calendars[0].mode"], id="mode"),
    ],
)
def test_rules(fields: dict[str, Any], expected: list[str]) -> None:
    assert expected == shown(problems_of(cron({**rule(targetReplicas=1), **fields})))


def test_defaults_of_history_limits() -> None:
    """The default is three of each."""
    filled = with_defaults(rule(targetReplicas=1), schema_of(CronFederatedHPARule))

    assert (filled["successfulHistoryLimit"], filled["failedHistoryLimit"], filled["suspend"]) == (3, 3, False)


def test_rule_name_is_an_error_that_names_the_fix() -> None:
    """`ruleName` is a field of the status; the spec has `name`."""
    found = only(cron({"ruleName": "up", "schedule": "30 8 * * *", "targetReplicas": 1}))

    assert (found.severity, found.path[-1]) == ("error", "ruleName")
    assert "`name`" in found.hint


def test_names_are_unique() -> None:
    value = cron(rule("a", targetReplicas=1), rule("b", targetReplicas=1), rule("a", "0 9 * * *", targetReplicas=1))

    assert shown(problems_of(value)) == ["error spec.rules[2].name"]


def test_the_number_of_rules_is_not_limited() -> None:
    """Upstream has no limit either."""
    rules = [rule(f"r{n}", f"{n % 60} {n // 60} * * *", targetReplicas=1) for n in range(300)]

    assert shown(problems_of(cron(*rules))) == []


def test_no_rules() -> None:
    assert shown(problems_of(cron())) == ["warning spec.rules"]


def test_one_bad_rule_hides_no_other() -> None:
    value = cron(rule("a", "nonsense", targetReplicas=1), rule("b"), target={**DEPLOYMENT, "apiVersion": "app/v1"})

    assert shown(problems_of(value)) == [
        "error spec.rules[0].schedule",
        "error spec.rules[1].targetReplicas",
        "error spec.scaleTargetRef.apiVersion",
    ]


@pytest.mark.parametrize(
    ("target", "numbers", "expected"),
    [
        pytest.param(DEPLOYMENT, {"targetReplicas": 0}, [], id="workload-to-zero"),
        pytest.param(DEPLOYMENT, {"targetReplicas": -1}, [f"error {RULE}.targetReplicas"], id="workload-negative"),
        pytest.param(DEPLOYMENT, {}, [f"error {RULE}.targetReplicas"], id="workload-without-replicas"),
        pytest.param(
            DEPLOYMENT, {"targetMinReplicas": 3}, [f"error {RULE}.targetReplicas"], id="workload-with-bounds-only"
        ),
        pytest.param(
            DEPLOYMENT,
            {"targetReplicas": 3, "targetMaxReplicas": 3},
            [f"warning {RULE}.targetMaxReplicas"],
            id="workload-with-both",
        ),
        pytest.param(FEDERATED, {}, [f"error {RULE}.targetMaxReplicas"], id="no-bounds"),
        pytest.param(FEDERATED, {"targetMinReplicas": -1}, [f"error {RULE}.targetMinReplicas"], id="min-negative"),
        pytest.param(FEDERATED, {"targetMinReplicas": 0}, [f"error {RULE}.targetMinReplicas"], id="min-zero"),
        pytest.param(FEDERATED, {"targetMaxReplicas": -1}, [f"error {RULE}.targetMaxReplicas"], id="max-negative"),
        pytest.param(FEDERATED, {"targetMaxReplicas": 0}, [f"error {RULE}.targetMaxReplicas"], id="max-zero"),
        pytest.param(
            FEDERATED,
            {"targetMinReplicas": 3, "targetMaxReplicas": 1},
            [f"error {RULE}.targetMinReplicas"],
            id="min-above-max",
        ),
        pytest.param(FEDERATED, {"targetMinReplicas": 3, "targetMaxReplicas": 3}, [], id="equal-bounds"),
        pytest.param(FEDERATED, {"targetMaxReplicas": 10}, [], id="max-only"),
        pytest.param(FEDERATED, {"targetMinReplicas": 3}, [], id="min-only"),
        pytest.param(
            FEDERATED,
            {"targetMinReplicas": 3, "targetReplicas": 3},
            [f"warning {RULE}.targetReplicas"],
            id="replicas-of-a-federated-hpa-are-ignored",
        ),
        pytest.param(
            FEDERATED,
            {"targetReplicas": 3},
            [f"error {RULE}.targetMaxReplicas", f"warning {RULE}.targetReplicas"],
            id="replicas-alone-do-nothing",
        ),
        pytest.param(HPA, {"targetMinReplicas": 3}, [], id="hpa"),
        pytest.param({**HPA, "apiVersion": "autoscaling/v1"}, {"targetMinReplicas": 3}, [], id="hpa-v1"),
        pytest.param(HPA, {"targetMinReplicas": 0}, [f"error {RULE}.targetMinReplicas"], id="hpa-zero"),
        pytest.param(
            HPA,
            {"targetMinReplicas": 3, "targetReplicas": 3},
            [f"error {RULE}.targetReplicas"],
            id="replicas-of-an-hpa-are-refused",
        ),
        pytest.param(
            {**HPA, "apiVersion": "autoscaling/v2beta2"},
            {"targetMinReplicas": 3},
            ["error spec.scaleTargetRef.apiVersion"],
            id="hpa-of-a-version-that-is-gone",
        ),
        pytest.param(SCALED_OBJECT, {"targetMinReplicas": 0}, [], id="keda-to-zero"),
        pytest.param(SCALED_OBJECT, {"targetMinReplicas": 0, "targetMaxReplicas": 4}, [], id="keda-both"),
        pytest.param(
            SCALED_OBJECT,
            {"targetMaxReplicas": 4, "targetReplicas": 4},
            [f"error {RULE}.targetReplicas"],
            id="replicas-of-keda-are-refused",
        ),
        pytest.param(
            {**SCALED_OBJECT, "apiVersion": "keda.k8s.io/v1alpha1"},
            {"targetMinReplicas": 0},
            ["error spec.scaleTargetRef.apiVersion"],
            id="keda-of-a-group-that-is-gone",
        ),
    ],
)
def test_numbers(target: dict[str, Any], numbers: dict[str, Any], expected: list[str]) -> None:
    assert expected == shown(problems_of(cron(rule(**numbers), target=target)))


def test_bounds_are_proposed_where_replicas_are_refused() -> None:
    found = only(cron(rule(targetMinReplicas=3, targetReplicas=3), target=HPA))

    assert "targetMinReplicas" in found.hint
