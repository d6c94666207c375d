"""Validation of the schemas in a CustomResourceDefinition.

The server checks what it relies on itself (patterns and rules that compile) and the mistakes that would pass unnoticed
until an object is written: missing types, defaults that their own schema rejects, and rules that name unknown fields.
A kube-apiserver also rejects schemas that are not structural, keywords that contradict each other, and rules whose
estimated cost is too high.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from springtide.apiserver import field_errors
from springtide.apiserver.custom.cel import compile_rules, evaluate_rules
from springtide.apiserver.custom.cel.engine import CelCompileError
from springtide.apiserver.custom.cel.expressions import undefined_field
from springtide.apiserver.custom.cel.rules import CompiledCelRule
from springtide.apiserver.custom.correlation import same_json
from springtide.apiserver.custom.defaulting import copy_value, prune, validate_embedded
from springtide.apiserver.custom.formats import GoPatternError, compile_go, is_linear
from springtide.apiserver.custom.structural_schema import ABSENT, SchemaNode, ValidationRule, read_schema
from springtide.apiserver.custom.validation import validate
from springtide.cluster.errors import StatusCause

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_MISSING_TYPE: Final = {
    "root": "must not be empty at the root",
    "items": "must not be empty for specified array items",
    "fields": "must not be empty for specified object fields",
}


def validate_schema(schema: Mapping[str, Any], path: str) -> Iterator[StatusCause]:
    """Yield what is wrong with a schema. Defaults and rules are only checked where types and patterns are right."""
    node = read_schema(schema)
    causes = [*_validate_types(node, path, "root"), *_validate_patterns(node, path)]
    yield from causes
    if causes:
        return
    defaults = [*_validate_defaults(node, path)]
    yield from defaults
    if not defaults:
        yield from _validate_rules(node, path, resource=True)


def _validate_types(node: SchemaNode, path: str, place: str) -> Iterator[StatusCause]:
    if place == "root" and node.type and node.type != "object":
        yield field_errors.invalid(f"{path}.type", node.type, "must be object at the root")
    elif not (node.type or node.int_or_string or node.open):
        yield field_errors.required(f"{path}.type", _MISSING_TYPE[place])
    if node.type and node.type not in _TYPES:
        yield field_errors.unsupported(f"{path}.type", node.type, *_TYPES)
    if node.type == "array" and node.items is None:
        yield field_errors.required(f"{path}.items", "must be specified")
    for step, child in _children(node):
        yield from _validate_types(child, f"{path}.{step}", "items" if step == "items" else "fields")


def _validate_patterns(node: SchemaNode, path: str) -> Iterator[StatusCause]:
    expression = node.checks.get("pattern")
    if expression and not is_linear(expression):
        try:
            compile_go(expression)
        except GoPatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            yield field_errors.invalid(f"{path}.pattern", expression, detail)
    for step, child in _children(node):
        yield from _validate_patterns(child, f"{path}.{step}")
    for keyword, branches in (("allOf", node.all_of), ("anyOf", node.any_of), ("oneOf", node.one_of)):
        for index, branch in enumerate(branches):
            yield from _validate_patterns(branch, f"{path}.{keyword}[{index}]")
    if node.none_of is not None:
        yield from _validate_patterns(node.none_of, f"{path}.not")


def _validate_defaults(node: SchemaNode, path: str) -> Iterator[StatusCause]:
    if node.default is not ABSENT:
        yield from _validate_default(node, f"{path}.default")
    if node.items is not None:
        yield from _validate_defaults(node.items, f"{path}.items")
    for name, child in node.properties.items():
        yield from _validate_defaults(child, f"{path}.properties[{name}]")


def _validate_default(node: SchemaNode, path: str) -> Iterator[StatusCause]:
    value = node.default
    pruned = copy_value([value])
    prune({"default": pruned[0]}, SchemaNode(properties={"default": node}))
    if not same_json(pruned[0], value):
        yield field_errors.invalid(path, value, "must not have unknown fields")
    causes = [*validate_embedded(value, node), *validate(node, value)]
    rules = compile_rules(node) if not causes else None
    if rules is not None:
        causes += evaluate_rules(rules, value, value) or evaluate_rules(rules, value, None)
    for cause in causes:
        below = "" if cause.field == field_errors.NO_PATH else cause.field
        field = f"{path}{below}" if below.startswith("[") else f"{path}.{below}" if below else path
        yield replace(cause, field=field)


def _validate_rules(node: SchemaNode, path: str, *, resource: bool) -> Iterator[StatusCause]:
    for index, rule in enumerate(node.rules):
        yield from _validate_rule(rule, node, f"{path}.x-kubernetes-validations[{index}]", resource=resource)
    for step, child in _children(node):
        yield from _validate_rules(child, f"{path}.{step}", resource=child.embedded)


def _validate_rule(rule: ValidationRule, node: SchemaNode, path: str, *, resource: bool) -> Iterator[StatusCause]:
    if not rule.rule.strip():
        yield field_errors.required(f"{path}.rule", "rule is not specified")
        return
    compiled = CompiledCelRule(rule, node, root=resource)
    shown = _go_struct(rule)
    try:
        returns_bool = compiled.program.may_return("BOOL")
    except CelCompileError as error:
        yield field_errors.invalid(f"{path}.rule", shown, f"compilation failed: {error}")
        return
    unknown = "" if compiled.optional else undefined_field(rule.rule, node, root=resource)
    if unknown:
        yield field_errors.invalid(f"{path}.rule", shown, f"compilation failed: {unknown}")
    elif not returns_bool:
        yield field_errors.invalid(f"{path}.rule", shown, "cel expression must evaluate to a bool")
    if rule.message_expression:
        here = f"{path}.messageExpression"
        try:
            if not compiled.message.may_return("STRING"):
                yield field_errors.invalid(here, shown, "messageExpression must evaluate to a string")
        except CelCompileError as error:
            yield field_errors.invalid(here, shown, f"messageExpression compilation failed: {error}")


def _go_struct(rule: ValidationRule) -> field_errors.Verbatim:
    """Write a rule as the messages of a kube-apiserver show it: as the Go struct that holds it."""
    fields = {
        "Rule": rule.rule,
        "Message": rule.message,
        "MessageExpression": rule.message_expression,
        "Reason": rule.reason or None,
        "FieldPath": rule.field_path,
        "OptionalOldSelf": rule.optional_old_self,
    }
    return field_errors.Verbatim(field_errors.compact_json(fields, sort_keys=False))


def _children(node: SchemaNode) -> Iterator[tuple[str, SchemaNode]]:
    """Yield the schemas of fields, map values and list entries, each with its step in a path."""
    yield from ((f"properties[{name}]", child) for name, child in node.properties.items())
    if node.values is not None:
        yield "additionalProperties", node.values
    if node.items is not None:
        yield "items", node.items
