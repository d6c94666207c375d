"""Requests as they are sent: paths, parameters, headers and bodies, for every method of the transport."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.cluster.http.scripted_server import (
    DEPLOYMENTS,
    HASTY,
    NODES,
    PODS,
    Asked,
    answers,
    connected,
    playing,
    pod,
    streams,
)

from springtide import __version__
from springtide.cluster.http import ClusterAccess, HttpTransport, InlineContent, StaticCredentials
from springtide.cluster.resources import Key, Selection
from springtide.cluster.transport import Patch, PatchType, Precondition, Propagation, Write

WRITE = Write("me", "because")
DRY = Write("me", dry_run=True)
WEB = Key("shop", "web")
EXACT = Precondition(version="7", uid="u-7")
Call = Callable[[HttpTransport], Awaitable[Any]]


async def asked(call: Call, **access: Any) -> Asked:
    async with playing(answers({"items": [], "metadata": {}})) as server, connected(server, **access) as transport:
        await call(transport)
    (only,) = server.asked
    return only


async def watched(transport: HttpTransport, selection: Selection, **options: Any) -> None:
    async for _ in transport.watch(selection, **options):
        pass


@pytest.mark.parametrize(
    ("call", "method", "path", "query"),
    [
        pytest.param(lambda t: t.get(PODS, WEB), "GET", "/api/v1/namespaces/shop/pods/web", {}, id="get"),
        pytest.param(lambda t: t.get(NODES, Key("", "n")), "GET", "/api/v1/nodes/n", {}, id="get without a namespace"),
        pytest.param(
            lambda t: t.get(NODES, Key("shop", "n")), "GET", "/api/v1/nodes/n", {}, id="get what has no namespace"
        ),
        pytest.param(
            lambda t: t.get(DEPLOYMENTS, WEB, subresource="scale"),
            "GET",
            "/apis/apps/v1/namespaces/shop/deployments/web/scale",
            {},
            id="get a subresource of a group",
        ),
        pytest.param(
            lambda t: t.get(PODS, Key("shop", "a/../b c?")),
            "GET",
            "/api/v1/namespaces/shop/pods/a%2F..%2Fb%20c%3F",
            {},
            id="get with an odd name",
        ),
        pytest.param(
            lambda t: t.get(PODS, Key("..", "..")), "GET", "/api/v1/namespaces/%2E%2E/pods/%2E%2E", {}, id="dots"
        ),
        pytest.param(lambda t: t.fetch("/readyz?verbose=1"), "GET", "/readyz", {"verbose": "1"}, id="fetch"),
        pytest.param(lambda t: t.list(Selection(PODS)), "GET", "/api/v1/pods", {}, id="list everything"),
        pytest.param(
            lambda t: t.list(Selection(PODS, "shop", "app=web,tier in (a, b)", "spec.nodeName=n&1"), limit=5),
            "GET",
            "/api/v1/namespaces/shop/pods",
            {"labelSelector": "app=web,tier in (a, b)", "fieldSelector": "spec.nodeName=n&1", "limit": "5"},
            id="list a selection",
        ),
        pytest.param(
            lambda t: t.list(Selection(PODS), version="9"),
            "GET",
            "/api/v1/pods",
            {"resourceVersion": "9", "resourceVersionMatch": "NotOlderThan"},
            id="list not older than",
        ),
        pytest.param(
            lambda t: t.list(Selection(PODS), version="9", exact=True),
            "GET",
            "/api/v1/pods",
            {"resourceVersion": "9", "resourceVersionMatch": "Exact"},
            id="list exactly",
        ),
        pytest.param(
            lambda t: t.list(Selection(PODS), limit=2, continue_="a+b/=", version="9"),
            "GET",
            "/api/v1/pods",
            {"limit": "2", "continue": "a+b/="},
            id="the next page",
        ),
        pytest.param(
            lambda t: t.create(PODS, {}, DRY, namespace="shop"),
            "POST",
            "/api/v1/namespaces/shop/pods",
            {"fieldManager": "me", "dryRun": "All"},
            id="create as a dry run",
        ),
        pytest.param(
            lambda t: t.create(PODS, {}, WRITE, namespace="shop", name="web", subresource="eviction"),
            "POST",
            "/api/v1/namespaces/shop/pods/web/eviction",
            {"fieldManager": "me"},
            id="evict",
        ),
        pytest.param(
            lambda t: t.patch(DEPLOYMENTS, WEB, Patch.apply({}, force=True), DRY, subresource="status"),
            "PATCH",
            "/apis/apps/v1/namespaces/shop/deployments/web/status",
            {"fieldManager": "me", "force": "true", "dryRun": "All"},
            id="apply by force",
        ),
        pytest.param(
            lambda t: t.delete(PODS, WEB, WRITE), "DELETE", "/api/v1/namespaces/shop/pods/web", {}, id="delete"
        ),
    ],
)
def test_every_call_goes_to_its_path(call: Call, method: str, path: str, query: dict[str, str]) -> None:
    found = asyncio.run(asked(call))

    assert (found.method, found.path, found.query) == (method, path, query)


@pytest.mark.parametrize(
    ("options", "query"),
    [
        pytest.param({"version": "5", "timeout": 300}, {"resourceVersion": "5", "timeoutSeconds": "300"}, id="version"),
        pytest.param({"timeout": 0.2}, {"timeoutSeconds": "1"}, id="a short timeout is not rounded to none"),
        pytest.param(
            {"initial_events": True},
            {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"},
            id="WatchList",
        ),
    ],
)
def test_a_watch_asks_for_bookmarks_and_more(options: dict[str, Any], query: dict[str, str]) -> None:
    async def play() -> Asked:
        async with playing(streams()) as server, connected(server) as transport:
            await watched(transport, Selection(PODS, "shop", labels="a=b"), **options)
        return server.asked[0]

    found = asyncio.run(play())

    always = {"watch": "true", "allowWatchBookmarks": "true", "labelSelector": "a=b"}
    assert (found.path, found.query) == ("/api/v1/namespaces/shop/pods", always | query)


@pytest.mark.parametrize(
    ("patch", "body"),
    [
        pytest.param(
            Patch.merge({"metadata": {"labels": {"a": "b"}}, "spec": {}}),
            {"metadata": {"labels": {"a": "b"}, "resourceVersion": "7", "uid": "u-7"}, "spec": {}},
            id="merge",
        ),
        pytest.param(
            Patch(PatchType.STRATEGIC, {"spec": {}}),
            {"spec": {}, "metadata": {"resourceVersion": "7", "uid": "u-7"}},
            id="strategic, without metadata",
        ),
        pytest.param(
            Patch.apply(pod("web")),
            pod("web") | {"metadata": pod("web")["metadata"] | {"resourceVersion": "7", "uid": "u-7"}},
            id="apply",
        ),
        pytest.param(
            Patch.json({"op": "remove", "path": "/spec"}),
            [
                {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
                {"op": "test", "path": "/metadata/uid", "value": "u-7"},
                {"op": "remove", "path": "/spec"},
            ],
            id="JSON",
        ),
    ],
)
def test_a_precondition_is_added_to_the_body_and_the_patch_is_not_changed(patch: Patch, body: Any) -> None:
    before = repr(patch)

    found = asyncio.run(asked(lambda t: t.patch(PODS, WEB, patch, WRITE, precondition=EXACT)))

    assert (found.json, found.headers["content-type"]) == (body, patch.type.value)
    assert repr(patch) == before


def test_the_options_of_a_deletion_are_in_its_body() -> None:
    found = asyncio.run(
        asked(
            lambda t: t.delete(PODS, WEB, DRY, precondition=EXACT, propagation=Propagation.FOREGROUND, grace_seconds=0)
        )
    )

    assert found.json == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"resourceVersion": "7", "uid": "u-7"},
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "dryRun": ["All"],
    }


def test_user_agent_and_impersonation() -> None:
    headers = (("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))

    found = asyncio.run(
        asked(
            lambda t: t.get(PODS, WEB),
            headers=headers,
            credentials=StaticCredentials(token=InlineContent(b" secret\n")),
        )
    )

    assert found.headers["user-agent"] == f"springtide/{__version__} (springtide)"
    assert found.headers["authorization"] == "Bearer secret"
    assert (found.headers["impersonate-user"], found.headers["impersonate-group"]) == ("jane", "a, b")
    assert found.headers["accept-encoding"] == "identity"


def test_answers_come_compressed_from_afar_and_watches_never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compression would delay the events of a watch until a block is full."""
    monkeypatch.setattr("springtide.cluster.http.rest_client.on_loopback", lambda host: False)

    async def play() -> list[str]:
        async with playing(answers({}), streams()) as server, connected(server) as transport:
            await transport.get(PODS, WEB)
            await watched(transport, Selection(PODS))
        return [request.headers["accept-encoding"] for request in server.asked]

    assert asyncio.run(play()) == ["gzip", "identity"]


def test_a_password_is_sent_as_one() -> None:
    found = asyncio.run(
        asked(lambda t: t.get(PODS, WEB), credentials=StaticCredentials(password=("jane", "pass:word")))
    )

    assert found.headers["authorization"] == "Basic amFuZTpwYXNzOndvcmQ="


def test_proxies_of_the_environment_are_not_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The loading rules have read the environment already."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login jane password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    assert "authorization" not in asyncio.run(asked(lambda t: t.get(PODS, WEB))).headers


def test_a_server_may_live_under_a_path() -> None:
    found = asyncio.run(asked(lambda t: t.get(PODS, WEB), below="/clusters/one"))

    assert found.path == "/clusters/one/api/v1/namespaces/shop/pods/web"


def test_requests_share_a_connection_and_watches_have_their_own() -> None:
    async def play() -> list[int]:
        async with playing(answers({}), answers({}), streams(), answers({})) as server, connected(server) as transport:
            await transport.get(PODS, WEB)
            await transport.create(PODS, {}, WRITE, namespace="shop")
            await watched(transport, Selection(PODS))
            await transport.get(PODS, WEB)
        return [request.connection for request in server.asked]

    assert asyncio.run(play()) == [1, 1, 2, 1]


def test_so_many_requests_at_a_time_as_there_may_be_connections() -> None:
    async def takes_a_while(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.005)
        await answers({})(asked, writer)

    async def play() -> tuple[int, int]:
        settings = replace(HASTY, connections=2)
        async with playing(takes_a_while) as server, connected(server, settings=settings) as transport:
            await asyncio.gather(*(transport.get(PODS, WEB) for _ in range(8)))
        return server.connections, len(server.asked)

    assert asyncio.run(play()) == (2, 8)


def test_cookies_are_not_kept() -> None:
    """A cookie of a load balancer would bind all requests to one server, even after it is gone."""

    async def play() -> list[str | None]:
        async with playing(answers({}, Set_Cookie="route=1; Path=/")) as server:
            access = ClusterAccess(f"http://localhost:{server.port}")
            async with HttpTransport(access, settings=HASTY, random=Random(7)) as transport:
                await transport.get(PODS, WEB)
                await transport.get(PODS, WEB)
        return [request.headers.get("cookie") for request in server.asked]

    assert asyncio.run(play()) == [None, None]


@pytest.mark.parametrize(
    ("headers", "received"),
    [
        pytest.param({"Date": "Sun, 06 Nov 1994 08:49:37 GMT"}, 784111777, id="a date"),
        pytest.param({}, None, id="none"),
        pytest.param({"Date": "noon"}, None, id="no date"),
        pytest.param({"Date": "Sun, 06 Nov 99999999999 08:49:37 GMT"}, None, id="an impossible date"),
    ],
)
def test_the_time_of_the_server(headers: dict[str, Any], received: int | None) -> None:
    async def play() -> None:
        async with playing(answers({}, **headers)) as server, connected(server) as transport:
            assert transport.server_time is None
            await transport.get(PODS, WEB)
            assert transport.server_time == received

    asyncio.run(play())
