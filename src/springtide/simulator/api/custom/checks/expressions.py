"""The rules of a schema must compile, and must be able to do what they say.

The engine knows no types of fields, so a rule whose result is no boolean is found where it is a literal, a call whose
result is known, or a path; what operators make of fields is not followed. The cost of rules is not estimated.
"""

from __future__ import annotations

from collections.abc import Iterator

from springtide.cluster.errors import Cause
from springtide.simulator.api.custom import wording
from springtide.simulator.api.custom.places import Place, Rule
from springtide.simulator.api.custom.rules.engine import OLD_SELF, CompileError, Program, program
from springtide.simulator.api.custom.rules.text import (
    broken_pattern,
    mentions,
    plain_type,
    typed,
    undeclared,
    undefined_field,
)


def judge_expressions(place: Place, path: str, *, resource: bool = False, loose: str = "") -> Iterator[Cause]:
    """Find the rules that the server would refuse; `loose` is the list above whose entries have no old values."""
    for index, rule in enumerate(place.rules):
        yield from _judge(rule, place, f"{path}.x-kubernetes-validations[{index}]", resource=resource, loose=loose)
    for name, part in place.properties.items():
        yield from judge_expressions(part, f"{path}.properties[{name}]", resource=part.embedded, loose=loose)
    if place.values is not None:
        below = f"{path}.additionalProperties"
        yield from judge_expressions(place.values, below, resource=place.values.embedded, loose=loose)
    if place.items is not None:
        apart = loose or ("" if place.list_type == "map" else path)
        yield from judge_expressions(place.items, f"{path}.items", resource=place.items.embedded, loose=apart)


def _judge(rule: Rule, place: Place, path: str, *, resource: bool, loose: str) -> Iterator[Cause]:
    try:
        compiled = _compile(rule.rule, rule, place, resource=resource)
    except CompileError as error:
        yield wording.invalid(f"{path}.rule", _written(rule), f"compilation failed: {error}")
        return
    plain = plain_type(rule.rule, place, root=resource)
    if not compiled.may_return("BOOL") or plain not in ("", "boolean"):
        yield wording.invalid(f"{path}.rule", _written(rule), "cel expression must evaluate to a bool")
    if rule.message_expression:
        yield from _judge_message(rule, place, f"{path}.messageExpression", resource=resource)
    if rule.field_path and not is_path(rule.field_path, place):
        yield wording.invalid(f"{path}.fieldPath", rule.field_path, "must be a valid path")
    if mentions(rule.rule, OLD_SELF):
        if loose:
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {loose}"
            yield wording.invalid(f"{path}.rule", rule.rule, detail)
    elif rule.optional_old_self is not None:
        detail = "may not be set if oldSelf is not used in rule"
        yield wording.invalid(f"{path}.optionalOldSelf", rule.optional_old_self, detail)


def _judge_message(rule: Rule, place: Place, path: str, *, resource: bool) -> Iterator[Cause]:
    try:
        compiled = _compile(rule.message_expression, rule, place, resource=resource)
    except CompileError as error:
        yield wording.invalid(path, _written(rule), f"messageExpression compilation failed: {error}")
        return
    if not compiled.may_return("STRING"):
        yield wording.invalid(path, _written(rule), "messageExpression must evaluate to a string")


def _compile(text: str, rule: Rule, place: Place, *, resource: bool) -> Program:
    optional = rule.optional_old_self is True
    compiled = program(typed(text, place, root=resource), optional_old_self=optional)
    unknown = (
        undeclared(text, "cel")
        or broken_pattern(text)
        or ("" if optional else undefined_field(text, place, root=resource))
    )
    if unknown:
        raise CompileError(unknown)
    return compiled


def is_path(written: str, place: Place) -> bool:
    """Tell whether a field path leads to a field of the schema."""
    here: Place | None = place
    for step in written.strip().replace("['", ".").replace("']", "").removeprefix(".").split("."):
        here = here.child(step) if here is not None else None
    return here is not None and written.strip().startswith((".", "["))


def _written(rule: Rule) -> wording.Verbatim:
    fields = {
        "Rule": rule.rule,
        "Message": rule.message,
        "MessageExpression": rule.message_expression,
        "Reason": rule.reason or None,
        "FieldPath": rule.field_path,
        "OptionalOldSelf": rule.optional_old_self,
    }
    return wording.Verbatim(wording.compact(fields, sort_keys=False))
