"""What a trace tells of a write, and what it leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from springtide.apiserver.server import CommittedWrite
from springtide.cluster.resources import Key, Resource
from springtide.cluster.transport import Write
from springtide.simulator.trace import Trace, TraceEntry

THINGS = Resource("example.com", "v1", "things", "Thing")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")


def _traced(old: Any, new: Any, *, verb: str = "patch", resource: Resource = THINGS) -> list[TraceEntry]:
    trace = Trace()
    write = Write("someone", "they wanted to")
    trace.record(CommittedWrite(1_798_761_600, 7, write, verb, resource, Key("default", "one"), old, new))
    return trace.entries


def _thing(**parts: Any) -> dict[str, Any]:
    metadata = {"name": "one", "namespace": "default", "resourceVersion": "6", "uid": "u", **parts.pop("metadata", {})}
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, **parts}


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        pytest.param(
            _thing(spec={"a": 1, "b": 2}), _thing(spec={"a": 3, "b": 2}), {"spec.a": [1, 3]}, id="a value changes"
        ),
        pytest.param(_thing(spec={"a": 1}), _thing(spec={}), {"spec.a": [1, None]}, id="a value goes"),
        pytest.param(_thing(), _thing(status={"a": {"b": 1}}), {"status.a": [None, {"b": 1}]}, id="a status comes"),
        pytest.param(
            _thing(status={"conditions": [{"type": "A", "status": "False"}, {"type": "B", "status": "True"}]}),
            _thing(status={"conditions": [{"type": "B", "status": "True"}, {"type": "A", "status": "True"}]}),
            {"status.conditions[A].status": ["False", "True"]},
            id="conditions are matched by type",
        ),
        pytest.param(
            _thing(spec={"dates": ["x", "y"]}),
            _thing(spec={"dates": ["x"]}),
            {"spec.dates": [["x", "y"], ["x"]]},
            id="other lists are shown as a whole",
        ),
        pytest.param(
            _thing(metadata={"annotations": {"a/b": "1"}}),
            _thing(metadata={"annotations": {"a/b": "2"}}),
            {"metadata.annotations[a/b]": ["1", "2"]},
            id="names with dots or slashes are set apart",
        ),
        pytest.param(
            None,
            _thing(metadata={"labels": {"x": "y"}}, spec={"a": 1}, status={}),
            {"metadata.labels": [None, {"x": "y"}], "spec": [None, {"a": 1}]},
            id="a new object is shown field by field",
        ),
    ],
)
def test_changes_are_described_by_path(old: Any, new: Any, change: dict[str, Any]) -> None:
    verb = "create" if old is None else "patch"

    assert [entry.change for entry in _traced(old, new, verb=verb)] == [change]


@pytest.mark.parametrize(
    ("old", "new", "resource"),
    [
        pytest.param(
            _thing(),
            _thing(metadata={"resourceVersion": "7", "generation": 3, "managedFields": [{}]}),
            THINGS,
            id="bookkeeping",
        ),
        pytest.param(
            _thing(spec={"renewTime": "1"}), _thing(spec={"renewTime": "2"}), LEASES, id="a lease that is renewed"
        ),
        pytest.param(_thing(status={"a": None}), _thing(status={}), THINGS, id="null that goes"),
    ],
)
def test_fields_without_information_are_left_out(old: Any, new: Any, resource: Resource) -> None:
    assert _traced(old, new, resource=resource) == []


@pytest.mark.parametrize(
    ("verb", "reported"),
    [("patch/status", "patch"), ("create/binding", "bind"), ("create/eviction", "evict"), ("delete", "delete")],
)
def test_trace_verbs_are_those_of_kubectl(verb: str, reported: str) -> None:
    (entry,) = _traced(_thing(spec={}), _thing(spec={"nodeName": "n"}), verb=verb)

    assert entry.verb == reported


def test_a_json_line_has_the_documented_shape() -> None:
    (entry,) = _traced(_thing(spec={"a": 1}), _thing(spec={"a": 2}))

    assert entry.as_json() == {
        "at": "2027-01-01T00:00:00Z",
        "actor": "someone",
        "verb": "patch",
        "object": {"kind": "Thing", "namespace": "default", "name": "one"},
        "change": {"spec.a": [1, 2]},
        "because": "they wanted to",
    }
