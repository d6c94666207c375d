"""Watches over HTTP: events, chunks, and how they end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.apiserver.http.asgi_client import CONFIGS, PODS, AsgiClient, AsgiResponse, pod

from springtide.apiserver.http import list_watch as watching
from springtide.cluster.resources import Resource
from springtide.cluster.transport import Write

_CONFIG = Resource("", "v1", "configmaps", "ConfigMap")
_INITIAL = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"


def _create(client: AsgiClient, name: str, **labels: str) -> None:
    client.server.create(_CONFIG, {"metadata": {"name": name, "labels": labels}}, Write("test"), namespace="default")


def _events(answered: AsgiResponse) -> list[tuple[str, str]]:
    return [(line["type"], line["object"]["metadata"].get("name", "")) for line in answered.lines]


async def _watched(client: AsgiClient, query: str, story: Any) -> AsgiResponse:
    """Watch while a coroutine runs, then close the server's side."""
    watch = asyncio.create_task(client.send("GET", f"{CONFIGS}?watch=1&{query}"))
    while not len(client.app.watches):
        await asyncio.sleep(0)
    await story()
    client.app.close()
    return await watch


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(
            "", [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")], id="no version starts with existing objects"
        ),
        pytest.param("resourceVersion=0", [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")], id="version 0"),
        pytest.param("labelSelector=x=1", [("ADDED", "b"), ("ADDED", "c")], id="labels"),
        pytest.param("fieldSelector=metadata.name=c", [("ADDED", "c")], id="one name"),
        pytest.param(
            f"{_INITIAL}&allowWatchBookmarks=true",
            [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", ""), ("ADDED", "c")],
            id="initial events end with a bookmark",
        ),
        pytest.param(_INITIAL, [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")], id="initial events without bookmarks"),
        pytest.param(
            "sendInitialEvents=false&resourceVersionMatch=NotOlderThan", [("ADDED", "c")], id="no initial events"
        ),
    ],
)
def test_sends_existing_objects_and_later_events(query: str, expected: list[tuple[str, str]]) -> None:
    client = AsgiClient()
    _create(client, "a")
    _create(client, "b", x="1")

    async def story() -> None:
        _create(client, "c", x="1")

    assert _events(asyncio.run(_watched(client, query, story))) == expected


def test_continues_from_a_version_and_joins_waiting_events() -> None:
    client = AsgiClient()
    _create(client, "a")
    version = client.server.revision

    async def story() -> None:
        for number in range(100):
            _create(client, f"n{number}")
        await asyncio.sleep(0.01)

    got = asyncio.run(_watched(client, f"resourceVersion={version}", story))

    assert [name for _, name in _events(got)] == [f"n{number}" for number in range(100)]
    assert len(got.chunks) == 1


def test_two_watches_share_encoded_events() -> None:
    client = AsgiClient()

    async def story() -> list[AsgiResponse]:
        path = f"{CONFIGS}?watch=1&resourceVersion={client.server.revision}"
        watches = [asyncio.create_task(client.send("GET", path)) for _ in range(2)]
        while len(client.app.watches) < 2:
            await asyncio.sleep(0)
        _create(client, "a")
        client.app.close()
        return await asyncio.gather(*watches)

    one, other = asyncio.run(story())

    assert one.lines == other.lines
    assert one.chunks[0] is other.chunks[0]


def test_ends_after_its_timeout() -> None:
    client = AsgiClient()

    got = client.request("GET", f"{CONFIGS}?watch=1&timeoutSeconds=1")

    assert (got.status, got.lines, len(client.app.watches)) == (200, [], 0)


def test_a_disconnect_closes_the_watch() -> None:
    client = AsgiClient()

    async def story() -> None:
        leave = asyncio.Event()
        watch = asyncio.create_task(client.send("GET", f"{CONFIGS}?watch=1", None, None, leave))
        while not len(client.app.watches):
            await asyncio.sleep(0)
        leave.set()
        await watch

    asyncio.run(story())

    assert len(client.app.watches) == 0
    assert not any(collection.subscriptions for _, collection in client.server.storage.collections())


def test_a_slow_client_gets_410_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_CHECK_EVERY", 1)
    client = AsgiClient()
    client.app.watches._max_waiting = 10

    async def story() -> None:
        for number in range(30):
            _create(client, f"n{number}")

    got = asyncio.run(_watched(client, f"resourceVersion={client.server.revision}", story))

    (line,) = got.lines
    assert (line["type"], line["object"]["code"], line["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_bookmarks_are_sent_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "BOOKMARK_SECONDS", 0.01)
    client = AsgiClient()

    async def story() -> None:
        client.server.create(Resource("", "v1", "pods", "Pod"), pod(), Write("test"), namespace="default")
        await asyncio.sleep(0.1)

    got = asyncio.run(_watched(client, "allowWatchBookmarks=true&resourceVersion=1", story))

    assert [line["object"]["metadata"]["resourceVersion"] for line in got.lines] == [str(client.server.revision)]
    assert got.lines[0]["type"] == "BOOKMARK"


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        pytest.param("resourceVersion=1", 410, "too old resource version", id="compacted"),
        pytest.param("resourceVersion=x", 400, "resourceVersion", id="invalid version"),
        pytest.param(f"resourceVersion={'9' * 5000}", 400, "value out of range", id="version of 5,000 digits"),
        pytest.param(
            "sendInitialEvents=true", 422, "requires setting resourceVersionMatch", id="initial events without a match"
        ),
        pytest.param("resourceVersionMatch=Exact", 422, "forbidden for watch", id="exact match"),
        pytest.param("labelSelector=a%3D%3D%3Db", 400, "found '='", id="selector"),
        pytest.param("timeoutSeconds=x", 400, "strconv.ParseInt", id="invalid timeout"),
    ],
)
def test_is_refused(query: str, code: int, text: str) -> None:
    client = AsgiClient()
    client.request("POST", PODS, pod())
    client.server.compact()

    got = client.request("GET", f"{CONFIGS}?watch=1&{query}")

    assert (got.status, got.json["code"]) == (code, code)
    assert text in got.json["message"]
