"""Runs the controllers of one process on a live cluster, with leader election, metrics and webhooks."""

from __future__ import annotations

import asyncio
import difflib
import logging
import socket
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from random import Random

from springtide.assembly.services import MetricSourceSettings, live_services
from springtide.cluster.admission.configurations import ServiceTarget, WebhookTarget
from springtide.cluster.admission.webhooks import serve_webhooks
from springtide.cluster.certificates.clients import ClientVerification
from springtide.cluster.client import Mode
from springtide.cluster.clock import Clock, WallClock, first_of
from springtide.cluster.compute import LiveCompute
from springtide.cluster.controller import Controller
from springtide.cluster.http import ClusterAccess, HttpSettings, HttpTransport
from springtide.cluster.leader_election import LeaderElector
from springtide.cluster.manager import Manager, ManagerSettings
from springtide.cluster.serving import serving
from springtide.cluster.transport import Transport
from springtide.metrics import (
    HealthCheck,
    HealthResult,
    ProcessMetrics,
    caches_synced,
    fact_check,
    operations_app,
    serve_health,
)
from springtide.metrics.external import external_metrics
from springtide.metrics.series import SeriesStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Host and port that a server listens on."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Where webhooks listen, and how API servers reach them."""

    address: ListenAddress
    target: WebhookTarget
    clients: ClientVerification | None = None
    """How the API servers that call them are verified; None: not at all."""


@dataclass(frozen=True, slots=True)
class ExternalMetricsSettings:
    """Where external metrics are served, and the Service through which API servers reach them."""

    address: ListenAddress
    service: ServiceTarget
    pod_address: str
    """The IP address of this process's pod; empty outside a pod."""


@dataclass(frozen=True, slots=True)
class ControllerProcessSettings:
    """Settings of a controller process."""

    controllers: Sequence[type[Controller]]
    mode: Mode
    elect: bool
    namespace: str
    default_zone: str
    metrics: ListenAddress | None
    health: ListenAddress | None
    webhooks: WebhookSettings | None
    sources: MetricSourceSettings
    external_metrics: ExternalMetricsSettings | None


async def run_live(stop: asyncio.Event, access: ClusterAccess, settings: ControllerProcessSettings) -> int:
    """Run until `stop` is set; returns the exit code."""
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    random = Random()  # noqa: S311 - spreads requests, hides nothing
    clock = WallClock()
    metrics = ProcessMetrics()
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(
            HttpTransport(access, settings=HttpSettings(component="springtide-controller"), random=random)
        )
        log.info("%s is the cluster (%s); this process is %s", access.server, access.origin, identity)
        transport = metrics.measured(http)
        compute = LiveCompute()
        stack.callback(compute.close)
        series = SeriesStore()
        services = await stack.enter_async_context(
            live_services(metrics, clock, series=series, sources=settings.sources, mode=settings.mode)
        )
        election = LeaderElector(transport, clock, identity=identity, random=random, namespace=settings.namespace)
        manager = Manager(
            transport,
            clock,
            settings.controllers,
            random=random,
            election=election if settings.elect else None,
            mode=settings.mode,
            compute=compute,
            namespace=settings.namespace,
            settings=ManagerSettings(default_zone=settings.default_zone),
            metrics=metrics,
            services=services,
        )
        metrics.follow(manager, clock)
        ready = [caches_synced(manager)]
        if settings.webhooks is not None:
            ready.append(await _serve_webhooks(stack, transport, settings, settings.webhooks))
        if settings.external_metrics is not None:
            ready.append(
                await _serve_external_metrics(stack, transport, series, clock, manager, settings.external_metrics)
            )
        if settings.metrics is not None:
            app = operations_app(metrics.registry, ready=ready)
            served = await stack.enter_async_context(
                serving(app, host=settings.metrics.host, port=settings.metrics.port)
            )
            log.info("metrics are served at %s", served.url)
        if settings.health is not None:
            probed = await stack.enter_async_context(
                serve_health(settings.health.host, settings.health.port, ready=ready)
            )
            log.info("health is served at %s", probed.url)
        return await _run(stop, manager)


async def _run(stop: asyncio.Event, manager: Manager) -> int:
    running = asyncio.create_task(manager.run())
    try:
        await first_of(stop.wait(), asyncio.shield(running))
        await manager.stop()
        await running
    finally:
        running.cancel()
    log.info("shut down")
    return 0


async def _serve_webhooks(
    stack: AsyncExitStack, transport: Transport, settings: ControllerProcessSettings, how: WebhookSettings
) -> HealthCheck:
    """Serve the webhooks until the stack ends; returns the readiness check."""
    up = await stack.enter_async_context(
        serve_webhooks(
            transport,
            namespace=settings.namespace,
            target=how.target,
            host=how.address.host,
            port=how.address.port,
            default_zone=settings.default_zone,
            convert=True,
            clients=how.clients,
        )
    )
    clients = "clients with a verified certificate" if how.clients is not None else "every client"
    log.info("webhooks are served to %s at %s", clients, up.serving.url)
    return fact_check("webhooks", up.ready, "the certificates are not issued and published yet")


async def _serve_external_metrics(
    stack: AsyncExitStack,
    transport: Transport,
    series: SeriesStore,
    clock: Clock,
    manager: Manager,
    how: ExternalMetricsSettings,
) -> HealthCheck:
    """Serve external metrics until the stack ends; returns the readiness check."""
    up = await stack.enter_async_context(
        external_metrics(
            transport,
            series,
            clock=clock,
            leading=lambda: manager.leading,
            service=how.service,
            host=how.address.host,
            port=how.address.port,
            address=how.pod_address,
            # Fails in a pod, which has no right to do it: there the chart creates the APIService.
            create=True,
        )
    )
    log.info("external metrics are served at %s", up.serving.url)

    def check() -> Iterator[HealthResult]:
        yield HealthResult("external metrics", up.problem())

    return check


ALL = "*"


class InvalidSelection(ValueError):
    """The value of `--controllers` names an unknown controller, or contradicts itself."""


def select_controllers(text: str, controllers: Sequence[type[Controller]]) -> tuple[type[Controller], ...]:
    """Choose controllers as `--controllers` says: `a,b` for these, `-c` for all but that, `*` or nothing for all."""
    known = [controller.name for controller in controllers]
    wanted: list[str] = []
    unwanted: list[str] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        name = word.removeprefix("-")
        if name != ALL and name not in known:
            raise InvalidSelection(_unknown(name, known))
        if word == f"-{ALL}":
            raise InvalidSelection("-* leaves nothing to run; name what is to run")
        (unwanted if word.startswith("-") else wanted).append(name)
    for name in unwanted:
        if name in wanted:
            raise InvalidSelection(f"{name!r} is both named and left out")
    everything = not wanted or ALL in wanted
    chosen = tuple(
        controller
        for controller in controllers
        if (everything or controller.name in wanted) and controller.name not in unwanted
    )
    if not chosen:
        raise InvalidSelection(f"{text!r} leaves nothing to run, expected some of {', '.join(known)}")
    return chosen


def _unknown(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    meant = f"; did you mean {close[0]!r}?" if close else f", expected some of {', '.join(known)}"
    return f"there is no controller {name!r}{meant}"
