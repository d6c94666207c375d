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

from springtide.cli.credentials import Credentials, credentials
from springtide.cli.offering import MetricSources, offered
from springtide.cluster.admission.webhooks import webhooks
from springtide.cluster.certificates import make_serving
from springtide.cluster.clock import Clock, ScaledClock, WallClock
from springtide.cluster.compute import ThreadCompute
from springtide.cluster.controller import Controller
from springtide.cluster.errors import ServerError
from springtide.cluster.lease import LEASES, NAME, Leadership
from springtide.cluster.manager import NAMESPACE, Manager, ManagerSettings
from springtide.cluster.port import Patch, Transport, Write
from springtide.cluster.resources import Key
from springtide.cluster.services import Services
from springtide.cluster.serving import LOOPBACK, Serving, ServingFailed, TlsIdentity, serving
from springtide.metrics import Metrics, caches_are_filled, operations
from springtide.metrics.external import SeriesMetrics
from springtide.metrics.series import SeriesBook
from springtide.simulator.api.catalogue import identity_of
from springtide.simulator.api.direct import DirectTransport
from springtide.simulator.api.performing import ADMIN, Perform
from springtide.simulator.api.server import DEFAULT_HISTORY, ApiServer
from springtide.simulator.api.storage import Storage
from springtide.simulator.durable import FileJournal, open_journal, restored
from springtide.simulator.embedded import EmbeddedCluster
from springtide.simulator.http import ApiApp, Tokens, kubeconfig
from springtide.simulator.webhooks import Reviews

log = logging.getLogger(__name__)

PORT = 7443
_CERTIFICATE_SECONDS = 398 * 86_400
_HOLDER = "springtide-up_"
"""What the identities of those begin with who host a cluster and lead its controllers."""
_CLOCK = "clock"
_CLOCK_SECONDS = 5.0
"""How often the reading of a clock that is not the world's is kept, so that a restart does not turn it back."""


@dataclass(frozen=True, slots=True)
class Hosting:
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
    sources: MetricSources = MetricSources()  # noqa: RUF009 - it is frozen
    """Where autoscalers read, besides the series of this process."""
    metrics_port: int | None = None
    """Where metrics are served; None: nowhere."""


@dataclass(frozen=True, slots=True)
class Hosted:
    """A cluster that is up."""

    cluster: EmbeddedCluster
    serving: Serving
    credentials: Credentials
    transport: Transport
    """For the user: what goes through it is reviewed by webhooks, as what comes over HTTP is."""
    metrics_url: str = ""
    """Where metrics are served, if they are."""

    def kubeconfig(self) -> str:
        """Write the kubeconfig with which others reach it."""
        return kubeconfig(self.serving.url, self.credentials.authority.certificate, self.credentials.token)


@asynccontextmanager
async def hosted(hosting: Hosting) -> AsyncIterator[Hosted]:
    """Host a cluster within the block; when it is left, controllers finish what they are at.

    What fails inside while the block runs ends the block.
    """
    async with AsyncExitStack() as stack:
        journal = stack.enter_context(open_journal(hosting.data)) if hosting.data is not None else None
        clock = _clock(hosting, journal)
        book = SeriesBook()
        cluster = EmbeddedCluster(
            clock,
            Random(secrets.token_bytes(32)),  # noqa: S311 - names and uids, which are no secrets
            storage=_restored(journal) if journal is not None else None,
            metrics=SeriesMetrics([book]),
        )
        known = credentials(journal)
        reviews = await stack.enter_async_context(Reviews(cluster.server))
        served = await stack.enter_async_context(_front_door(cluster, hosting, known, reviews.perform))
        hooks = await stack.enter_async_context(
            webhooks(
                cluster.transport(),
                namespace=NAMESPACE,
                now=clock.now,
                default_zone=hosting.default_zone,
                create=True,
            )
        )
        metrics = Metrics()
        services = await stack.enter_async_context(
            offered(metrics, clock, book=book, sources=hosting.sources, own_cluster=True)
        )
        with _alone():
            async with asyncio.TaskGroup() as living:
                behaving = living.create_task(cluster.run(_behaving(hosting)))
                keeping = living.create_task(_keep_clock(clock, journal))
                manager = _manager(cluster, hosting, stack, metrics, services)
                measured = await _serve_metrics(stack, hosting, metrics, manager, clock)
                controlling = living.create_task(manager.run())
                try:
                    await hooks.until_ready()
                    transport = DirectTransport(cluster.server, perform=reviews.perform)
                    yield Hosted(cluster, served, known, transport, metrics_url=measured)
                    # Only where all went well: who is torn away, or breaks, does not wait for others to finish.
                    await manager.stop()
                finally:
                    for task in (controlling, behaving, keeping):
                        task.cancel()


@contextmanager
def _alone() -> Iterator[None]:
    """Give a failure as what it is where it is the only one: whoever hosts knows what to say about it."""
    try:
        yield
    except ExceptionGroup as failures:
        if len(failures.exceptions) > 1:
            raise
        raise failures.exceptions[0] from None


@asynccontextmanager
async def _front_door(
    cluster: EmbeddedCluster, hosting: Hosting, known: Credentials, perform: Perform
) -> AsyncIterator[Serving]:
    """Serve the API; where no port is asked for and the usual one is taken, on another."""
    names = list(dict.fromkeys((hosting.host, "localhost", LOOPBACK)))
    pair = make_serving(known.authority, names, now=int(time.time()), seconds=_CERTIFICATE_SECONDS)
    app = ApiApp(cluster.server, authenticate=Tokens({known.token: ADMIN}), perform=perform)
    async with AsyncExitStack() as stack:
        opened = partial(serving, app, host=hosting.host, identity=TlsIdentity(pair), dated=False)
        try:
            served = await stack.enter_async_context(opened(port=PORT if hosting.port is None else hosting.port))
        except ServingFailed:
            if hosting.port is not None:
                raise
            served = await stack.enter_async_context(opened())
        stack.callback(app.close)
        yield served


async def _serve_metrics(
    stack: AsyncExitStack, hosting: Hosting, metrics: Metrics, manager: Manager, clock: Clock
) -> str:
    """Serve metrics and health where that is asked for; gives where."""
    metrics.follow(manager, clock)
    if hosting.metrics_port is None:
        return ""
    app = operations(metrics.registry, ready=[caches_are_filled(manager)])
    served = await stack.enter_async_context(serving(app, host=hosting.host, port=hosting.metrics_port))
    return served.url


def _manager(
    cluster: EmbeddedCluster, hosting: Hosting, stack: AsyncExitStack, metrics: Metrics, services: Services
) -> Manager:
    compute = ThreadCompute()
    stack.callback(compute.close)
    random = Random(secrets.token_bytes(32))  # noqa: S311 - spreads requests, hides nothing
    transport = cluster.transport()
    _free_lease(cluster.server)
    return Manager(
        transport,
        cluster.clock,
        hosting.controllers,
        random=random,
        # By the world's clock, as those count who run controllers on this cluster from elsewhere: they stand by.
        leadership=Leadership(transport, WallClock(), identity=f"{_HOLDER}{uuid.uuid4()}", random=random),
        compute=compute,
        telemetry=metrics,
        services=services,
        settings=replace(_patient(hosting.speed), default_zone=hosting.default_zone),
    )


def _free_lease(server: ApiServer) -> None:
    """Take the lease from a former host of the same cluster: whoever holds the data knows that it is gone."""
    key = Key(NAMESPACE, NAME)
    lease = server.find(identity_of(LEASES), key)
    if lease is not None and str((lease.get("spec") or {}).get("holderIdentity", "")).startswith(_HOLDER):
        freed = Patch.merge({"spec": {"holderIdentity": ""}})
        server.patch(LEASES, key, freed, Write("springtide-up", "the process that held it is gone"))


def _behaving(hosting: Hosting) -> ManagerSettings:
    return replace(_patient(hosting.speed), pausable=False, field_manager_prefix="")


def _patient(speed: float) -> ManagerSettings:
    """Let a fast clock hurry what happens, and not how long a process waits for its own memory."""
    usual = ManagerSettings()
    return replace(usual, patience=usual.patience * speed, grace=usual.grace * speed, flush=usual.flush * speed)


def _restored(journal: FileJournal) -> Storage:
    """Give what is kept; it stays for long, so the garbage collector need not look through it again and again."""
    gc.disable()
    try:
        storage = restored(journal, history=DEFAULT_HISTORY)
        gc.freeze()
    finally:
        gc.enable()
    return storage


def _clock(hosting: Hosting, journal: FileJournal | None) -> Clock:
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
