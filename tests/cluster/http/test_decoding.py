"""Pages of lists, as views and as whole objects."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from tests.cluster.http.playing import DEPLOYMENTS, PODS, line

from springtide.apis.core.pods import Pod
from springtide.cluster.errors import ServerError
from springtide.cluster.http.decoding import events_of, page_of
from springtide.cluster.port import Change, Page
from springtide.cluster.resources import Selection

NAMELESS = {
    "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "3"},
    "spec": {"containers": [{"name": "c"}]},
}


def page(items: Any, **metadata: Any) -> bytes:
    return json.dumps({"kind": "List", "metadata": {"resourceVersion": "9"} | metadata, "items": items}).encode()


def test_whole_objects_of_a_list_say_what_they_are() -> None:
    """Servers leave it out in lists of built-in kinds; what an item says itself is left alone."""
    found = page_of(page([NAMELESS, NAMELESS | {"kind": "Other"}]), Selection(DEPLOYMENTS))

    assert found.items == [
        NAMELESS | {"apiVersion": "apps/v1", "kind": "Deployment"},
        NAMELESS | {"apiVersion": "apps/v1", "kind": "Other"},
    ]


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(NAMELESS, id="left out by the server"),
        pytest.param({"apiVersion": "v1", "kind": "Pod"} | NAMELESS, id="said by the item"),
    ],
)
def test_a_view_that_wants_to_know_what_an_object_is_is_told(item: Any) -> None:
    found = page_of(page([item]), Selection(PODS, view=Pod))

    assert found.items == [msgspec.convert({"apiVersion": "v1", "kind": "Pod"} | NAMELESS, Pod)]
    assert type(found.items[0]) is Pod


def test_what_an_item_says_of_itself_counts_where_its_neighbours_say_nothing() -> None:
    found = page_of(page([NAMELESS, NAMELESS | {"kind": "Other"}]), Selection(PODS, view=Pod))

    assert [item.kind for item in found.items] == ["Pod", "Other"]


@pytest.mark.parametrize("view", [dict, Pod])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(page([]), Page([], "9"), id="empty"),
        pytest.param(page(None), Page([], "9"), id="null"),
        pytest.param(b'{"metadata":{"resourceVersion":"9"}}', Page([], "9"), id="left out"),
        pytest.param(
            page([], **{"continue": "abc", "remainingItemCount": 4}), Page([], "9", "abc", 4), id="more to come"
        ),
    ],
)
def test_the_page_says_where_it_stands(view: type[Any], body: bytes, expected: Page) -> None:
    assert page_of(body, Selection(PODS, view=view)) == expected


@pytest.mark.parametrize(
    "item",
    [
        pytest.param({"metadata": {"name": 7}}, id="a wrong type"),
        pytest.param({}, id="nothing"),
        pytest.param([], id="a list"),
        pytest.param(None, id="null"),
    ],
)
def test_an_item_that_does_not_fit_its_view_is_the_callers_matter(item: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        page_of(page([NAMELESS, item]), Selection(PODS, view=Pod))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"[]", id="a list"),
        pytest.param(page([7]), id="items that are no objects"),
        pytest.param(page([NAMELESS])[:-2], id="cut"),
    ],
)
def test_what_is_no_list_of_objects_is_the_servers_failure(body: bytes) -> None:
    with pytest.raises(ServerError, match="list of pods cannot be read"):
        page_of(body, Selection(PODS))


def test_the_type_of_an_event_may_stand_behind_its_object() -> None:
    behind = json.dumps({"object": NAMELESS, "type": "DELETED"}).encode()

    (event,) = events_of(behind, dict)

    assert (event.change, event.object) == (Change.DELETED, NAMELESS)


def test_bookmarks_need_not_fit_the_view() -> None:
    (event,) = events_of(line("BOOKMARK", {"metadata": {"resourceVersion": "5"}}), Pod)

    assert event.object == {"metadata": {"resourceVersion": "5"}}
