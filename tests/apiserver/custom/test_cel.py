"""Evaluation of rules beyond the recorded cases: errors reject, and cached results are right and bounded."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.custom.recorded import custom_object

from springtide.apiserver.custom import compile_schema
from springtide.apiserver.custom.cel import rules as book
from springtide.apiserver.custom.cel.engine import CelCompileError, program
from springtide.apiserver.custom.cel.expressions import field_paths, uses_variable
from springtide.apiserver.custom.cel.values import escape, unescape


def validate_by(spec: Any, rule: str, old: Any = None, **more: Any) -> list[str]:
    """Validate a spec of integers by one rule."""
    fields = {name: {"type": "integer"} for name in ("a", "b")} | {"l": {"type": "array", "items": {"type": "integer"}}}
    rules = [{"rule": rule, "message": "broken", **more}]
    schema = {"type": "object", "properties": fields, "x-kubernetes-validations": rules}
    compiled = compile_schema({"type": "object", "properties": {"spec": schema}})
    causes = compiled.validate(custom_object(spec), custom_object(old) if old is not None else None)
    return [f"{cause.field}: {cause.message}" for cause in causes]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param("self.a", 'rule must evaluate to a bool, not to int, evaluating rule: broken', id="not a boolean"),
        pytest.param("self.b", "no such key: b evaluating rule: broken", id="an error rejects"),
        pytest.param("self.b == 1 || self.a == 2", "no such key: b evaluating rule: broken", id="an error or false"),
        pytest.param("self.a.size() > 0",
            "'no such overload': call arguments did not match a supported operator, function or macro signature for "
            "rule: broken", id="no matching overload"),
        pytest.param("malformed(", "rule compile error: compilation failed: ERROR: ", id="syntax error"),
        pytest.param("quantity(string(self.a)).isLessThan({'x': 1})",
            "'no such overload': call arguments did not match a supported operator, function or macro signature for "
            "rule: broken", id="a map that is not a quantity"),
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_evaluated_rejects(rule: str, expected: str) -> None:
    (found,) = validate_by({"a": 1}, rule)
    assert found.startswith(f'spec: Invalid value: "object": {expected}')


def test_a_rule_that_exceeds_the_evaluation_limit_rejects() -> None:
    (found,) = validate_by({"l": [*range(20000)]}, "self.l.all(x, x >= 0)")
    assert "no further validation rules will be run due to call cost exceeds limit for rule: broken" in found


def test_true_wins_over_an_error_in_a_disjunction() -> None:
    assert validate_by({"a": 1}, "self.b == 1 || self.a == 1") == []


def test_causes_are_in_the_order_of_the_schema() -> None:
    fields = {
        name: {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}, {"rule": "self > 2"}]}
        for name in ("b", "a")
    }
    schema = compile_schema({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}})
    causes = schema.validate(custom_object({"a": 0, "b": 0}), None)
    assert [(cause.field, cause.message) for cause in causes] == [
        (f"spec.{name}", f"Invalid value: 0: failed rule: self > {bound}") for name in ("b", "a") for bound in (1, 2)
    ]


def test_the_cache_of_passed_values_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "_MAX_REMEMBERED", 3)
    field = {"type": "integer", "x-kubernetes-validations": [{"rule": "self % 5 != 0 && (self < 100 || oldSelf < 0)"}]}
    state = {"type": "integer", "x-kubernetes-validations": [{"rule": "self % 5 != 0"}]}
    properties = {"a": state, "t": field}
    schema = compile_schema({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
    for number in (1, 2, 3, 4, 5, 6, 1, 5, 10, 2):
        expected = 0 if number % 5 else 2
        assert (
            len(schema.validate(custom_object({"a": number, "t": number}), custom_object({"a": -1, "t": 0})))
            == expected
        )


def test_the_cache_tells_1_from_the_string() -> None:
    field = {"x-kubernetes-int-or-string": True, "x-kubernetes-validations": [{"rule": "type(self) == int"}]}
    schema = compile_schema({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": field}}}})
    assert schema.validate(custom_object({"a": 1}), None) == ()
    assert schema.validate(custom_object({"a": "1"}), None) != ()


@pytest.mark.parametrize(
    ("name", "written"),
    [
        pytest.param("plain", "plain", id="plain"),
        pytest.param("namespace", "__namespace__", id="reserved"),
        pytest.param("a-b.c/d", "a__dash__b__dot__c__slash__d", id="special characters"),
        pytest.param("a__b", "a__underscores__b", id="underscores"),
        pytest.param("a_b", "a_b", id="one underscore"),
        pytest.param("x y", "x y", id="cannot be written"),
    ],
)
def test_field_names_are_escaped_and_unescaped(name: str, written: str) -> None:
    assert escape(name) == written
    assert unescape(written) == name


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param("self.a == oldSelf.a", True, id="plain"),
        pytest.param("self.a == 'oldSelf'", False, id="in a string"),
        pytest.param("self.oldSelf == 1", False, id="a field of that name"),
        pytest.param("self.a == 1 // oldSelf", False, id="in a comment"),
        pytest.param("[oldSelf].size() == 1", True, id="in a list"),
        pytest.param("self.a == r'\\' && oldSelf.a == 1", True, id="after a raw string"),
        pytest.param("self.a == r'\\' && self.b == 'oldSelf'", False, id="in a string after a raw one"),
        pytest.param("self.a == '\\' oldSelf'", False, id="after an escaped quote"),
        pytest.param('self.a == """\' oldSelf"""', False, id="in a long string"),
    ],
)
def test_whether_a_rule_uses_the_old_value(rule: str, expected: bool) -> None:
    assert uses_variable(rule, "oldSelf") is expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param("self.a.b > 1", [("self", ("a", "b"), False)], id="fields"),
        pytest.param("has(self.a) && self.a.size() > 1", [("self", ("a",), True), ("self", ("a",), False)], id="calls"),
        pytest.param("self.?a.orValue(1) == 1", [("self", (), False)], id="optional"),
        pytest.param("self == oldSelf", [("self", (), False), ("oldSelf", (), False)], id="the variable alone"),
        pytest.param("self.a[0].b == 1", [("self", ("a",), False)], id="up to an index"),
    ],
)
def test_field_paths_of_a_rule(rule: str, expected: list[Any]) -> None:
    assert [(path.root, path.names, path.tested) for path in field_paths(rule)] == expected


def test_a_rule_is_compiled_once_for_all_schemas() -> None:
    assert program("self.a > 12345") is program("self.a > 12345")
    with pytest.raises(CelCompileError):
        program("self.")
