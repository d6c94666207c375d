"""CustomResourceDefinitions: validation, status and lifecycle."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import DEFINITIONS, INTEGER, STRING, definition, properties, serve, version, widget
from tests.conformance.session import Object, Session

_SIMPLE = properties(spec=properties(a=STRING))


def _field(schema: Object) -> Object:
    return properties(spec=properties(a=schema))


def _rule(rule: str, **more: Any) -> Object:
    return STRING | {"x-kubernetes-validations": [{"rule": rule, **more}]}


@case
def is_accepted_with_defaults(session: Session) -> None:
    answer = session.create(DEFINITIONS, definition(session, _SIMPLE))
    # The status is written a moment later, and sometimes before the answer.
    answer.pop("status")


@case
def is_established(session: Session) -> None:
    serve(session, definition(session, _SIMPLE))
    answer = session.get(f"{DEFINITIONS}/widgets.{session.group}")
    session.steps[-1]["body"] = {"status": answer["status"]}
    for condition in answer["status"]["conditions"]:
        del condition["lastTransitionTime"]


@case
def is_created_in_a_dry_run(session: Session) -> None:
    session.create(DEFINITIONS, definition(session, _SIMPLE), dryRun="All").pop("status")
    session.get(f"{DEFINITIONS}/widgets.{session.group}")


_SCHEMAS: dict[str, Object] = {
    "string at the root": STRING,
    "nothing at the root": {},
    "field without a type": _field({}),
    "array without items": _field({"type": "array"}),
    "unknown type": _field({"type": "colour"}),
    "default of a wrong type": _field(STRING | {"default": 5}),
    "default out of range": _field(INTEGER | {"minimum": 5, "default": 3}),
    "default outside of the enum": _field(STRING | {"enum": ["a"], "default": "b"}),
    "additional members forbidden": _field({"type": "object", "additionalProperties": False}),
    "unique items": _field({"type": "array", "items": STRING, "uniqueItems": True}),
    "map list with an optional key": _field(
        {
            "type": "array",
            "items": properties(k=STRING),
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        }
    ),
    "type within any of": _field({"anyOf": [INTEGER, STRING]}),
    "int or string": _field({"anyOf": [INTEGER, STRING], "x-kubernetes-int-or-string": True}),
    "int or string with a type": _field(STRING | {"x-kubernetes-int-or-string": True}),
    "broken pattern": _field(STRING | {"pattern": "("}),
    "reference": _field({"$ref": "#/elsewhere"}),
    "null as default": _field(STRING | {"default": None}),
    "name of metadata": properties(metadata=properties(name=STRING | {"maxLength": 10})),
    "rule": _field(_rule("self.size() < 5")),
    "rule with a syntax error": _field(_rule("self <")),
    "rule of an unknown field": _field(_rule("self.colour == 1")),
    "empty rule": _field(_rule("")),
    "message expression of a number": _field(_rule("true", messageExpression="1")),
    "rule that costs too much": _field(
        {
            "type": "array",
            "items": STRING,
            "x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, x.contains(y)))"}],
        }
    ),
    "old value within a list": _field({"type": "array", "items": _rule("self == oldSelf")}),
}


@each(_SCHEMAS)
def schema(session: Session, schema: Object) -> None:
    answer = session.create(DEFINITIONS, definition(session, schema), dryRun="All")
    if answer["kind"] != "Status":
        session.steps[-1]["body"] = {"schema": answer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]}


_WRONG: dict[str, Object] = {
    "scope": {"scope": "Planet"},
    "no scope": {"scope": None},
    "no versions": {"versions": []},
    "no storage version": {"versions": [version("v1", _SIMPLE, storage=False)]},
    "two storage versions": {"versions": [version("v1", _SIMPLE), version("v2", _SIMPLE)]},
    "one version twice": {"versions": [version("v1", _SIMPLE), version("v1", _SIMPLE, storage=False)]},
    "name of a version": {"versions": [version("1st", _SIMPLE)]},
    "no schema": {"versions": [{"name": "v1", "served": True, "storage": True}]},
    "invalid kind": {"names": {"plural": "widgets", "kind": "widget item"}},
    "plural in capitals": {"names": {"plural": "Widgets", "kind": "Widget"}},
    "unknown fields kept": {"preserveUnknownFields": True},
    "scale without paths": {"versions": [version("v1", _SIMPLE, subresources={"scale": {}})]},
    "column of no type": {
        "versions": [
            version("v1", _SIMPLE, additionalPrinterColumns=[{"name": "x", "type": "colour", "jsonPath": ".x"}])
        ]
    },
    "unknown selectable field": {"versions": [version("v1", _SIMPLE, selectableFields=[{"jsonPath": ".spec.z"}])]},
}


@each(_WRONG)
def is_rejected_for_its(session: Session, spec: Object) -> None:
    body = definition(session, _SIMPLE)
    body["spec"] = {key: value for key, value in (body["spec"] | spec).items() if value is not None}
    session.create(DEFINITIONS, body, dryRun="All")


@case
def is_rejected_for_its_name(session: Session) -> None:
    body = definition(session, _SIMPLE)
    body["metadata"]["name"] = f"gadgets.{session.group}"
    session.create(DEFINITIONS, body)


@case
def is_rejected_for_a_protected_group(session: Session) -> None:
    body = definition(session, _SIMPLE)
    body["metadata"]["name"] = "widgets.x.k8s.io"
    body["spec"]["group"] = "x.k8s.io"
    session.create(DEFINITIONS, body)


@each({"scope": {"scope": "Cluster"}, "group": {"group": "other.example.com"}, "kind": {"names": {"kind": "Gadget"}}})
def may_not_change_its(session: Session, spec: Object) -> None:
    serve(session, definition(session, _SIMPLE))
    answer = session.patch(f"{DEFINITIONS}/widgets.{session.group}", {"spec": spec}, dryRun="All")
    if answer["kind"] != "Status":
        session.steps[-1]["body"] = {"names": answer["spec"]["names"], "scope": answer["spec"]["scope"]}


@case
def may_gain_short_names(session: Session) -> None:
    serve(session, definition(session, _SIMPLE))
    answer = session.patch(
        f"{DEFINITIONS}/widgets.{session.group}", {"spec": {"names": {"shortNames": ["wd"], "categories": ["all"]}}}
    )
    session.steps[-1]["body"] = {"names": answer["spec"]["names"], "generation": answer["metadata"]["generation"]}


@case
def is_deleted_with_all_its_objects(session: Session) -> None:
    path = serve(session, definition(session, _SIMPLE))
    session.prepare(path, widget(session))
    session.send_unrecorded("DELETE", f"{DEFINITIONS}/widgets.{session.group}")
    session.gone(f"{DEFINITIONS}/widgets.{session.group}")
    session.until(lambda answer: answer.status == 404, path)
    session.get(path)
    session.get(f"{path}/one")
    session.create(path, widget(session))


@case
def is_discovered(session: Session) -> None:
    serve(session, definition(session, _SIMPLE, subresources={"status": {}}))
    path = f"/apis/{session.group}/v1"
    session.until(lambda answer: answer.status == 200, path)
    session.get(path)
    for resource in session.steps[-1]["body"]["resources"]:
        resource.pop("storageVersionHash", None)
    session.until(lambda answer: answer.status == 200, f"/apis/{session.group}")
    session.get(f"/apis/{session.group}")
