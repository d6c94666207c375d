"""Deltas give the same snapshot as building anew, in any order; forks leave it alone; odd states are defined."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.packing.adapter import answers_of_snapshot, deltas_of, key_of, put, put_all, record_of, remove
from tests.packing.clusters import FEATURES, HOSTNAME, ZONE, random_cluster

from springtide.apis.core.daemon_sets import DaemonSetRecord, DaemonSetView, daemon_set_record
from springtide.apis.core.nodes import NodeTaint
from springtide.apis.core.pod_record import PodView, pod_record
from springtide.packing.columns import CPU, PODS
from springtide.packing.snapshot import SYSTEM_DEFAULT_SPREADS, Snapshot, UpcomingNode
from springtide.packing.space import Ask, Space
from springtide.quantity import Quantity

Json: TypeAlias = dict[str, Any]
Delta: TypeAlias = Callable[[Snapshot], None]


# What is compared: names and amounts, never positions or numbers, which depend on the order of the deltas.


def assert_equal(one: Snapshot, other: Snapshot) -> None:
    """Both answer the same; counters of terms that no pod has any more are kept, and so only one may have them."""
    first, second = described(one), described(other)
    kept = {repr(key) for key in one.definitions.keys} & {repr(key) for key in other.definitions.keys}
    for found in (first, second):
        found["counters"] = {mark: count for mark, count in found["counters"].items() if mark[0] in kept}
    assert first == second


def described(snapshot: Snapshot, space: Space | None = None) -> Json:
    """Everything that a snapshot, or a fork of it, answers."""
    pending = sorted(key for keys in snapshot.pending().values() for key in keys)
    fork = space or snapshot.fork()
    return {
        "pending": pending,
        "demand": sum(snapshot.demand().values()),
        "shapes": {key: content_of(snapshot, key) for key in pending},
        "answers": answers_of_snapshot(snapshot, pending) if space is None else {},
        "free": room_of(fork),
        "counters": counts_of(fork),
    }


def content_of(snapshot: Snapshot, key: tuple[str, str]) -> Json:
    """What a shape is, without the labels: a selector that is gone may have made the snapshot keep more of them."""
    shape = snapshot.shape_at(key)
    names = snapshot.resources.names
    return {
        "amounts": {names[column]: amount for column, amount in shape.amounts.items()},
        "priority": shape.priority,
        "rule": shape.rule.text,
        "constraints": repr(shape.constraints),
        "volumes": repr(shape.volumes),
        "blocked": (shape.blocked, shape.because),
    }


def room_of(space: Space) -> dict[tuple[str, str], int]:
    """The free amounts by node and resource; unlimited ones differ with the resources that were ever seen."""
    names = space.names()
    return {
        (names[row], space.resources.names[column]): int(amount)
        for (column, row), amount in np.ndenumerate(space.free)
        if amount and amount < 1 << 50
    }


def counts_of(space: Space) -> dict[tuple[str, str], int]:
    """The counts by counter and domain that are not zero."""
    found: dict[tuple[str, str], int] = {}
    for number, key in enumerate(space.counters.definitions.keys):
        counts = space.counters.counts(number, space.nodes)
        values = space.snapshot.labels.values(key.topology) if key.topology else space.snapshot.nodes.names
        for code in np.flatnonzero(counts).tolist():
            found[repr(key), values[code]] = int(counts[code])
        assert space.counters.total(number, space.nodes) == counts.sum()
    return found


# Worlds: objects of the same names with different contents, so that deltas change every field.


class World:
    """Objects that may be there, in several variants, and those that are."""

    def __init__(self, rng: random.Random, features: frozenset[str] = FEATURES) -> None:
        self.rng = rng
        self.variants: dict[tuple[str, str], list[Delta]] = {}
        self.removals: dict[tuple[str, str], Delta] = {}
        self.present: dict[tuple[str, str], Delta] = {}
        for _ in range(2):
            cluster = random_cluster(rng, nodes=rng.randint(1, 5), bound=8, pending=5, features=features)
            names = [node["metadata"]["name"] for node in cluster["nodes"]]
            for kind, thing in deltas_of(cluster):
                self.add_object(kind, thing)
                if kind == "pending":
                    self.add_object(kind, bound(thing, rng.choice([*names, "unknown"])))
                if kind == "namespaces":
                    self.add_object(kind, with_labels(thing, {"team": rng.choice(["yes", "no"])}))
                if kind == "nodes":
                    self.add_object(kind, with_labels(thing, {ZONE: rng.choice(["zone-a", "zone-b"])}))
            for name in (*names, "unknown"):
                self.add_claim(f"claim-of-{name}", name)
            self.add_claim("claim", "")
            self.add_daemons()

    def add_object(self, kind: str, thing: Json) -> None:
        """Let a raw object be one of the variants of its name."""
        mark = ("pods" if kind == "pending" else kind, "/".join(key_of(thing)))
        self.variants.setdefault(mark, []).append(lambda snapshot: put(snapshot, kind, thing))
        self.removals[mark] = lambda snapshot: remove(snapshot, kind, thing)

    def add_claim(self, name: str, node: str) -> None:
        """Let a NodeClaim be there at times, with a node or before it has one."""
        claim = upcoming(
            name,
            self.rng.choice([node, ""]),
            zone=self.rng.choice(["zone-a", "zone-b"]),
            taints=self.rng.choice([(), (NodeTaint("dedicated", "NoSchedule", "web"),)]),
            startup_taints=self.rng.choice([(), (NodeTaint("maintenance", "NoSchedule"),)]),
            initialized=self.rng.random() < 0.5,
        )
        self.variants.setdefault(("claims", name), []).append(lambda snapshot: snapshot.put_claim(claim))
        self.removals["claims", name] = lambda snapshot: snapshot.remove_claim(name)

    def add_daemons(self) -> None:
        """Let a DaemonSet be there at times."""
        record = daemons(cpu=self.rng.choice(["50m", "150m"]), selector=self.rng.choice([{}, {"disk": "ssd"}]))
        key = ("default", "agent")
        self.variants.setdefault(("daemons", "agent"), []).append(lambda snap: snap.put_daemon_set(key, record))
        self.removals["daemons", "agent"] = lambda snap: snap.remove_daemon_set(key)

    def change(self) -> list[Delta]:
        """The deltas of one random change."""
        mark = self.rng.choice(list(self.variants))
        if mark in self.present and self.rng.random() < 0.4:
            del self.present[mark]
            return [self.removals[mark]]
        self.present[mark] = self.rng.choice(self.variants[mark])
        return [self.present[mark]]

    def built_anew(self) -> Snapshot:
        """A snapshot of what is there now, built in a random order."""
        deltas = list(self.present.values())
        self.rng.shuffle(deltas)
        return built(deltas)


def built(deltas: Iterable[Delta]) -> Snapshot:
    """A snapshot after some deltas."""
    snapshot = Snapshot()
    for delta in deltas:
        delta(snapshot)
    return snapshot


def bound(pod: Json, node: str) -> Json:
    """The pod after it has been bound."""
    made = copy.deepcopy(pod)
    made["spec"]["nodeName"] = node
    made["status"] = {"phase": "Running"}
    return made


def with_labels(thing: Json, labels: dict[str, str]) -> Json:
    """The object with more labels."""
    made = copy.deepcopy(thing)
    made["metadata"]["labels"] = {**(made["metadata"].get("labels") or {}), **labels}
    return made


def upcoming(
    name: str, node: str = "", *, zone: str = "zone-a", initialized: bool = False, cpu: str = "4", **own: Any
) -> UpcomingNode:
    """A NodeClaim."""
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return UpcomingNode(
        name=name,
        labels={ZONE: zone, "disk": "ssd"},
        taints=own.pop("taints", ()),
        startup_taints=own.pop("startup_taints", ()),
        allocatable={key: Quantity.parse(value) for key, value in amounts.items()},
        node=node,
        initialized=initialized,
    )


def daemons(*, cpu: str = "100m", selector: dict[str, str] | None = None, name: str = "agent") -> DaemonSetRecord:
    """A DaemonSet."""
    spec = {"containers": [container(cpu)], "nodeSelector": selector or {}}
    manifest = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"template": {"metadata": {"labels": {"app": name}}, "spec": spec}},
    }
    return daemon_set_record(msgspec.convert(manifest, DaemonSetView))


# Properties


@pytest.mark.parametrize(
    "most_empty", [pytest.param(1024, id="everything-is-kept"), pytest.param(0, id="shapes-are-forgotten")]
)
@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1))
def test_deltas_give_what_building_anew_gives(most_empty: int, seed: int) -> None:
    rng = random.Random(seed)
    world, snapshot = World(rng), Snapshot()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("springtide.packing.snapshot._MOST_EMPTY", most_empty)
        for _ in range(rng.randint(20, 90)):
            for delta in world.change():
                delta(snapshot)
            if rng.random() < 0.15:
                snapshot.fork()
            if rng.random() < 0.05:
                assert_equal(snapshot, world.built_anew())

        assert_equal(snapshot, world.built_anew())


def test_shapes_and_counters_of_pods_that_are_gone_are_forgotten() -> None:
    snapshot = snapshot_with(nodes=[node("a", "4000")])
    for number in range(4000):
        name = f"app-{number}"
        term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": name}}}
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        put(snapshot, "pods", pod(name, node="a", labels={"app": name, "number": str(number)}, affinity=apart))
        if number:
            snapshot.remove_pod(("default", f"app-{number - 1}"))
        if number % 10 == 0:
            snapshot.flush()

    assert free_cpu(snapshot) == {"a": 3_999_000}
    assert len(snapshot.shapes) <= 2100
    assert len(snapshot.definitions.keys) <= 4200


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_removing_everything_leaves_nothing(seed: int) -> None:
    rng = random.Random(seed)
    world, snapshot = World(rng), Snapshot()
    for _ in range(40):
        for delta in world.change():
            delta(snapshot)
        if rng.random() < 0.2:
            snapshot.flush()
    left = list(world.present)
    rng.shuffle(left)
    for mark in left:
        world.removals[mark](snapshot)

    found = described(snapshot)

    assert not any(found.values()), found
    assert not snapshot.nodes.used.any()
    assert not snapshot.nodes.alive.any()


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_forks_change_neither_their_snapshot_nor_each_other(seed: int) -> None:
    rng = random.Random(seed)
    cluster = random_cluster(rng, nodes=5, bound=6, pending=10)
    snapshot = Snapshot()
    put_all(snapshot, deltas_of(cluster))
    before = described(snapshot)
    asks = [Ask(snapshot.shapes[number], count) for number, count in snapshot.demand().items()]
    one, other = snapshot.fork(), snapshot.fork()
    untouched = described(snapshot, other)
    one.place(asks)
    after = [room_of(one), counts_of(one)]

    assert described(snapshot, other) == untouched
    assert described(snapshot) == before
    other.place(asks)
    assert [room_of(other), counts_of(other)] == after
    assert [room_of(one), counts_of(one)] == after
    assert described(snapshot) == before


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_a_fork_without_nodes_is_that_of_a_snapshot_without_them_and_their_pods(seed: int) -> None:
    rng = random.Random(seed)
    cluster = random_cluster(rng, nodes=6, bound=14, pending=6, features=FEATURES - {"rwop"})
    whole, rest = Snapshot(), Snapshot()
    put_all(whole, deltas_of(cluster))
    gone = [node["metadata"]["name"] for node in cluster["nodes"] if rng.random() < 0.4]

    def stays(kind: str, thing: Json) -> bool:
        if kind not in ("pods", "pending"):
            return thing["metadata"]["name"] not in gone
        return not {thing["spec"].get("nodeName"), (thing.get("status") or {}).get("nominatedNodeName")} & set(gone)

    kept = [(kind, thing) for kind, thing in deltas_of(cluster) if stays(kind, thing)]
    put_all(rest, kept)
    pending = sorted(key for keys in rest.pending().values() for key in keys)
    fork = whole.fork(without=gone)

    assert fork.names() == rest.fork().names()
    assert room_of(fork) == room_of(rest.fork())
    assert answers_of_snapshot(whole, pending, without=gone) == answers_of_snapshot(rest, pending)


# Defined states


def container(cpu: str) -> Json:
    """A container that requests so much cpu."""
    return {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}


def pod(name: str, cpu: str = "1", *, node: str = "", priority: int = 0, **own: Any) -> Json:
    """A pod."""
    status: Json = {"phase": "Running" if node else "Pending"}
    if "nominated" in own:
        status["nominatedNodeName"] = own.pop("nominated")
    metadata: Json = {"name": name, "namespace": "default", "labels": own.pop("labels", {"app": "web"})}
    if own.pop("deleted", False):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if "owner" in own:
        reference = {"kind": "DaemonSet", "name": own.pop("owner"), "uid": "1", "controller": True}
        metadata["ownerReferences"] = [{"apiVersion": "apps/v1", **reference}]
    spec: Json = {"containers": [container(cpu)], "priority": priority, **own}
    if node:
        spec["nodeName"] = node
    return {"metadata": metadata, "spec": spec, "status": status}


def node(name: str, cpu: str = "4", **own: Any) -> Json:
    """A node."""
    return {
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: "zone-a"}},
        "spec": own,
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
    }


def snapshot_with(*, nodes: Iterable[Json] = (), pods: Iterable[Json] = ()) -> Snapshot:
    """A snapshot of nodes and pods."""
    snapshot = Snapshot()
    put_all(snapshot, [*(("nodes", one) for one in nodes), *(("pods", one) for one in pods)])
    return snapshot


def free_cpu(snapshot: Snapshot) -> dict[str, int]:
    """The free cpu of each node in thousandths."""
    space = snapshot.fork()
    return dict(zip(space.names(), space.free[CPU].tolist(), strict=True))


def pending_names(snapshot: Snapshot) -> list[str]:
    """The names of the pods that ask for a node."""
    return sorted(name for keys in snapshot.pending().values() for _, name in keys)


def feasible(snapshot: Snapshot, name: str) -> list[str]:
    """The nodes on which a pod fits."""
    answers = answers_of_snapshot(snapshot, [("default", name)])
    return sorted(node_name for (_, node_name), refused in answers.items() if not refused)


def test_a_pod_on_an_unknown_node_takes_room_as_soon_as_the_node_is_known() -> None:
    snapshot = snapshot_with(nodes=[node("a")], pods=[pod("one", node="b")])

    assert (free_cpu(snapshot), pending_names(snapshot)) == ({"a": 4000}, [])
    put(snapshot, "nodes", node("b"))
    assert free_cpu(snapshot) == {"a": 4000, "b": 3000}
    snapshot.remove_node("b")
    assert (free_cpu(snapshot), pending_names(snapshot)) == ({"a": 4000}, [])
    snapshot.remove_pod(("default", "one"))
    put(snapshot, "nodes", node("b"))
    assert free_cpu(snapshot) == {"a": 4000, "b": 4000}


def test_the_room_of_a_removed_node_is_not_that_of_the_next_one_in_its_place() -> None:
    snapshot = snapshot_with(nodes=[node("a")], pods=[pod("one", node="a"), pod("two", labels={"app": "db"})])
    snapshot.remove_node("a")
    put(snapshot, "nodes", node("b", "2"))

    assert free_cpu(snapshot) == {"b": 2000}
    assert feasible(snapshot, "two") == ["b"]


def test_a_claim_without_a_node_is_an_upcoming_node() -> None:
    snapshot = snapshot_with(pods=[pod("one", "3")])
    snapshot.put_claim(upcoming("c"))

    assert feasible(snapshot, "one") == ["nodeclaim/c"]
    snapshot.put_claim(upcoming("c", "a"))
    assert feasible(snapshot, "one") == ["nodeclaim/c"]
    put(snapshot, "nodes", node("a", "2"))
    assert free_cpu(snapshot) == {"a": 2000}
    assert feasible(snapshot, "one") == []
    snapshot.remove_node("a")
    assert free_cpu(snapshot) == {"nodeclaim/c": 4000}
    snapshot.remove_claim("c")
    assert free_cpu(snapshot) == {}


def test_pods_that_keep_apart_may_use_several_upcoming_nodes() -> None:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    snapshot = snapshot_with(pods=[pod(f"pod-{number}", affinity=affinity) for number in range(3)])
    snapshot.put_claim(upcoming("one"))
    snapshot.put_claim(upcoming("two"))
    asks = [Ask(snapshot.shapes[number], count) for number, count in snapshot.demand().items()]
    space = snapshot.fork()

    assert [ask.count for ask in space.place(asks)] == [1]
    assert sorted(space.names()[step.node] for step in space.steps) == ["nodeclaim/one", "nodeclaim/two"]


@pytest.mark.parametrize(
    ("taints", "initialized", "expected"),
    [
        pytest.param([{"key": "warming", "effect": "NoSchedule"}], False, ["a"], id="startup-taint"),
        pytest.param([{"key": "warming", "effect": "NoSchedule"}], True, [], id="startup-taint-that-came-back"),
        pytest.param([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}], False, ["a"], id="not-ready"),
        pytest.param([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}], True, [], id="broken"),
        pytest.param([{"key": "dedicated", "effect": "NoSchedule"}], False, [], id="another-taint"),
    ],
)
def test_taints_of_starting_nodes_pass(taints: list[Json], initialized: bool, expected: list[str]) -> None:
    snapshot = snapshot_with(nodes=[node("a", taints=taints)], pods=[pod("one")])
    warming = (NodeTaint("warming", "NoSchedule"),)
    snapshot.put_claim(upcoming("c", "a", startup_taints=warming, initialized=initialized))

    assert feasible(snapshot, "one") == expected


def test_a_node_without_a_claim_is_a_node_like_any_other() -> None:
    snapshot = snapshot_with(nodes=[node("a")], pods=[pod("one")])

    assert feasible(snapshot, "one") == ["a"]


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        pytest.param(9, ["a"], id="higher-priority"),
        pytest.param(5, [], id="same-priority"),
        pytest.param(0, [], id="lower-priority"),
    ],
)
def test_a_promised_node_is_open_to_higher_priorities_only(priority: int, expected: list[str]) -> None:
    promised = pod("promised", "3", priority=5, nominated="a")
    snapshot = snapshot_with(nodes=[node("a")], pods=[promised, pod("other", "2", priority=priority)])

    assert pending_names(snapshot) == ["other"]
    assert feasible(snapshot, "other") == expected
    assert feasible(snapshot, "promised") == ["a"]
    asks = [Ask(snapshot.shape_at(("default", "other")), 1)]
    assert [ask.count for ask in snapshot.fork().place(asks)] == ([] if expected else [1])


def test_a_pod_that_is_promised_an_unknown_node_is_pending() -> None:
    snapshot = snapshot_with(nodes=[node("a")], pods=[pod("promised", nominated="b")])

    assert pending_names(snapshot) == ["promised"]
    put(snapshot, "nodes", node("b"))
    assert pending_names(snapshot) == []
    snapshot.remove_node("b")
    assert pending_names(snapshot) == ["promised"]
    put(snapshot, "pods", pod("promised", node="a"))
    put(snapshot, "nodes", node("b"))
    assert free_cpu(snapshot) == {"a": 3000, "b": 4000}


def test_promised_pods_keep_others_apart_from_them() -> None:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [pod("promised", nominated="a", affinity=apart), pod("other", affinity=apart)]
    snapshot = snapshot_with(nodes=[node("a"), node("b")], pods=pods)

    assert feasible(snapshot, "other") == ["b"]
    space = snapshot.fork()
    assert not space.place([Ask(snapshot.shape_at(("default", "other")), 1)])
    assert [space.names()[step.node] for step in space.steps] == ["b"]


@pytest.mark.parametrize(
    ("bound_to", "free", "waiting"),
    [
        pytest.param("a", 3000, [], id="bound-takes-its-room"),
        pytest.param("", 4000, [], id="unbound-asks-for-nothing"),
    ],
)
def test_terminating_pods(bound_to: str, free: int, waiting: list[str]) -> None:
    snapshot = snapshot_with(nodes=[node("a")], pods=[pod("one", node=bound_to, deleted=True)])

    assert free_cpu(snapshot) == {"a": free}
    assert pending_names(snapshot) == waiting


def test_finished_pods_take_nothing() -> None:
    snapshot = snapshot_with(nodes=[node("a")], pods=[pod("one", node="a")])
    done = pod("one", node="a")
    done["status"] = {"phase": "Succeeded"}
    put(snapshot, "pods", done)

    assert free_cpu(snapshot) == {"a": 4000}


def test_room_is_set_aside_for_daemons_that_do_not_run_yet() -> None:
    snapshot = snapshot_with(nodes=[node("a"), node("b")], pods=[pod("agent-1", "100m", node="a", owner="agent")])
    snapshot.put_daemon_set(("default", "agent"), daemons())

    assert free_cpu(snapshot) == {"a": 3900, "b": 3900}
    put(snapshot, "pods", pod("agent-2", "100m", node="b", owner="agent"))
    assert free_cpu(snapshot) == {"a": 3900, "b": 3900}
    snapshot.remove_pod(("default", "agent-2"))
    put(snapshot, "pods", pod("agent-3", "100m", owner="agent"))
    assert free_cpu(snapshot) == {"a": 3900, "b": 3900}
    assert pending_names(snapshot) == []
    assert snapshot.fork().free[PODS].tolist() == [109, 109]
    snapshot.remove_daemon_set(("default", "agent"))
    assert free_cpu(snapshot) == {"a": 3900, "b": 4000}


def test_pods_on_nodes_are_counted_by_shape_without_daemons() -> None:
    pods = [pod("one", node="a"), pod("two", node="a"), pod("three", "2", node="b"), pod("d", node="a", owner="agent")]
    snapshot = snapshot_with(nodes=[node("a"), node("b")], pods=pods)
    found = snapshot.pods_on([snapshot.node_row("a")])

    assert {snapshot.shapes[number].amounts[CPU]: count for number, count in found.items()} == {1000: 2}


def test_labels_that_a_selector_reads_later_tell_pods_apart() -> None:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"tier": "gold"}}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [
        pod("gold", node="a", labels={"tier": "gold"}),
        pod("silver", node="b", labels={"tier": "silver"}),
        pod("waiting-1", labels={"tier": "gold"}),
        pod("waiting-2", labels={"tier": "silver"}),
    ]
    snapshot = snapshot_with(nodes=[node("a"), node("b")], pods=pods)

    assert list(snapshot.demand().values()) == [2]
    put(snapshot, "pods", pod("late", affinity=near))
    assert feasible(snapshot, "late") == ["a"]
    assert sorted(snapshot.demand().values()) == [1, 1, 1]


def test_shapes_hold_only_what_decides() -> None:
    pods = []
    for number in range(20):
        made = pod(f"pod-{number}", labels={"app": "web", "pod-template-hash": str(number)})
        made["spec"]["containers"][0] |= {"image": f"image-{number}", "env": [{"name": "N", "value": str(number)}]}
        pods.append(made)
    snapshot = snapshot_with(pods=pods)

    assert list(snapshot.demand().values()) == [20]


def test_a_template_has_the_shape_of_its_pods() -> None:
    snapshot = snapshot_with(nodes=[node("a")], pods=[pod("one")])
    shape = snapshot.shape_of("default", record_of(pod("another")))

    assert shape is snapshot.shape_at(("default", "one"))
    assert list(snapshot.demand().values()) == [1]


def test_default_spread_constraints_are_those_of_pods_of_workloads_without_their_own() -> None:
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "1", "apiVersion": "apps/v1", "controller": True}
    raw: list[dict[str, Any]] = [
        {
            "metadata": {"name": f"pod-{number}", "namespace": "default", "labels": {"app": "web"}, **more},
            "spec": {"containers": [{"name": "main"}]},
        }
        for number, more in enumerate([{"ownerReferences": [owner]}, {}])
    ]
    snapshot = Snapshot(default_spreads=SYSTEM_DEFAULT_SPREADS)
    for pod in raw:
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        snapshot.put_pod(key, pod_record(msgspec.convert(pod, PodView)))

    with_owner, alone = snapshot.shape_at(("default", "pod-0")), snapshot.shape_at(("default", "pod-1"))

    assert [each.max_skew for each in with_owner.constraints.soft_spreads] == [3, 5]
    assert all(each.self_match for each in with_owner.constraints.soft_spreads)
    assert alone.constraints.soft_spreads == ()
