"""Custom resources: defaulting, pruning, validation, status and versions."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import INTEGER, STRING, define, definition, properties, redefine, serve, version, widget
from tests.conformance.session import APPLY, JSON_PATCH, STRATEGIC, Object, Session

_LIST: Object = {"type": "array", "items": STRING}
_KEYED: Object = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": properties(k=STRING, v=STRING | {"default": "dv"}) | {"required": ["k"]},
}
_SPEC: Object = properties(
    size=INTEGER | {"minimum": 1, "maximum": 10},
    small=INTEGER | {"format": "int32"},
    word=STRING | {"minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
    choice=STRING | {"enum": ["a", "b"]},
    filled=STRING | {"default": "full"},
    nested={**properties(x=INTEGER | {"default": 3}, y=STRING), "default": {}},
    optional=properties(x=INTEGER | {"default": 3}),
    list=_LIST | {"minItems": 1, "maxItems": 3},
    set=_LIST | {"x-kubernetes-list-type": "set"},
    keyed=_KEYED,
    map={"type": "object", "additionalProperties": INTEGER, "maxProperties": 2},
    either={"x-kubernetes-int-or-string": True},
    any={"x-kubernetes-preserve-unknown-fields": True},
    empty=STRING | {"nullable": True},
    flag={"type": "boolean"},
    number={"type": "number", "minimum": 0, "exclusiveMinimum": True},
    when=STRING | {"format": "date-time"},
    long=STRING | {"format": "duration"},
    day=STRING | {"format": "date"},
    bytes=STRING | {"format": "byte"},
    address=STRING | {"format": "ipv4"},
    one={**properties(a=STRING, b=STRING), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    whole={**properties(a=STRING, b=STRING), "x-kubernetes-map-type": "atomic"},
    inner={"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
) | {"required": ["size"]}
_SCHEMA: Object = properties(spec=_SPEC, status=properties(phase=STRING | {"enum": ["A", "B"]}, size=INTEGER)) | {
    "required": ["spec"]
}


def _widgets(session: Session) -> str:
    return define(session, _SCHEMA, subresources={"status": {}})


_GOOD: dict[str, Object] = {
    "least": {},
    "null where a default is": {"filled": None, "nested": {"x": None}},
    "optional object": {"optional": {}},
    "keyed list": {"keyed": [{"k": "a"}, {"k": "b", "v": "x"}]},
    "number as either": {"either": 1},
    "string as either": {"either": "10%"},
    "anything": {"any": {"x": None, "y": [1, {"z": None}]}},
    "null that is allowed": {"empty": None},
    "unknown field": {"colour": "red", "nested": {"z": 1}},
    "embedded": {
        "inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "colour": 1}, "spec": {"z": 1}}
    },
    "float without a fraction": {"size": 2.0},
    "invalid duration": {"long": "5 minutes"},
}


@each(_GOOD)
def is_accepted(session: Session, spec: Object) -> None:
    session.create(_widgets(session), widget(session, spec={"size": 1} | spec))


_WRONG: dict[str, Any] = {
    "missing": {"size": None, "word": "abc"},
    "too small": {"size": 0},
    "too large": {"size": 11},
    "string for a number": {"size": "1"},
    "fraction": {"size": 1.5},
    "beyond 32 bits": {"small": 2**33},
    "short": {"word": "a"},
    "long": {"word": "abcdef"},
    "pattern": {"word": "AB"},
    "short and pattern": {"word": "A"},
    "enum": {"choice": "c"},
    "empty list": {"list": []},
    "too many": {"list": ["a"] * 4},
    "item of a wrong type": {"list": [1]},
    "string for a list": {"list": "a"},
    "twice in a set": {"set": ["a", "a"]},
    "twice the same key": {"keyed": [{"k": "a"}, {"k": "a"}]},
    "no key": {"keyed": [{"v": "a"}]},
    "value of a map": {"map": {"a": "1"}},
    "too large a map": {"map": {"a": 1, "b": 2, "c": 3}},
    "boolean as either": {"either": True},
    "string for a flag": {"flag": "true"},
    "not above": {"number": 0},
    "no time": {"when": "soon"},
    "no day": {"day": "2017-02-30"},
    "no bytes": {"bytes": "!!"},
    "no address": {"address": "1.2.3"},
    "both of one": {"one": {"a": "1", "b": "2"}},
    "none of one": {"one": {}},
    "embedded without a kind": {"inner": {"apiVersion": "v1"}},
    "several": {"size": 0, "word": "A", "choice": "z", "list": [1], "flag": 3},
}


@each(_WRONG)
def is_rejected(session: Session, spec: Any) -> None:
    whole = {key: value for key, value in ({"size": 1} | spec).items() if value is not None}
    session.create(_widgets(session), widget(session, spec=whole))


@case
def is_rejected_without_spec(session: Session) -> None:
    path = _widgets(session)
    session.create(path, widget(session))
    session.create(path, widget(session, spec=None))


@case
def is_rejected_with_another_kind(session: Session) -> None:
    path = _widgets(session)
    session.create(path, widget(session, spec={"size": 1}) | {"kind": "Gadget"})
    session.create(path, widget(session, spec={"size": 1}) | {"apiVersion": f"{session.group}/v2"})
    session.create(path, {"metadata": {"name": "one"}, "spec": {"size": 1}})


@case
def is_rejected_with_invalid_metadata(session: Session) -> None:
    path = _widgets(session)
    session.create(path, widget(session, "Bad_Name", spec={"size": 1}))
    body = widget(session, spec={"size": 1})
    body["metadata"]["labels"] = {"a": 1}
    session.create(path, body)
    body["metadata"]["labels"] = {"a b": "c"}
    session.create(path, body)


@case
def the_status_subresource(session: Session) -> None:
    path = _widgets(session)
    session.create(path, widget(session, spec={"size": 1}, status={"phase": "A"}))
    session.patch(f"{path}/one", {"status": {"phase": "A"}})
    session.patch(
        f"{path}/one/status", {"status": {"phase": "A"}, "spec": {"size": 9}, "metadata": {"labels": {"a": "b"}}}
    )
    session.patch(f"{path}/one/status", {"status": {"phase": "Z"}})


@case
def status_without_a_subresource(session: Session) -> None:
    path = define(session, _SCHEMA)
    session.create(path, widget(session, spec={"size": 1}, status={"phase": "A"}))
    session.patch(f"{path}/one", {"status": {"phase": "B"}})
    session.patch(f"{path}/one/status", {"status": {"phase": "A"}})


@case
def generation_counts_all_but_metadata_and_status(session: Session) -> None:
    path = _widgets(session)
    session.prepare(path, widget(session, spec={"size": 1}))
    session.patch(f"{path}/one", {"metadata": {"labels": {"a": "b"}}})
    session.patch(f"{path}/one", {"spec": {"size": 2}})
    session.patch(f"{path}/one", {"spec": {"size": 2}})
    session.patch(f"{path}/one/status", {"status": {"size": 2}})


@case
def rejects_strategic_patches(session: Session) -> None:
    path = _widgets(session)
    session.prepare(path, widget(session, spec={"size": 1}))
    session.patch(f"{path}/one", {"spec": {"size": 2}}, STRATEGIC)


@case
def accepts_merge_and_json_patches(session: Session) -> None:
    path = _widgets(session)
    session.prepare(path, widget(session, spec={"size": 1, "keyed": [{"k": "a"}]}))
    session.patch(f"{path}/one", {"spec": {"keyed": [{"k": "b"}]}})
    session.patch(f"{path}/one", [{"op": "add", "path": "/spec/keyed/-", "value": {"k": "c"}}], JSON_PATCH)
    session.patch(f"{path}/one", {"spec": {"filled": None}})
    session.patch(f"{path}/one", {"spec": {"size": None}})


@case
def an_update_needs_the_resource_version(session: Session) -> None:
    path = _widgets(session)
    made = session.create(path, widget(session, spec={"size": 1}))
    session.update(f"{path}/one", widget(session, spec={"size": 2}))
    session.update(f"{path}/one", made | {"spec": {"size": 3}})
    session.update(f"{path}/one", made | {"spec": {"size": 4}})


def _applied(session: Session, **spec: Any) -> Object:
    return widget(session, spec=spec)


@case
def is_applied_by_several_managers(session: Session) -> None:
    path = _widgets(session)
    one = f"{path}/one"
    session.apply(one, _applied(session, size=2, keyed=[{"k": "a"}], set=["x"], map={"p": 1}), "first")
    session.apply(one, _applied(session, keyed=[{"k": "b"}], set=["y"], map={"q": 2}), "second")
    session.apply(one, _applied(session, size=3), "second")
    session.apply(one, _applied(session, size=3), "second", force=True)
    session.apply(one, _applied(session, set=["x"]), "first")


@case
def atomic_fields_are_applied(session: Session) -> None:
    path = _widgets(session)
    session.apply(f"{path}/one", _applied(session, size=1, whole={"a": "1"}, list=["x"]), "first")
    session.apply(f"{path}/one", _applied(session, whole={"b": "2"}), "second")
    session.apply(f"{path}/one", _applied(session, list=["y"]), "second")


@each(
    {
        "unknown field": {"colour": "red"},
        "wrong type": {"size": "x"},
        "out of range": {"size": 50},
        "key twice": {"keyed": [{"k": "a"}, {"k": "a"}]},
    }
)
def is_not_applied_with(session: Session, spec: Object) -> None:
    path = _widgets(session)
    session.patch(f"{path}/one", _applied(session, **({"size": 1} | spec)), APPLY, fieldManager="first")


@each({each: each for each in ("spec.choice=a", "spec.choice!=a", "spec.size=1", "metadata.name=one", "spec.word=abc")})
def selectable_fields(session: Session, selector: str) -> None:
    path = define(session, _SCHEMA, selectableFields=[{"jsonPath": ".spec.choice"}, {"jsonPath": ".spec.size"}])
    session.prepare(path, widget(session, spec={"size": 1, "choice": "a", "word": "abc"}))
    session.prepare(path, widget(session, "two", spec={"size": 2}))
    answer = session.get(path, fieldSelector=selector)
    if "items" in answer:
        session.steps[-1]["body"] = {"names": [item["metadata"]["name"] for item in answer["items"]]}


@case
def of_a_cluster_scoped_kind(session: Session) -> None:
    path = define(session, properties(spec=properties(a=STRING)), scope="Cluster")
    session.create(path, widget(session, session.unique("one"), spec={"a": "1"}))
    body = widget(session, session.unique("two"), spec={"a": "1"})
    body["metadata"]["namespace"] = session.namespace
    session.create(path, body)


def _versions(session: Session) -> Object:
    body = definition(session, {})
    body["spec"]["versions"] = [
        version("v1", properties(spec=properties(a=STRING))),
        version("v2", properties(spec=properties(a=STRING, b=STRING | {"default": "new"})), storage=False),
        version("v3", properties(spec=properties(a=STRING)), storage=False) | {"served": False},
    ]
    return body


@case
def two_versions_keep_the_fields_of_the_stored_one(session: Session) -> None:
    path = serve(session, _versions(session))
    newer = path.replace("/v1/", "/v2/")
    session.create(path, widget(session, spec={"a": "1", "b": "2"}))
    session.get(f"{newer}/one")
    session.create(newer, widget(session, "two", "v2", spec={"a": "1", "b": "2"}))
    session.get(f"{path}/two")
    session.get(f"{newer}/two")


@case
def is_patched_in_either_version(session: Session) -> None:
    path = serve(session, _versions(session))
    newer = path.replace("/v1/", "/v2/")
    session.prepare(path, widget(session, spec={"a": "1"}))
    session.patch(f"{newer}/one", {"spec": {"a": "2"}})
    session.apply(f"{path}/one", widget(session, spec={"a": "3"}), "first", force=True)
    session.apply(f"{newer}/one", widget(session, version="v2", spec={"a": "4"}), "first")


@case
def of_a_version_that_is_not_served(session: Session) -> None:
    path = serve(session, _versions(session)).replace("/v1/", "/v3/")
    session.get(path)
    session.create(path, widget(session, version="v3", spec={"a": "1"}))


@case
def is_watched_in_either_version(session: Session) -> None:
    path = serve(session, _versions(session))
    since = session.send_unrecorded("GET", path).body["metadata"]["resourceVersion"]
    session.prepare(path, widget(session, spec={"a": "1"}))
    session.watch(path.replace("/v1/", "/v2/"), 1, resourceVersion=since)


_FIELD = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties"


@case
def is_pruned_and_defaulted_by_the_current_definition(session: Session) -> None:
    path = define(session, properties(spec=properties(a=STRING, b=STRING)), own=True)
    session.prepare(path, widget(session, spec={"a": "1", "b": "2"}))
    change: list[Object] = [
        {"op": "remove", "path": f"{_FIELD}/b"},
        {"op": "add", "path": f"{_FIELD}/c", "value": STRING | {"default": "new", "maxLength": 3}},
    ]
    redefine(session, change, path, widget(session, "probe", spec={"c": "long"}), 422)
    session.get(f"{path}/one")
    session.patch(f"{path}/one", {"metadata": {"labels": {"a": "b"}}})


@case
def ratcheting_of_stored_values(session: Session) -> None:
    path = define(session, properties(spec=properties(a=STRING, b=STRING)), own=True)
    session.prepare(path, widget(session, spec={"a": "long", "b": "1"}))
    change = [{"op": "add", "path": f"{_FIELD}/a/maxLength", "value": 2}]
    redefine(session, change, path, widget(session, "probe", spec={"a": "long"}), 422)
    session.patch(f"{path}/one", {"metadata": {"labels": {"a": "b"}}})
    session.patch(f"{path}/one", {"spec": {"b": "2"}})
    session.patch(f"{path}/one", {"spec": {"a": "other"}})
    session.patch(f"{path}/one", {"spec": {"a": "ok"}})
    session.patch(f"{path}/one", {"spec": {"a": "long"}})
