"""The operations endpoints, without a network.

What probes and Prometheus are answered, and what a process is not blamed for.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge
from starlette.applications import Starlette
from starlette.types import ASGIApp
from tests.cluster.manager_process import Process, stamp_controller
from tests.cluster.memory_cluster import START, MemoryCluster

from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Controller
from springtide.cluster.errors import ConnectionLost, Forbidden
from springtide.cluster.manager import Manager
from springtide.cluster.resources import Key, Resource
from springtide.metrics import HealthResult, ProcessMetrics, caches_synced, fact_check, operations_app
from springtide.simulator.virtual_time import VirtualClock, run


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(app: ASGIApp, target: str, *, method: str = "GET", **headers: str) -> Answer:
    """Send a request; underscores in the names of headers are dashes."""
    return asyncio.run(asking(app, target, method=method, **headers))


async def asking(app: ASGIApp, target: str, *, method: str = "GET", **headers: str) -> Answer:
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Answer(start["status"], {name.decode(): value.decode() for name, value in start["headers"]}, body)


FINE = fact_check("fact", lambda: True, otherwise="never said")
BROKEN = fact_check("fact", lambda: False, otherwise="it is not so")


@pytest.mark.parametrize(
    ("target", "status", "body"),
    [
        pytest.param("/healthz", 200, "ok", id="alive"),
        pytest.param("/healthz?verbose", 200, "[+]ping ok\n[+]alive ok\nhealthz check passed\n", id="alive, in words"),
        pytest.param(
            "/readyz",
            503,
            "[+]ping ok\n[+]alive ok\n[-]ready failed: not yet\nreadyz check failed\n",
            id="a failure is always verbose",
        ),
        pytest.param("/nothing", 404, "Not Found", id="elsewhere"),
    ],
)
def test_health_has_the_format_of_kubernetes(target: str, status: int, body: str) -> None:
    app = operations_app(
        CollectorRegistry(),
        alive=[fact_check("alive", lambda: True, otherwise="")],
        ready=[fact_check("ready", lambda: False, otherwise="not yet")],
    )
    answer = ask(app, target)
    assert (answer.status, answer.text) == (status, body)


@pytest.mark.parametrize(
    ("alive", "ready", "healthz", "readyz"),
    [
        pytest.param(FINE, FINE, 200, 200, id="all is well"),
        pytest.param(FINE, BROKEN, 200, 503, id="not ready, but alive"),
        pytest.param(BROKEN, FINE, 503, 503, id="not alive, so not ready"),
    ],
)
def test_readiness_includes_liveness(
    alive: Callable[[], list[HealthResult]], ready: Callable[[], list[HealthResult]], healthz: int, readyz: int
) -> None:
    app = operations_app(CollectorRegistry(), alive=[alive], ready=[ready])
    assert (ask(app, "/healthz").status, ask(app, "/readyz").status) == (healthz, readyz)


def test_health_must_not_be_cached() -> None:
    assert ask(operations_app(CollectorRegistry()), "/readyz").headers["cache-control"] == "no-store"


def test_only_get_is_allowed() -> None:
    app = operations_app(CollectorRegistry())
    assert [ask(app, path, method="POST").status for path in ("/metrics", "/healthz", "/readyz")] == [405, 405, 405]
    assert ask(app, "/readyz", method="HEAD").status == 200


def test_metrics_have_the_accepted_format() -> None:
    registry = CollectorRegistry()
    Gauge("tide", "How high.", registry=registry).set(3)
    app = operations_app(registry)
    plain = ask(app, "/metrics")
    assert plain.headers["content-type"].startswith("text/plain")
    assert "tide 3.0" in plain.text

    open_metrics = ask(app, "/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert open_metrics.headers["content-type"].startswith("application/openmetrics-text")
    assert open_metrics.text.endswith("# EOF\n")

    squeezed = ask(app, "/metrics", accept_encoding="gzip, deflate")
    assert squeezed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(squeezed.body) == plain.body


Story = Callable[[MemoryCluster, VirtualClock], Awaitable[None]]


def play(scenario: Story) -> None:
    async def main(clock: VirtualClock) -> None:
        await scenario(MemoryCluster(clock), clock)

    run(main, start=START)


def application(manager: Manager, clock: VirtualClock) -> Starlette:
    metrics = ProcessMetrics()
    metrics.follow(manager, clock)
    return operations_app(metrics.registry, ready=[caches_synced(manager)])


async def readiness(app: Starlette) -> Answer:
    assert (await asking(app, "/healthz")).status == 200
    assert (await asking(app, "/metrics")).status == 200
    return await asking(app, "/readyz")


def test_a_process_is_ready_when_its_caches_have_synced() -> None:
    async def scenario(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, stamp_controller())
        app = application(process.manager, clock)
        before = await readiness(app)
        assert before.status == 503
        assert "[-]cache configmaps[work] failed: not complete yet\n" in before.text
        await clock.sleep(1)
        assert (await readiness(app)).text == "ok"
        await process.manager.stop()

    play(scenario)


def test_a_standby_replica_is_ready() -> None:
    async def scenario(world: MemoryCluster, clock: VirtualClock) -> None:
        first = Process(world, clock, stamp_controller(), identity="first")
        await clock.sleep(1)
        second = Process(world, clock, stamp_controller(), identity="second")
        app = application(second.manager, clock)
        await clock.sleep(5)
        assert not second.manager.leading
        assert (await readiness(app)).status == 200
        await first.manager.stop()
        await second.manager.stop()

    play(scenario)


def test_a_process_stays_ready_during_an_outage_of_the_api_server() -> None:
    """Even when it lasts for an hour, and the lease is lost."""

    async def scenario(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, stamp_controller(), identity="alone")
        app = application(process.manager, clock)
        await clock.sleep(1)

        async def away(verb: str, resource: Resource, key: Key) -> None:
            raise ConnectionLost("no answer")

        process.line.before = away
        process.line.flowing.clear()
        for _ in range(60):
            await clock.sleep(60)
            assert (await readiness(app)).status == 200
        assert not process.manager.leading
        process.crash()
        await asyncio.wait((process.task,))

    play(scenario)


def test_a_missing_permission_is_reported() -> None:
    """A rollout to a version that lacks a verb stops, with the reason."""

    class Denied:
        """A server that forbids lists."""

        async def list(self, *asked: object, **options: object) -> None:
            raise Forbidden('configmaps is forbidden: User "us" cannot list resource "configmaps"')

        async def watch(self, *asked: object, **options: object) -> object:
            raise Forbidden('configmaps is forbidden: User "us" cannot watch resource "configmaps"')
            yield

    async def scenario(world: MemoryCluster, clock: VirtualClock) -> None:
        manager = Manager(Denied(), clock, [stamp_controller()], random=Random(1))  # type: ignore[arg-type]
        app = application(manager, clock)
        running = asyncio.ensure_future(manager.run())
        await clock.sleep(100)
        answer = await readiness(app)
        assert answer.status == 503
        assert '[-]cache configmaps[work] failed: configmaps is forbidden: User "us" cannot watch' in answer.text
        running.cancel()
        await asyncio.wait((running,))

    play(scenario)


def test_a_controller_that_cannot_be_created_does_not_fail_liveness() -> None:
    def broken(self: Controller, context: ControllerContext) -> None:
        raise ValueError("no settings")

    async def scenario(world: MemoryCluster, clock: VirtualClock) -> None:
        process = Process(world, clock, stamp_controller(__init__=broken))
        app = application(process.manager, clock)
        await clock.sleep(1)
        assert process.manager.health()[0].state == "failed"
        assert (await readiness(app)).status == 200
        assert 'springtide_controller_state{controller="stamper",state="failed"} 1.0' in (
            (await asking(app, "/metrics")).text
        )
        await process.manager.stop()

    play(scenario)
