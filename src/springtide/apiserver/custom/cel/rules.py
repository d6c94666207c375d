"""The rules of a schema as a tree of their own, and their evaluation.

A rule gives the same result for the same value (or pair of new and old value), and controllers write the same specs
again and again. So each node remembers the values that passed, there and below. Messages are built in a second, slower
walk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import msgspec

from springtide.apiserver import field_errors
from springtide.apiserver.custom.cel.engine import (
    OLD_SELF,
    CelCompileError,
    CelError,
    CelLimitError,
    CelProgram,
    RuleVariables,
    program,
)
from springtide.apiserver.custom.cel.expressions import uses_variable, with_format_types
from springtide.apiserver.custom.cel.values import Conversion, conversion, in_new_order
from springtide.apiserver.custom.correlation import CorrelatedValue
from springtide.apiserver.custom.structural_schema import SchemaNode, ValidationRule
from springtide.cluster.errors import StatusCause

_MAX_REMEMBERED: Final = 512
_MAX_MESSAGE_BYTES: Final = 5 * 1024
_encode: Final = msgspec.json.Encoder().encode


class CompiledCelRule:
    """A rule and its schema node, compiled on first use."""

    def __init__(self, rule: ValidationRule, node: SchemaNode, *, root: bool) -> None:
        self.rule = rule
        self.uses_old = uses_variable(rule.rule, OLD_SELF)
        self.optional = rule.optional_old_self is True
        self._node = node
        self._root = root

    @cached_property
    def program(self) -> CelProgram:
        """The compiled rule."""
        return program(with_format_types(self.rule.rule, self._node, root=self._root), optional_old_self=self.optional)

    @cached_property
    def message(self) -> CelProgram:
        """The compiled message expression."""
        text = with_format_types(self.rule.message_expression, self._node, root=self._root)
        return program(text, optional_old_self=self.optional)

    def failure(self, value: Any, scope: RuleVariables, node: SchemaNode, path: str) -> tuple[StatusCause | None, bool]:
        """Evaluate the rule. Return the cause, if it fails, and whether an unchanged value may keep violating it."""
        rule = self.rule
        try:
            if self.program.evaluate(scope):
                return None, True
        except CelCompileError as error:
            return field_errors.invalid(path, node.type, f"rule compile error: compilation failed: {error}"), False
        except CelLimitError as error:
            message = f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule:"
            return field_errors.invalid(path, node.type, f"{message} {rule.shown}"), False
        except CelError as error:
            return field_errors.invalid(path, node.type, _failed(str(error), rule)), False
        detail = self._detail(scope)
        where = field_under(path, rule.field_path)
        shown = field_errors.OMITTED if node.type in ("object", "array") else value
        match rule.reason:
            case "FieldValueForbidden":
                return field_errors.forbidden(where, detail), True
            case "FieldValueRequired":
                return field_errors.required(where, detail), True
            case "FieldValueDuplicate":
                return field_errors.duplicate(where, shown), True
        return field_errors.invalid(where, shown, detail), True

    def _detail(self, scope: RuleVariables) -> str:
        if self.rule.message_expression:
            text = (self.message.evaluate_string(scope) or "").strip()
            if text and "\n" not in text and len(text.encode()) <= _MAX_MESSAGE_BYTES:
                return text
        return self.rule.message.strip() or f"failed rule: {self.rule.shown}"


def _failed(message: str, rule: ValidationRule) -> str:
    if message.startswith("no such overload"):
        signature = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{message}': {signature}: {rule.shown}"
    return f"{message} evaluating rule: {rule.shown}"


def field_under(path: str, field_path: str) -> str:
    """Return the path of a cause: that of the value, or of the field below it that the rule names."""
    below = field_path.strip().removeprefix(".").replace("['", "[").replace("']", "]")
    return f"{path}.{below}" if path and below else path or below


@dataclass(slots=True, eq=False)
class RuleNode:
    """A schema node that has rules, there or below."""

    node: SchemaNode
    rules: tuple[CompiledCelRule, ...]
    convert: Conversion | None
    reordering: bool
    """Whether values can contain lists whose order does not matter."""
    fields: dict[str, RuleNode]
    values: RuleNode | None
    items: RuleNode | None
    has_plain_rules: bool
    """Whether there is a rule, here or below, that does not use the old value."""
    transitions: bool
    """Whether there is a transition rule, here or below: one that uses the old value."""
    optional: bool
    """Whether there is a transition rule with `optionalOldSelf`, here or below."""
    root: bool
    """Whether this is the root of a resource."""
    _passed: set[Any] = field(default_factory=set)
    """The values, and pairs of new and old value, that passed all rules here and below."""

    def passes(self, value: Any) -> bool:
        """Whether a value passes all rules that do not use the old value."""
        if value is None or not self.has_plain_rules:
            return True
        key = self._key(value)
        if key in self._passed:
            return True
        passes = self._passes_here(value) and all(below.passes(part) for below, part, _ in self._below(value))
        if passes:
            self._remember(key)
        return passes

    def _passes_here(self, value: Any) -> bool:
        if not self.rules:
            return True
        scope = self._scope(value, None)
        try:
            return all(rule.program.evaluate(scope) for rule in self.rules if not rule.uses_old)
        except CelError:
            return False

    def failures(
        self,
        value: Any,
        path: str,
        pair: CorrelatedValue | None,
        nearest: CorrelatedValue | None,
        *,
        only_transitions: bool,
    ) -> list[StatusCause]:
        """Return the causes of all failed rules; `nearest` is the closest value above whose old value is known."""
        if value is None or (only_transitions and not (self.optional if pair is None else self.transitions)):
            return []
        old = pair.old if pair is not None else None
        key = (self._key(value), self._key(old)) if only_transitions and old is not None else None
        if key in self._passed:
            return []
        found = self._failures_here(value, path, pair, nearest, only_transitions=only_transitions)
        for below, part, step in self._below(value):
            before, above = _follow(step, pair, nearest)
            where = _extended(path, step, declared=step in self.fields)
            found += below.failures(part, where, before, above, only_transitions=only_transitions)
        if key is not None and not found:
            self._remember(key)
        return found

    def _failures_here(
        self,
        value: Any,
        path: str,
        pair: CorrelatedValue | None,
        nearest: CorrelatedValue | None,
        *,
        only_transitions: bool,
    ) -> list[StatusCause]:
        old = pair.old if pair is not None else None
        tried = [
            rule
            for rule in self.rules
            if (rule.uses_old or not only_transitions) and (not rule.uses_old or old is not None or rule.optional)
        ]
        if not tried:
            return []
        found: list[StatusCause] = []
        scope = self._scope(value, old)
        known = pair or nearest
        for rule in tried:
            cause, may_stay = rule.failure(value, scope, self.node, path)
            if cause is None or (may_stay and not rule.uses_old and known is not None and known.unchanged):
                continue
            found.append(cause)
        return found

    def _key(self, value: Any) -> str | bytes | None:
        """The key under which a value is remembered. Whole resources are not: no two are equal."""
        if self.root:
            return None
        return value if value.__class__ is str else _encode(value)

    def _remember(self, key: Any) -> None:
        if self.root:
            return
        if len(self._passed) >= _MAX_REMEMBERED:
            self._passed.clear()
        self._passed.add(key)

    def _scope(self, value: Any, old: Any) -> RuleVariables:
        if old is not None and self.reordering:
            old = in_new_order(old, value, self.node)
        if self.convert is not None:
            value, old = self.convert(value), self.convert(old) if old is not None else None
        return RuleVariables(value, old)

    def _below(self, value: Any) -> Iterator[tuple[RuleNode, Any, str | int]]:
        if value.__class__ is dict:
            if self.values is not None:
                for name, part in value.items():
                    yield self.values, part, name
            for name, below in self.fields.items():
                if name in value:
                    yield below, value[name], name
        elif value.__class__ is list and self.items is not None:
            for index, part in enumerate(value):
                yield self.items, part, index


def _follow(
    step: str | int, pair: CorrelatedValue | None, nearest: CorrelatedValue | None
) -> tuple[CorrelatedValue | None, CorrelatedValue | None]:
    if pair is None:
        return None, nearest
    if nearest is None and step in ("apiVersion", "kind"):
        return None, None
    return pair.field(step) if isinstance(step, str) else pair.item(step), pair


def _extended(path: str, step: str | int, *, declared: bool) -> str:
    if not declared:
        return f"{path}[{step}]"
    return f"{path}.{step}" if path else str(step)


def compile_rules(node: SchemaNode, *, root: bool = False) -> RuleNode | None:
    """Compile the rules of a schema; None if there are none."""
    resource = root or node.embedded
    rules = tuple(CompiledCelRule(rule, node, root=resource) for rule in node.rules if rule.rule.strip())
    fields = {name: below for name, part in node.properties.items() if (below := compile_rules(part)) is not None}
    values = compile_rules(node.values) if node.values is not None else None
    items = compile_rules(node.items) if node.items is not None else None
    parts = [*fields.values(), *(each for each in (values, items) if each is not None)]
    if not rules and not parts:
        return None
    return RuleNode(
        node=node,
        rules=rules,
        convert=conversion(node, resource=root) if rules else None,
        reordering=node.unique,
        fields=fields,
        values=values,
        items=items,
        has_plain_rules=any(not rule.uses_old for rule in rules) or any(each.has_plain_rules for each in parts),
        transitions=any(rule.uses_old for rule in rules) or any(each.transitions for each in parts),
        optional=any(rule.uses_old and rule.optional for rule in rules) or any(each.optional for each in parts),
        root=root,
    )


def evaluate_rules(rules: RuleNode, value: Any, old: Any) -> tuple[StatusCause, ...]:
    """Return the causes of all failed rules, given the stored value."""
    passes = rules.passes(value)
    pair = None if old is None else CorrelatedValue(value, old, rules.node)
    return tuple(rules.failures(value, "", pair, None, only_transitions=passes))
