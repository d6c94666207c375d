"""Several replicas that manage certificates in one Secret: one state, whatever the races, crashes and delays."""

from __future__ import annotations

import asyncio
import base64
import math
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from tests.cluster.memory_cluster import SECRETS, START, USER, Line, MemoryCluster

from springtide.apiserver.server import CommittedWrite
from springtide.cluster.admission.configurations import VALIDATING, ServiceTarget, webhook_configurations
from springtide.cluster.admission.registration import WebhookRegistration
from springtide.cluster.certificates.issuance import CertificatePair
from springtide.cluster.certificates.manager import SECRET_NAME, CertificateManager
from springtide.cluster.certificates.rotation import CertificateLifetimes, read_secret
from springtide.cluster.errors import ConnectionLost, NotFound, ServerError
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.serving import TlsIdentity
from springtide.cluster.transport import Patch
from springtide.simulator.virtual_time import VirtualClock, run

KEY = Key("springtide-system", SECRET_NAME)
TARGET = ServiceTarget("springtide-system", "springtide")
DAY = 86_400
TERMS = CertificateLifetimes(authority=4 * DAY, serving=DAY, propagation=7200)
CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)

MUTATIONS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)


class ServedIdentity:
    """Records the certificate that a server serves."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.pair: CertificatePair | None = None
        self._changed = changed

    def replace(self, pair: CertificatePair) -> None:
        """Serve another certificate."""
        self.pair = pair
        self._changed()


class Replica:
    """A process that manages the certificates; it can crash and restart with an empty memory."""

    def __init__(self, cluster: Cluster, *, create: bool = True) -> None:
        self._cluster = cluster
        self._create = create
        self.line = cluster.world.line()
        self.start()

    def start(self) -> None:
        """Start the process."""
        self.identity = ServedIdentity(self._cluster.look)
        self.certificates = CertificateManager(
            self.line,
            namespace=KEY.namespace,
            names=TARGET.names,
            publisher=WebhookRegistration(self.line, TARGET, create=self._create),
            now=self._cluster.clock.now,
            terms=TERMS,
            round_seconds=900,
        )
        self._task = asyncio.create_task(self.certificates.run(cast(TlsIdentity, self.identity)))

    def crash(self) -> None:
        """Kill the process; it no longer serves."""
        self._task.cancel()
        self.identity.pair = None


class Cluster:
    """Some replicas; records which certificates they serve, and which bundles are published."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.world = MemoryCluster(clock)
        self.world.server.observers.append(self._on_write)
        self.replicas: list[Replica] = []
        self.bundles: list[tuple[int, bytes]] = []
        """Every bundle that was published, and since when."""
        self.lag = TERMS.propagation // 2
        """How late API servers may read a published bundle."""
        self.untrusted: list[str] = []
        self.shows = 0
        self._vouched: dict[tuple[bytes, bytes], bool] = {}

    def add(self, count: int, *, create: bool = True) -> list[Replica]:
        """Start replicas, which create the configurations or not."""
        self.replicas += [Replica(self, create=create) for _ in range(count)]
        return self.replicas

    def secret(self) -> Object:
        """Return the Secret."""
        return self.world.server.get(SECRETS, KEY)

    def look(self) -> None:
        """Record valid certificates that are served but not trusted by an API server with a stale bundle."""
        now = self.clock.now()
        ends = [*(since for since, _ in self.bundles[1:]), math.inf]
        recent = [bundle for (_, bundle), end in zip(self.bundles, ends, strict=False) if end > now - self.lag]
        for number, replica in enumerate(self.replicas):
            pair = replica.identity.pair
            if pair is not None and now < pair.valid_until():
                self.shows += 1
                if not recent or not all(self._vouches(bundle, pair.certificate) for bundle in recent):
                    self.untrusted.append(f"replica {number} at {now - START}")

    def _on_write(self, written: CommittedWrite) -> None:
        if written.key.name == VALIDATING:
            found = self.world.server.get(CONFIGURATIONS, Key("", VALIDATING))
            bundle = base64.b64decode(found["webhooks"][0]["clientConfig"].get("caBundle", ""))
            if not self.bundles or bundle != self.bundles[-1][1]:
                self.bundles.append((self.clock.now(), bundle))
                self.look()

    def _vouches(self, bundle: bytes, certificate: bytes) -> bool:
        if (bundle, certificate) not in self._vouched:
            self._vouched[bundle, certificate] = any(
                _signed(certificate, authority) for authority in x509.load_pem_x509_certificates(bundle)
            )
        return self._vouched[bundle, certificate]


def _signed(certificate: bytes, authority: x509.Certificate) -> bool:
    try:
        x509.load_pem_x509_certificate(certificate).verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError):
        return False
    return True


def play(scenario: Callable[[Cluster], Awaitable[None]]) -> None:
    """Run a test in virtual time."""

    async def main(clock: VirtualClock) -> None:
        cluster = Cluster(clock)
        try:
            await scenario(cluster)
        finally:
            for replica in cluster.replicas:
                replica.crash()
        assert cluster.untrusted == []

    run(main, start=START)


def test_two_replicas_that_start_at_once_share_one_certificate() -> None:
    """One creates the Secret, the other reads it."""

    async def scenario(cluster: Cluster) -> None:
        one, other = cluster.add(2)
        await asyncio.gather(one.certificates.ready.wait(), other.certificates.ready.wait())

        assert one.identity.pair == other.identity.pair == read_secret(cluster.secret()).serving.pair
        writes = [written for written in cluster.world.writes if written.resource.kind == "Secret"]
        assert [(written.verb, written.write.manager) for written in writes] == [("create", "springtide-webhooks")]

    play(scenario)


def test_the_secret_has_the_usual_keys() -> None:
    """Its serving pair is in tls.crt and tls.key."""

    async def scenario(cluster: Cluster) -> None:
        (one,) = cluster.add(1)
        await one.certificates.ready.wait()

        secret = cluster.secret()
        assert secret["type"] == "Opaque"
        assert one.identity.pair is not None
        assert base64.b64decode(secret["data"]["tls.crt"]) == one.identity.pair.certificate
        assert base64.b64decode(secret["data"]["bundle.crt"]) == cluster.bundles[-1][1]

    play(scenario)


def test_a_later_replica_uses_the_existing_certificate() -> None:
    async def scenario(cluster: Cluster) -> None:
        (one,) = cluster.add(1)
        await one.certificates.ready.wait()
        before = cluster.secret()
        other = cluster.add(1)[1]
        await other.certificates.ready.wait()

        assert other.identity.pair == one.identity.pair
        assert before == cluster.secret()

    play(scenario)


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(lambda server: server.delete(SECRETS, KEY, USER), id="deleted"),
        pytest.param(
            lambda server: server.patch(SECRETS, KEY, Patch.merge({"data": {"ca.key": "aGVsbG8="}}), USER), id="invalid"
        ),
        pytest.param(
            lambda server: server.patch(SECRETS, KEY, Patch.merge({"data": None, "stringData": None}), USER),
            id="emptied",
        ),
    ],
)
def test_a_deleted_or_invalid_secret_is_replaced(harm: Callable[[Any], None], caplog: pytest.LogCaptureFixture) -> None:
    """No replica serves an untrusted certificate: the old authority stays in the bundle for a while."""

    async def scenario(cluster: Cluster) -> None:
        one, other = cluster.add(2)
        await asyncio.gather(one.certificates.ready.wait(), other.certificates.ready.wait())
        before = one.identity.pair
        cluster.lag = 0  # what begins anew is shown as soon as it is published
        harm(cluster.world.server)
        await asyncio.sleep(2000)

        assert before != one.identity.pair == other.identity.pair
        assert one.identity.pair == read_secret(cluster.secret()).serving.pair

    play(scenario)
    assert all("will be replaced" in record.message for record in caplog.records if record.levelname == "WARNING")


def test_an_overwritten_bundle_is_restored() -> None:
    async def scenario(cluster: Cluster) -> None:
        (one,) = cluster.add(1)
        await one.certificates.ready.wait()
        good = cluster.bundles[-1][1]
        key = Key("", VALIDATING)
        found = cluster.world.server.get(CONFIGURATIONS, key)
        one.identity.pair = None  # the serving certificate is not checked meanwhile
        operation = {"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}
        cluster.world.server.patch(CONFIGURATIONS, key, Patch.json(operation), USER)
        await asyncio.sleep(1000)

        assert cluster.bundles[-1][1] == good
        assert found["webhooks"] == cluster.world.server.get(CONFIGURATIONS, key)["webhooks"]

    play(scenario)


def test_configurations_that_are_installed_later_get_their_bundle_soon() -> None:
    """Until they have it, API servers refuse the writes that they select."""

    async def scenario(cluster: Cluster) -> None:
        (one,) = cluster.add(1, create=False)
        await one.certificates.ready.wait()
        await asyncio.sleep(60)
        one.identity.pair = None  # the serving certificate is not checked meanwhile
        for each, resource in zip(webhook_configurations(TARGET), (CONFIGURATIONS, MUTATIONS), strict=True):
            cluster.world.server.create(resource, each, USER)
        await asyncio.sleep(5)

        found = cluster.world.server.get(CONFIGURATIONS, Key("", VALIDATING))["webhooks"][0]["clientConfig"]
        assert base64.b64decode(found["caBundle"]) == read_secret(cluster.secret()).bundle
        cluster.untrusted.clear()  # no API server calls before there is a configuration

    play(scenario)


def test_failures_of_the_api_server_are_retried() -> None:
    """It is not ready meanwhile, and serves no certificate before its bundle is published."""

    async def scenario(cluster: Cluster) -> None:
        (one,) = cluster.add(1)

        async def failing(verb: str, resource: Resource, key: Key) -> None:
            raise ServerError("etcd has no leader")

        one.line.before = failing
        await asyncio.sleep(300)
        assert not one.certificates.ready.is_set()
        assert one.identity.pair is None

        one.line.before = nothing
        await asyncio.sleep(60)
        assert one.certificates.ready.is_set()

    play(scenario)


async def nothing(verb: str, resource: Resource, key: Key) -> None:
    """Let everything pass."""


def trouble(random: Random, line: Line) -> None:
    """Let requests wait, get lost, and take effect without an answer."""

    async def before(verb: str, resource: Resource, key: Key) -> None:
        await asyncio.sleep(random.choice((0, 0.01, 1, 120)) * random.random())
        if random.random() < 0.03:
            raise ConnectionLost("the request was lost")

    async def after(verb: str, resource: Resource, key: Key) -> None:
        await asyncio.sleep(random.choice((0, 0.01, 1, 120)) * random.random())
        if random.random() < 0.03:
            raise ConnectionLost("the answer was lost")

    line.before, line.after = before, after


@pytest.mark.parametrize("seed", range(4))
def test_every_served_certificate_is_trusted(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """Three replicas over several authorities: lost requests, delays and crashes anywhere, API servers that lag."""
    random = Random(seed)

    async def scenario(cluster: Cluster) -> None:
        for replica in cluster.add(3):
            trouble(random, replica.line)
        end = cluster.clock.now() + 7 * DAY
        while cluster.clock.now() < end:
            await asyncio.sleep(random.expovariate(1 / 20_000))
            victim = random.choice(cluster.replicas)
            victim.crash()
            await asyncio.sleep(random.expovariate(1 / 5_000))
            victim.start()
        for replica in cluster.replicas:
            replica.line.before = replica.line.after = nothing
        await asyncio.sleep(2000)

        state = read_secret(cluster.secret())
        assert all(replica.identity.pair == state.serving.pair for replica in cluster.replicas)
        assert cluster.bundles[-1][1] == state.bundle
        assert len(cluster.bundles) >= 5  # authorities have come and gone
        assert cluster.shows > 50

    play(scenario)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_without_a_namespace_nothing_crashes() -> None:
    """It retries until a user creates it."""

    async def scenario(cluster: Cluster) -> None:
        certificates = CertificateManager(
            cluster.world.line(),
            namespace="nowhere",
            names=TARGET.names,
            publisher=WebhookRegistration(cluster.world.line(), TARGET),
            now=cluster.clock.now,
        )
        task = asyncio.create_task(certificates.run(cast(TlsIdentity, ServedIdentity(cluster.look))))
        await asyncio.sleep(100)

        assert not certificates.ready.is_set()
        with pytest.raises(NotFound):
            cluster.world.server.get(SECRETS, Key("nowhere", SECRET_NAME))
        task.cancel()

    play(scenario)
