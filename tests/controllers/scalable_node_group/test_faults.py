"""Groups reach their replicas in the end, whatever fails meanwhile; deliberate bugs break an invariant."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from tests.controllers.scalable_node_group.node_groups import Cloud, Pool
from tests.controllers.scalable_node_group.scaled_groups import LENGTH, scaled_groups

from springtide.apis.core.nodes import NodeView
from springtide.cluster.client import Client
from springtide.controllers.scalable_node_group import decide, requests
from springtide.providers import GroupState, simulated
from springtide.providers.port import nodes_labelled
from springtide.providers.simulated import SimulatedGroup
from springtide.simulator.scenario import InvariantViolated, play

_BLOCK = 10
_ENOUGH = 20


def _play(seeds: range) -> None:
    for seed in seeds:
        play(scaled_groups(Cloud({"outside": Pool(0)})), LENGTH, [seed])


def test_a_sample_of_seeds_ends_as_wished() -> None:
    """Killed at any await, with a slow and forgetful server: exactly so many nodes, and never more than were wished."""
    _play(range(6))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1000, 1200, _BLOCK))
def test_two_hundred_seeds_end_as_wished(first: int) -> None:
    """The same, more often."""
    _play(range(first, first + _BLOCK))


def random_node_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes are named by a counter, and looked at in a cache that lags: what was made twice is there twice."""
    numbers = count(100)
    body = SimulatedGroup._body
    answers: dict[str, list[list[NodeView]]] = {}

    def named_anyhow(self: SimulatedGroup, name: str) -> Any:
        return body(self, f"{name}-{next(numbers)}")

    async def lagging(client: Client, selector: str) -> list[NodeView]:
        seen = answers.setdefault(selector, [])
        seen.append(await nodes_labelled(client, selector))
        return seen[-3:][0]

    monkeypatch.setattr(SimulatedGroup, "_body", named_anyhow)
    monkeypatch.setattr(simulated, "nodes_labelled", lagging)


def no_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two objects scale one group against each other."""
    monkeypatch.setattr(requests, "owner_of_group", lambda *_: None)


def compare_ready_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """`replicas` is compared with the nodes that are ready, not with what the provider works towards."""

    def by_readiness(request: decide.GroupRequest, state: GroupState) -> tuple[decide.ResizeGroup, ...]:
        asked = request.spec.replicas if request.spec is not None else None
        if asked is None or request.owner is not None or state.replicas >= asked:
            return ()
        return (decide.ResizeGroup(asked, state.wanted),)

    monkeypatch.setattr(decide, "_actions", by_readiness)


def write_without_permit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client writes without a permit of the leadership term."""
    made = Client.__init__

    def permitted(self: Client, *given: Any, **more: Any) -> None:
        made(self, *given, **more | {"permit": lambda: None})

    monkeypatch.setattr(Client, "__init__", permitted)


@pytest.mark.parametrize(
    "bug",
    [random_node_names, no_owner, compare_ready_nodes, write_without_permit],
    ids=["node names", "ownership", "readiness", "permits"],
)
def test_a_deliberate_bug_is_found(bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bug must break an invariant."""
    bug(monkeypatch)

    assert any(_breaks(seed) for seed in range(_ENOUGH))


def _breaks(seed: int) -> bool:
    try:
        scaled_groups(Cloud({"outside": Pool(0)})).run(LENGTH, seed=seed)
    except InvariantViolated:
        return True
    return False
