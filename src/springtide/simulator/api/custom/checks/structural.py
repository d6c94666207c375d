"""Structural schemas: every value has one type, found without looking into `allOf`, `anyOf`, `oneOf` or `not`.

Pruning and defaulting stand on it: they follow the structure, and what stands under the junctors may only judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from springtide.cluster.errors import Cause
from springtide.simulator.api.custom import wording
from springtide.simulator.api.custom.patterns import PatternError, compile_go, is_linear

_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_WHERE: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_ONLY_IN_STRUCTURE: Final = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}
_IMPLICIT: Final = "must not specify anything other than name and generateName, but metadata is implicitly specified"


def judge_structure(written: Mapping[str, Any], path: str) -> list[Cause]:
    """Find what keeps a schema from being structural."""
    causes = [*_judge(written, "root", path), *_judge_completeness(written, written, path, path)]
    return sorted(causes, key=lambda cause: (cause.field, cause.message))


def _judge(written: Mapping[str, Any], level: str, path: str) -> Iterator[Cause]:
    kind = written.get("type") or ""
    items = written.get("items")
    if kind == "array" and items is None:
        yield wording.required(f"{path}.items", "must be specified")
    if isinstance(items, Mapping):
        yield from _judge(items, "item", f"{path}.items")
    for name, part in (written.get("properties") or {}).items():
        yield from _judge(part, "field", f"{path}.properties[{name}]")
    additional = written.get("additionalProperties")
    if additional is not None and level == "root":
        yield wording.forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(additional, Mapping):
        yield from _judge(additional, "field", f"{path}.additionalProperties")
    yield from _judge_extensions(written, path)
    yield from _judge_values(written, path)
    yield from _judge_type(written, kind, level, path)
    yield from _judge_resource(written, level, path)


def _judge_extensions(written: Mapping[str, Any], path: str) -> Iterator[Cause]:
    if written.get("x-kubernetes-int-or-string") is True:
        for name in ("preserve-unknown-fields", "embedded-resource"):
            if written.get(f"x-kubernetes-{name}") is True:
                detail = "must be false if x-kubernetes-int-or-string is true"
                yield wording.invalid(f"{path}.x-kubernetes-{name}", True, detail)


def _judge_type(written: Mapping[str, Any], kind: str, level: str, path: str) -> Iterator[Cause]:
    embedded = written.get("x-kubernetes-embedded-resource") is True
    untyped = written.get("x-kubernetes-int-or-string") or written.get("x-kubernetes-preserve-unknown-fields")
    if embedded and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield wording.invalid(f"{path}.type", kind, detail) if kind else wording.required(f"{path}.type", detail)
    elif not kind and not untyped:
        yield wording.required(f"{path}.type", _WHERE[level])
    if embedded and written.get("additionalProperties") is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        yield wording.forbidden(f"{path}.additionalProperties", detail)
    if level == "root" and kind and kind != "object":
        yield wording.invalid(f"{path}.type", kind, "must be object at the root")


def _judge_resource(written: Mapping[str, Any], level: str, path: str) -> Iterator[Cause]:
    embedded = written.get("x-kubernetes-embedded-resource") is True
    properties = written.get("properties") or {}
    if level == "root" or embedded:
        for name in ("kind", "apiVersion"):
            if name in properties and properties[name].get("type") != "string":
                given = properties[name].get("type") or ""
                yield wording.invalid(f"{path}.properties[{name}].type", given, "must be string")
        if "metadata" in properties and properties["metadata"].get("type") != "object":
            given = properties["metadata"].get("type") or ""
            yield wording.invalid(f"{path}.properties[metadata].type", given, "must be object")
    if level == "root" and "metadata" in properties:
        metadata = {name: part for name, part in properties["metadata"].items() if name not in ("type", "description")}
        fields = metadata.pop("properties", {})
        if metadata or not {*fields} <= {"name", "generateName"}:
            yield wording.forbidden(f"{path}.properties[metadata]", _IMPLICIT)
    if embedded and not written.get("x-kubernetes-preserve-unknown-fields") and not properties:
        detail = "must not be empty if x-kubernetes-embedded-resource is true without"
        yield wording.required(f"{path}.properties", f"{detail} x-kubernetes-preserve-unknown-fields")


def _judge_values(written: Mapping[str, Any], path: str, *, first_of_all: bool = False) -> Iterator[Cause]:
    """Judge the junctors of a schema; the two patterns that mean int-or-string may name types."""
    any_of, all_of = written.get("anyOf") or [], written.get("allOf") or []
    if any_of != _INT_OR_STRING:
        for index, part in enumerate(any_of):
            yield from _judge_nested(part, f"{path}.anyOf[{index}]")
    pattern = bool(all_of) and not first_of_all and all_of[0].get("anyOf") == _INT_OR_STRING
    for index, part in enumerate(all_of):
        yield from _judge_nested(part, f"{path}.allOf[{index}]", int_or_string=pattern and index == 0)
    for index, part in enumerate(written.get("oneOf") or []):
        yield from _judge_nested(part, f"{path}.oneOf[{index}]")
    if written.get("not") is not None:
        yield from _judge_nested(written["not"], f"{path}.not")
    expression = written.get("pattern")
    if expression and not is_linear(expression):
        try:
            compile_go(expression)
        except PatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            yield wording.invalid(f"{path}.pattern", expression, detail)


def _judge_nested(written: Mapping[str, Any], path: str, *, int_or_string: bool = False) -> Iterator[Cause]:
    inner = {name: part for name, part in written.items() if name != "anyOf"} if int_or_string else written
    yield from _judge_values(inner, path, first_of_all=True)
    if isinstance(written.get("items"), Mapping):
        yield from _judge_nested(written["items"], f"{path}.items")
    for name, part in (written.get("properties") or {}).items():
        yield from _judge_nested(part, f"{path}.properties[{name}]")
    for keyword, detail in _ONLY_IN_STRUCTURE.items():
        if written.get(keyword) not in (None, "", False, [], ()) or (keyword == "additionalProperties" in written):
            yield wording.forbidden(f"{path}.{keyword}", detail)
    if "metadata" in (written.get("properties") or {}):
        yield wording.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _judge_completeness(
    nested: Mapping[str, Any], structure: Mapping[str, Any] | None, path: str, source: str
) -> Iterator[Cause]:
    """Whatever a junctor judges must be there in the structure too."""
    parts = [(f"{source}.not", nested["not"])] if nested.get("not") is not None else []
    for junctor in ("allOf", "anyOf", "oneOf"):
        parts += [(f"{source}.{junctor}[{index}]", part) for index, part in enumerate(nested.get(junctor) or [])]
    for where, part in parts:
        yield from _judge_nested_completeness(part, structure, path, where)


def _judge_nested_completeness(
    nested: Mapping[str, Any], structure: Mapping[str, Any] | None, path: str, source: str
) -> Iterator[Cause]:
    if structure is None:
        yield wording.required(path, f"because it is defined in {source}")
        return
    yield from _judge_completeness(nested, structure, path, source)
    if isinstance(nested.get("items"), Mapping):
        yield from _judge_nested_completeness(
            nested["items"], structure.get("items"), f"{path}.items", f"{source}.items"
        )
    known = structure.get("properties") or {}
    for name, part in (nested.get("properties") or {}).items():
        step = f"properties[{name}]"
        yield from _judge_nested_completeness(part, known.get(name), f"{path}.{step}", f"{source}.{step}")
