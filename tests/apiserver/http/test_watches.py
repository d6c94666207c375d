"""Watches over HTTP: what they tell, in which pieces, and how they end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.apiserver.http.asgi_client import CONFIGS, PODS, Answered, Asker, pod

from springtide.apiserver.http import list_watch as watching
from springtide.cluster.resources import Resource
from springtide.cluster.transport import Write

_CONFIG = Resource("", "v1", "configmaps", "ConfigMap")
_INITIAL = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"


def _create(asker: Asker, name: str, **labels: str) -> None:
    asker.server.create(_CONFIG, {"metadata": {"name": name, "labels": labels}}, Write("test"), namespace="default")


def _told(answered: Answered) -> list[tuple[str, str]]:
    return [(line["type"], line["object"]["metadata"].get("name", "")) for line in answered.lines]


async def _watched(asker: Asker, query: str, story: Any) -> Answered:
    """Watch while a story is played, then close the server's side."""
    watch = asyncio.create_task(asker.asked("GET", f"{CONFIGS}?watch=1&{query}"))
    while not len(asker.app.watches):
        await asyncio.sleep(0)
    await story()
    asker.app.close()
    return await watch


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")], id="any version: what is there first"),
        pytest.param("resourceVersion=0", [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")], id="version 0"),
        pytest.param("labelSelector=x=1", [("ADDED", "b"), ("ADDED", "c")], id="labels"),
        pytest.param("fieldSelector=metadata.name=c", [("ADDED", "c")], id="one by its name"),
        pytest.param(
            f"{_INITIAL}&allowWatchBookmarks=true",
            [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", ""), ("ADDED", "c")],
            id="initial events end with a bookmark",
        ),
        pytest.param(_INITIAL, [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")], id="no bookmark for who wants none"),
        pytest.param(
            "sendInitialEvents=false&resourceVersionMatch=NotOlderThan", [("ADDED", "c")], id="nothing initial"
        ),
    ],
)
def test_tells_what_is_there_and_what_follows(query: str, expected: list[tuple[str, str]]) -> None:
    asker = Asker()
    _create(asker, "a")
    _create(asker, "b", x="1")

    async def story() -> None:
        _create(asker, "c", x="1")

    assert _told(asyncio.run(_watched(asker, query, story))) == expected


def test_goes_on_from_a_version_and_everything_that_waits_is_one_chunk() -> None:
    asker = Asker()
    _create(asker, "a")
    version = asker.server.revision

    async def story() -> None:
        for number in range(100):
            _create(asker, f"n{number}")
        await asyncio.sleep(0.01)

    got = asyncio.run(_watched(asker, f"resourceVersion={version}", story))

    assert [name for _, name in _told(got)] == [f"n{number}" for number in range(100)]
    assert len(got.chunks) == 1


def test_two_watches_share_what_is_written() -> None:
    asker = Asker()

    async def story() -> list[Answered]:
        path = f"{CONFIGS}?watch=1&resourceVersion={asker.server.revision}"
        watches = [asyncio.create_task(asker.asked("GET", path)) for _ in range(2)]
        while len(asker.app.watches) < 2:
            await asyncio.sleep(0)
        _create(asker, "a")
        asker.app.close()
        return await asyncio.gather(*watches)

    one, other = asyncio.run(story())

    assert one.lines == other.lines
    assert one.chunks[0] is other.chunks[0]


def test_ends_when_its_time_is_over_and_forgets_itself() -> None:
    asker = Asker()

    got = asker.ask("GET", f"{CONFIGS}?watch=1&timeoutSeconds=1")

    assert (got.status, got.lines, len(asker.app.watches)) == (200, [], 0)


def test_a_client_that_leaves_frees_its_watch() -> None:
    asker = Asker()

    async def story() -> None:
        leave = asyncio.Event()
        watch = asyncio.create_task(asker.asked("GET", f"{CONFIGS}?watch=1", None, None, leave))
        while not len(asker.app.watches):
            await asyncio.sleep(0)
        leave.set()
        await watch

    asyncio.run(story())

    assert len(asker.app.watches) == 0
    assert not any(collection.subscriptions for _, collection in asker.server.storage.collections())


def test_a_client_that_reads_too_slowly_is_told_to_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_CHECK_EVERY", 1)
    asker = Asker()
    asker.app.watches._max_waiting = 10

    async def story() -> None:
        for number in range(30):
            _create(asker, f"n{number}")

    got = asyncio.run(_watched(asker, f"resourceVersion={asker.server.revision}", story))

    (line,) = got.lines
    assert (line["type"], line["object"]["code"], line["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_bookmarks_come_to_those_who_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "BOOKMARK_SECONDS", 0.01)
    asker = Asker()

    async def story() -> None:
        asker.server.create(Resource("", "v1", "pods", "Pod"), pod(), Write("test"), namespace="default")
        await asyncio.sleep(0.1)

    got = asyncio.run(_watched(asker, "allowWatchBookmarks=true&resourceVersion=1", story))

    assert [line["object"]["metadata"]["resourceVersion"] for line in got.lines] == [str(asker.server.revision)]
    assert got.lines[0]["type"] == "BOOKMARK"


@pytest.mark.parametrize(
    ("query", "code", "told"),
    [
        pytest.param("resourceVersion=1", 410, "too old resource version", id="compacted"),
        pytest.param("resourceVersion=x", 400, "resourceVersion", id="no version"),
        pytest.param("sendInitialEvents=true", 422, "requires setting resourceVersionMatch", id="initial events alone"),
        pytest.param("resourceVersionMatch=Exact", 422, "forbidden for watch", id="exactly"),
        pytest.param("labelSelector=a%3D%3D%3Db", 400, "found '='", id="selector"),
        pytest.param("timeoutSeconds=x", 400, "strconv.ParseInt", id="time in words"),
    ],
)
def test_is_refused(query: str, code: int, told: str) -> None:
    asker = Asker()
    asker.ask("POST", PODS, pod())
    asker.server.compact()

    got = asker.ask("GET", f"{CONFIGS}?watch=1&{query}")

    assert (got.status, got.json["code"]) == (code, code)
    assert told in got.json["message"]
