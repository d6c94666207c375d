"""A store equals the server at one resourceVersion, and never goes back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any
from weakref import ref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.scripted_transport import added, bookmark, deleted, modified, pod

from springtide.cluster.resources import Key
from springtide.cluster.store import Delta, Store
from springtide.cluster.transport import WatchEvent, WatchEventType
from springtide.simulator.virtual_time import VirtualClock, run


def node_of(item: Any) -> str:
    """Keep of a pod only where it runs."""
    node: str = item["spec"]["nodeName"]
    return node


def key(name: str) -> Key:
    return Key("default", name)


def nodes(by: dict[str, str]) -> dict[Key, str]:
    return {key(name): node for name, node in by.items()}


def filled(**nodes: str) -> tuple[Store[str], list[Delta[str]]]:
    """Make a store of pods at version 10, and the list of its deltas from now on."""
    store: Store[str] = Store(node_of, {"node": lambda node: (node,) if node else ()})
    store.replace([pod(name, 5, node) for name, node in nodes.items()], 10)
    deltas: list[Delta[str]] = []
    store.listen(deltas.append)
    return store, deltas


def contents(store: Store[str]) -> dict[Key, str]:
    return dict(zip(store.keys(), store.values(), strict=True))


@pytest.mark.parametrize(
    ("write", "expected", "version", "deltas"),
    [
        pytest.param(
            lambda s: s.apply(added("b", 11, "n2")), {"a": "n1", "b": "n2"}, 11, [("b", None, "n2")], id="appears"
        ),
        pytest.param(lambda s: s.apply(modified("a", 11, "n2")), {"a": "n2"}, 11, [("a", "n1", "n2")], id="changes"),
        pytest.param(lambda s: s.apply(deleted("a", 11)), {}, 11, [("a", "n1", None)], id="goes"),
        pytest.param(lambda s: s.apply(modified("a", 11, "n1")), {"a": "n1"}, 11, [], id="an equal record is no news"),
        pytest.param(lambda s: s.apply(deleted("z", 11)), {"a": "n1"}, 11, [], id="an unknown one goes"),
        pytest.param(
            lambda s: s.apply(modified("a", 10, "n9")), {"a": "n1"}, 10, [], id="an event of the same version"
        ),
        pytest.param(lambda s: s.apply(deleted("a", 9)), {"a": "n1"}, 10, [], id="a deletion of long ago"),
        pytest.param(lambda s: s.apply(added("z", 7, "n1")), {"a": "n1"}, 10, [], id="nothing deleted comes back"),
        pytest.param(lambda s: s.apply(bookmark(12)), {"a": "n1"}, 12, [], id="a bookmark"),
        pytest.param(lambda s: s.apply(bookmark(9)), {"a": "n1"}, 10, [], id="an old bookmark"),
        pytest.param(lambda s: s.advance(12), {"a": "n1"}, 12, [], id="advance"),
        pytest.param(lambda s: s.advance(9), {"a": "n1"}, 10, [], id="advance backwards"),
        pytest.param(
            lambda s: s.replace([pod("b", 12, "n2"), pod("c", 13)], 13),
            {"b": "n2", "c": ""},
            13,
            [("a", "n1", None), ("b", None, "n2"), ("c", None, "")],
            id="a new list tells the difference",
        ),
        pytest.param(lambda s: s.replace([pod("a", 12, "n1")], 13), {"a": "n1"}, 13, [], id="a list without news"),
        pytest.param(lambda s: s.replace([], 9), {"a": "n1"}, 10, [], id="a stale list"),
        pytest.param(lambda s: s.replace([], 10), {}, 10, [("a", "n1", None)], id="a list of the same version"),
    ],
)
def test_writes(
    write: Callable[[Store[str]], None],
    expected: dict[str, str],
    version: int,
    deltas: list[tuple[str, str | None, str | None]],
) -> None:
    store, found = filled(a="n1")
    write(store)

    assert contents(store) == nodes(expected)
    assert store.version == version
    assert found == [Delta(key(name), old, new) for name, old, new in deltas]


def test_reading() -> None:
    store, _ = filled(c="n1", a="n1", b="n2")

    assert len(store) == 3
    assert key("a") in store
    assert key("z") not in store
    assert store.get(key("b")) == "n2"
    assert store.get(key("z")) is None
    assert store.keys() == [key("a"), key("b"), key("c")]
    assert store.values() == ["n1", "n2", "n1"]
    assert store.keys_by("node", "n1") == [key("a"), key("c")]
    assert store.by("node", "n2") == ["n2"]
    assert store.by("node", "n3") == []


def test_an_unknown_index_is_an_error() -> None:
    store, _ = filled()
    with pytest.raises(KeyError):
        store.by("zone", "a")


def test_a_list_of_records_does_not_change_with_the_store() -> None:
    store, _ = filled(a="n1")
    store.keys().append(key("mine"))
    before = store.keys()
    store.apply(added("b", 11))

    assert before == [key("a")]
    assert store.keys() == [key("a"), key("b")]


def test_objects_without_namespace_come_first() -> None:
    store: Store[Any] = Store()
    items = [pod("b", 1), {"metadata": {"name": "z", "resourceVersion": "1"}}]
    store.replace(items, 1)

    assert store.keys() == [Key("", "z"), Key("default", "b")]


def test_without_a_record_function_the_item_itself_is_kept() -> None:
    store: Store[Any] = Store()
    item = pod("a", 1)
    store.replace([item], 1)

    assert store.get(key("a")) is item


def test_an_unchanged_record_stays_the_same_object_after_a_relist() -> None:
    """References to a record keep no second copy of it."""
    store: Store[list[str]] = Store(lambda item: [item["spec"]["nodeName"]])
    store.replace([pod("a", 1, "n1")], 1)
    before = store.get(key("a"))
    store.replace([pod("a", 2, "n1")], 2)

    assert store.get(key("a")) is before


def test_an_index_drops_values_without_records() -> None:
    class Value:
        """Something that tells when it is gone."""

    store: Store[Value] = Store(lambda item: Value(), {"value": lambda value: (value,)})
    store.replace([pod("a", 1)], 1)
    value = ref(store.values()[0])
    assert store.keys_by("value", value()) == [key("a")]
    store.apply(deleted("a", 2))

    assert value() is None


def test_listeners_see_the_complete_new_list() -> None:
    store, _ = filled(a="n1")
    seen: list[tuple[int, list[Key]]] = []
    store.listen(lambda delta: seen.append((store.version, store.keys())))
    store.replace([pod("b", 12), pod("c", 12)], 13)

    assert seen == [(13, [key("b"), key("c")])] * 3


def test_a_failing_listener_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    store: Store[str] = Store(node_of)
    deltas: list[Delta[str]] = []

    def fail(delta: Delta[str]) -> None:
        raise ZeroDivisionError

    store.listen(fail)
    store.listen(deltas.append)
    with caplog.at_level(logging.ERROR):
        store.replace([pod("a", 1, "n1")], 1)
        store.apply(deleted("a", 2))

    assert deltas == [Delta(key("a"), None, "n1"), Delta(key("a"), "n1", None)]
    assert [record.message for record in caplog.records] == [
        "a listener failed on the change of default/a; others go on"
    ] * 2


def test_replay_passes_every_record(caplog: pytest.LogCaptureFixture) -> None:
    """Also if the listener fails on one of them."""
    store, _ = filled(a="n1", b="n2")
    deltas: list[Delta[str]] = []

    def fail_on_the_first(delta: Delta[str]) -> None:
        deltas.append(delta)
        if delta.key == key("a"):
            raise ZeroDivisionError

    with caplog.at_level(logging.ERROR):
        store.listen(fail_on_the_first, replay=True)
        store.apply(deleted("b", 30))

    assert deltas == [Delta(key("a"), None, "n1"), Delta(key("b"), None, "n2"), Delta(key("b"), "n2", None)]
    assert len(caplog.records) == 1


def broken(name: str, version: int) -> WatchEvent:
    """Make an event of a pod that has no spec."""
    metadata = {"namespace": "default", "name": name, "resourceVersion": str(version)}
    return WatchEvent(WatchEventType.MODIFIED, {"metadata": metadata})


def test_an_unreadable_object_counts_as_absent_until_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    """Other objects are not affected, and the log names it with a stack trace."""
    store, deltas = filled(a="n1", b="n1")
    store.apply(broken("a", 11))
    store.apply(modified("b", 12, "n2"))

    assert (contents(store), store.version) == (nodes({"b": "n2"}), 12)
    assert {name: why.reason for name, why in store.unreadable.items()} == {key("a"): "KeyError: 'spec'"}
    assert deltas == [Delta(key("a"), "n1", None), Delta(key("b"), "n1", "n2")]
    assert "Traceback" in caplog.text

    store.apply(modified("a", 13, "n3"))
    assert contents(store) == nodes({"a": "n3", "b": "n2"})
    assert store.unreadable == {}


def test_an_unreadable_object_does_not_block_a_list() -> None:
    """A later list updates what is unreadable."""
    store, _ = filled(a="n1")
    store.replace([broken("a", 11).object, broken("b", 12).object, pod("c", 13, "n1")], 20)
    assert (contents(store), list(store.unreadable)) == (nodes({"c": "n1"}), [key("a"), key("b")])

    store.apply(deleted("a", 21))
    assert list(store.unreadable) == [key("b")]
    store.replace([pod("c", 13, "n1")], 30)
    assert store.unreadable == {}


def test_a_record_that_is_none_is_unreadable() -> None:
    """None means that there is no object; use selectors to leave objects out."""
    store: Store[Any] = Store(lambda item: None)
    store.replace([pod("a", 1)], 1)
    store.apply(added("b", 2))

    assert len(store) == 0
    refusal = "TypeError: its record is None, expected a value; a selector leaves objects out"
    assert [why.reason for why in store.unreadable.values()] == [refusal] * 2


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(lambda node: {"n1": ["x"], "n2": ["y"]}[node], id="that raises"),
        pytest.param(lambda node: [{"odd": [], "n1": "x", "n2": "y"}[node]], id="of no hashable value"),
    ],
)
def test_a_failing_index_finds_the_record_under_no_value(values: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Other records and indexes are not affected, and its former value is dropped."""
    store: Store[str] = Store(node_of, {"good": lambda node: [node], "bad": values})
    store.replace([pod("a", 1, "n1"), pod("b", 2, "odd"), pod("c", 3, "n2")], 5)
    deltas: list[Delta[str]] = []
    store.listen(deltas.append)
    store.apply(modified("a", 6, "odd"))

    assert contents(store) == nodes({"a": "odd", "b": "odd", "c": "n2"})
    assert store.keys_by("good", "odd") == [key("a"), key("b")]
    assert (store.keys_by("bad", "x"), store.keys_by("bad", "y")) == ([], [key("c")])
    assert deltas == [Delta(key("a"), "n1", "odd")]
    assert "an index fails on default/b" in caplog.text

    store.apply(modified("a", 7, "n1"))
    assert store.keys_by("bad", "x") == [key("a")]


def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    """A cache that never syncs must not collect futures."""

    async def main(clock: VirtualClock) -> None:
        store: Store[Any] = Store()
        waiting = [asyncio.ensure_future(store.wait_synced()), asyncio.ensure_future(store.wait_for_version(5))]
        patient = asyncio.ensure_future(store.wait_for_version(7))
        await clock.sleep(1)
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert (len(store._sync), len(store._barriers)) == (0, 1)
        store.replace([], 7)
        await patient

    run(main)


def test_waiting_for_the_first_list() -> None:
    async def main(clock: VirtualClock) -> None:
        store: Store[Any] = Store()
        waiting = [asyncio.create_task(store.wait_synced()) for _ in range(2)]
        await asyncio.sleep(1)
        assert not store.synced
        assert not waiting[0].done()
        waiting[1].cancel()
        store.replace([], 3)
        await waiting[0]
        await store.wait_synced()
        assert store.synced

    run(main)


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda s: s.apply(modified("a", 15)), id="by an event"),
        pytest.param(lambda s: s.apply(modified("a", 16)), id="by a later event"),
        pytest.param(lambda s: s.apply(bookmark(15)), id="by a bookmark"),
        pytest.param(lambda s: s.replace([], 20), id="by a list"),
    ],
)
def test_waiting_for_a_version(write: Callable[[Store[str]], None]) -> None:
    async def main(clock: VirtualClock) -> None:
        store, _ = filled(a="n1")
        await store.wait_for_version(10)
        waiting = {version: asyncio.create_task(store.wait_for_version(version)) for version in (100, 15, 12)}
        cancelled = asyncio.create_task(store.wait_for_version(15))
        await asyncio.sleep(1)
        cancelled.cancel()
        assert not any(task.done() for task in waiting.values())
        write(store)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

        assert {version: task.done() for version, task in waiting.items()} == {100: False, 15: True, 12: True}
        waiting[100].cancel()

    run(main)


class Server:
    """A naive model: the whole history of a few pods, and the state at each version."""

    def __init__(self) -> None:
        self.states: list[dict[str, str]] = [{}]
        self.events: list[WatchEvent | None] = [None]

    @property
    def version(self) -> int:
        return len(self.states) - 1

    def write(self, name: str, node: str | None) -> None:
        """Create, change or delete a pod; to delete what is not there only counts the version, as others' writes do."""
        state, version = dict(self.states[-1]), self.version + 1
        event: WatchEvent | None = None
        if node is not None:
            event = (modified if name in state else added)(name, version, node)
            state[name] = node
        elif name in state:
            event = deleted(name, version, state.pop(name))
        self.states.append(state)
        self.events.append(event)

    def list(self, version: int) -> list[Any]:
        return [pod(name, version, node) for name, node in sorted(self.states[version].items())]


NAMES = st.sampled_from("abcd")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, st.sampled_from([None, "", "n1", "n2"])),
        st.tuples(st.just("list"), st.integers(0, 40), st.none()),
        st.tuples(st.just("watch"), st.integers(0, 40), st.integers(0, 10)),
        st.tuples(st.just("bookmark"), st.integers(0, 40), st.none()),
    ),
    max_size=60,
)


@settings(max_examples=300)
@given(STEPS)
def test_a_store_equals_the_server_at_its_version_whatever_is_replayed(steps: list[tuple[str, Any, Any]]) -> None:
    """Lists of any age, and watches from any version that the store has passed, for as long as they last."""
    server = Server()
    store: Store[str] = Store(node_of, {"node": lambda node: (node, node) if node else ()})
    deltas: dict[Key, str] = {}

    def take(delta: Delta[str]) -> None:
        assert deltas.get(delta.key) == delta.old
        assert delta.old != delta.new
        if delta.new is None:
            del deltas[delta.key]
        else:
            deltas[delta.key] = delta.new

    store.listen(take)
    store.replace([], 0)
    for step, first, second in steps:
        before = store.version
        if step == "write":
            server.write(first, second)
        elif step == "list":
            version = min(first, server.version)
            store.replace(server.list(version), version)
        elif step == "watch":
            begin = min(first, store.version)
            for event in server.events[begin + 1 : begin + 1 + second]:
                if event is not None:
                    store.apply(event)
        else:
            for event in server.events[store.version + 1 : first + 1]:
                if event is not None:
                    store.apply(event)
            store.apply(bookmark(min(first, server.version)))

        assert store.version >= before
        expected = nodes(server.states[store.version])
        assert contents(store) == expected
        assert deltas == expected
        assert store.keys() == sorted(expected)
        for node in ("", "n1", "n2"):
            assert store.keys_by("node", node) == sorted(k for k, n in expected.items() if n == node != "")
