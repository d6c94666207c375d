"""The whole server on loopback: connections, authentication, authorization and responses."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from multidict import CIMultiDict
from tests.e2e.identities import make_client
from tests.metrics.external.fake_cluster import AUTHORITY, NOW, PROXY, FakeCluster, told_by

from springtide.cluster.admission import ServiceTarget
from springtide.cluster.certificates import CertificatePair, make_authority
from springtide.cluster.clock import WallClock
from springtide.cluster.errors import Forbidden
from springtide.cluster.resources import Key, Object
from springtide.metrics.external import ExternalMetrics, api_service, external_metrics
from springtide.metrics.external.registration import API_SERVICES
from springtide.metrics.series import SeriesStore

SERVICE = ServiceTarget("springtide-system", "springtide-external-metrics")
METRIC = "karpenter_scheduled_capacity"
VALUES = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/default/{METRIC}"
ADMIN = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
STRANGER = make_client(make_authority("strangers", now=NOW, seconds=3600), "front-proxy-client")


@dataclass
class World:
    """A running server, and a client that is the front proxy by default."""

    cluster: FakeCluster
    store: SeriesStore
    folder: Path
    running: ExternalMetrics
    leads: bool = True

    async def ask(
        self,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        client: CertificatePair | None = PROXY,
        method: str = "GET",
    ) -> tuple[int, Any]:
        """Send a request; return the status and the body of the response."""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if client is not None:
            file = self.folder / "client.pem"
            file.write_bytes(client.key + client.certificate)
            context.load_cert_chain(file)
        given = ADMIN if headers is None else headers
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, self.running.serving.url + path, headers=given, ssl=context) as answer,
        ):
            readable = answer.content_type == "application/json"
            return answer.status, await (answer.json() if readable else answer.text())

    async def until(self, what: str, reached: Callable[[], bool]) -> None:
        """Wait for something that happens soon."""
        async with asyncio.timeout(10):
            while not reached():
                await asyncio.sleep(0.01)
        assert reached(), what


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Callable[[World], Coroutine[Any, Any, None]]], None]:
    """Run a test with its own server."""

    @asynccontextmanager
    async def world() -> AsyncIterator[World]:
        cluster, store = FakeCluster(), SeriesStore()
        cluster.put(API_SERVICES, api_service(SERVICE))
        cluster.tell(told_by())
        store.put(Key("default", "shop"), {METRIC: 3}, fresh_until=None)
        store.mark_synced()
        async with external_metrics(
            cluster.transport,
            store,
            clock=WallClock(),
            leading=lambda: made.leads,
            service=SERVICE,
            round_seconds=0.05,
        ) as up:
            made = World(cluster, store, tmp_path, up)
            yield made

    def played(scenario: Callable[[World], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            async with world() as made:
                await made.until("ready", made.running.ready)
                await scenario(made)

        asyncio.run(whole())

    return played


Play = Callable[[Callable[[World], Coroutine[Any, Any, None]]], None]


def test_requests_of_the_front_proxy_are_answered(play: Play) -> None:
    async def scenario(world: World) -> None:
        for path, kind in (
            ("/apis", "APIGroupList"),
            ("/apis/external.metrics.k8s.io", "APIGroup"),
            ("/apis/external.metrics.k8s.io/v1beta1", "APIResourceList"),
            ("/apis/external.metrics.k8s.io/v1beta1/", "APIResourceList"),
        ):
            status, received = await world.ask(path)
            assert (status, received["kind"]) == (200, kind)
        status, received = await world.ask(f"{VALUES}?labelSelector=name%3Dshop")
        assert status == 200
        assert [item["value"] for item in received["items"]] == ["3"]
        assert await world.ask(f"{VALUES}?labelSelector=name%3Dnone") == (200, {**received, "items": []})

    play(scenario)


def test_requests_of_other_clients_are_refused(play: Play) -> None:
    async def scenario(world: World) -> None:
        for client, headers in (
            (None, ADMIN),
            (PROXY, {}),
            (make_client(AUTHORITY, "jane"), ADMIN),
        ):
            status, received = await world.ask(VALUES, headers, client=client)
            assert (status, received["reason"]) == (401, "Unauthorized")
        with pytest.raises(aiohttp.ClientError):
            await world.ask(VALUES, client=STRANGER)
        assert world.cluster.reviews == []

    play(scenario)


def test_probes_need_no_authentication(play: Play) -> None:
    async def scenario(world: World) -> None:
        for path in ("/healthz", "/livez", "/readyz"):
            assert await world.ask(path, {}, client=None) == (200, "ok")

    play(scenario)


def test_a_refused_review_is_forbidden(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.cluster.verdict = lambda spec: {"allowed": spec["user"] == "admin"}
        status, received = await world.ask(VALUES, {"X-Remote-User": "jane"})
        assert (status, received["reason"]) == (403, "Forbidden")
        assert 'User "jane" cannot list resource' in received["message"]
        assert (await world.ask(VALUES))[0] == 200

    play(scenario)


def test_the_review_is_about_the_user_of_the_headers(play: Play) -> None:
    """Including names that are not ASCII."""

    async def scenario(world: World) -> None:
        headers = CIMultiDict([("X-Remote-User", "zoë"), ("X-Remote-Group", "a"), ("X-Remote-Group", "b")])
        assert (await world.ask(VALUES, headers))[0] == 200
        (review,) = world.cluster.reviews
        assert (review["user"], review["groups"]) == ("zoë", ["a", "b"])
        assert review["resourceAttributes"]["resource"] == METRIC

    play(scenario)


def test_requests_are_refused_while_no_review_is_possible(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.cluster.failing = Forbidden("our own rights are gone")
        status, received = await world.ask(VALUES)
        assert (status, received["reason"]) == (503, "ServiceUnavailable")
        assert "our own rights are gone" in received["message"]

    play(scenario)


@pytest.mark.parametrize(
    ("path", "method", "expected"),
    [
        pytest.param(f"{VALUES}?labelSelector=%3D", "GET", (400, "BadRequest"), id="selector"),
        pytest.param(VALUES.replace("capacity", "capacities"), "GET", (404, "NotFound"), id="metric"),
        pytest.param("/openapi/v2", "GET", (404, "NotFound"), id="openapi"),
        pytest.param("/", "GET", (404, "NotFound"), id="root"),
        pytest.param(f"{VALUES}/one", "GET", (404, "NotFound"), id="no-single-values"),
        pytest.param(VALUES, "POST", (405, "MethodNotAllowed"), id="write"),
        pytest.param(f"{VALUES}?watch=true", "GET", (405, "MethodNotAllowed"), id="watch"),
    ],
)
def test_errors_are_status_objects(play: Play, path: str, method: str, expected: tuple[int, str]) -> None:
    async def scenario(world: World) -> None:
        status, received = await world.ask(path, method=method)
        assert (status, received["reason"]) == expected
        assert received["kind"] == "Status"

    play(scenario)


def test_a_replica_that_does_not_lead_serves_only_discovery(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.leads = False
        status, received = await world.ask(VALUES)
        assert (status, received["reason"]) == (503, "ServiceUnavailable")
        assert "does not lead" in received["message"]
        assert (await world.ask("/apis/external.metrics.k8s.io/v1beta1"))[0] == 200
        assert (await world.ask("/readyz"))[0] == 200

    play(scenario)


def test_a_replaced_authority_is_no_longer_trusted(play: Play) -> None:
    async def scenario(world: World) -> None:
        successor = make_authority("front-proxy-2", now=NOW, seconds=3600)
        world.cluster.tell(told_by(successor))
        await world.until(
            "it is read",
            lambda: (
                world.running.request_header.front_proxy is not None
                and world.running.request_header.front_proxy.authorities == successor.certificate.decode()
            ),
        )
        assert (await world.ask(VALUES, client=make_client(successor, "front-proxy-client")))[0] == 200
        with pytest.raises(aiohttp.ClientError):
            await world.ask(VALUES)

    play(scenario)


def test_the_last_valid_settings_are_kept(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.cluster.tell(told_by(requestheader_allowed_names="nonsense"))
        await world.until("it is noticed", lambda: world.running.request_header.problem != "")
        assert (await world.ask(VALUES))[0] == 200
        assert world.running.ready()

    play(scenario)


def test_the_served_certificate_is_signed_by_the_published_bundle(play: Play) -> None:
    async def scenario(world: World) -> None:
        published: Object = await world.cluster.get(API_SERVICES, Key("", "v1beta1.external.metrics.k8s.io"))
        bundle = base64.b64decode(published["spec"]["caBundle"]).decode()
        context = ssl.create_default_context(cadata=bundle)
        _, writer = await asyncio.open_connection(
            world.running.serving.host, world.running.serving.port, ssl=context, server_hostname=SERVICE.names[0]
        )
        assert writer.get_extra_info("peercert")["issuer"] == ((("commonName", "springtide-webhooks"),),)
        writer.close()
        await writer.wait_closed()

    play(scenario)


def test_the_problem_is_what_is_missing() -> None:
    async def scenario() -> None:
        cluster = FakeCluster()
        async with external_metrics(
            cluster.transport,
            SeriesStore(),
            clock=WallClock(),
            leading=lambda: True,
            service=SERVICE,
            round_seconds=0.05,
        ) as up:
            problems: list[str] = []
            async with asyncio.timeout(10):
                while not up.ready():
                    if up.problem() not in problems:
                        problems.append(up.problem())
                    if "is not installed" in up.problem():
                        cluster.put(API_SERVICES, api_service(SERVICE))
                    if "not found" in up.problem():
                        cluster.tell(told_by())
                    await asyncio.sleep(0.01)
            assert any("is not installed" in problem for problem in problems)
            assert any("extension-apiserver-authentication" in problem for problem in problems)

    asyncio.run(scenario())
