"""Runs an embedded cluster: API server, Kubernetes' own controllers, ours, their webhooks, and an HTTPS endpoint.

journal ──► API server ◄── HTTPS: kubectl, scripts, controllers in other processes
             ▲  ▲   └────► webhooks, on loopback
  behaviours ┘  └ controllers                                   (in this process, by direct calls)
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import secrets
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from springtide.apiserver.admission import ADMIN, WriteExecutor
from springtide.apiserver.direct import DirectTransport
from springtide.apiserver.http import ApiApp, TokenAuthenticator, kubeconfig
from springtide.apiserver.journal import FileJournal, JournalSync, open_journal, restore_storage
from springtide.apiserver.kinds import collection_id
from springtide.apiserver.server import DEFAULT_HISTORY, ApiServer
from springtide.apiserver.storage import Storage
from springtide.apiserver.webhooks import AdmissionWebhooks
from springtide.assembly.embedded_access import EmbeddedCredentials, load_credentials
from springtide.assembly.services import MetricSourceSettings, live_services
from springtide.cluster.admission.webhooks import serve_webhooks
from springtide.cluster.certificates import make_serving
from springtide.cluster.clock import Clock, ScaledClock, WallClock
from springtide.cluster.compute import LiveCompute
from springtide.cluster.context import Services
from springtide.cluster.controller import Controller
from springtide.cluster.errors import ServerError
from springtide.cluster.leader_election import LEASES, NAME, LeaderElector
from springtide.cluster.manager import NAMESPACE, Manager, ManagerSettings
from springtide.cluster.resources import Key
from springtide.cluster.serving import LOOPBACK, MOST_CONNECTIONS, RunningServer, ServingFailed, TlsIdentity, serving
from springtide.cluster.transport import Patch, Transport, Write
from springtide.metrics import ProcessMetrics, caches_synced, operations_app
from springtide.metrics.external import SeriesMetrics
from springtide.metrics.series import SeriesStore
from springtide.simulator.embedded import EmbeddedCluster

log = logging.getLogger(__name__)

DEFAULT_PORT = 7443
_CERTIFICATE_SECONDS = 398 * 86_400
_IDENTITY_PREFIX = "springtide-up_"
"""Prefix of the leader election identities of `springtide up` processes."""
_CLOCK = "clock"
CLOCK_SECONDS = 0.5
"""How often, in seconds of real time, a time is stored that a scaled clock has not reached yet: after a crash it
continues there, and never goes back. It skips at most twice as long."""
_SHORTEST_SKIP = 60
"""Seconds of a cluster that a start may skip without a word."""


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    """Settings of an embedded cluster."""

    controllers: Sequence[type[Controller]]
    data: Path | None = None
    """The folder of the journal; None: in memory only."""
    host: str = LOOPBACK
    port: int | None = None
    """None: the default port, or any free one if that is taken."""
    speed: float = 1.0
    start: int | None = None
    """When the clock starts; None: now, or the time that is stored with the data."""
    default_zone: str = "UTC"
    sources: MetricSourceSettings = MetricSourceSettings()  # noqa: RUF009 - it is frozen
    """Where HorizontalAutoscalers read metrics, besides the series of this process."""
    metrics_port: int | None = None
    """The port of /metrics; None: not served."""


@dataclass(frozen=True, slots=True)
class EmbeddedHost:
    """A running embedded cluster."""

    cluster: EmbeddedCluster
    serving: RunningServer
    credentials: EmbeddedCredentials
    transport: Transport
    """For writes on behalf of the user: the webhooks review them, as they review requests over HTTPS."""
    metrics_url: str = ""
    """The base URL of /metrics; empty where it is not served."""

    def kubeconfig(self) -> str:
        """Render the kubeconfig for clients in other processes."""
        return kubeconfig(self.serving.url, self.credentials.authority.certificate, self.credentials.token)


@dataclass(frozen=True, slots=True)
class SkippedTime:
    """What a cluster with stored data skips, because its clock stood in the past."""

    stood_at: int
    continues_at: int


def _say_nothing(skipped: SkippedTime) -> None:
    """Skip time without a word."""


@asynccontextmanager
async def run_embedded_cluster(
    settings: EmbeddedSettings, *, before_skip: Callable[[SkippedTime], None] = _say_nothing
) -> AsyncIterator[EmbeddedHost]:
    """Run a cluster within the block; at its end, controllers finish the reconciles that are running.

    `before_skip` is called, before anything runs, if the clock of stored data is about to jump to the present. A
    failure of a task of the cluster ends the block.
    """
    async with AsyncExitStack() as stack:
        journal = stack.enter_context(open_journal(settings.data)) if settings.data is not None else None
        stored = _stored_time(journal)
        clock = _clock(settings, stored)
        if (skipped := _skipped_time(clock, settings, stored)) is not None:
            before_skip(skipped)
        await stack.enter_async_context(_stored_clock(clock, journal))
        series = SeriesStore()
        cluster = EmbeddedCluster(
            clock,
            Random(secrets.token_bytes(32)),  # noqa: S311 - names and uids, which are no secrets
            storage=_restore_storage(journal) if journal is not None else None,
            metrics=SeriesMetrics([series]),
        )
        credentials = load_credentials(journal)
        reviews = await stack.enter_async_context(AdmissionWebhooks(cluster.server))
        served = await stack.enter_async_context(_serve_api(cluster, settings, credentials, reviews.execute))
        hooks = await stack.enter_async_context(
            serve_webhooks(
                cluster.transport(),
                namespace=NAMESPACE,
                now=clock.now,
                default_zone=settings.default_zone,
                create=True,
            )
        )
        metrics = ProcessMetrics()
        services = await stack.enter_async_context(
            live_services(metrics, clock, series=series, sources=settings.sources, own_cluster=True)
        )
        with _unwrap_single_failure():
            async with asyncio.TaskGroup() as tasks:
                behaviours = tasks.create_task(cluster.run(_behaviour_settings(settings)))
                manager = _manager(cluster, settings, stack, metrics, services)
                metrics_url = await _serve_metrics(stack, settings, metrics, manager, clock)
                controllers = tasks.create_task(manager.run())
                try:
                    await hooks.until_ready()
                    transport = DirectTransport(cluster.server, executor=reviews.execute)
                    yield EmbeddedHost(cluster, served, credentials, transport, metrics_url=metrics_url)
                    # Only at an orderly end: after a failure or cancellation, reconciles are not waited for.
                    await manager.stop()
                finally:
                    for task in (controllers, behaviours):
                        task.cancel()


@contextmanager
def _unwrap_single_failure() -> Iterator[None]:
    """Raise the only failure of a task group by itself, so that callers can handle it by its type."""
    try:
        yield
    except ExceptionGroup as failures:
        if len(failures.exceptions) > 1:
            raise
        raise failures.exceptions[0] from None


@asynccontextmanager
async def _serve_api(
    cluster: EmbeddedCluster, settings: EmbeddedSettings, credentials: EmbeddedCredentials, executor: WriteExecutor
) -> AsyncIterator[RunningServer]:
    """Serve the API over HTTPS; without a requested port on the default one, or on a free one if that is taken."""
    names = list(dict.fromkeys((settings.host, "localhost", LOOPBACK)))
    pair = make_serving(credentials.authority, names, now=int(time.time()), seconds=_CERTIFICATE_SECONDS)
    app = ApiApp(cluster.server, authenticate=TokenAuthenticator({credentials.token: ADMIN}), executor=executor)
    async with AsyncExitStack() as stack:
        # All clients of an embedded cluster are usually on this machine, so one address may use all places.
        serve = partial(
            serving,
            app,
            host=settings.host,
            identity=TlsIdentity(pair),
            dated=False,
            most_per_peer=MOST_CONNECTIONS,
        )
        try:
            served = await stack.enter_async_context(
                serve(port=DEFAULT_PORT if settings.port is None else settings.port)
            )
        except ServingFailed:
            if settings.port is not None:
                raise
            served = await stack.enter_async_context(serve())
        stack.callback(app.close)
        yield served


async def _serve_metrics(
    stack: AsyncExitStack, settings: EmbeddedSettings, metrics: ProcessMetrics, manager: Manager, clock: Clock
) -> str:
    """Serve metrics and health if a port is set; returns the URL."""
    metrics.follow(manager, clock)
    if settings.metrics_port is None:
        return ""
    app = operations_app(metrics.registry, ready=[caches_synced(manager)])
    served = await stack.enter_async_context(serving(app, host=settings.host, port=settings.metrics_port))
    return served.url


def _manager(
    cluster: EmbeddedCluster,
    settings: EmbeddedSettings,
    stack: AsyncExitStack,
    metrics: ProcessMetrics,
    services: Services,
) -> Manager:
    compute = LiveCompute()
    stack.callback(compute.close)
    random = Random(secrets.token_bytes(32))  # noqa: S311 - spreads requests, hides nothing
    transport = cluster.transport()
    _release_stale_lease(cluster.server)
    return Manager(
        transport,
        cluster.clock,
        settings.controllers,
        random=random,
        # By wall time, as controllers in other processes count, which stand by on this cluster.
        election=LeaderElector(transport, WallClock(), identity=f"{_IDENTITY_PREFIX}{uuid.uuid4()}", random=random),
        compute=compute,
        metrics=metrics,
        services=services,
        settings=replace(_settings_at_speed(settings.speed), default_zone=settings.default_zone),
    )


def _release_stale_lease(server: ApiServer) -> None:
    """Release the lease of a former process: only one can hold the data folder, so that one has ended."""
    key = Key(NAMESPACE, NAME)
    lease = server.find(collection_id(LEASES), key)
    if lease is not None and str((lease.get("spec") or {}).get("holderIdentity", "")).startswith(_IDENTITY_PREFIX):
        release = Patch.merge({"spec": {"holderIdentity": ""}})
        server.patch(LEASES, key, release, Write("springtide-up", "the process that held it is gone"))


def _behaviour_settings(settings: EmbeddedSettings) -> ManagerSettings:
    return replace(_settings_at_speed(settings.speed), pausable=False, field_manager_prefix="")


def _settings_at_speed(speed: float) -> ManagerSettings:
    """Scale the time limits inside the process, so that a fast clock does not shorten them."""
    default = ManagerSettings()
    return replace(
        default, sync_timeout=default.sync_timeout * speed, grace=default.grace * speed, flush=default.flush * speed
    )


def _restore_storage(journal: FileJournal) -> Storage:
    """Load the journal; its objects live long, so they are frozen for the garbage collector."""
    gc.disable()
    try:
        storage = restore_storage(journal, history=DEFAULT_HISTORY)
        gc.freeze()
    finally:
        gc.enable()
    return storage


def _stored_time(journal: FileJournal | None) -> int | None:
    stored = journal.get(_CLOCK) if journal is not None else None
    return None if stored is None else int(stored)


def _clock(settings: EmbeddedSettings, stored: int | None) -> Clock:
    if settings.speed == 1 and settings.start is None and stored is None:
        return WallClock()
    start = settings.start if settings.start is not None else int(time.time())
    return ScaledClock(settings.speed, start=max(start, stored or 0))


def _skipped_time(clock: Clock, settings: EmbeddedSettings, stored: int | None) -> SkippedTime | None:
    """Return what is skipped without having been asked for; a few seconds are not worth a word."""
    now = clock.now()
    if stored is None or settings.start is not None or now - stored < _SHORTEST_SKIP:
        return None
    return SkippedTime(stored, now)


@asynccontextmanager
async def _stored_clock(clock: Clock, journal: FileJournal | None) -> AsyncIterator[None]:
    """Store the time of a scaled clock: ahead of it within the block, and exactly at its end."""
    if journal is None or not isinstance(clock, ScaledClock):
        yield
        return
    ahead = math.ceil(2 * CLOCK_SECONDS * clock.speed)

    async def keep() -> None:
        while True:
            _store_time(clock.now() + ahead, journal, JournalSync.NORMAL)
            await asyncio.sleep(CLOCK_SECONDS)

    keeping = asyncio.create_task(keep())
    try:
        await asyncio.sleep(0)
        yield
    finally:
        keeping.cancel()
        _store_time(clock.now(), journal, JournalSync.FULL)


def _store_time(instant: int, journal: FileJournal, sync: JournalSync) -> None:
    try:
        journal.set(_CLOCK, str(instant).encode(), sync)
    except ServerError as failure:
        # Not fatal: writes of objects report the same error, and after a restart the clock is only a little late.
        log.warning("cannot store the time of the clock: %s", failure)
