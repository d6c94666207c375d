"""Which nodes of a pool count, and which of them are unavailable."""

from __future__ import annotations

from typing import Any

import pytest

from springtide.apis.karpenter.budgets import DisruptionReason
from springtide.apis.karpenter.pool_nodes import PoolNodes, count_pool_nodes

DELETED = {"deletionTimestamp": "2026-11-16T12:00:00Z"}
TAINTED = [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]


def conditions(**given: str) -> dict[str, Any]:
    return {"conditions": [{"type": type_, "status": status} for type_, status in given.items()]}


def node(name: str, *, pool: str = "spot", ready: str = "True", **more: Any) -> dict[str, Any]:
    """Return an initialized node."""
    labels = {"karpenter.sh/nodepool": pool, "karpenter.sh/initialized": "true"}
    return {
        "metadata": {"name": name, "labels": labels, **more.get("metadata", {})},
        "spec": {"taints": more.get("taints")},
        "status": conditions(Ready=ready),
    }


def claim(
    name: str, *, reason: str | None = None, terminating: bool = False, metadata: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return the NodeClaim of a node."""
    status: dict[str, Any] = {"nodeName": name, **conditions(InstanceTerminating=str(terminating))}
    if reason is not None:
        status["conditions"].append({"type": "DisruptionReason", "status": "True", "reason": reason})
    return {"metadata": {"name": f"{name}-claim", **(metadata or {})}, "status": status}


UNLABELLED = {
    "metadata": {"name": "b", "labels": {"karpenter.sh/nodepool": "spot"}},
    "status": conditions(Ready="True"),
}
DRIFTED, EXPIRED = DisruptionReason.DRIFTED, DisruptionReason.EXPIRED


@pytest.mark.parametrize(
    ("nodes", "claims", "counted"),
    [
        pytest.param([node("a"), node("b")], [claim("a"), claim("b")], PoolNodes(2), id="ready-nodes"),
        pytest.param([node("a"), node("b", pool="other")], [claim("a"), claim("b")], PoolNodes(1), id="other-pool"),
        pytest.param([node("a"), node("b")], [claim("a")], PoolNodes(1), id="node-without-claim"),
        pytest.param([node("a"), node("b")], None, PoolNodes(2), id="claims-cannot-be-read"),
        pytest.param([node("a"), UNLABELLED], [claim("a"), claim("b")], PoolNodes(1), id="not-initialized"),
        pytest.param(
            [UNLABELLED],
            [{"metadata": {}, "status": {"nodeName": "b", **conditions(Initialized="True")}}],
            PoolNodes(1),
            id="initialized-by-its-claim",
        ),
        pytest.param([node("a")], [claim("a", terminating=True)], PoolNodes(0), id="instance-is-terminating"),
        pytest.param([node("a", ready="False")], [claim("a")], PoolNodes(1, {}, 1), id="not-ready"),
        pytest.param([node("a", ready="Unknown")], [claim("a")], PoolNodes(1, {}, 1), id="ready-is-unknown"),
        pytest.param(
            [node("a", taints=TAINTED)], [claim("a", reason="Drifted")], PoolNodes(1, {DRIFTED: 1}), id="tainted"
        ),
        pytest.param(
            [node("a", ready="False", taints=TAINTED)],
            [claim("a", reason="Drifted")],
            PoolNodes(1, {DRIFTED: 1}),
            id="disrupted-and-not-ready-counts-once",
        ),
        pytest.param([node("a")], [claim("a", metadata=DELETED)], PoolNodes(1, {EXPIRED: 1}), id="deleted-claim"),
        pytest.param([node("a", metadata=DELETED)], None, PoolNodes(1, {EXPIRED: 1}), id="deleted-node"),
        pytest.param([node("a")], [claim("a", reason="Drifted")], PoolNodes(1), id="a-reason-without-disruption"),
        pytest.param([], [], PoolNodes(), id="no-nodes"),
    ],
)
def test_nodes_are_counted(
    nodes: list[dict[str, Any]], claims: list[dict[str, Any]] | None, counted: PoolNodes
) -> None:
    assert count_pool_nodes("spot", nodes, claims) == counted
