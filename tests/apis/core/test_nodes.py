"""Node records: what is kept of a node, and what nodes of one machine type share."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from springtide.apis.core.nodes import NODE_ANNOTATIONS, NodeRecord, NodeTaint, NodeView, node_record


def view(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **metadata: Any) -> NodeView:
    node = {"metadata": {"name": "n1", **metadata}, "spec": spec or {}, "status": status or {}}
    return msgspec.json.decode(msgspec.json.encode(node), type=NodeView)


def test_a_node_without_anything_has_the_defaults() -> None:
    """A node that has only a name is the default record under that name."""
    assert node_record(view()) == NodeRecord("n1")


def test_a_whole_node() -> None:
    """Everything that controllers and the packer read is kept."""
    made = node_record(
        view(
            {
                "providerID": "aws:///zone/i-1",
                "unschedulable": True,
                "taints": [
                    {"key": "dedicated", "value": "x", "effect": "NoSchedule"},
                    {"key": "k", "effect": "NoExecute"},
                ],
            },
            {
                "capacity": {"cpu": "4", "pods": "110"},
                "allocatable": {"cpu": "3900m", "pods": "110"},
                "conditions": [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "True"}],
            },
            labels={"zone": "a"},
            annotations={NODE_ANNOTATIONS[0]: "true", "example.com/other": "x"},
            creationTimestamp="2026-05-28T20:26:40Z",
            deletionTimestamp="2026-05-28T20:27:40Z",
        )
    )

    assert made.labels == {"zone": "a"}
    assert made.annotations == {NODE_ANNOTATIONS[0]: "true"}
    assert made.taints == (NodeTaint("dedicated", "NoSchedule", "x"), NodeTaint("k", "NoExecute"))
    assert {name: str(amount) for name, amount in made.capacity.items()} == {"cpu": "4", "pods": "110"}
    assert {name: str(amount) for name, amount in made.allocatable.items()} == {"cpu": "3900m", "pods": "110"}
    assert (made.provider_id, made.created_at, made.deleted_at) == ("aws:///zone/i-1", 1_780_000_000, 1_780_000_060)
    assert made.ready
    assert made.unschedulable
    assert not made.is_usable
    assert made.is_terminating


@pytest.mark.parametrize(
    ("spec", "status", "usable"),
    [
        pytest.param({}, "True", True, id="ready"),
        pytest.param({}, "False", False, id="not-ready"),
        pytest.param({}, "Unknown", False, id="lost"),
        pytest.param({"unschedulable": True}, "True", False, id="cordoned"),
    ],
)
def test_whether_a_node_is_usable(spec: dict[str, Any], status: str, usable: bool) -> None:
    """View and record agree: a node is usable while it is ready and not cordoned."""
    node = view(spec, {"conditions": [{"type": "Ready", "status": status}]})

    assert node.is_usable is usable
    assert node_record(node).is_usable is usable


def test_nodes_of_one_type_share_their_amounts() -> None:
    """Equal amounts are one mapping."""
    one, other = (node_record(view(status={"allocatable": {"cpu": "4"}}, name=name)) for name in ("n1", "n2"))

    assert one.allocatable is other.allocatable
