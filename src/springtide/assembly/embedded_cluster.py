"""An embedded cluster that others can reach: API server, Kubernetes' own controllers, ours, webhooks, and a front door.

journal ──► API server ◄── HTTPS: kubectl, scripts, controllers in other processes
             ▲  ▲   └────► webhooks, on loopback
  behaviours ┘  └ controllers                                   (in this process, by direct calls)
"""

from __future__ import annotations

import asyncio
import gc
import logging
import secrets
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from springtide.apiserver.admission import ADMIN, WriteExecutor
from springtide.apiserver.direct import DirectTransport
from springtide.apiserver.http import ApiApp, TokenAuthenticator, kubeconfig
from springtide.apiserver.journal import FileJournal, open_journal, restore_storage
from springtide.apiserver.kinds import collection_id
from springtide.apiserver.server import DEFAULT_HISTORY, ApiServer
from springtide.apiserver.storage import Storage
from springtide.apiserver.webhooks import AdmissionWebhooks
from springtide.assembly.embedded_access import EmbeddedCredentials, load_credentials
from springtide.assembly.services import MetricSourceSettings, live_services
from springtide.cluster.admission.webhooks import webhooks
from springtide.cluster.certificates import make_serving
from springtide.cluster.clock import Clock, ScaledClock, WallClock
from springtide.cluster.compute import ThreadCompute
from springtide.cluster.context import Services
from springtide.cluster.controller import Controller
from springtide.cluster.errors import ServerError
from springtide.cluster.leader_election import LEASES, NAME, LeaderElector
from springtide.cluster.manager import NAMESPACE, Manager, ManagerSettings
from springtide.cluster.resources import Key
from springtide.cluster.serving import LOOPBACK, RunningServer, ServingFailed, TlsIdentity, serving
from springtide.cluster.transport import Patch, Transport, Write
from springtide.metrics import ProcessMetrics, caches_synced, operations_app
from springtide.metrics.external import SeriesMetrics
from springtide.metrics.series import SeriesStore
from springtide.simulator.embedded import EmbeddedCluster

log = logging.getLogger(__name__)

DEFAULT_PORT = 7443
_CERTIFICATE_SECONDS = 398 * 86_400
_IDENTITY_PREFIX = "springtide-up_"
"""What the identities of those begin with who host a cluster and lead its controllers."""
_CLOCK = "clock"
_CLOCK_SECONDS = 5.0
"""How often the reading of a clock that is not the world's is kept, so that a restart does not turn it back."""


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    """How a cluster is hosted."""

    controllers: Sequence[type[Controller]]
    data: Path | None = None
    """Where everything is kept; None: in memory, until the end."""
    host: str = LOOPBACK
    port: int | None = None
    """None: the usual one, or any that is free if somebody has that."""
    speed: float = 1.0
    start: int | None = None
    """The instant at which time begins; None: now, or where it was when the same cluster was ended."""
    default_zone: str = "UTC"
    sources: MetricSourceSettings = MetricSourceSettings()  # noqa: RUF009 - it is frozen
    """Where autoscalers read, besides the series of this process."""
    metrics_port: int | None = None
    """Where metrics are served; None: nowhere."""


@dataclass(frozen=True, slots=True)
class EmbeddedHost:
    """A cluster that is up."""

    cluster: EmbeddedCluster
    serving: RunningServer
    credentials: EmbeddedCredentials
    transport: Transport
    """For the user: what goes through it is reviewed by webhooks, as what comes over HTTP is."""
    metrics_url: str = ""
    """Where metrics are served, if they are."""

    def kubeconfig(self) -> str:
        """Write the kubeconfig with which others reach it."""
        return kubeconfig(self.serving.url, self.credentials.authority.certificate, self.credentials.token)


@asynccontextmanager
async def run_embedded_cluster(hosting: EmbeddedSettings) -> AsyncIterator[EmbeddedHost]:
    """Host a cluster within the block; when it is left, controllers finish what they are at.

    What fails inside while the block runs ends the block.
    """
    async with AsyncExitStack() as stack:
        journal = stack.enter_context(open_journal(hosting.data)) if hosting.data is not None else None
        clock = _clock(hosting, journal)
        book = SeriesStore()
        cluster = EmbeddedCluster(
            clock,
            Random(secrets.token_bytes(32)),  # noqa: S311 - names and uids, which are no secrets
            storage=_restore_storage(journal) if journal is not None else None,
            metrics=SeriesMetrics([book]),
        )
        known = load_credentials(journal)
        reviews = await stack.enter_async_context(AdmissionWebhooks(cluster.server))
        served = await stack.enter_async_context(_serve_api(cluster, hosting, known, reviews.execute))
        hooks = await stack.enter_async_context(
            webhooks(
                cluster.transport(),
                namespace=NAMESPACE,
                now=clock.now,
                default_zone=hosting.default_zone,
                create=True,
            )
        )
        metrics = ProcessMetrics()
        services = await stack.enter_async_context(
            live_services(metrics, clock, book=book, sources=hosting.sources, own_cluster=True)
        )
        with _unwrap_single_failure():
            async with asyncio.TaskGroup() as living:
                behaving = living.create_task(cluster.run(_behaviour_settings(hosting)))
                keeping = living.create_task(_keep_clock(clock, journal))
                manager = _manager(cluster, hosting, stack, metrics, services)
                measured = await _serve_metrics(stack, hosting, metrics, manager, clock)
                controlling = living.create_task(manager.run())
                try:
                    await hooks.until_ready()
                    transport = DirectTransport(cluster.server, executor=reviews.execute)
                    yield EmbeddedHost(cluster, served, known, transport, metrics_url=measured)
                    # Only where all went well: who is torn away, or breaks, does not wait for others to finish.
                    await manager.stop()
                finally:
                    for task in (controlling, behaving, keeping):
                        task.cancel()


@contextmanager
def _unwrap_single_failure() -> Iterator[None]:
    """Give a failure as what it is where it is the only one: whoever hosts knows what to say about it."""
    try:
        yield
    except ExceptionGroup as failures:
        if len(failures.exceptions) > 1:
            raise
        raise failures.exceptions[0] from None


@asynccontextmanager
async def _serve_api(
    cluster: EmbeddedCluster, hosting: EmbeddedSettings, known: EmbeddedCredentials, executor: WriteExecutor
) -> AsyncIterator[RunningServer]:
    """Serve the API; where no port is asked for and the usual one is taken, on another."""
    names = list(dict.fromkeys((hosting.host, "localhost", LOOPBACK)))
    pair = make_serving(known.authority, names, now=int(time.time()), seconds=_CERTIFICATE_SECONDS)
    app = ApiApp(cluster.server, authenticate=TokenAuthenticator({known.token: ADMIN}), executor=executor)
    async with AsyncExitStack() as stack:
        opened = partial(serving, app, host=hosting.host, identity=TlsIdentity(pair), dated=False)
        try:
            served = await stack.enter_async_context(
                opened(port=DEFAULT_PORT if hosting.port is None else hosting.port)
            )
        except ServingFailed:
            if hosting.port is not None:
                raise
            served = await stack.enter_async_context(opened())
        stack.callback(app.close)
        yield served


async def _serve_metrics(
    stack: AsyncExitStack, hosting: EmbeddedSettings, metrics: ProcessMetrics, manager: Manager, clock: Clock
) -> str:
    """Serve metrics and health where that is asked for; gives where."""
    metrics.follow(manager, clock)
    if hosting.metrics_port is None:
        return ""
    app = operations_app(metrics.registry, ready=[caches_synced(manager)])
    served = await stack.enter_async_context(serving(app, host=hosting.host, port=hosting.metrics_port))
    return served.url


def _manager(
    cluster: EmbeddedCluster,
    hosting: EmbeddedSettings,
    stack: AsyncExitStack,
    metrics: ProcessMetrics,
    services: Services,
) -> Manager:
    compute = ThreadCompute()
    stack.callback(compute.close)
    random = Random(secrets.token_bytes(32))  # noqa: S311 - spreads requests, hides nothing
    transport = cluster.transport()
    _release_stale_lease(cluster.server)
    return Manager(
        transport,
        cluster.clock,
        hosting.controllers,
        random=random,
        # By the world's clock, as those count who run controllers on this cluster from elsewhere: they stand by.
        election=LeaderElector(transport, WallClock(), identity=f"{_IDENTITY_PREFIX}{uuid.uuid4()}", random=random),
        compute=compute,
        metrics=metrics,
        services=services,
        settings=replace(_settings_at_speed(hosting.speed), default_zone=hosting.default_zone),
    )


def _release_stale_lease(server: ApiServer) -> None:
    """Take the lease from a former host of the same cluster: whoever holds the data knows that it is gone."""
    key = Key(NAMESPACE, NAME)
    lease = server.find(collection_id(LEASES), key)
    if lease is not None and str((lease.get("spec") or {}).get("holderIdentity", "")).startswith(_IDENTITY_PREFIX):
        freed = Patch.merge({"spec": {"holderIdentity": ""}})
        server.patch(LEASES, key, freed, Write("springtide-up", "the process that held it is gone"))


def _behaviour_settings(hosting: EmbeddedSettings) -> ManagerSettings:
    return replace(_settings_at_speed(hosting.speed), pausable=False, field_manager_prefix="")


def _settings_at_speed(speed: float) -> ManagerSettings:
    """Let a fast clock hurry what happens, and not how long a process waits for its own memory."""
    usual = ManagerSettings()
    return replace(usual, sync_timeout=usual.sync_timeout * speed, grace=usual.grace * speed, flush=usual.flush * speed)


def _restore_storage(journal: FileJournal) -> Storage:
    """Give what is kept; it stays for long, so the garbage collector need not look through it again and again."""
    gc.disable()
    try:
        storage = restore_storage(journal, history=DEFAULT_HISTORY)
        gc.freeze()
    finally:
        gc.enable()
    return storage


def _clock(hosting: EmbeddedSettings, journal: FileJournal | None) -> Clock:
    kept = journal.get(_CLOCK) if journal is not None else None
    if hosting.speed == 1 and hosting.start is None and kept is None:
        return WallClock()
    begins = hosting.start if hosting.start is not None else int(time.time())
    return ScaledClock(hosting.speed, start=max(begins, int(kept or 0)))


async def _keep_clock(clock: Clock, journal: FileJournal | None) -> None:
    """Remember what a clock shows that has left the world's behind, and what it shows in the end."""
    if journal is None or not isinstance(clock, ScaledClock):
        return
    try:
        while True:
            _keep(clock, journal)
            await asyncio.sleep(_CLOCK_SECONDS)
    finally:
        _keep(clock, journal)


def _keep(clock: Clock, journal: FileJournal) -> None:
    try:
        journal.set(_CLOCK, str(clock.now()).encode())
    except ServerError as failure:
        # Whoever writes an object is told as well; a clock that is a little slow after a restart harms nobody.
        log.warning("the clock is not kept: %s", failure)
