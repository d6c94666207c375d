"""The webhook server over real connections: certificates, registration and responses together."""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from tempfile import NamedTemporaryFile
from typing import Any

import aiohttp
import pytest
from tests.apis.karpenter.samples import beta_pool, node_pool
from tests.cluster.admission.review_requests import conversion_review, review
from tests.cluster.memory_cluster import SECRETS, USER
from tests.e2e.identities import make_client

from springtide.apiserver.direct import DirectTransport
from springtide.apiserver.server import ApiServer
from springtide.cluster.admission import ServiceTarget, Webhooks, serve_webhooks
from springtide.cluster.admission.configurations import VALIDATING
from springtide.cluster.admission.registration import PERMISSIONS
from springtide.cluster.certificates import CertificatePair, make_authority
from springtide.cluster.certificates.clients import AuthoritiesFile, ClientVerification
from springtide.cluster.certificates.manager import SECRET_NAME
from springtide.cluster.errors import NotFound
from springtide.cluster.kinds import CUSTOM_RESOURCE_DEFINITIONS
from springtide.cluster.manager import NAMESPACE
from springtide.cluster.resources import Key, Resource
from springtide.simulator.bootstrap import install

KEY = Key(NAMESPACE, SECRET_NAME)
CONFIGURATIONS: Resource = next(each.resource for each in PERMISSIONS if VALIDATING in each.names)


class ApiSide:
    """Calls the webhooks as an API server does: by the configuration, with its CA bundle."""

    def __init__(self, server: ApiServer, hooks: Webhooks) -> None:
        self.server = server
        self.hooks = hooks
        self.client: CertificatePair | None = None
        """The client certificate that it sends."""

    def client_config(self) -> dict[str, Any]:
        """Read where the validating webhook is."""
        webhook: dict[str, Any] = self.server.get(CONFIGURATIONS, Key("", VALIDATING))["webhooks"][0]
        client: dict[str, Any] = webhook["clientConfig"]
        return client

    async def post(self, path: str, body: bytes, *, server_name: str | None = None) -> Any:
        """Send a review, and trust only the authorities of the bundle."""
        bundle = base64.b64decode(self.client_config()["caBundle"]).decode()
        trust = ssl.create_default_context(cadata=bundle)
        if self.client is not None:
            with NamedTemporaryFile() as file:
                file.write(self.client.key + self.client.certificate)
                file.flush()
                trust.load_cert_chain(file.name)
        async with (
            aiohttp.ClientSession() as client,
            client.post(self.hooks.serving.url + path, data=body, ssl=trust, server_hostname=server_name) as answer,
        ):
            assert answer.status == 200, f"{answer.status} {await answer.text()}"
            return (await answer.json())["response"]


def play(scenario: Callable[[ApiSide], Awaitable[None]], **options: Any) -> None:
    """Serve webhooks on loopback for an API server in memory, and run a test."""

    async def main() -> None:
        server = ApiServer(now=lambda: int(time.time()), random=Random(1))
        install(server)
        transport = DirectTransport(server)
        try:
            async with (
                asyncio.timeout(30),
                serve_webhooks(transport, namespace=NAMESPACE, create=True, **options) as hooks,
            ):
                assert not hooks.ready()
                await hooks.until_ready()
                await scenario(ApiSide(server, hooks))
        finally:
            transport.cut()

    asyncio.run(main())


def test_an_api_server_can_call_the_webhooks() -> None:
    async def scenario(side: ApiSide) -> None:
        assert side.client_config()["url"] == f"{side.hooks.serving.url}/validate"
        assert side.hooks.ready()
        refused = await side.post("/validate", review(node_pool({"budgets": [{"nodes": "many"}]})))
        mended = await side.post("/default", review(node_pool({"budgets": [{"nodes": 5}]})))
        converted = await side.post("/convert", conversion_review("karpenter.sh/v1", beta_pool()))

        assert not refused["allowed"]
        assert mended["patch"]
        assert converted["result"]["status"] == "Success"

    play(scenario)


def test_through_a_service_the_certificate_is_for_its_name() -> None:
    """API servers verify it for the name of the Service, whatever its address is."""
    target = ServiceTarget(NAMESPACE, "springtide")

    async def scenario(side: ApiSide) -> None:
        assert side.client_config()["service"]["name"] == "springtide"
        response = await side.post("/validate", review(node_pool()), server_name=target.names[0])
        assert response["allowed"]
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await side.post("/validate", review(node_pool()), server_name="other.svc")

    play(scenario, target=target)


def test_only_verified_clients_can_call_webhooks(tmp_path: Path) -> None:
    """Objects are not converted then: API servers call conversion webhooks without a certificate."""
    now = int(time.time())
    authority = make_authority("clients", now=now, seconds=3600)
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    clients = ClientVerification(AuthoritiesFile(tmp_path / "ca.pem"), ("kube-apiserver",))
    pool = Key("", "nodepools.karpenter.sh")

    async def scenario(side: ApiSide) -> None:
        side.client = make_client(authority, "kube-apiserver")
        assert (await side.post("/validate", review(node_pool())))["allowed"]
        assert (await side.post("/default", review(node_pool({"budgets": [{"nodes": 5}]}))))["patch"]
        assert side.server.get(CUSTOM_RESOURCE_DEFINITIONS, pool)["spec"].get("conversion", {}).get("webhook") is None

        side.client = make_client(authority, "jane")
        with pytest.raises(AssertionError, match="403"):
            await side.post("/validate", review(node_pool()))
        for stranger in (None, make_client(make_authority("strangers", now=now, seconds=3600), "kube-apiserver")):
            side.client = stranger
            with pytest.raises(aiohttp.ClientError):
                await side.post("/validate", review(node_pool()))

    play(scenario, clients=clients)


def test_a_conversion_that_verification_cuts_off_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Once, with what to do; the conversion of the CRD is the decision of its owner."""
    (tmp_path / "ca.pem").write_bytes(make_authority("clients", now=int(time.time()), seconds=3600).certificate)
    target = ServiceTarget(NAMESPACE, "springtide")

    async def scenario(server: ApiServer) -> None:
        transport = DirectTransport(server)
        async with serve_webhooks(transport, namespace=NAMESPACE, target=target, create=True) as hooks:
            await hooks.until_ready()
        assert "is converted by these webhooks" not in caplog.text
        clients = ClientVerification(AuthoritiesFile(tmp_path / "ca.pem"))
        async with serve_webhooks(
            transport, namespace=NAMESPACE, target=target, round_seconds=0.02, clients=clients
        ) as hooks:
            await hooks.until_ready()
            await asyncio.sleep(0.2)
        transport.cut()
        for name in ("nodepools", "nodeclaims"):
            assert caplog.text.count(f"the CRD {name}.karpenter.sh is converted by these webhooks") == 1

    async def main() -> None:
        server = ApiServer(now=lambda: int(time.time()), random=Random(1))
        install(server)
        async with asyncio.timeout(30):
            await scenario(server)

    asyncio.run(main())


def test_certificates_change_while_reviews_are_answered() -> None:
    """The Secret is deleted and replaced; an API server with the old bundle may have to retry."""

    async def scenario(side: ApiSide) -> None:
        before = side.server.get(SECRETS, KEY)["data"]["tls.crt"]
        side.server.delete(SECRETS, KEY, USER)
        answered = 0
        while answered < 5 or _certificate(side) in (None, before):
            known = side.client_config()["caBundle"]
            try:
                assert (await side.post("/validate", review(node_pool())))["allowed"]
                answered += 1
            except aiohttp.ClientConnectorCertificateError:
                assert known != side.client_config()["caBundle"]

    play(scenario, round_seconds=0.02)


def _certificate(side: ApiSide) -> str | None:
    try:
        text: str = side.server.get(SECRETS, KEY)["data"]["tls.crt"]
    except NotFound:
        return None
    return text


def test_the_end_of_the_block_stops_everything() -> None:
    """No task, no thread, no listener."""

    async def main() -> tuple[int, set[asyncio.Task[Any]]]:
        server = ApiServer(now=lambda: int(time.time()), random=Random(1))
        install(server)
        transport = DirectTransport(server)
        async with serve_webhooks(transport, namespace=NAMESPACE) as hooks:
            await asyncio.wait_for(hooks.until_ready(), 20)
        transport.cut()
        return hooks.serving.port, asyncio.all_tasks() - {asyncio.current_task()}

    port, left = asyncio.run(main())

    assert left == set()
    with pytest.raises(OSError, match="Connect call failed"):
        asyncio.run(asyncio.open_connection("127.0.0.1", port))
