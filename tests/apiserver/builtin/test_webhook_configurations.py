"""Defaults and validation of webhook configurations."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.objects import WRITE, make_server, refused
from tests.apiserver.webhooks.webhook_server import EVERYTHING, MUTATING, VALIDATING, webhook

from springtide.cluster.errors import Invalid
from springtide.cluster.resources import Object, Resource

HOOK = webhook({"url": "https://example.com/hook"})


def causes(*hooks: Object, resource: Resource = MUTATING) -> list[tuple[str, str]]:
    """Return the fields and messages for which webhooks are rejected."""
    body = {"metadata": {"name": "hooks"}, "webhooks": list(hooks)}
    error = refused(Invalid, lambda: make_server().create(resource, body, WRITE))
    return [(cause.field.removeprefix("webhooks[0]."), cause.message) for cause in error.causes]


def without(field: str) -> Object:
    return {name: value for name, value in HOOK.items() if name != field}


@pytest.mark.parametrize("resource", [MUTATING, VALIDATING], ids=str)
def test_defaults(resource: Resource) -> None:
    hook = HOOK | {"clientConfig": {"service": {"name": "s", "namespace": "n"}}}

    stored = make_server().create(resource, {"metadata": {"name": "hooks"}, "webhooks": [hook]}, WRITE)

    defaults = {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": 10,
        "rules": [EVERYTHING | {"scope": "*"}],
        "clientConfig": {"service": {"name": "s", "namespace": "n", "port": 443}},
    } | ({"reinvocationPolicy": "Never"} if resource is MUTATING else {})
    assert stored["webhooks"] == [hook | defaults]
    assert stored["metadata"]["generation"] == 1


_FORM = "; desired format: https://host[/path]"


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        pytest.param(
            {"failurePolicy": "Maybe"}, "failurePolicy", '"Maybe": supported values: "Fail", "Ignore"', id="policy"
        ),
        pytest.param(
            {"matchPolicy": "Like"}, "matchPolicy", '"Like": supported values: "Equivalent", "Exact"', id="match"
        ),
        pytest.param(
            {"reinvocationPolicy": "Always"},
            "reinvocationPolicy",
            '"Always": supported values: "IfNeeded", "Never"',
            id="reinvocation",
        ),
        pytest.param(
            {"sideEffects": "Some"},
            "sideEffects",
            '"Some": supported values: "None", "NoneOnDryRun"',
            id="side effects",
        ),
        pytest.param(
            {"timeoutSeconds": 31},
            "timeoutSeconds",
            "31: the timeout value must be between 1 and 30 seconds",
            id="timeout too long",
        ),
        pytest.param(
            {"timeoutSeconds": 0},
            "timeoutSeconds",
            "0: the timeout value must be between 1 and 30 seconds",
            id="timeout of zero",
        ),
        pytest.param(
            {"admissionReviewVersions": ["v7"]},
            "admissionReviewVersions",
            '["v7"]: must include at least one of v1, v1beta1',
            id="review versions",
        ),
        pytest.param(
            {"clientConfig": {"url": "http://example.com"}},
            "clientConfig.url",
            f"\"http\": 'https' is the only allowed URL scheme{_FORM}",
            id="plain http",
        ),
        pytest.param(
            {"clientConfig": {"url": "https:///x"}},
            "clientConfig.url",
            f'"": host must be specified{_FORM}',
            id="no host",
        ),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
            "namespaceSelector.matchExpressions[0].operator",
            '"Near": not a valid selector operator',
            id="a selector",
        ),
        pytest.param(
            {"rules": [EVERYTHING | {"operations": ["READ"]}]},
            "rules[0].operations[0]",
            '"READ": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"',
            id="an operation",
        ),
        pytest.param(
            {"rules": [EVERYTHING | {"scope": "Galaxy"}]},
            "rules[0].scope",
            '"Galaxy": supported values: "*", "Cluster", "Namespaced"',
            id="a scope",
        ),
        pytest.param(
            {"matchConditions": [{"name": "c", "expression": "object.metadata.name"}]},
            "matchConditions[0].expression",
            '"object.metadata.name": must evaluate to bool but got dyn',
            id="condition that is not boolean",
        ),
        pytest.param(
            {"matchConditions": [{"name": "c", "expression": "object.("}]},
            "matchConditions[0].expression",
            '"object.(": compilation failed: ERROR: <input>:1:8: Syntax error',
            id="condition that does not compile",
        ),
    ],
)
def test_invalid_values(change: dict[str, Any], field: str, message: str) -> None:
    ((found, told),) = causes(HOOK | change)

    assert found == field
    assert told.partition(": ")[2].startswith(message)


@pytest.mark.parametrize(
    ("hook", "field", "message"),
    [
        pytest.param(without("name"), "name", "Required value", id="no name"),
        pytest.param(
            without("sideEffects"),
            "sideEffects",
            "Required value: must specify one of None, NoneOnDryRun",
            id="no side effects",
        ),
        pytest.param(
            without("admissionReviewVersions"),
            "admissionReviewVersions",
            "Required value: must specify one of v1, v1beta1",
            id="review versions",
        ),
        pytest.param(
            without("clientConfig"),
            "clientConfig",
            "Required value: exactly one of url or service is required",
            id="no client config",
        ),
        pytest.param(
            HOOK | {"clientConfig": {"url": "https://a.b/", "service": {"name": "s", "namespace": "n"}}},
            "clientConfig",
            "Required value: exactly one of url or service is required",
            id="url and service",
        ),
        pytest.param(
            HOOK | {"rules": [EVERYTHING | {"resources": []}]},
            "rules[0].resources",
            "Required value",
            id="no resources",
        ),
        pytest.param(
            HOOK | {"matchConditions": [{"name": "c", "expression": ""}]},
            "matchConditions[0].expression",
            "Required value",
            id="empty condition",
        ),
    ],
)
def test_a_missing_field_has_one_cause(hook: Object, field: str, message: str) -> None:
    assert causes(hook) == [(field, message)]


def test_names_are_unique() -> None:
    assert causes(HOOK, HOOK) == [("webhooks[1].name", 'Duplicate value: "hook.example.com"')]


def test_names_of_match_conditions_are_unique() -> None:
    condition = {"name": "c", "expression": "true"}

    assert causes(HOOK | {"matchConditions": [condition, condition]}) == [
        ("matchConditions[1].name", 'Duplicate value: "c"')
    ]


def test_all_causes_are_reported_together() -> None:
    fields = [field for field, _ in causes(without("sideEffects") | {"failurePolicy": "Maybe", "timeoutSeconds": 99})]

    assert sorted(fields) == ["failurePolicy", "sideEffects", "timeoutSeconds"]
