"""`check` judges objects of Kubernetes' own kinds as a kube-apiserver did, whose answers are recorded."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.conformance.answers import recorded
from tests.conformance.cases.autoscalers import AUTOSCALERS
from tests.conformance.cases.workloads import WORKLOADS
from tests.conformance.samples import autoscaler, container, deployment, template

from springtide.apis.kinds import ValidationContext
from springtide.apis.objects import LoadedObject, load_tree
from springtide.apiserver import builtin
from springtide.apiserver.values import deep_copy
from springtide.assembly.builtin_validation import judge
from springtide.assembly.manifests import LocatedProblem, ManifestSource, check_sources

_TABLES = {"autoscalers": AUTOSCALERS, "workloads": WORKLOADS}

_ANSWERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    f"{area}-{name.replace(' ', '-').replace(':', '')}": (item, recorded(area)[f"judged[{name}]"][0])
    for area, table in _TABLES.items()
    for name, item in table.items()
}
_CASES = [pytest.param(item, answer, id=name) for name, (item, answer) in _ANSWERS.items()]

_KINDS = {(kind.resource.api_version, kind.resource.kind): kind for kind in builtin.kinds()}

_OTHER_PATHS = {
    "spec.metrics[0].resource.target.averageUtilization": "spec.targetCPUUtilizationPercentage",
    "spec.template.labels": "spec.template.metadata.labels",
}
"""Fields that `check` reports where the user wrote them."""
_CONSEQUENCES = {
    "template.metadata.labels": "selector",
    "resources.limits": "resources.requests",
    "operator": "value",
    "containers[0].volumeMounts[0].name": "volumes",
}
"""Fields whose causes follow from another field of the same mapping, which `check` reports instead."""


def _problems(item: dict[str, Any]) -> tuple[LocatedProblem, ...]:
    return check_sources([ManifestSource("object.json", json.dumps(item))], [], ValidationContext(now=0)).problems


def _steps(path: str) -> list[str]:
    return [inside or name for inside, name in re.findall(r"\[([^\]]*)\]|([^.\[]+)", path)]


def _related(one: str, other: str) -> bool:
    """Whether one field is the other, or is within it."""
    first, second = _steps(one), _steps(other)
    return all(a == b for a, b in zip(first, second, strict=False))


def _same(cause: str, problem: str, version: str) -> bool:
    if version == "autoscaling/v1" or "template" in cause:
        cause = _OTHER_PATHS.get(cause, cause)
    reasons = [
        cause.removesuffix(effect) + reason for effect, reason in _CONSEQUENCES.items() if cause.endswith(effect)
    ]
    return any(_related(field, problem) for field in (cause, *reasons))


@pytest.mark.parametrize(("item", "answer"), _CASES)
def test_is_judged_as_by_a_kube_apiserver(item: dict[str, Any], answer: dict[str, Any]) -> None:
    problems = _problems(item)
    errors = [problem.path for problem in problems if problem.severity == "error"]
    body = answer["body"]

    if answer["status"] == 201:
        assert errors == []
    elif "strict decoding error" in body["message"]:
        unknown = re.findall(r'unknown field "([^"]*)"', body["message"])
        assert [field for field in unknown if field not in {problem.path for problem in problems}] == []
    elif answer["status"] == 400:
        assert errors
    else:
        fields = {cause["field"] for cause in body["details"]["causes"]}
        version = item["apiVersion"]
        assert {field for field in fields if not any(_same(field, path, version) for path in errors)} == set()
        assert [path for path in errors if not any(_same(field, path, version) for field in fields)] == []


@pytest.mark.parametrize(
    "item",
    [pytest.param(item, id=name) for name, (item, _) in _ANSWERS.items() if "target-kind-with" not in name],
)
def test_no_field_is_reported_twice(item: dict[str, Any]) -> None:
    """The views and the rules of the API server find the same mistakes."""
    paths = [problem.path for problem in _problems(item) if problem.severity == "error"]

    assert len(set(paths)) == len(paths)


def _is_about_the_spec(answer: dict[str, Any]) -> bool:
    causes = answer["body"].get("details", {}).get("causes", ())
    return answer["status"] != 400 and not any(cause["field"].startswith("metadata") for cause in causes)


@pytest.mark.parametrize(
    ("item", "answer"),
    [pytest.param(item, answer, id=name) for name, (item, answer) in _ANSWERS.items() if _is_about_the_spec(answer)],
)
def test_the_rules_find_the_causes_of_a_kube_apiserver(item: dict[str, Any], answer: dict[str, Any]) -> None:
    """The embedded server applies them after metadata and types have been validated."""
    expected = {(cause["field"], cause["reason"]) for cause in answer["body"].get("details", {}).get("causes", ())}
    kind = _KINDS[item["apiVersion"], item["kind"]]

    causes = kind.validate(kind.apply_defaults(deep_copy(item)), None)

    assert {(cause.field, cause.reason) for cause in causes} == expected


_MANIFEST = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: v1, kind: Deployment, name: web}
  minReplicas: 0
  maxReplicas: ten
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: {type: Utilization, averageUtilization: 60%, averageValue: 500m}
    - type: Pods
  behavior:
    scaleDown:
      stabilisationWindowSeconds: 60
      policies: [{type: Nodes, value: 1}]
"""


def test_all_problems_are_reported_at_once_with_their_places_and_fixes() -> None:
    found = check_sources([ManifestSource("hpa.yaml", _MANIFEST)], [], ValidationContext(now=0)).problems

    shown = [(each.line, each.column, each.path, each.message, each.hint) for each in found if each.severity == "error"]
    source, direction = "spec.metrics[0].resource", "spec.behavior.scaleDown"
    assert shown == [
        (
            5,
            20,
            "spec.scaleTargetRef.apiVersion",
            'invalid value "v1": apiVersion must specify API group',
            "write `apiVersion: apps/v1`",
        ),
        (
            6,
            3,
            "spec.minReplicas",
            "invalid value 0: must be greater than or equal to 1",
            "0 needs the feature gate HPAScaleToZero, which is off by default",
        ),
        (7, 3, "spec.maxReplicas", 'must be a whole number, is the string "ten"', ""),
        (12, 37, f"{source}.target.averageUtilization", 'must be a whole number, is the string "60%"', ""),
        (
            12,
            62,
            f"{source}.target.averageValue",
            "is not allowed: may not set both a target raw value and a target utilization",
            "",
        ),
        (
            13,
            7,
            "spec.metrics[1].pods",
            "is missing: must populate information for the given metric source",
            "write `pods`",
        ),
        (
            16,
            7,
            f"{direction}.stabilisationWindowSeconds",
            "unknown field `stabilisationWindowSeconds`",
            "did you mean `stabilizationWindowSeconds`?",
        ),
        (
            17,
            18,
            f"{direction}.policies[0].periodSeconds",
            "is missing: must be greater than zero",
            "write `periodSeconds`",
        ),
        (17, 19, f"{direction}.policies[0].type", 'must be one of Percent, Pods, is "Nodes"', ""),
    ]


def test_a_problem_of_a_list_is_reported_beside_those_of_its_entries() -> None:
    target = {"type": "Utilization", "averageUtilization": 60, "averageValue": "500m"}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}

    paths = [problem.path for problem in _problems(autoscaler(minReplicas=0, metrics=[metric]))]

    assert {"spec.metrics", "spec.metrics[0].resource.target.averageValue"} <= set(paths)


def _owned(**metadata: Any) -> dict[str, Any]:
    made = deployment()
    return made | {"metadata": made["metadata"] | metadata}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(
            deployment(strategy={"type": []}),
            {"spec.strategy.type": "must be a string, is a list"},
            id="empty-list-for-a-string",
        ),
        pytest.param(
            deployment(strategy={"type": {}}),
            {"spec.strategy.type": "must be a string, is a mapping"},
            id="empty-mapping-for-a-string",
        ),
        pytest.param(
            deployment(strategy={"type": "RollingUpdate", "rollingUpdate": []}),
            {"spec.strategy.rollingUpdate": "must be a mapping, is a list"},
            id="empty-list-for-a-mapping",
        ),
        pytest.param(
            deployment(strategy={"rollingUpdate": {"maxSurge": []}}),
            {"spec.strategy.rollingUpdate.maxSurge": "must be a number or a string, is a list"},
            id="empty-list-for-a-number-or-string",
        ),
        pytest.param(
            deployment(strategy={"rollingUpdate": {"maxSurge": 3_000_000_000}}, minReadySeconds=-1),
            {
                "spec.strategy.rollingUpdate.maxSurge": "must be between -2147483648 and 2147483647, is 3000000000",
                "spec.minReadySeconds": "invalid value -1: must be greater than or equal to 0",
            },
            id="a-number-of-more-than-32-bits",
        ),
        pytest.param(
            deployment(template=template(terminationGracePeriodSeconds=[])),
            {"spec.template.spec.terminationGracePeriodSeconds": "must be a whole number, is a list"},
            id="empty-list-for-a-number",
        ),
        pytest.param(
            deployment(template=template(terminationGracePeriodSeconds=3_000_000_000)), {}, id="a-number-of-64-bits"
        ),
        pytest.param(
            _owned(ownerReferences=5),
            {"metadata.ownerReferences": "must be a list, is 5"},
            id="owners-that-are-no-list",
        ),
        pytest.param(
            _owned(ownerReferences=[5, {"uid": 7}]),
            {
                "metadata.ownerReferences[0]": "must be a mapping, is 5",
                "metadata.ownerReferences[1].uid": "must be a string, is 7",
            },
            id="owners-of-wrong-types",
        ),
        pytest.param(
            _owned(managedFields=[5]), {"metadata.managedFields[0]": "must be a mapping, is 5"}, id="managed-fields"
        ),
        pytest.param(_owned(labels={"a": 5}), {"metadata.labels.a": "must be a string, is 5"}, id="labels"),
    ],
)
def test_types_are_checked_before_defaults_and_in_metadata(item: dict[str, Any], expected: dict[str, str]) -> None:
    assert {problem.path: problem.message for problem in _problems(item)} == expected


def _many(count: int, entry: Callable[[int], Any]) -> list[Any]:
    return [entry(number) for number in range(count)]


def _pods(**fields: Any) -> dict[str, Any]:
    return deployment(template=template(**fields))


_MISTAKES: dict[str, Callable[[int], dict[str, Any]]] = {
    "unknown fields": lambda count: _pods(containers=[container() | {f"odd{each}": 1 for each in range(count)}]),
    "ports beyond the range": lambda count: _pods(
        containers=[container(ports=_many(count, lambda number: {"containerPort": 70000, "name": f"n-{number}"}))]
    ),
    "variables of a wrong type": lambda count: _pods(
        containers=[container(env=_many(count, lambda number: {"name": f"n{number}", "value": number}))]
    ),
    "volumes without a source and their mounts": lambda count: _pods(
        volumes=_many(count, lambda number: {"name": f"v{number}", "secret": {}}),
        containers=[
            container(volumeMounts=_many(count, lambda number: {"name": f"v{number}", "mountPath": f"/{number}"}))
        ],
    ),
    "metrics without a source": lambda count: autoscaler(metrics=_many(count, lambda _: {"type": "Pods"})),
}


@pytest.mark.parametrize("mistakes", [pytest.param(made, id=name) for name, made in _MISTAKES.items()])
def test_many_mistakes_cost_linear_time(mistakes: Callable[[int], dict[str, Any]]) -> None:
    """Calls and lines are counted, not timed."""

    def steps(count: int) -> int:
        loaded = load_tree(mistakes(count), ValidationContext(now=0))
        assert isinstance(loaded, LoadedObject)
        taken = 0

        def trace(*_: Any) -> Any:
            nonlocal taken
            taken += 1
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            judge(loaded)
        finally:
            sys.settrace(before)
        return taken

    steps(1)  # fills caches
    assert steps(400) < 2.4 * steps(200)


def test_the_rules_need_no_packages_of_the_embedded_cluster() -> None:
    program = (
        "import sys\n"
        "for name in ('cel_expr_python', 'jsonschema_rs'): sys.modules[name] = None\n"
        "from springtide.apis.kinds import ValidationContext\n"
        "from springtide.assembly.manifests import ManifestSource, check_sources\n"
        f"found = check_sources([ManifestSource('a', {_MANIFEST!r})], [], ValidationContext(now=0))\n"
        "print(found.errors)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert int(done.stdout) == 9
