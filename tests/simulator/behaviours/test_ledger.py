"""The scheduler's books agree with a count of everything, whatever happened before."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulator.behaviours.objects import live_pod

from springtide.cluster.resources import Key, Object
from springtide.cluster.store import Delta
from springtide.quantity import Quantity
from springtide.simulator.behaviours.ledger import Ledger

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


@settings(deadline=None)
@given(events)
def test_the_books_agree_with_a_count_of_everything(happened: list[tuple[object, ...]]) -> None:
    ledger, pods, nodes = Ledger(), dict[str, Object](), dict[str, Object]()
    generation = 0
    for kind, name, what, *more in happened:
        assert isinstance(name, str)
        table, key = (pods, Key("default", name)) if kind == "pod" else (nodes, Key("", name))
        old, new = table.get(name), None
        if kind == "node" and what != "gone":
            new = {"metadata": {"name": name}, "status": {"allocatable": {"cpu": what, "pods": "10"}}}
        elif kind == "pod" and what != "gone":
            # A pod that is on a node stays there until it is gone.
            bound = old["spec"].get("nodeName") if old is not None else None
            new = sized_pod(name, bound or what, str(more[0]), bool(more[1]), generation)  # type: ignore[arg-type]
        if old is None and new is None:
            continue
        if new is None:
            generation += 1
            del table[name]
        else:
            table[name] = new
        (ledger.pod_changed if kind == "pod" else ledger.node_changed)(Delta(key, old, new))
    rooms = {room.node["metadata"]["name"]: (room.used.get("cpu", 0), room.pods) for room in ledger.rooms()}
    assert rooms == {name: _count(pods, name) for name in sorted(nodes)}
    waiting = {
        Key("default", name)
        for name, pod in pods.items()
        if not pod["spec"].get("nodeName")
        and pod["status"]["phase"] != "Succeeded"
        and "deletionTimestamp" not in pod["metadata"]
    }
    assert set(ledger.waiting) == waiting


def _count(pods: dict[str, Object], node: str) -> tuple[int, int]:
    there = [
        Quantity.parse(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]).nano
        for pod in pods.values()
        if pod["spec"].get("nodeName") == node and pod["status"]["phase"] != "Succeeded"
    ]
    return sum(there), len(there)


def test_a_parked_pod_stays_parked_until_there_is_a_chance() -> None:
    ledger, key = Ledger(), Key("default", "p")
    pod = sized_pod("p", None, "Pending", False, 0)
    ledger.pod_changed(Delta(key, None, pod))
    ledger.park(pod, chances=ledger.chances)
    told = {**pod, "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}}
    ledger.pod_changed(Delta(key, pod, told))
    assert (list(ledger.waiting), list(ledger.parked)) == ([], [key])
    ledger.node_changed(Delta(Key("", "a"), None, {"metadata": {"name": "a"}}))
    assert (list(ledger.waiting), list(ledger.parked)) == ([key], [])


def test_a_pod_is_not_parked_when_a_chance_came_while_it_was_judged() -> None:
    ledger, key = Ledger(), Key("default", "p")
    pod = sized_pod("p", None, "Pending", False, 0)
    ledger.pod_changed(Delta(key, None, pod))
    before = ledger.chances
    ledger.node_changed(Delta(Key("", "a"), None, {"metadata": {"name": "a"}}))
    ledger.park(pod, chances=before)
    assert list(ledger.waiting) == [key]


def test_a_pod_on_its_way_to_a_node_counts_there_before_the_store_says_so() -> None:
    ledger, key = Ledger(), Key("default", "p")
    pod = sized_pod("p", None, "Pending", False, 0)
    ledger.node_changed(Delta(Key("", "a"), None, {"metadata": {"name": "a"}}))
    ledger.pod_changed(Delta(key, None, pod))
    ledger.take(pod, "a")
    ledger.pod_changed(Delta(key, pod, {**pod, "status": {"phase": "Pending"}}))
    assert (ledger.rooms()[0].pods, list(ledger.waiting)) == (1, [])
    ledger.pod_changed(Delta(key, pod, {**pod, "spec": {**pod["spec"], "nodeName": "a"}}))
    assert ledger.rooms()[0].pods == 1
