"""Objects of custom kinds: defaults, pruning, validation, status and versions."""

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


def _widgets(play: Session) -> str:
    return define(play, _SCHEMA, subresources={"status": {}})


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
    "whole float": {"size": 2.0},
    "duration in words": {"long": "5 minutes"},
}


@each(_GOOD)
def is_accepted(play: Session, spec: Object) -> None:
    play.create(_widgets(play), widget(play, spec={"size": 1} | spec))


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
def is_refused(play: Session, spec: Any) -> None:
    whole = {key: value for key, value in ({"size": 1} | spec).items() if value is not None}
    play.create(_widgets(play), widget(play, spec=whole))


@case
def is_refused_without_its_spec(play: Session) -> None:
    path = _widgets(play)
    play.create(path, widget(play))
    play.create(path, widget(play, spec=None))


@case
def is_refused_with_another_type(play: Session) -> None:
    path = _widgets(play)
    play.create(path, widget(play, spec={"size": 1}) | {"kind": "Gadget"})
    play.create(path, widget(play, spec={"size": 1}) | {"apiVersion": f"{play.group}/v2"})
    play.create(path, {"metadata": {"name": "one"}, "spec": {"size": 1}})


@case
def is_refused_with_bad_metadata(play: Session) -> None:
    path = _widgets(play)
    play.create(path, widget(play, "Bad_Name", spec={"size": 1}))
    body = widget(play, spec={"size": 1})
    body["metadata"]["labels"] = {"a": 1}
    play.create(path, body)
    body["metadata"]["labels"] = {"a b": "c"}
    play.create(path, body)


@case
def status_is_apart(play: Session) -> None:
    path = _widgets(play)
    play.create(path, widget(play, spec={"size": 1}, status={"phase": "A"}))
    play.patch(f"{path}/one", {"status": {"phase": "A"}})
    play.patch(
        f"{path}/one/status", {"status": {"phase": "A"}, "spec": {"size": 9}, "metadata": {"labels": {"a": "b"}}}
    )
    play.patch(f"{path}/one/status", {"status": {"phase": "Z"}})


@case
def status_is_a_field_where_it_is_not_apart(play: Session) -> None:
    path = define(play, _SCHEMA)
    play.create(path, widget(play, spec={"size": 1}, status={"phase": "A"}))
    play.patch(f"{path}/one", {"status": {"phase": "B"}})
    play.patch(f"{path}/one/status", {"status": {"phase": "A"}})


@case
def generation_counts_all_but_metadata_and_status(play: Session) -> None:
    path = _widgets(play)
    play.prepare(path, widget(play, spec={"size": 1}))
    play.patch(f"{path}/one", {"metadata": {"labels": {"a": "b"}}})
    play.patch(f"{path}/one", {"spec": {"size": 2}})
    play.patch(f"{path}/one", {"spec": {"size": 2}})
    play.patch(f"{path}/one/status", {"status": {"size": 2}})


@case
def takes_no_strategic_patch(play: Session) -> None:
    path = _widgets(play)
    play.prepare(path, widget(play, spec={"size": 1}))
    play.patch(f"{path}/one", {"spec": {"size": 2}}, STRATEGIC)


@case
def takes_merge_and_json_patches(play: Session) -> None:
    path = _widgets(play)
    play.prepare(path, widget(play, spec={"size": 1, "keyed": [{"k": "a"}]}))
    play.patch(f"{path}/one", {"spec": {"keyed": [{"k": "b"}]}})
    play.patch(f"{path}/one", [{"op": "add", "path": "/spec/keyed/-", "value": {"k": "c"}}], JSON_PATCH)
    play.patch(f"{path}/one", {"spec": {"filled": None}})
    play.patch(f"{path}/one", {"spec": {"size": None}})


@case
def is_updated_with_its_version_only(play: Session) -> None:
    path = _widgets(play)
    made = play.create(path, widget(play, spec={"size": 1}))
    play.update(f"{path}/one", widget(play, spec={"size": 2}))
    play.update(f"{path}/one", made | {"spec": {"size": 3}})
    play.update(f"{path}/one", made | {"spec": {"size": 4}})


def _applied(play: Session, **spec: Any) -> Object:
    return widget(play, spec=spec)


@case
def is_applied_by_several(play: Session) -> None:
    path = _widgets(play)
    one = f"{path}/one"
    play.apply(one, _applied(play, size=2, keyed=[{"k": "a"}], set=["x"], map={"p": 1}), "first")
    play.apply(one, _applied(play, keyed=[{"k": "b"}], set=["y"], map={"q": 2}), "second")
    play.apply(one, _applied(play, size=3), "second")
    play.apply(one, _applied(play, size=3), "second", force=True)
    play.apply(one, _applied(play, set=["x"]), "first")


@case
def is_applied_with_parts_that_are_whole(play: Session) -> None:
    path = _widgets(play)
    play.apply(f"{path}/one", _applied(play, size=1, whole={"a": "1"}, list=["x"]), "first")
    play.apply(f"{path}/one", _applied(play, whole={"b": "2"}), "second")
    play.apply(f"{path}/one", _applied(play, list=["y"]), "second")


@each(
    {
        "unknown field": {"colour": "red"},
        "wrong type": {"size": "x"},
        "out of range": {"size": 50},
        "key twice": {"keyed": [{"k": "a"}, {"k": "a"}]},
    }
)
def is_not_applied_with(play: Session, spec: Object) -> None:
    path = _widgets(play)
    play.patch(f"{path}/one", _applied(play, **({"size": 1} | spec)), APPLY, fieldManager="first")


@each({each: each for each in ("spec.choice=a", "spec.choice!=a", "spec.size=1", "metadata.name=one", "spec.word=abc")})
def is_found_by_fields(play: Session, selector: str) -> None:
    path = define(play, _SCHEMA, selectableFields=[{"jsonPath": ".spec.choice"}, {"jsonPath": ".spec.size"}])
    play.prepare(path, widget(play, spec={"size": 1, "choice": "a", "word": "abc"}))
    play.prepare(path, widget(play, "two", spec={"size": 2}))
    answer = play.get(path, fieldSelector=selector)
    if "items" in answer:
        play.steps[-1]["body"] = {"names": [item["metadata"]["name"] for item in answer["items"]]}


@case
def of_a_kind_without_namespaces(play: Session) -> None:
    path = define(play, properties(spec=properties(a=STRING)), scope="Cluster")
    play.create(path, widget(play, play.unique("one"), spec={"a": "1"}))
    body = widget(play, play.unique("two"), spec={"a": "1"})
    body["metadata"]["namespace"] = play.namespace
    play.create(path, body)


def _versions(play: Session) -> Object:
    body = definition(play, {})
    body["spec"]["versions"] = [
        version("v1", properties(spec=properties(a=STRING))),
        version("v2", properties(spec=properties(a=STRING, b=STRING | {"default": "new"})), storage=False),
        version("v3", properties(spec=properties(a=STRING)), storage=False) | {"served": False},
    ]
    return body


@case
def in_two_versions_keeps_what_the_stored_one_knows(play: Session) -> None:
    path = serve(play, _versions(play))
    newer = path.replace("/v1/", "/v2/")
    play.create(path, widget(play, spec={"a": "1", "b": "2"}))
    play.get(f"{newer}/one")
    play.create(newer, widget(play, "two", "v2", spec={"a": "1", "b": "2"}))
    play.get(f"{path}/two")
    play.get(f"{newer}/two")


@case
def in_two_versions_is_patched_in_either(play: Session) -> None:
    path = serve(play, _versions(play))
    newer = path.replace("/v1/", "/v2/")
    play.prepare(path, widget(play, spec={"a": "1"}))
    play.patch(f"{newer}/one", {"spec": {"a": "2"}})
    play.apply(f"{path}/one", widget(play, spec={"a": "3"}), "first", force=True)
    play.apply(f"{newer}/one", widget(play, version="v2", spec={"a": "4"}), "first")


@case
def in_a_version_that_is_not_served(play: Session) -> None:
    path = serve(play, _versions(play)).replace("/v1/", "/v3/")
    play.get(path)
    play.create(path, widget(play, version="v3", spec={"a": "1"}))


@case
def in_two_versions_is_watched_in_either(play: Session) -> None:
    path = serve(play, _versions(play))
    since = play.quietly("GET", path).body["metadata"]["resourceVersion"]
    play.prepare(path, widget(play, spec={"a": "1"}))
    play.watch(path.replace("/v1/", "/v2/"), 1, resourceVersion=since)


_FIELD = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties"


@case
def is_pruned_and_filled_anew_when_its_definition_changes(play: Session) -> None:
    path = define(play, properties(spec=properties(a=STRING, b=STRING)), own=True)
    play.prepare(path, widget(play, spec={"a": "1", "b": "2"}))
    change: list[Object] = [
        {"op": "remove", "path": f"{_FIELD}/b"},
        {"op": "add", "path": f"{_FIELD}/c", "value": STRING | {"default": "new", "maxLength": 3}},
    ]
    redefine(play, change, path, widget(play, "probe", spec={"c": "long"}), 422)
    play.get(f"{path}/one")
    play.patch(f"{path}/one", {"metadata": {"labels": {"a": "b"}}})


@case
def that_broke_no_rule_when_it_was_written_may_stay(play: Session) -> None:
    path = define(play, properties(spec=properties(a=STRING, b=STRING)), own=True)
    play.prepare(path, widget(play, spec={"a": "long", "b": "1"}))
    change = [{"op": "add", "path": f"{_FIELD}/a/maxLength", "value": 2}]
    redefine(play, change, path, widget(play, "probe", spec={"a": "long"}), 422)
    play.patch(f"{path}/one", {"metadata": {"labels": {"a": "b"}}})
    play.patch(f"{path}/one", {"spec": {"b": "2"}})
    play.patch(f"{path}/one", {"spec": {"a": "other"}})
    play.patch(f"{path}/one", {"spec": {"a": "ok"}})
    play.patch(f"{path}/one", {"spec": {"a": "long"}})
