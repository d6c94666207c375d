"""Simulated groups: the contract, and how nodes are named, made and chosen."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers.clusters import USER, ProviderEnvironment, run
from tests.providers.contract import WHY, ProviderContract

from springtide.apis.core.nodes import NodeView
from springtide.cluster.errors import AlreadyExists, Forbidden, RequestTimeout, ServerError
from springtide.cluster.resources import NODES, Key
from springtide.cluster.transport import Patch
from springtide.providers import GroupState, Provider, ProviderError, simulated
from springtide.providers.simulated import LABEL, SimulatedMachine, SimulatedProvider, nodes_to_remove


class SimulatedEnvironment(ProviderEnvironment):
    """A group of Node objects, whose kubelets report when they are told to."""

    type = "Simulated"
    id = "workers"
    missing_id = "missing"

    def make_provider(self) -> Provider:
        return SimulatedProvider(SimulatedMachine(most=50))

    def begin(self, replicas: int) -> None:
        run(self.group().resize(replicas, because=WHY))
        self.settle()
        self.line.writes = 0

    def settle(self) -> None:
        for node in self.nodes():
            self.report(node["metadata"]["name"], ready=True)

    def break_one(self) -> None:
        self.report("workers-0", ready=False)

    def orders(self) -> int:
        return self.line.writes

    def refuse_reading(self, *, for_good: bool) -> None:
        self.line.fail("list", Forbidden("not yours") if for_good else ServerError("out of order"))

    def refuse_resizing(self, *, for_good: bool) -> None:
        for verb in ("create", "delete"):
            self.line.failing.pop(verb, None)
            self.line.fail(verb, Forbidden("not yours") if for_good else ServerError("out of order"))

    def lose_answer(self) -> None:
        for verb in ("create", "delete"):
            self.line.failing.pop(verb, None)
            self.line.fail(verb, RequestTimeout("nothing came back"), after=True)


@pytest.fixture
def env() -> ProviderEnvironment:
    return SimulatedEnvironment()


def names(env: ProviderEnvironment) -> list[str]:
    return [node["metadata"]["name"] for node in env.nodes()]


class TestSimulated(ProviderContract):
    """The contract."""

    def test_a_missing_group(self, env: ProviderEnvironment) -> None:
        """A simulated group is its nodes: without any, it is an empty one."""
        env.begin(1)
        group = env.provider.group(env.type, env.missing_id, env.client())

        assert GroupState(replicas=0, wanted=0, stable=True) == run(group.observe())


def test_nodes_say_whose_they_are(env: ProviderEnvironment) -> None:
    """They have a size, the label of their group, and what kubelets of a simulated cluster and KWOK look for."""
    env.begin(1)

    (node,) = env.nodes()
    assert node["metadata"]["name"] == "workers-0"
    assert node["metadata"]["labels"].items() >= {LABEL: "workers", "kubernetes.io/hostname": "workers-0"}.items()
    assert node["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}
    assert node["status"]["allocatable"]["cpu"] == "4"
    assert env.group().selector == f"{LABEL}=workers"


def test_the_lowest_free_numbers_are_taken(env: ProviderEnvironment) -> None:
    """A node that a user deleted is created again with its name."""
    env.begin(4)
    env.server.delete(NODES, Key("", "workers-1"), USER)

    run(env.group().resize(5, because=WHY))

    assert names(env) == [f"workers-{number}" for number in range(5)]


def test_unready_nodes_go_first_and_then_the_highest_numbers(env: ProviderEnvironment) -> None:
    """Ten is higher than nine, although it is written with a one."""
    env.begin(11)
    env.report("workers-3", ready=False)

    run(env.group().resize(8, because=WHY))

    assert names(env) == [f"workers-{number}" for number in (0, 1, 2, 4, 5, 6, 7, 8)]


def test_a_cordoned_node_is_not_ready(env: ProviderEnvironment) -> None:
    """It takes no pods, so it is the first to go."""
    env.begin(3)
    env.server.patch(NODES, Key("", "workers-0"), Patch.merge({"spec": {"unschedulable": True}}), USER)

    assert run(env.group().observe()).replicas == 2
    run(env.group().resize(2, because=WHY))
    assert names(env) == ["workers-1", "workers-2"]


def test_a_node_of_somebody_else_is_left_alone(env: ProviderEnvironment) -> None:
    """Its name is taken, and the next one is used; it is never counted and never removed."""
    env.server.create(NODES, {"metadata": {"name": "workers-1", "labels": {LABEL: "others"}}}, USER)

    run(env.group().resize(2, because=WHY))
    assert names(env) == ["workers-0", "workers-1", "workers-2"]

    run(env.group().resize(0, because=WHY))
    assert names(env) == ["workers-1"]


def test_groups_whose_names_begin_the_same_do_not_mix(env: ProviderEnvironment) -> None:
    """`workers` and `workers-1` are two groups."""
    other = env.provider.group("Simulated", "workers-1", env.client())
    run(env.group().resize(2, because=WHY))
    run(other.resize(2, because=WHY))
    run(env.group().resize(1, because=WHY))

    assert names(env) == ["workers-0", "workers-1-0", "workers-1-1"]


def test_a_node_on_its_way_out_does_not_count(env: ProviderEnvironment) -> None:
    """It is replaced under another name, and the group is not at rest until it is gone."""
    env.begin(2)
    env.server.patch(NODES, Key("", "workers-0"), Patch.merge({"metadata": {"finalizers": ["a.b/c"]}}), USER)
    env.server.delete(NODES, Key("", "workers-0"), USER)

    state = run(env.group().observe())
    assert (state.replicas, state.wanted, state.message) == (1, 1, "1 node being deleted")
    run(env.group().resize(2, because=WHY))
    assert names(env) == ["workers-0", "workers-1", "workers-2"]


def test_a_group_has_an_end(env: ProviderEnvironment) -> None:
    """A slip of the finger does not fill the cluster."""
    with pytest.raises(ProviderError) as failed:
        run(env.group().resize(51, because=WHY))

    assert (failed.value.code, failed.value.retryable) == ("AboveMaximum", False)
    assert names(env) == []


def test_two_who_make_the_same_nodes_make_each_once(env: ProviderEnvironment) -> None:
    """A former leader whose create arrives late has made what the new one would make."""
    env.line.fail("create", RequestTimeout("nothing came back"), after=True)
    first, second = env.group(), env.group()
    with pytest.raises(RequestTimeout):
        run(first.resize(3, because=WHY))

    run(second.resize(3, because=WHY))

    assert names(env) == ["workers-0", "workers-1", "workers-2"]


def test_a_node_that_appears_meanwhile_counts(env: ProviderEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer creates it after the list: its name is taken, and it belongs to the group."""
    env.begin(2)

    async def too_early(*_: Any) -> list[NodeView]:
        return []

    monkeypatch.setattr(simulated, "nodes_labelled", too_early)
    run(env.group().resize(3, because=WHY))

    assert names(env) == ["workers-0", "workers-1", "workers-2"]


def test_a_name_that_was_taken_for_a_moment_is_passed_over(env: ProviderEnvironment) -> None:
    """Another writer has created the node, and it is gone before it is read: another one is created in its place."""
    env.line.fail("create", AlreadyExists("nodes workers-0 already exists"))

    run(env.group().resize(2, because=WHY))

    assert names(env) == ["workers-1", "workers-2"]


def node(name: str, ready: bool) -> NodeView:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return msgspec.convert({"metadata": {"name": name}, "status": {"conditions": conditions}}, NodeView)


NODE_NAMES = st.one_of(st.integers(0, 30).map(lambda number: f"g-{number}"), st.sampled_from(["stranger", "g-x"]))


@given(st.lists(st.builds(node, NODE_NAMES, st.booleans()), unique_by=lambda node: node.name), st.integers(0, 20))
def test_what_goes_and_what_stays(nodes: list[NodeView], replicas: int) -> None:
    """So many stay as are wished; no ready node goes while one stays that is not."""
    going = nodes_to_remove(nodes, replicas)
    staying = [node for node in nodes if node not in going]

    assert len(staying) == min(replicas, len(nodes))
    assert not (any(node.is_usable for node in going) and any(not node.is_usable for node in staying))
