"""Label and field selectors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.objects import CONFIG_MAPS, NODES, PODS, REPLICA_SETS

from springtide.apiserver.selectors import (
    NOTHING,
    LabelOperator,
    LabelRequirement,
    LabelSelector,
    all_hold,
    parse_fields,
    parse_labels,
    selector_of,
)
from springtide.cluster.errors import BadRequest
from springtide.cluster.resources import Object, Resource

_MEANT = [
    pytest.param("", {}, True, id="everything"),
    pytest.param("a=b", {"a": "b"}, True, id="equal"),
    pytest.param("a==b", {"a": "b"}, True, id="double equals sign"),
    pytest.param("a = b , c", {"a": "b", "c": ""}, True, id="with spaces"),
    pytest.param("a=b", {"a": "c"}, False, id="not equal"),
    pytest.param("a=b", {}, False, id="equal to an absent label"),
    pytest.param("a=", {"a": ""}, True, id="empty"),
    pytest.param("a=,b", {"a": "", "b": "x"}, True, id="empty, and more"),
    pytest.param("a!=b", {"a": "c"}, True, id="unequal"),
    pytest.param("a!=b", {}, True, id="unequal to an absent label"),
    pytest.param("a!=b", {"a": "b"}, False, id="unequal to the value"),
    pytest.param("a in (b,c)", {"a": "c"}, True, id="in"),
    pytest.param("a in (b,c)", {}, False, id="in, absent"),
    pytest.param("a in (b,)", {"a": ""}, True, id="in, empty value"),
    pytest.param("a notin (b,c)", {"a": "c"}, False, id="not in"),
    pytest.param("a notin (b,c)", {}, True, id="not in, absent"),
    pytest.param("a", {"a": ""}, True, id="exists"),
    pytest.param("!a", {"a": ""}, False, id="does not exist"),
    pytest.param("!a", {}, True, id="does not exist, absent"),
    pytest.param("a>3", {"a": "4"}, True, id="greater"),
    pytest.param("a>3", {"a": "3"}, False, id="not greater"),
    pytest.param("a<3", {"a": "-4"}, True, id="less"),
    pytest.param("a<3", {"a": "x"}, False, id="not a number"),
    pytest.param("a<3", {}, False, id="greater than text"),
    pytest.param("a=b,c!=d", {"a": "b", "c": "d"}, False, id="two requirements"),
    pytest.param("example.com/a in (x),b", {"example.com/a": "x", "b": "y"}, True, id="with a prefix"),
    pytest.param("in in (in)", {"in": "in"}, True, id="label named in"),
]


@pytest.mark.parametrize(("text", "labels", "expected"), _MEANT)
def test_label_selectors(text: str, labels: dict[str, str], expected: bool) -> None:
    assert parse_labels(text).matches(labels) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a,", "expected: identifier after ','", id="comma at the end"),
        pytest.param(",a", "^found ',', expected: !, identifier, or 'end of string'$", id="comma at the start"),
        pytest.param("a,,b", "^found ',', expected: identifier after ','$", id="two commas"),
        pytest.param("a b", "found 'b', expected: in, notin, =, ==, !=, gt, lt", id="two words"),
        pytest.param("a=b c", "found 'c', expected: ',' or 'end of string'", id="no comma"),
        pytest.param("a in b", "found 'b' expected: '\\('", id="no parenthesis"),
        pytest.param("a in (b", "expected: ',' or '\\)'", id="not closed"),
        pytest.param("a in (b=c)", "found '=', expected: ',' or '\\)'", id="operator inside a value"),
        pytest.param("a>b", "requirement: values\\[0\\]: Invalid value: \"b\": for 'Gt'", id="greater than a word"),
        pytest.param("a=b%", "a valid label must be", id="bad value"),
        pytest.param("-a", "name part must consist of", id="bad key"),
        pytest.param("=a", "^found '=', expected: !, identifier, or 'end of string'$", id="no key"),
        pytest.param("!", "found '', expected: identifier", id="negation without a key"),
    ],
)
def test_refuses_label_selectors(text: str, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        parse_labels(text)


@pytest.mark.parametrize(
    ("value", "labels", "expected"),
    [
        pytest.param(None, {}, False, id="none selects nothing"),
        pytest.param({}, {"a": "b"}, True, id="empty selects everything"),
        pytest.param({"matchLabels": {"a": "b"}}, {"a": "b", "c": "d"}, True, id="labels"),
        pytest.param({"matchLabels": {"a": "b"}}, {"a": "c"}, False, id="other labels"),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, {"a": "b"}, True, id="in"
        ),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}, {}, True, id="not in"),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"a": ""}, True, id="exists"),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {"a": ""}, False, id="absent"),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "Near"}]}, {"a": ""}, False, id="unknown operator"),
        pytest.param({"a": "b"}, {"a": "b"}, True, id="a plain map"),
        pytest.param({"a": "b"}, {}, False, id="a plain map, not matched"),
    ],
)
def test_selectors_in_specs(value: Object | None, labels: dict[str, str], expected: bool) -> None:
    assert selector_of(value).matches(labels) is expected


names = st.sampled_from(["a", "b", "example.com/c"])
values = st.sampled_from(["", "x", "y", "7"])
requirements = st.one_of(
    st.builds(
        LabelRequirement,
        names,
        st.sampled_from([LabelOperator.IN, LabelOperator.NOT_IN]),
        st.lists(values, min_size=1, unique=True).map(tuple),
    ),
    st.builds(LabelRequirement, names, st.sampled_from([LabelOperator.EXISTS, LabelOperator.DOES_NOT_EXIST])),
    st.builds(LabelRequirement, names, st.sampled_from([LabelOperator.GREATER, LabelOperator.LESS]), st.just(("5",))),
)


@given(st.lists(requirements, max_size=3), st.dictionaries(names, values))
def test_formatting_and_parsing_a_selector_are_inverse(chosen: list[LabelRequirement], labels: dict[str, str]) -> None:
    selector = LabelSelector(tuple(chosen))
    assert parse_labels(str(selector)).matches(labels) is selector.matches(labels)


def test_nothing_matches_nothing() -> None:
    assert not NOTHING.matches({})


_POD: Object = {
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"nodeName": "n"},
    "status": {"phase": "Running"},
}
_EVENTS = Resource("", "v1", "events", "Event")


@pytest.mark.parametrize(
    ("resource", "item", "text", "expected"),
    [
        pytest.param(PODS, _POD, "spec.nodeName=n", True, id="equal"),
        pytest.param(PODS, _POD, "spec.nodeName==n,status.phase!=Failed", True, id="both"),
        pytest.param(PODS, _POD, "spec.nodeName=", False, id="not empty"),
        pytest.param(PODS, {"metadata": {"name": "p"}}, "spec.nodeName=", True, id="absent is empty"),
        pytest.param(PODS, {"metadata": {"name": "p"}}, "spec.nodeName!=n", True, id="absent is unequal"),
        pytest.param(PODS, _POD, "metadata.name=p,metadata.namespace=default", True, id="key"),
        pytest.param(PODS, _POD, "", True, id="everything"),
        pytest.param(PODS, _POD, r"metadata.name!=a\,b", True, id="escaped"),
        pytest.param(NODES, {"spec": {}}, "spec.unschedulable=false", True, id="absent is false"),
        pytest.param(NODES, {"spec": {"unschedulable": True}}, "spec.unschedulable=true", True, id="true"),
        pytest.param(_EVENTS, {"involvedObject": {"name": "x"}}, "involvedObject.name=x", True, id="of an event"),
        pytest.param(_EVENTS, {"source": {"component": "x"}}, "source=x", True, id="source of an event"),
    ],
)
def test_field_selectors(resource: Resource, item: Object, text: str, expected: bool) -> None:
    assert all_hold(parse_fields(text, resource))(item) is expected


@pytest.mark.parametrize(
    ("resource", "text", "message"),
    [
        pytest.param(REPLICA_SETS, "status.replicas=0", '"status.replicas" is not a known field', id="of a set"),
        pytest.param(
            CONFIG_MAPS, "data.a=b", '"data.a" is not a known field selector: only "metadata.name"', id="unknown"
        ),
        pytest.param(PODS, "spec.color=b", r"field label not supported: spec\.color", id="unknown to pods"),
        pytest.param(PODS, "spec.nodeName", "can't understand 'spec.nodeName'", id="no operator"),
        pytest.param(PODS, "metadata.name=a=b", "can't understand", id="two operators"),
    ],
)
def test_refuses_field_selectors(resource: Resource, text: str, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        parse_fields(text, resource)
