"""`springtide controller` as a process, on a cluster over HTTPS."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest
from tests.cli.conftest import Run

from springtide.apiserver.admission import ADMIN
from springtide.apiserver.http import ApiApp, TokenAuthenticator, kubeconfig
from springtide.apiserver.server import ApiServer
from springtide.cluster.certificates import make_authority, make_serving
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.serving import TlsIdentity, serving
from springtide.cluster.transport import Write
from springtide.controllers import CONTROLLERS
from springtide.simulator.bootstrap import install

CALENDARS = Resource("springtide.dev", "v1alpha1", "calendars", "Calendar", namespaced=False)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
EVENTS = Resource("", "v1", "events", "Event")
LEASE = Key("springtide-system", "springtide")
PATIENCE = 60.0
WEBHOOKS = ("--webhooks", "--webhook-url", "https://localhost:9443")
TOKEN = "the token of the cluster"
DAY = 86_400
PRODUCERS = Resource("autoscaling.karpenter.sh", "v1alpha1", "metricsproducers", "MetricsProducer")
PRODUCER: Object = {
    "apiVersion": PRODUCERS.api_version,
    "kind": PRODUCERS.kind,
    "metadata": {"name": "bakery", "namespace": "default"},
    "spec": {"schedule": {"defaultReplicas": 2, "behaviors": []}},
}
_DECIDED = re.compile(
    r'springtide_reconcile_total{controller="metrics-producer",result="(success|requeue_after)"} [1-9]'
)
GOOD = {"timeZone": "Europe/Berlin", "dates": ["2026-12-24"]}
EMPTY = {"holidays": {"country": "XX"}}


@dataclass(slots=True)
class Controller:
    """A controller process, and its log so far."""

    process: asyncio.subprocess.Process
    lines: list[dict[str, Any]] = field(default_factory=list)

    async def read(self) -> None:
        """Read the rest of the log; without a terminal, every line is JSON."""
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            if not line.startswith(b"stopping"):
                self.lines.append(json.loads(line))

    async def said(self, words: str) -> str:
        """Wait for a log message that contains a text."""

        async def logged() -> str:
            return next((line["message"] for line in self.lines if words in line["message"]), "")

        return str(await eventually(logged))


async def eventually(look: Callable[[], Awaitable[Any]]) -> Any:
    """Wait until a probe returns something, and return that."""
    deadline = time.monotonic() + PATIENCE
    while not (seen := await look()):
        assert time.monotonic() < deadline, "timed out"
        await asyncio.sleep(0.05)
    return seen


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[ApiServer]:
    """Serve an API server with our CRDs and no controller."""
    now = int(time.time())
    server = ApiServer(now=lambda: int(time.time()), random=Random(0))
    install(server)
    authority = make_authority("test", now=now, seconds=DAY)
    app = ApiApp(server, authenticate=TokenAuthenticator({TOKEN: ADMIN}))
    identity = TlsIdentity(make_serving(authority, ["127.0.0.1"], now=now, seconds=DAY))
    async with serving(app, identity=identity, dated=False) as served:
        (folder / "kubeconfig").write_text(kubeconfig(served.url, authority.certificate, TOKEN))
        yield server
        app.close()


@asynccontextmanager
async def controller(folder: Path, *arguments: str) -> AsyncIterator[Controller]:
    """Run the command; it is stopped at the end of the block."""
    command = (sys.executable, "-c", "from springtide.cli import main; main()", "controller")
    chosen = ("--kubeconfig", str(folder / "kubeconfig"), "--metrics-port", "0", "--health-port", "0", *arguments)
    process = await asyncio.create_subprocess_exec(*command, *chosen, stderr=asyncio.subprocess.PIPE)
    running = Controller(process)
    reading = asyncio.create_task(running.read())
    try:
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading


def calendar(name: str, spec: Object) -> Object:
    return {"apiVersion": "springtide.dev/v1alpha1", "kind": "Calendar", "metadata": {"name": name}, "spec": spec}


def conditions(server: ApiServer, name: str) -> dict[str, str]:
    found = server.get(CALENDARS, Key("", name)).get("status") or {}
    return {one["type"]: one["status"] for one in found.get("conditions") or ()}


async def fetched(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


def test_it_acts_serves_health_and_metrics_and_releases_the_lease(tmp_path: Path) -> None:
    async def story() -> None:
        async with cluster(tmp_path) as server, controller(tmp_path) as process:
            server.create(CALENDARS, calendar("good", GOOD), Write("user"))

            async def ready() -> bool:
                return conditions(server, "good").get("Ready") == "True"

            await eventually(ready)
            url = (await process.said("metrics are")).rsplit(" ", 1)[1]
            probed = (await process.said("health is")).rsplit(" ", 1)[1]
            assert probed != url
            for place in (url, probed):
                assert (await fetched(f"{place}/readyz"))[0] == 200
                assert (await fetched(f"{place}/healthz")) == (200, "ok")
            assert (await fetched(f"{probed}/metrics"))[0] == 404
            _, metrics = await fetched(f"{url}/metrics")
            assert 'springtide_reconcile_total{controller="calendar",result="requeue_after"}' in metrics
            assert server.get(LEASES, LEASE)["spec"]["holderIdentity"]

            process.process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.process.wait(), PATIENCE) == 0
            assert not server.get(LEASES, LEASE)["spec"].get("holderIdentity")

    asyncio.run(story())


def test_observe_mode_writes_only_events(tmp_path: Path) -> None:
    async def story() -> None:
        async with cluster(tmp_path) as server, controller(tmp_path, "--mode", "observe") as process:
            server.create(CALENDARS, calendar("bad", EMPTY), Write("user"))

            async def event_written() -> bool:
                items = server.list(Selection(EVENTS)).items
                return any(item["involvedObject"]["name"] == "bad" for item in items)

            await eventually(event_written)
            assert conditions(server, "bad") == {}
            process.process.send_signal(signal.SIGINT)
            assert await asyncio.wait_for(process.process.wait(), PATIENCE) == 0

    asyncio.run(story())


def test_an_observer_beside_an_acting_process_exports_no_series(tmp_path: Path) -> None:
    """Both decide: the series would be there twice, and a schedule that is tried out would scale by KEDA."""

    async def story() -> None:
        async with (
            cluster(tmp_path) as server,
            controller(tmp_path) as acting,
            controller(tmp_path, "--mode", "observe") as observing,
        ):
            server.create(PRODUCERS, PRODUCER, Write("user"), namespace="default")

            async def scraped(process: Controller) -> str:
                return (await fetched(f"{(await process.said('metrics are')).rsplit(' ', 1)[1]}/metrics"))[1]

            async def exported() -> str:
                text = await scraped(acting)
                return text if "karpenter_scheduled_capacity{" in text else ""

            async def decided() -> str:
                text = await scraped(observing)
                return text if _DECIDED.search(text) else ""

            assert "springtide_leader 1.0" in await eventually(exported)
            observed = await eventually(decided)
            assert 'springtide_controller_state{controller="metrics-producer",state="running"} 1.0' in observed
            assert "springtide_leader 0.0" in observed
            assert "karpenter_" not in observed
            assert "springtide_metrics_producer_age_seconds" not in observed

    asyncio.run(story())


def test_another_replica_takes_over_from_a_killed_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with cluster(tmp_path) as server, controller(tmp_path) as first:

            async def held() -> str:
                names = [item["metadata"]["name"] for item in server.list(Selection(LEASES)).items]
                return str(server.get(LEASES, LEASE)["spec"].get("holderIdentity", "")) if LEASE.name in names else ""

            leader = await eventually(held)
            async with controller(tmp_path) as second:
                await second.said("metrics are")
                first.process.kill()
                server.create(CALENDARS, calendar("good", GOOD), Write("user"))

                async def taken_over() -> bool:
                    return await held() not in ("", leader) and bool(conditions(server, "good"))

                await eventually(taken_over)

    asyncio.run(story())


def test_a_taken_port_is_reported_with_the_option_to_change_it(tmp_path: Path) -> None:
    async def story() -> str:
        async with cluster(tmp_path), serving(_deaf) as taken:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", "from springtide.cli import main; main()", "controller"),
                *("--kubeconfig", str(tmp_path / "kubeconfig"), "--metrics-port", str(taken.port)),
                stderr=asyncio.subprocess.PIPE,
            )
            _, said = await asyncio.wait_for(process.communicate(), PATIENCE)
            assert process.returncode == 1
            return said.decode()

    said = asyncio.run(story())
    assert "error: cannot listen on 127.0.0.1:" in said
    assert "--metrics-port" in said
    assert "Traceback" not in said


async def _deaf(scope: Any, receive: Any, send: Any) -> None:
    """Keeps a port in use."""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(("--controllers", "calender"), 2, "did you mean 'calendar'?", id="unknown controller"),
        pytest.param(
            ("--controllers", ",".join(f"-{one.name}" for one in CONTROLLERS)),
            2,
            "leaves nothing to run",
            id="no controller left",
        ),
        pytest.param(("--webhook-client-ca-file", "ca.pem"), 2, "needs --webhooks", id="clients without webhooks"),
        pytest.param(
            (*WEBHOOKS, "--webhook-client-name", "a"), 2, "names alone verify nothing", id="names without authorities"
        ),
        pytest.param(
            (*WEBHOOKS, "--webhook-client-ca-file", "missing.pem"),
            2,
            "cannot read missing.pem: No such file",
            id="missing authorities",
        ),
        pytest.param(
            (*WEBHOOKS, "--webhook-client-ca-file", __file__), 2, "names no certificate authority", id="no authorities"
        ),
        pytest.param(("--metrics-source", "prometheus"), 2, "--prometheus-url is missing", id="no Prometheus"),
        pytest.param(
            ("--prometheus-token-file", "t"), 2, "--prometheus-url is missing", id="a token without a Prometheus"
        ),
        pytest.param(("--prometheus-url", "prom:9090"), 2, "must begin with http://", id="invalid URL"),
        pytest.param(
            ("--prometheus-url", "http://p/", "--prometheus-header", "secret"),
            2,
            "must be NAME=VALUE",
            id="invalid header",
        ),
        pytest.param(("--external-metrics",), 2, "--external-metrics-service", id="external metrics without a Service"),
        pytest.param(("--mode", "dry"), 2, "observe", id="unknown mode"),
        pytest.param(("--webhooks",), 2, "--webhook-service or --webhook-url", id="webhooks without a Service or URL"),
        pytest.param(
            ("--webhooks", "--webhook-url", "https://a", "--webhook-service", "b"),
            2,
            "either",
            id="Service and URL",
        ),
        pytest.param(("--webhooks", "--webhook-url", "http://a"), 2, "https://HOST", id="webhooks without TLS"),
        pytest.param(("--webhooks", "--webhook-service", "a:b"), 2, "write NAME or NAME:PORT", id="invalid port"),
        pytest.param(("--webhooks", "--webhook-service", ":443"), 2, "write NAME or NAME:PORT", id="no service"),
        pytest.param(("--kubeconfig", "nowhere"), 1, "nowhere", id="missing kubeconfig"),
        pytest.param(("--default-timezone", "Berlin"), 2, "did you mean", id="unknown zone"),
    ],
)
def test_mistakes_on_the_command_line(run: Run, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = run("controller", *arguments)

    assert result.exit_code == code
    assert message in result.stderr
