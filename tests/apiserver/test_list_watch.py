"""Lists and watches: versions, pages, bookmarks and errors."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.apiserver.objects import (
    CONFIG_MAPS,
    DEFINITIONS,
    PODS,
    START,
    WIDGETS,
    WIDGETS_BETA,
    WRITE,
    config_map,
    definition,
    key,
    make_server,
    pod,
    widget,
)

from springtide.apiserver.list_watch import WatchSubscription
from springtide.apiserver.server import ApiServer
from springtide.cluster.errors import ApiError, BadRequest, Gone, NotFound, ServerError
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.transport import INITIAL_EVENTS_END, Patch, WatchEvent, WatchEventType

_ALL = Selection(CONFIG_MAPS)


def _filled(count: int = 5) -> ApiServer:
    server = make_server()
    for index in range(count):
        server.create(CONFIG_MAPS, config_map(f"c{index}"), WRITE, namespace="default")
    return server


def _events(subscription: WatchSubscription) -> list[tuple[str, str]]:
    """Return the queued events of a watch: type and name."""
    events = []
    while subscription.events:
        event = subscription.events.popleft()
        events.append((event.change.value, event.object["metadata"].get("name", "")))
    return events


def _paint(server: ApiServer, name: str, color: str | None) -> None:
    server.patch(CONFIG_MAPS, key(name), Patch.merge({"metadata": {"labels": {"color": color}}}), WRITE)


def test_lists_are_ordered_by_key() -> None:
    server = make_server()
    for namespace, name in (("kube-system", "a"), ("default", "z"), ("default", "b-1"), ("default", "b")):
        server.create(CONFIG_MAPS, config_map(name), WRITE, namespace=namespace)
    listed = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in server.list(_ALL).items]
    assert listed == [("default", "b"), ("default", "b-1"), ("default", "z"), ("kube-system", "a")]


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        pytest.param({"version": "1", "exact": True}, Gone, "The resourceVersion for the provided list", id="old"),
        pytest.param({"continue_": "!"}, BadRequest, "continue key is not valid", id="bad token"),
        pytest.param(
            {"continue_": "!", "version": "1"},
            BadRequest,
            "specifying resource version is not allowed when using continue",
            id="token and version",
        ),
        pytest.param({"version": "x"}, BadRequest, 'resourceVersion: Invalid value: "x"', id="not a number"),
        pytest.param({"version": "-1"}, BadRequest, 'resourceVersion: Invalid value: "-1"', id="negative"),
        pytest.param({"exact": True}, BadRequest, "an exact list needs a version", id="exact without a version"),
        pytest.param({"version": "999"}, ServerError, "Too large resource version: 999, current: ", id="future"),
        pytest.param({"version": "999", "exact": True}, ServerError, "Too large resource version", id="exact future"),
    ],
)
def test_refuses_to_list(ask: dict[str, Any], error: type[ApiError], message: str) -> None:
    server = _filled()
    server.compact()
    with pytest.raises(error, match=message):
        server.list(_ALL, **ask)


@pytest.mark.parametrize("version", ["", "0", "1"])
def test_a_list_not_older_than_a_version_is_the_newest(version: str) -> None:
    server = _filled()
    server.compact()
    page = server.list(_ALL, version=version)
    assert (len(page.items), page.version) == (5, str(server.revision))


def test_a_future_version_is_a_timeout_with_a_cause() -> None:
    """Clients recognise it by code and cause, and wait."""
    with pytest.raises(ServerError) as caught:
        _filled().watch(_ALL, version="999")
    assert (caught.value.code, caught.value.answered) == (504, "Timeout")
    assert [cause.reason for cause in caught.value.causes] == ["ResourceVersionTooLarge"]


def test_a_paged_list_behind_the_history_is_gone() -> None:
    server = _filled()
    page = server.list(_ALL, limit=2)
    server.delete(CONFIG_MAPS, key("c4"), WRITE)
    server.compact()
    with pytest.raises(Gone, match="You must start a new list without the continue parameter"):
        server.list(_ALL, limit=2, continue_=page.continue_)


def test_pages_without_selectors_count_remaining_items() -> None:
    server = _filled()
    first = server.list(_ALL, limit=2)
    second = server.list(_ALL, limit=2, continue_=first.continue_)
    third = server.list(_ALL, limit=2, continue_=second.continue_)
    assert [page.remaining for page in (first, second, third)] == [3, 1, None]
    assert third.continue_ == ""
    assert server.list(Selection(CONFIG_MAPS, fields="metadata.name!=c0"), limit=2).remaining is None
    assert server.list(_ALL, limit=5).continue_ == ""


def test_compaction_keeps_the_current_state() -> None:
    server = _filled()
    server.compact()
    assert server.watch(_ALL, version=str(server.revision)).events.__len__() == 0
    with pytest.raises(Gone, match=r"too old resource version: 7 \(11\)"):
        server.watch(_ALL, version="7")


def test_compaction_to_a_version_keeps_later_changes() -> None:
    server = _filled()
    middle = server.revision - 2
    server.compact(middle)
    assert len(server.list(_ALL, version=str(middle), exact=True).items) == 3
    assert _events(server.watch(_ALL, version=str(middle))) == [("ADDED", "c3"), ("ADDED", "c4")]
    with pytest.raises(Gone):
        server.at(CONFIG_MAPS, key("c0"), middle - 1)


@pytest.mark.parametrize("version", ["", "0"])
def test_a_watch_of_any_version_starts_with_what_exists(version: str) -> None:
    server = _filled(2)
    subscription = server.watch(_ALL, version=version)
    server.delete(CONFIG_MAPS, key("c0"), WRITE)
    assert _events(subscription) == [("ADDED", "c0"), ("ADDED", "c1"), ("DELETED", "c0")]


def test_initial_events_end_with_a_bookmark() -> None:
    server = _filled(1)
    subscription = server.watch(_ALL, version="1", initial_events=True)
    assert subscription.events[1] == WatchEvent(
        WatchEventType.BOOKMARK,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "resourceVersion": str(server.revision),
                "creationTimestamp": None,
                "annotations": {INITIAL_EVENTS_END: "true"},
            },
        },
    )


def test_watches_without_selectors_share_events() -> None:
    server = make_server()
    first, second = server.watch(_ALL, version="0"), server.watch(_ALL, version="0")
    server.create(CONFIG_MAPS, config_map(), WRITE, namespace="default")
    assert first.events[0] is second.events[0]
    assert first.events[0].object is server.get(CONFIG_MAPS, key("a"))


def test_a_selector_turns_changes_into_added_and_deleted() -> None:
    server = _filled(1)
    subscription = server.watch(Selection(CONFIG_MAPS, labels="color=red"), version=str(server.revision))
    _paint(server, "c0", "blue")
    _paint(server, "c0", "red")
    server.patch(CONFIG_MAPS, key("c0"), Patch.merge({"data": {"k": "w"}}), WRITE)
    _paint(server, "c0", None)
    gone = subscription.events[-1].object
    assert _events(subscription) == [("ADDED", "c0"), ("MODIFIED", "c0"), ("DELETED", "c0")]
    assert gone["metadata"]["labels"] == {"color": "red"}
    assert gone["data"] == {"k": "w"}
    assert gone["metadata"]["resourceVersion"] == str(server.revision)


def test_deleted_events_have_the_version_of_the_deletion() -> None:
    server = _filled(1)
    subscription = server.watch(_ALL, version=str(server.revision))
    last = server.get(CONFIG_MAPS, key("c0"))
    server.delete(CONFIG_MAPS, key("c0"), WRITE)
    (event,) = subscription.events
    metadata = event.object["metadata"]
    assert metadata | {"resourceVersion": None} == last["metadata"] | {"resourceVersion": None}
    assert int(metadata["resourceVersion"]) == int(last["metadata"]["resourceVersion"]) + 1


def test_a_watch_of_a_namespace_sees_no_other() -> None:
    server = make_server()
    subscription = server.watch(Selection(CONFIG_MAPS, namespace="default"), version="0")
    server.create(CONFIG_MAPS, config_map("there"), WRITE, namespace="kube-system")
    server.create(CONFIG_MAPS, config_map("here"), WRITE, namespace="default")
    assert _events(subscription) == [("ADDED", "here")]


def test_bookmarks_are_sent_only_to_lagging_watches() -> None:
    server = _filled(1)
    maps, pods = server.watch(_ALL, version=str(server.revision)), server.watch(Selection(PODS), version="0")
    server.create(PODS, pod(), WRITE, namespace="default")
    for _ in range(2):
        server.bookmark()
    assert _events(pods) == [("ADDED", "p")]
    (bookmark,) = maps.events
    assert bookmark.change is WatchEventType.BOOKMARK
    assert bookmark.object["metadata"]["resourceVersion"] == str(server.revision)


def test_an_ended_watch_receives_nothing() -> None:
    server = _filled(1)
    subscription = server.watch(_ALL, version=str(server.revision))
    subscription.end()
    _paint(server, "c0", "red")
    server.bookmark()
    assert _events(subscription) == []


def test_kinds_are_served_in_every_version() -> None:
    server = make_server()
    server.create(DEFINITIONS, definition(beta=True), WRITE)
    subscription = server.watch(Selection(WIDGETS_BETA), version="0")
    made = server.create(WIDGETS_BETA, widget(of=WIDGETS_BETA), WRITE, namespace="default")
    assert made["apiVersion"] == "example.com/v1beta1"
    assert server.get(WIDGETS, key("w"))["apiVersion"] == "example.com/v1"
    assert server.list(Selection(WIDGETS_BETA)).items[0]["apiVersion"] == "example.com/v1beta1"
    assert subscription.events[0].object["apiVersion"] == "example.com/v1beta1"
    changed = server.patch(WIDGETS_BETA, key("w"), Patch.merge({"spec": {"size": 4}}), WRITE)
    assert (changed["apiVersion"], changed["spec"]) == ("example.com/v1beta1", {"size": 4})
    again = server.patch(WIDGETS_BETA, key("w"), Patch.merge({"spec": {"size": 4}}), WRITE)
    assert again["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]


def test_custom_kinds_support_their_selectable_fields() -> None:
    server = make_server()
    server.create(DEFINITIONS, definition(selectable=(".spec.color",)), WRITE)
    for color in ("red", "blue"):
        server.create(WIDGETS, widget(color, color=color), WRITE, namespace="default")
    (found,) = server.list(Selection(WIDGETS, fields="spec.color=red")).items
    assert found["metadata"]["name"] == "red"
    with pytest.raises(BadRequest, match=r"field label not supported: spec\.size"):
        server.list(Selection(WIDGETS, fields="spec.size=3"))


def test_kinds_that_are_not_served_cannot_be_read() -> None:
    nowhere = Selection(Resource("example.com", "v1", "gadgets", "Gadget"))
    server = make_server()
    for read in (server.list, server.watch):
        with pytest.raises(NotFound, match="the server could not find the requested resource"):
            read(nowhere)


def test_history_is_bounded() -> None:
    """The server keeps a limited number of changes, and drops the names of deleted objects."""
    server = make_server(history=100)
    for index in range(5000):
        server.create(CONFIG_MAPS, config_map(f"c{index}"), WRITE, namespace="default")
        server.delete(CONFIG_MAPS, key(f"c{index}"), WRITE)
    collection = next(held for identity, held in server.storage.collections() if identity.plural == "configmaps")
    assert len(collection.changes) < 2048
    assert len(list(collection.keys("", None))) < 2048
    assert server.at(CONFIG_MAPS, Key("default", "c4999"), server.revision - 1) is not None


def test_objects_are_converted_on_reads_and_writes() -> None:
    """The converter runs for reads in another version and for writes in another version."""

    def convert(item: Object, version: str) -> Object:
        other = {"example.com/v1": ("length", "size"), "example.com/v1beta1": ("size", "length")}
        old, new = other[version]
        spec = {new if name == old else name: value for name, value in item["spec"].items()}
        return {**item, "apiVersion": version, "spec": spec}

    crd = definition(beta=True)
    renamed = {"length": {"type": "integer"}, "color": {"type": "string"}}
    beta = crd["spec"]["versions"][1]
    beta["schema"] = {
        "openAPIV3Schema": {
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": renamed}, "status": {"type": "object"}},
        }
    }
    server = ApiServer(now=lambda: START, random=Random(1), converter=convert)
    server.create(DEFINITIONS, crd, WRITE)
    made = server.create(WIDGETS_BETA, widget(of=WIDGETS_BETA, length=4), WRITE, namespace="default")
    assert made["spec"] == {"length": 4}
    assert server.get(WIDGETS, key("w"))["spec"] == {"size": 4}
    subscription = server.watch(Selection(WIDGETS_BETA), version=str(server.revision))
    server.patch(WIDGETS, key("w"), Patch.merge({"spec": {"size": 5}}), WRITE)
    assert [event.object["spec"] for event in subscription.events] == [{"length": 5}]
    patched = server.patch(WIDGETS_BETA, key("w"), Patch.merge({"spec": {"length": 6}}), WRITE)
    assert (patched["spec"], server.get(WIDGETS, key("w"))["spec"]) == ({"length": 6}, {"size": 6})
