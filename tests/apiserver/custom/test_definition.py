"""The kinds that a definition serves."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.custom.recorded import custom_object, definition

from springtide.apiserver import custom
from springtide.apiserver.kinds import ListType, ScalePaths, ValueType
from springtide.cluster.errors import Invalid
from springtide.cluster.resources import Resource

SPEC = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer", "default": 1},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "required": ["port"],
                        "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}},
                    },
                },
                "size": {"x-kubernetes-int-or-string": True},
                "selector": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "additionalProperties": {"type": "string"},
                },
            },
        },
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
    },
}
SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def rejection(crd: dict[str, Any]) -> Invalid:
    """Return the error for a definition that is rejected."""
    with pytest.raises(Invalid) as refusal:
        custom.served_kinds(crd)
    return refusal.value


def test_a_kind_has_the_names_and_subresources_of_its_definition() -> None:
    names = {"plural": "things", "kind": "Thing", "shortNames": ["th"], "categories": ["all"]}
    subresources = {"subresources": {"status": {}, "scale": SCALE}}
    (kind,) = custom.served_kinds(definition(SPEC, version=subresources, names=names, scope="Cluster"))

    assert kind.resource == Resource("example.com", "v1", "things", "Thing", namespaced=False)
    assert (kind.singular, kind.list_kind) == ("thing", "ThingList")
    assert (kind.short_names, kind.categories) == (("th",), ("all",))
    assert kind.subresources == ("status", "scale")
    assert kind.scale == ScalePaths(".spec.replicas", ".status.replicas")
    assert (kind.strategic, kind.generation, kind.stored_version) == (False, True, "v1")


def test_unserved_versions_are_left_out_and_all_are_stored_as_one() -> None:
    schema = {"schema": {"openAPIV3Schema": {"type": "object"}}}
    versions = [
        {"name": "v1beta1", "served": False, "storage": False, **schema},
        {"name": "v1", "served": True, "storage": False, **schema},
        {"name": "v2", "served": True, "storage": True, **schema},
    ]
    served = custom.served_kinds(definition(versions=versions))
    assert [(kind.resource.version, kind.stored_version) for kind in served] == [("v1", "v2"), ("v2", "v2")]


def test_the_structure_follows_the_schema() -> None:
    (kind,) = custom.served_kinds(definition(SPEC))
    spec = kind.structure.fields["spec"]
    ports = spec.fields["ports"]
    assert (ports.list_kind, ports.keys, ports.key_defaults) == (
        ListType.MAP,
        ("port", "protocol"),
        {"protocol": "TCP"},
    )
    assert ports.items is not None
    assert ports.items.required == ("port",)
    assert spec.fields["size"].type is ValueType.INT_OR_STRING
    assert spec.fields["selector"].atomic
    assert kind.structure.fields["metadata"].fields["finalizers"].list_kind is ListType.SET


def test_equal_definitions_are_compiled_once() -> None:
    first, second = definition(SPEC), definition(SPEC)
    second["metadata"]["labels"] = {"seen": "twice"}
    assert custom.served_kinds(first)[0] is custom.served_kinds(second)[0]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"replicas": 2}, [], id="good"),
        pytest.param({}, [], id="absent"),
        pytest.param({"replicas": -1}, ["Invalid value: -1: should be a non-negative integer"], id="negative"),
        pytest.param(
            {"replicas": 2**31},
            ["Invalid value: 2147483648: should be less than or equal to 2147483647"],
            id="too many",
        ),
    ],
)
def test_replicas_must_be_counts(spec: dict[str, Any], expected: list[str]) -> None:
    (kind,) = custom.served_kinds(definition(SPEC, version={"subresources": {"scale": SCALE}}))
    causes = kind.validate(custom_object(spec), None)
    assert [(cause.field, cause.message) for cause in causes] == [(".spec.replicas", text) for text in expected]


@pytest.mark.parametrize(
    ("versions", "detail"),
    [
        pytest.param([True, True], "must have exactly one version marked as storage version", id="two"),
        pytest.param([False], "must have exactly one version marked as storage version", id="none"),
    ],
)
def test_exactly_one_storage_version(versions: list[bool], detail: str) -> None:
    schema = {"schema": {"openAPIV3Schema": {"type": "object"}}}
    listed = [
        {"name": f"v{number}", "served": True, "storage": storage, **schema}
        for number, storage in enumerate(versions, start=1)
    ]
    (cause,) = rejection(definition(versions=listed)).causes
    assert (cause.field, cause.message) == ("spec.versions", f"Invalid value: {detail}")


def test_the_error_names_the_definition_and_every_cause() -> None:
    answer = rejection(definition({"type": "object", "properties": {"x": {"type": "array"}, "y": {}}}))
    path = "spec.validation.openAPIV3Schema.properties"
    assert answer.message == (
        'CustomResourceDefinition.apiextensions.k8s.io "things.example.com" is invalid: '
        f"[{path}[x].items: Required value: must be specified, "
        f"{path}[y].type: Required value: must not be empty for specified object fields]"
    )


def test_the_metadata_of_an_embedded_resource_is_validated() -> None:
    template = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    (kind,) = custom.served_kinds(definition({"type": "object", "properties": {"template": template}}))
    good = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"app": "web"}}}
    bad = good | {"metadata": {"labels": "app=web"}}
    assert kind.validate(custom_object({}, template=good), None) == ()
    assert [cause.field for cause in kind.validate(custom_object({}, template=bad), None)] == ["template.metadata"]


def test_an_invalid_pattern_is_rejected() -> None:
    (cause,) = rejection(
        definition({"type": "object", "properties": {"x": {"type": "string", "pattern": "(["}}})
    ).causes
    assert cause.message.startswith('Invalid value: "([": must be a valid regular expression, but isn\'t: ')


_FIELDS = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "on": {"type": "boolean"},
        "all": {"type": "array", "items": {"type": "string"}},
    },
}


def _with_rule(rule: str) -> dict[str, Any]:
    spec = _FIELDS | {"x-kubernetes-validations": [{"rule": rule}]}
    return definition({"type": "object", "properties": {"spec": spec}})


@pytest.mark.parametrize("rule", ["self.on", "self.text == 'a'", "has(self.text)", "self.text.matches(r'^a\\d$')"])
def test_a_boolean_rule_is_accepted(rule: str) -> None:
    assert len(custom.served_kinds(_with_rule(rule))) == 1


def test_a_rule_that_is_not_boolean_is_rejected() -> None:
    (cause,) = rejection(_with_rule("1")).causes

    assert cause.message.endswith("cel expression must evaluate to a bool")


def test_a_rule_that_names_an_unknown_field_is_rejected() -> None:
    (cause,) = rejection(_with_rule("self.txet == 'a'")).causes

    assert "undefined field 'txet'" in cause.message


class TestAccepted:
    def test_the_status_says_that_the_kind_is_served(self) -> None:
        crd = definition(names={"plural": "things", "kind": "Thing"})
        crd["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
        accepted = custom.with_accepted_status(crd)
        status = accepted["status"]
        assert accepted["spec"]["names"] == status["acceptedNames"]
        assert status["acceptedNames"] == {
            "plural": "things",
            "kind": "Thing",
            "singular": "thing",
            "listKind": "ThingList",
        }
        assert [(each["type"], each["status"], each["reason"]) for each in status["conditions"]] == [
            ("NamesAccepted", "True", "NoConflicts"),
            ("Established", "True", "InitialNamesAccepted"),
        ]
        assert {each["lastTransitionTime"] for each in status["conditions"]} == {"2026-01-01T00:00:00Z"}
        assert status["storedVersions"] == ["v1"]
        assert "status" not in crd

    def test_versions_that_were_stored_once_are_remembered(self) -> None:
        crd = definition(version={"name": "v2"}) | {"status": {"storedVersions": ["v1"], "conditions": [{"type": "X"}]}}
        status = custom.with_accepted_status(crd)["status"]
        assert status["storedVersions"] == ["v1", "v2"]
        assert status["conditions"] == [{"type": "X"}]
