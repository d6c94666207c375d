"""Definitions of custom kinds: which are accepted, and what becomes of them."""

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
def is_accepted_with_its_defaults(play: Session) -> None:
    answer = play.create(DEFINITIONS, definition(play, _SIMPLE))
    # What becomes of it comes a moment later, and sometimes already with the answer.
    answer.pop("status")


@case
def is_established(play: Session) -> None:
    serve(play, definition(play, _SIMPLE))
    answer = play.get(f"{DEFINITIONS}/widgets.{play.group}")
    play.steps[-1]["body"] = {"status": answer["status"]}
    for condition in answer["status"]["conditions"]:
        del condition["lastTransitionTime"]


@case
def is_a_trial(play: Session) -> None:
    play.create(DEFINITIONS, definition(play, _SIMPLE), dryRun="All").pop("status")
    play.get(f"{DEFINITIONS}/widgets.{play.group}")


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
    "rule that does not parse": _field(_rule("self <")),
    "rule of an unknown field": _field(_rule("self.colour == 1")),
    "empty rule": _field(_rule("")),
    "message of a number": _field(_rule("true", messageExpression="1")),
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
def schema(play: Session, schema: Object) -> None:
    answer = play.create(DEFINITIONS, definition(play, schema), dryRun="All")
    if answer["kind"] != "Status":
        play.steps[-1]["body"] = {"schema": answer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]}


_WRONG: dict[str, Object] = {
    "scope": {"scope": "Planet"},
    "no scope": {"scope": None},
    "no versions": {"versions": []},
    "no storage version": {"versions": [version("v1", _SIMPLE, storage=False)]},
    "two storage versions": {"versions": [version("v1", _SIMPLE), version("v2", _SIMPLE)]},
    "one version twice": {"versions": [version("v1", _SIMPLE), version("v1", _SIMPLE, storage=False)]},
    "name of a version": {"versions": [version("1st", _SIMPLE)]},
    "no schema": {"versions": [{"name": "v1", "served": True, "storage": True}]},
    "kind in small letters": {"names": {"plural": "widgets", "kind": "widget item"}},
    "plural in capitals": {"names": {"plural": "Widgets", "kind": "Widget"}},
    "unknown fields kept": {"preserveUnknownFields": True},
    "scale without paths": {"versions": [version("v1", _SIMPLE, subresources={"scale": {}})]},
    "column of no type": {
        "versions": [
            version("v1", _SIMPLE, additionalPrinterColumns=[{"name": "x", "type": "colour", "jsonPath": ".x"}])
        ]
    },
    "selectable field that is not there": {
        "versions": [version("v1", _SIMPLE, selectableFields=[{"jsonPath": ".spec.z"}])]
    },
}


@each(_WRONG)
def is_refused_for_its(play: Session, spec: Object) -> None:
    body = definition(play, _SIMPLE)
    body["spec"] = {key: value for key, value in (body["spec"] | spec).items() if value is not None}
    play.create(DEFINITIONS, body, dryRun="All")


@case
def is_refused_for_its_name(play: Session) -> None:
    body = definition(play, _SIMPLE)
    body["metadata"]["name"] = f"gadgets.{play.group}"
    play.create(DEFINITIONS, body)


@case
def is_refused_for_a_protected_group(play: Session) -> None:
    body = definition(play, _SIMPLE)
    body["metadata"]["name"] = "widgets.x.k8s.io"
    body["spec"]["group"] = "x.k8s.io"
    play.create(DEFINITIONS, body)


@each({"scope": {"scope": "Cluster"}, "group": {"group": "other.example.com"}, "kind": {"names": {"kind": "Gadget"}}})
def may_not_change_its(play: Session, spec: Object) -> None:
    serve(play, definition(play, _SIMPLE))
    answer = play.patch(f"{DEFINITIONS}/widgets.{play.group}", {"spec": spec}, dryRun="All")
    if answer["kind"] != "Status":
        play.steps[-1]["body"] = {"names": answer["spec"]["names"], "scope": answer["spec"]["scope"]}


@case
def may_gain_short_names(play: Session) -> None:
    serve(play, definition(play, _SIMPLE))
    answer = play.patch(
        f"{DEFINITIONS}/widgets.{play.group}", {"spec": {"names": {"shortNames": ["wd"], "categories": ["all"]}}}
    )
    play.steps[-1]["body"] = {"names": answer["spec"]["names"], "generation": answer["metadata"]["generation"]}


@case
def goes_with_all_its_objects(play: Session) -> None:
    path = serve(play, definition(play, _SIMPLE))
    play.prepare(path, widget(play))
    play.quietly("DELETE", f"{DEFINITIONS}/widgets.{play.group}")
    play.gone(f"{DEFINITIONS}/widgets.{play.group}")
    play.until(lambda answer: answer.status == 404, path)
    play.get(path)
    play.get(f"{path}/one")
    play.create(path, widget(play))


@case
def is_discovered(play: Session) -> None:
    serve(play, definition(play, _SIMPLE, subresources={"status": {}}))
    path = f"/apis/{play.group}/v1"
    play.until(lambda answer: answer.status == 200, path)
    play.get(path)
    for resource in play.steps[-1]["body"]["resources"]:
        resource.pop("storageVersionHash", None)
    play.until(lambda answer: answer.status == 200, f"/apis/{play.group}")
    play.get(f"/apis/{play.group}")
