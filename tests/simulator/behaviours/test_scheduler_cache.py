"""The scheduler cache equals a full count after any sequence of deltas."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulator.behaviours.objects import live_pod, record_of

from springtide.apis.core.nodes import NodeRecord
from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Delta
from springtide.packing.columns import CPU, PODS
from springtide.quantity import Quantity
from springtide.simulator.behaviours.scheduler_cache import SchedulerCache

NAMES = ("p", "q", "r")
PLACES = (None, "a", "b")
PHASES = ("Pending", "Running", "Succeeded")

events = st.lists(
    st.one_of(
        st.tuples(
            st.just("pod"),
            st.sampled_from(NAMES),
            st.sampled_from([*PLACES, "gone"]),
            st.sampled_from(PHASES),
            st.booleans(),
        ),
        st.tuples(st.just("node"), st.sampled_from(("a", "b")), st.sampled_from(["1", "2", "gone"])),
    ),
    max_size=40,
)


def sized_pod(name: str, place: str | None, phase: str, going: bool, generation: int) -> Object:
    milli = 100 * (NAMES.index(name) + 1)
    made = live_pod(name, node=place, phase=phase, going=going, uid=f"{name}-{generation}")
    made["spec"]["containers"] = [{"name": "main", "resources": {"requests": {"cpu": f"{milli}m"}}}]
    return made


def ready_node(name: str, *, cpu: str) -> NodeRecord:
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": {"cpu": cpu, "pods": "10"}, "conditions": conditions}
    return record_of({"metadata": {"name": name, "labels": {"name": name}}, "status": status})


def usage(cache: SchedulerCache, node: str) -> tuple[int, int]:
    """Return the milli-cpu and the number of pods that the board shows as used on a node."""
    board, row = cache.board, cache.row_of(node)
    allocatable = cache.snapshot.nodes.allocatable[:, cache.snapshot.node_row(node)]
    used = allocatable - board.free[:, row]
    return int(used[CPU]), int(used[PODS])


@settings(deadline=None)
@given(events)
def test_the_scheduler_cache_matches_a_full_count(happened: list[tuple[object, ...]]) -> None:
    cache, pods, nodes = SchedulerCache(), dict[str, Object](), dict[str, NodeRecord]()
    generation = 0
    for kind, name, what, *more in happened:
        assert isinstance(name, str)
        if kind == "node":
            before = nodes.pop(name, None)
            if what != "gone":
                nodes[name] = ready_node(name, cpu=str(what))
            if before is not None or name in nodes:
                cache.node_changed(Delta(Key("", name), before, nodes.get(name)))
            continue
        old, new = pods.get(name), None
        if what != "gone":
            # A pod that is bound stays on its node until it is deleted.
            bound = old["spec"].get("nodeName") if old is not None else None
            new = pods[name] = sized_pod(name, bound or what, str(more[0]), bool(more[1]), generation)  # type: ignore[arg-type]
        elif old is not None:
            generation += 1
            del pods[name]
        if old is not None or new is not None:
            cache.pod_changed(Delta(Key("default", name), old, new))
    used = {name: usage(cache, name) for name in sorted(nodes)}
    assert used == {name: _count(pods, name) for name in sorted(nodes)}
    pending = {
        Key("default", name)
        for name, pod in pods.items()
        if not pod["spec"].get("nodeName")
        and pod["status"]["phase"] != "Succeeded"
        and "deletionTimestamp" not in pod["metadata"]
    }
    assert set(cache.pending) == pending


def _count(pods: dict[str, Object], node: str) -> tuple[int, int]:
    there = [
        Quantity.parse(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]).milli
        for pod in pods.values()
        if pod["spec"].get("nodeName") == node and pod["status"]["phase"] != "Succeeded"
    ]
    return sum(there), len(there)


def test_an_unschedulable_pod_waits_for_an_event_that_may_help() -> None:
    cache, key = SchedulerCache(), Key("default", "p")
    pod = sized_pod("p", None, "Pending", False, 0)
    cache.pod_changed(Delta(key, None, pod))
    cache.mark_unschedulable(pod, move_cycle=cache.move_cycle)
    reported = {**pod, "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}}
    cache.pod_changed(Delta(key, pod, reported))
    assert (list(cache.pending), cache.unschedulable.keys()) == ([], [key])
    cache.node_changed(Delta(Key("", "a"), None, record_of({})))
    assert (cache.pending, cache.unschedulable.keys()) == ({key: reported}, [])


def test_a_pod_stays_pending_if_an_event_came_during_its_evaluation() -> None:
    cache, key = SchedulerCache(), Key("default", "p")
    pod = sized_pod("p", None, "Pending", False, 0)
    cache.pod_changed(Delta(key, None, pod))
    before = cache.move_cycle
    cache.node_changed(Delta(Key("", "a"), None, record_of({})))
    cache.mark_unschedulable(pod, move_cycle=before)
    assert list(cache.pending) == [key]


def test_a_pod_that_changed_during_its_evaluation_stays_pending() -> None:
    cache, key = SchedulerCache(), Key("default", "p")
    pod = sized_pod("p", None, "Pending", False, 0)
    cache.pod_changed(Delta(key, None, pod))
    newer = {**pod, "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}}
    cache.pod_changed(Delta(key, pod, newer))
    cache.mark_unschedulable(pod, move_cycle=cache.move_cycle)
    cache.drop(pod)
    assert (cache.pending, cache.unschedulable.keys()) == ({key: newer}, [])
    cache.mark_unschedulable(newer, move_cycle=cache.move_cycle)
    assert (cache.pending, cache.unschedulable.keys()) == ({}, [key])


@pytest.mark.parametrize(
    ("change", "waits"),
    [
        pytest.param({"spec": {"priority": 1}}, True, id="its spec changed"),
        pytest.param({"metadata": {"uid": "another"}}, True, id="it was created again"),
        pytest.param({"metadata": {"deletionTimestamp": "2027-01-15T08:00:00Z"}}, False, id="it is terminating"),
        pytest.param({"status": {"phase": "Failed"}}, False, id="it is finished"),
    ],
)
def test_an_unschedulable_pod_that_changes_is_removed(change: dict[str, Object], waits: bool) -> None:
    cache, key = SchedulerCache(), Key("default", "p")
    pod = sized_pod("p", None, "Pending", False, 0)
    cache.pod_changed(Delta(key, None, pod))
    cache.mark_unschedulable(pod, move_cycle=cache.move_cycle)
    changed = pod | {field: pod[field] | value for field, value in change.items()}
    cache.pod_changed(Delta(key, pod, changed))
    assert (list(cache.pending), cache.unschedulable.keys()) == ([key] if waits else [], [])


def test_a_deleted_pod_moves_only_fitting_pods_to_pending() -> None:
    cache = SchedulerCache()
    cache.node_changed(Delta(Key("", "a"), None, ready_node("a", cpu="300m")))
    cache.node_changed(Delta(Key("", "b"), None, ready_node("b", cpu="100m")))
    there = {name: sized_pod(name, "a", "Running", False, 0) for name in ("p", "q")}
    for name, pod in there.items():
        cache.pod_changed(Delta(Key("default", name), None, pod))
    pending = {name: live_pod(name, node=None, phase="Pending") for name in ("small", "large", "elsewhere")}
    for name, cpu in (("small", "100m"), ("large", "300m"), ("elsewhere", "100m")):
        pending[name]["spec"]["containers"] = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    pending["elsewhere"]["spec"]["nodeSelector"] = {"name": "b"}
    for name, pod in pending.items():
        cache.pod_changed(Delta(Key("default", name), None, pod))
        cache.mark_unschedulable(pod, move_cycle=cache.move_cycle)
    cache.pod_changed(Delta(Key("default", "p"), there["p"], None))
    assert [key.name for key in cache.pending] == ["small"]
    cache.pod_changed(Delta(Key("default", "q"), there["q"], None))
    assert [key.name for key in cache.pending] == ["small", "large"]
    assert [key.name for key in cache.unschedulable.keys()] == ["elsewhere"]  # noqa: SIM118 - they are listed in order


def test_a_failed_binding_restores_the_cached_pod() -> None:
    cache, key = SchedulerCache(), Key("default", "p")
    pod = sized_pod("p", None, "Pending", False, 0)
    cache.node_changed(Delta(Key("", "a"), None, ready_node("a", cpu="1")))
    cache.pod_changed(Delta(key, None, pod))
    cache.assume(pod, "a")
    newer = {**pod, "metadata": {**pod["metadata"], "labels": {"new": "yes"}}}
    cache.pod_changed(Delta(key, pod, newer))
    cache.sync(key, newer)
    assert (usage(cache, "a")[1], cache.pending) == (0, {key: newer})
    cache.assume(newer, "a")
    cache.sync(key, {**newer, "spec": {**newer["spec"], "nodeName": "a"}})
    assert (usage(cache, "a")[1], cache.pending) == (1, {})


def test_an_assumed_pod_counts_on_its_node() -> None:
    cache, key = SchedulerCache(), Key("default", "p")
    pod = sized_pod("p", None, "Pending", False, 0)
    cache.node_changed(Delta(Key("", "a"), None, record_of({})))
    cache.pod_changed(Delta(key, None, pod))
    cache.assume(pod, "a")
    cache.pod_changed(Delta(key, pod, {**pod, "status": {"phase": "Pending"}}))
    assert (usage(cache, "a")[1], list(cache.pending)) == (1, [])
    cache.pod_changed(Delta(key, pod, {**pod, "spec": {**pod["spec"], "nodeName": "a"}}))
    assert usage(cache, "a")[1] == 1
