"""Fault injection for ScalableNodeGroup: groups reach their replicas, and deliberate bugs break an invariant."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from tests.controllers.scalable_node_group.node_groups import FakeCloud, FakePool
from tests.controllers.scalable_node_group.scaled_groups import LENGTH, scaled_groups

from springtide.apis.core.nodes import NodeView
from springtide.cluster.client import Client
from springtide.controllers.scalable_node_group import decide, requests
from springtide.providers import GroupState, simulated
from springtide.providers.port import nodes_labelled
from springtide.providers.simulated import SimulatedGroup
from springtide.simulator.scenario import InvariantViolated, play

_BLOCK = 10
_SEEDS = 20


def _play(seeds: range) -> None:
    for seed in seeds:
        play(scaled_groups(FakeCloud({"outside": FakePool(0)})), LENGTH, [seed])


def test_groups_reach_their_replicas_under_faults() -> None:
    """Processes are killed at any await and caches lag: nodes match `replicas`, and never exceed recent requests."""
    _play(range(6))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1000, 1200, _BLOCK))
def test_groups_reach_their_replicas_under_faults_with_two_hundred_seeds(first: int) -> None:
    """The same with more seeds."""
    _play(range(first, first + _BLOCK))


def random_node_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Create nodes under new names and list them from a lagging cache, so that a retry creates a second node."""
    numbers = count(100)
    body = SimulatedGroup._body
    answers: dict[str, list[list[NodeView]]] = {}

    def renamed_body(self: SimulatedGroup, name: str) -> Any:
        return body(self, f"{name}-{next(numbers)}")

    async def lagging(client: Client, selector: str) -> list[NodeView]:
        seen = answers.setdefault(selector, [])
        seen.append(await nodes_labelled(client, selector))
        return seen[-3:][0]

    monkeypatch.setattr(SimulatedGroup, "_body", renamed_body)
    monkeypatch.setattr(simulated, "nodes_labelled", lagging)


def no_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two objects scale one group against each other."""
    monkeypatch.setattr(requests, "owner_of_group", lambda *_: None)


def compare_ready_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare `replicas` with the ready nodes instead of the number that the provider works towards."""

    def by_readiness(request: decide.GroupRequest, state: GroupState) -> tuple[decide.ResizeGroup, ...]:
        asked = request.spec.replicas if request.spec is not None else None
        if asked is None or request.owner is not None or state.replicas >= asked:
            return ()
        return (decide.ResizeGroup(asked, state.wanted),)

    monkeypatch.setattr(decide, "_actions", by_readiness)


def write_without_permit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write without a permit of the leadership term."""
    made = Client.__init__

    def permitted(self: Client, *given: Any, **more: Any) -> None:
        made(self, *given, **more | {"permit": lambda: None})

    monkeypatch.setattr(Client, "__init__", permitted)


@pytest.mark.parametrize(
    "bug",
    [random_node_names, no_owner, compare_ready_nodes, write_without_permit],
    ids=["node names", "ownership", "readiness", "permits"],
)
def test_deliberate_bug_breaks_an_invariant(
    bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least one of some seeds finds it."""
    bug(monkeypatch)

    assert any(_breaks(seed) for seed in range(_SEEDS))


def _breaks(seed: int) -> bool:
    try:
        scaled_groups(FakeCloud({"outside": FakePool(0)})).run(LENGTH, seed=seed)
    except InvariantViolated:
        return True
    return False
