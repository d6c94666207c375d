"""Validation rules in CEL: what they see, and how their errors read."""

from __future__ import annotations

from typing import Any

from tests.conformance.case import case, each
from tests.conformance.samples import DEFINITIONS, INTEGER, STRING, define, definition, properties, redefine, widget
from tests.conformance.session import Object, Session


def _rule(rule: str, message: str = "", **more: Any) -> Object:
    return {"rule": rule, **({"message": message} if message else {}), **more}


def _ruled(schema: Object, *rules: Object) -> Object:
    return schema | {"x-kubernetes-validations": list(rules)}


_SPEC = _ruled(
    properties(
        min=INTEGER,
        max=INTEGER,
        fixed=_ruled(STRING, _rule("self == oldSelf", "fixed is immutable")),
        amount=_ruled(STRING | {"maxLength": 20}, _rule("isQuantity(self)")),
        names=_ruled(
            {"type": "array", "maxItems": 10, "items": STRING | {"maxLength": 10}},
            _rule("self.all(x, x.startsWith('a'))", messageExpression="self.size() > 3 ? 'many bad' : 'few bad'"),
        ),
        banned=_ruled(STRING, _rule("self != 'x'", "no x", reason="FieldValueForbidden")),
        pair=_ruled(properties(a=STRING, b=STRING), _rule("self.a != self.b", fieldPath=".b")),
        since=_ruled(STRING | {"format": "date-time"}, _rule("self > timestamp('2010-01-01T00:00:00Z')", "too old")),
        wait=_ruled(STRING | {"format": "duration"}, _rule("self <= duration('1h')", "too long")),
        divisor=_ruled(INTEGER, _rule("10 / self > 1", "too large")),
        either=_ruled(
            {"x-kubernetes-int-or-string": True}, _rule("type(self) == int ? self < 5 : self.endsWith('%')", "wrong")
        ),
        counts=_ruled(
            {"type": "object", "maxProperties": 5, "additionalProperties": INTEGER},
            _rule("self.all(k, self[k] > 0)", "all must be positive"),
        ),
        first=_ruled(STRING, _rule("oldSelf.hasValue() || self == 'first'", "begins with first", optionalOldSelf=True)),
        growing={
            "type": "array",
            "maxItems": 5,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": properties(
                k=STRING | {"maxLength": 5}, v=_ruled(INTEGER, _rule("self >= oldSelf", "may only grow"))
            )
            | {"required": ["k"]},
        },
    ),
    _rule("!has(self.min) || !has(self.max) || self.min <= self.max", "min must not exceed max"),
    _rule("!has(oldSelf.fixed) || has(self.fixed)", "fixed may not be removed"),
)
_SCHEMA = _ruled(properties(spec=_SPEC), _rule("self.metadata.name.startsWith('o')", "the name must start with o"))


@each(
    {
        "kept": {"min": 1, "max": 2},
        "broken": {"min": 3, "max": 2},
        "not reached by a wrong type": {"min": "x", "max": 2},
        "without a message": {"amount": "lots"},
        "with a message that is computed": {"names": ["a", "b", "c"]},
        "with a reason": {"banned": "x"},
        "with a path": {"pair": {"a": "1", "b": "1"}},
        "that fails": {"pair": {"a": "1"}},
        "of times": {"since": "2009-01-01T00:00:00Z"},
        "of durations": {"wait": "2h"},
        "that divides by zero": {"divisor": 0},
        "of a number or a string": {"either": "5"},
        "of a map": {"counts": {"a": 1, "b": 0}},
        "of a first value": {"first": "second"},
        "that are several": {"min": 3, "max": 2, "banned": "x", "wait": "2h"},
    }
)
def on_create(session: Session, spec: Object) -> None:
    session.create(define(session, _SCHEMA), widget(session, spec=spec))


_TEXT = STRING | {"maxLength": 70}
_NUMBERS: Object = {"type": "array", "maxItems": 5, "items": INTEGER}
_LIBRARIES: dict[str, tuple[Object, Any]] = {
    "labels": (_ruled(_TEXT, _rule("!format.dns1123Label().validate(self).hasValue()", "no label")), "Not A Label"),
    "links": (
        _ruled(_TEXT, _rule("isURL(self) && url(self).getScheme() == 'https'", "no https")),
        "http://example.com",
    ),
    "networks": (_ruled(_TEXT, _rule("isCIDR(self)", "no network")), "10.0.0.0"),
    "addresses": (_ruled(_TEXT, _rule("isIP(self)", "no address")), "10.0.0"),
    "text": (_ruled(_TEXT, _rule("self.find('[0-9]+') == '42'", "no answer")), "abc 41"),
    "splitting": (_ruled(_TEXT, _rule("self.split('-').size() == 2", "no pair")), "a-b-c"),
    "sums": (_ruled(_NUMBERS, _rule("self.sum() < 5", "too much")), [2, 3]),
    "amounts": (_ruled(_TEXT, _rule("quantity(self).isLessThan(quantity('1Gi'))", "too much")), "2Gi"),
    "versions": (_ruled(_TEXT, _rule("isSemver(self)", "no version")), "one"),
}


@each(_LIBRARIES)
def library(session: Session, what: tuple[Object, Any]) -> None:
    schema, value = what
    answer = session.send_unrecorded("POST", DEFINITIONS, definition(session, properties(spec=properties(a=schema))))
    assert answer.status in (201, 422), answer.body
    path = f"{session.group}/v1/widgets"
    if answer.status == 201:
        session.until(lambda answer: answer.status == 200, path)
    session.create(path, widget(session, spec={"a": value}))
    session.send_unrecorded("DELETE", f"{DEFINITIONS}/widgets.{session.group}")


@case
def of_the_resource(session: Session) -> None:
    session.create(define(session, _SCHEMA), widget(session, "two", spec={}))


@each(
    {
        "fixed value changed": {"fixed": "b"},
        "fixed value removed": {"fixed": None},
        "other value changed": {"max": 5},
        "grown by key": {"growing": [{"k": "b", "v": 2}, {"k": "a", "v": 6}]},
        "shrunk by key": {"growing": [{"k": "b", "v": 2}, {"k": "a", "v": 4}]},
        "new key": {"growing": [{"k": "c", "v": 0}]},
        "second value": {"first": "second"},
    }
)
def on_update(session: Session, spec: Object) -> None:
    path = define(session, _SCHEMA)
    first: Object = {"fixed": "a", "first": "first", "growing": [{"k": "a", "v": 5}, {"k": "b", "v": 1}]}
    session.prepare(path, widget(session, spec=first))
    session.patch(f"{path}/one", {"spec": spec})


@case
def ratcheting_of_new_rules(session: Session) -> None:
    path = define(session, properties(spec=properties(a=STRING, b=STRING)), own=True)
    session.prepare(path, widget(session, spec={"a": "bad", "b": "1"}))
    rule = {
        "op": "add",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/x-kubernetes-validations",
        "value": [_rule("self != 'bad'", "no bad")],
    }
    redefine(session, [rule], path, widget(session, "probe", spec={"a": "bad"}), 422)
    session.patch(f"{path}/one", {"spec": {"b": "2"}})
    session.patch(f"{path}/one", {"spec": {"a": "good"}})
    session.patch(f"{path}/one", {"spec": {"a": "bad"}})
