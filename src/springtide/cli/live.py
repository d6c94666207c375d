"""One process of Springtide on a live cluster: transport, manager, metrics and webhooks, from its start to its end."""

from __future__ import annotations

import asyncio
import logging
import socket
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from random import Random

from springtide.cli.offering import MetricSources, offered
from springtide.cluster.admission.targets import ServiceTarget, Target
from springtide.cluster.admission.webhooks import webhooks
from springtide.cluster.clock import Clock, WallClock
from springtide.cluster.compute import ThreadCompute
from springtide.cluster.controller import Controller
from springtide.cluster.http import Access, HttpSettings, HttpTransport
from springtide.cluster.lease import Leadership
from springtide.cluster.manager import Manager, ManagerSettings
from springtide.cluster.modes import Mode
from springtide.cluster.port import Transport
from springtide.cluster.serving import serving
from springtide.cluster.waiting import first_of
from springtide.metrics import Check, Finding, Metrics, caches_are_filled, holds, operations
from springtide.metrics.external import external_metrics
from springtide.metrics.series import SeriesBook

log = logging.getLogger("springtide.cli.live")


@dataclass(frozen=True, slots=True)
class Address:
    """Where something is served."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class WebhookPlan:
    """How webhooks are served, and how API servers reach them."""

    address: Address
    target: Target


@dataclass(frozen=True, slots=True)
class ExternalMetricsPlan:
    """How external metrics are served, and the Service through which API servers reach them."""

    address: Address
    service: ServiceTarget
    pod: str
    """The pod that this process runs in; empty where it runs in none."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the process runs."""

    controllers: Sequence[type[Controller]]
    mode: Mode
    elect: bool
    namespace: str
    default_zone: str
    metrics: Address | None
    webhooks: WebhookPlan | None
    sources: MetricSources
    external_metrics: ExternalMetricsPlan | None


async def run_live(stop: asyncio.Event, access: Access, plan: Plan) -> int:
    """Run until told to stop; gives the exit code."""
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    random = Random()  # noqa: S311 - spreads requests, hides nothing
    clock = WallClock()
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(
            HttpTransport(access, settings=HttpSettings(component="springtide-controller"), random=random)
        )
        log.info("%s is the cluster (%s); this process is %s", access.server, access.origin, identity)
        transport = metrics.measured(http)
        compute = ThreadCompute()
        stack.callback(compute.close)
        book = SeriesBook()
        services = await stack.enter_async_context(offered(metrics, clock, book=book, sources=plan.sources))
        leadership = Leadership(transport, clock, identity=identity, random=random, namespace=plan.namespace)
        manager = Manager(
            transport,
            clock,
            plan.controllers,
            random=random,
            leadership=leadership if plan.elect else None,
            mode=plan.mode,
            compute=compute,
            namespace=plan.namespace,
            settings=ManagerSettings(default_zone=plan.default_zone),
            telemetry=metrics,
            services=services,
        )
        metrics.follow(manager, clock)
        ready = [caches_are_filled(manager)]
        if plan.webhooks is not None:
            ready.append(await _serve_webhooks(stack, transport, plan, plan.webhooks))
        if plan.external_metrics is not None:
            ready.append(await _serve_external_metrics(stack, transport, book, clock, manager, plan.external_metrics))
        if plan.metrics is not None:
            app = operations(metrics.registry, ready=ready)
            served = await stack.enter_async_context(serving(app, host=plan.metrics.host, port=plan.metrics.port))
            log.info("metrics and health are served at %s", served.url)
        return await _run(stop, manager)


async def _run(stop: asyncio.Event, manager: Manager) -> int:
    running = asyncio.create_task(manager.run())
    try:
        await first_of(stop.wait(), asyncio.shield(running))
        await manager.stop()
        await running
    finally:
        running.cancel()
    log.info("ended in order")
    return 0


async def _serve_webhooks(stack: AsyncExitStack, transport: Transport, plan: Plan, how: WebhookPlan) -> Check:
    """Serve the webhooks until the stack ends, and give the check that they can be called."""
    up = await stack.enter_async_context(
        webhooks(
            transport,
            namespace=plan.namespace,
            target=how.target,
            host=how.address.host,
            port=how.address.port,
            default_zone=plan.default_zone,
            convert=True,
        )
    )
    log.info("webhooks are served at %s", up.serving.url)
    return holds("webhooks", up.ready, "the certificates are not made and published yet")


async def _serve_external_metrics(
    stack: AsyncExitStack,
    transport: Transport,
    book: SeriesBook,
    clock: Clock,
    manager: Manager,
    how: ExternalMetricsPlan,
) -> Check:
    """Serve series to stock autoscalers until the stack ends, and give the check that they can come."""
    up = await stack.enter_async_context(
        external_metrics(
            transport,
            book,
            clock=clock,
            leading=lambda: manager.leading,
            service=how.service,
            host=how.address.host,
            port=how.address.port,
            pod=how.pod,
            # Where it may: in a pod it may not, and the chart has made the APIService.
            create=True,
        )
    )
    log.info("external metrics are served at %s", up.serving.url)

    def check() -> Iterator[Finding]:
        yield Finding("external metrics", up.problem())

    return check
