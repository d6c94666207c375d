"""Random writes against a model with one dict per version: all reads must agree with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.objects import CONFIG_MAPS, WRITE, make_server

from springtide.apiserver.server import ApiServer
from springtide.cluster.errors import AlreadyExists, Gone, NotFound
from springtide.cluster.resources import Key, Object, Selection, key_of, version_of
from springtide.cluster.transport import INITIAL_EVENTS_END, Patch, WatchEvent, WatchEventType

_NAMES = ("a", "d-e", "d")
_NAMESPACES = ("default", "kube-system")
_COLORS = ("red", "blue")

keys = st.builds(Key, st.sampled_from(_NAMESPACES), st.sampled_from(_NAMES))
colors = st.sampled_from((*_COLORS, None))
steps = st.one_of(
    st.tuples(st.just("create"), keys, colors),
    st.tuples(st.just("create"), keys, colors),
    st.tuples(st.just("paint"), keys, colors),
    st.tuples(st.just("count"), keys, st.integers(0, 2)),
    st.tuples(st.just("hold"), keys, st.booleans()),
    st.tuples(st.just("delete"), keys, st.none()),
)
stories = st.lists(steps, max_size=8) | st.lists(steps, min_size=25, max_size=50)
_SELECTIONS = (
    Selection(CONFIG_MAPS),
    Selection(CONFIG_MAPS, namespace="default"),
    Selection(CONFIG_MAPS, labels="color=red"),
    Selection(CONFIG_MAPS, labels="color!=red", namespace="kube-system"),
    Selection(CONFIG_MAPS, labels="color in (red,blue)"),
    Selection(CONFIG_MAPS, labels="!color", fields="metadata.name!=a"),
    Selection(CONFIG_MAPS, fields="metadata.name=a"),
)

State = dict[Key, dict[str, Any]]
"""Per object: color, count, whether a finalizer is set, and whether it is being deleted."""


@dataclass
class Model:
    """The expected state, one dict per version."""

    server: ApiServer
    state: State = field(default_factory=dict)
    versions: dict[int, State] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.versions[self.server.revision] = {}

    def do(self, step: tuple[str, Key, Any]) -> None:
        """Run a step in the server and in the model; both must refuse it, or neither."""
        before = self.server.revision
        verb, key, value = step
        known = self.state.get(key)
        after = dict(self.state)
        if verb == "create":
            body: Object = {"metadata": {"name": key.name, "labels": _labels(value)}, "data": {"n": "0"}}
            if known is not None:
                with pytest.raises(AlreadyExists):
                    self.server.create(CONFIG_MAPS, body, WRITE, namespace=key.namespace)
                return
            self.server.create(CONFIG_MAPS, body, WRITE, namespace=key.namespace)
            after[key] = {"color": value, "n": "0", "held": False, "going": False}
        elif known is None:
            with pytest.raises(NotFound):
                self.server.delete(CONFIG_MAPS, key, WRITE)
            return
        elif verb == "delete":
            self.server.delete(CONFIG_MAPS, key, WRITE)
            after |= {key: {**known, "going": True}}
        else:
            patches: dict[str, Object] = {
                "paint": {"metadata": {"labels": {"color": value}}},
                "count": {"data": {"n": str(value)}},
                "hold": {"metadata": {"finalizers": ["example.com/hold"] if value else None}},
            }
            if verb == "hold" and value and known["going"] and not known["held"]:
                return
            self.server.patch(CONFIG_MAPS, key, Patch.merge(patches[verb]), WRITE)
            name = {"paint": "color", "count": "n", "hold": "held"}[verb]
            after[key] = {**known, name: str(value) if verb == "count" else value}
        if key in after and after[key]["going"] and not after[key]["held"]:
            del after[key]
        assert self.server.revision == before + (after != self.state)
        self.state = after
        self.versions[self.server.revision] = after

    def seen(self, version: int, selection: Selection) -> State:
        """Return what a selection contains at a version."""
        known = max(each for each in self.versions if each <= version)
        return {key: item for key, item in sorted(self.versions[known].items()) if _meant(key, item, selection)}


def _labels(color: str | None) -> dict[str, str]:
    return {"color": color} if color else {}


def _meant(key: Key, item: dict[str, Any], selection: Selection) -> bool:
    if selection.namespace and key.namespace != selection.namespace:
        return False
    if selection.fields and (key.name == "a") is not (selection.fields == "metadata.name=a"):
        return False
    color = item["color"]
    match selection.labels:
        case "color=red":
            return bool(color == "red")
        case "color!=red":
            return bool(color != "red")
        case "color in (red,blue)":
            return color is not None
        case "!color":
            return color is None
    return True


def _read(item: Object) -> dict[str, Any]:
    metadata = item["metadata"]
    return {
        "color": metadata.get("labels", {}).get("color"),
        "n": item["data"]["n"],
        "held": "finalizers" in metadata,
        "going": "deletionTimestamp" in metadata,
    }


def _shown(items: Iterable[Object]) -> State:
    return {key_of(item): _read(item) for item in items}


def _replayed(events: Iterable[WatchEvent], state: State) -> Iterator[tuple[int, State]]:
    """Yield the version and the state after each event, computed from events only."""
    for event in events:
        if event.change is not WatchEventType.BOOKMARK:
            key = key_of(event.object)
            assert (event.change is WatchEventType.ADDED) is (key not in state)
            state = {**state, key: _read(event.object)}
            if event.change is WatchEventType.DELETED:
                del state[key]
        yield version_of(event.object), state


@given(stories)
def test_every_version_can_be_listed(story: list[Any]) -> None:
    model = Model(make_server())
    for step in story:
        model.do(step)
    for version in model.versions:
        for key in [Key(namespace, name) for namespace in _NAMESPACES for name in _NAMES]:
            item = model.server.at(CONFIG_MAPS, key, version)
            assert (None if item is None else _read(item)) == model.versions[version].get(key)
        for selection in _SELECTIONS:
            expected = model.seen(version, selection)
            whole = model.server.list(selection, version=str(version), exact=True)
            assert list(_shown(whole.items).items()) == list(expected.items())
            for limit in (1, 2):
                _check_pages(model, selection, version, limit, list(whole.items))


def _check_pages(model: Model, selection: Selection, version: int, limit: int, whole: list[Object]) -> None:
    page = model.server.list(selection, version=str(version), exact=True, limit=limit)
    paged = list(page.items)
    while page.continue_:
        assert len(page.items) == limit
        assert page.remaining == (None if selection.labels or selection.fields else len(whole) - len(paged))
        page = model.server.list(selection, limit=limit, continue_=page.continue_)
        paged.extend(page.items)
    assert paged == whole


@given(stories)
def test_a_watch_from_any_version_replays_all_changes(story: list[Any]) -> None:
    """A client that starts at any version and applies events sees each later version."""
    model = Model(make_server())
    live = [model.server.watch(selection, initial_events=True) for selection in _SELECTIONS]
    for step in story:
        model.do(step)
    for selection, subscription in zip(_SELECTIONS, live, strict=True):
        for version in model.versions:
            _check_watch(model, selection, version)
        end = subscription.events.popleft()
        assert end.object["metadata"]["annotations"] == {INITIAL_EVENTS_END: "true"}
        replay = model.server.watch(selection, version=str(min(model.versions)))
        assert list(subscription.events) == list(replay.events)


def _check_watch(model: Model, selection: Selection, version: int) -> None:
    message, state = version, model.seen(version, selection)
    for at, after in _replayed(model.server.watch(selection, version=str(version)).events, state):
        assert at > message
        assert [model.seen(between, selection) for between in range(message, at)] == [state] * (at - message)
        message, state = at, after
        assert state == model.seen(at, selection)
    assert state == model.seen(model.server.revision, selection)


@given(before=stories, between=st.lists(stories, min_size=1, max_size=4))
def test_pages_show_one_version_despite_writes(before: list[Any], between: list[list[Any]]) -> None:
    for selection in _SELECTIONS[:3]:
        model = Model(make_server())
        for step in before:
            model.do(step)
        expected = model.seen(model.server.revision, selection)
        page = model.server.list(selection, limit=1)
        version, items, pauses = page.version, list(page.items), iter(between)
        while page.continue_:
            for step in next(pauses, []):
                model.do(step)
            page = model.server.list(selection, limit=1, continue_=page.continue_)
            assert page.version == version
            items.extend(page.items)
        assert list(_shown(items).items()) == list(expected.items())


@given(stories, st.integers(0, 5))
def test_compacted_versions_are_gone_and_others_stay(story: list[Any], history: int) -> None:
    server = make_server(history=history)
    model = Model(server)
    for step in story:
        model.do(step)
    server.compact(server.revision - history)
    for selection in _SELECTIONS:
        for version in model.versions:
            if version < server.revision - history:
                with pytest.raises(Gone):
                    server.list(selection, version=str(version), exact=True)
                with pytest.raises(Gone):
                    server.watch(selection, version=str(version))
            else:
                page = server.list(selection, version=str(version), exact=True)
                assert _shown(page.items) == model.seen(version, selection)
                _check_watch(model, selection, version)
