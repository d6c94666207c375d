"""`springtide up`: its first message, and the running cluster as a process."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from tests.cli.conftest import Run
from tests.cli.up_process import PATIENCE, Up, started, up

from springtide.apis.meta.times import parse_instant
from springtide.assembly.embedded_cluster import EmbeddedSettings
from springtide.assembly.staging import AppliedManifests, StagedObject
from springtide.cli.up import ready_message
from springtide.cluster.clock import Clock, ScaledClock, WallClock
from springtide.cluster.errors import ApiError, Invalid
from springtide.cluster.events import EVENTS
from springtide.cluster.http import HttpTransport
from springtide.cluster.resources import Key, Resource, Selection
from springtide.cluster.transport import Write
from springtide.controllers import CONTROLLERS

YEAR_2030 = 1_893_456_000
KINDS = ("Node", "Node", "Deployment", "Calendar", "Job", "Secret")
STAGED = [StagedObject("a.yaml", 1, {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}}) for kind in KINDS]


def message(
    clock: Clock | None = None, applied: AppliedManifests | None = None, *, nodes: int = 2, **options: Any
) -> str:
    settings = EmbeddedSettings(controllers=CONTROLLERS, **options)
    text = ready_message(
        "https://127.0.0.1:7443",
        clock or WallClock(),
        settings,
        applied or AppliedManifests(),
        Path("/tmp/a b/c"),
        nodes=nodes,
    )
    plain = click.unstyle(text)
    assert max(map(len, plain.splitlines())) <= 80
    return plain


def test_the_first_line_has_the_address_and_the_export_is_quoted() -> None:
    lines = message().splitlines()
    assert "https://127.0.0.1:7443" in lines[0]
    assert any(line.strip().startswith("export KUBECONFIG='/tmp/a b/c'") for line in lines)


@pytest.mark.parametrize(
    ("speed", "pace"),
    [pytest.param(600, "at 600 times real speed", id="fast"), pytest.param(1, "at real speed", id="ahead")],
)
def test_the_time_of_a_scaled_clock_is_shown(speed: float, pace: str) -> None:
    text = message(ScaledClock(speed, start=YEAR_2030))
    assert "2030-01-01T00:" in text
    assert pace in text


def test_the_real_time_is_not_shown() -> None:
    assert "clock" not in message()


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        pytest.param("127.0.0.1", False, id="loopback"),
        pytest.param("::1", False, id="loopback of IPv6"),
        pytest.param("localhost", False, id="name of loopback"),
        pytest.param("0.0.0.0", True, id="every address"),
        pytest.param("shop.example.com", True, id="host name"),
    ],
)
def test_access_from_other_machines_is_shown(host: str, shown: bool) -> None:
    assert ("from other machines" in message(host=host)) is shown


def test_manifests_and_refusals_are_counted() -> None:
    text = message(applied=AppliedManifests(STAGED, [(STAGED[0], Invalid("no"))]))
    assert "2 Node, 1 Deployment, 1 Calendar and 2 more" in text
    assert "1 Node, see above" in text


def test_a_cluster_without_nodes_is_noted_with_the_fix() -> None:
    without = message(nodes=0)

    assert "nodes        none: pods stay Pending; `springtide up --nodes 3` creates three" in without
    assert "nodes        2\n" in message(nodes=2)


def producer(name: str, **metadata: Any) -> StagedObject:
    value = {"apiVersion": "autoscaling.karpenter.sh/v1alpha1", "kind": "MetricsProducer"}
    return StagedObject("a.yaml", 1, {**value, "metadata": {"name": name, **metadata}})


@pytest.mark.parametrize(
    ("objects", "hint"),
    [
        pytest.param([], "springtide explain KIND/NAME -n NAMESPACE", id="no-objects"),
        pytest.param(STAGED, "springtide explain KIND/NAME -n NAMESPACE", id="other-kinds"),
        pytest.param([producer("peak")], "springtide explain metricsproducer/peak", id="default-namespace"),
        pytest.param(
            [producer("peak", namespace="shop"), producer("b")],
            "springtide explain metricsproducer/peak -n shop",
            id="namespace-of-the-object",
        ),
        pytest.param(
            [producer("p" * 63, namespace="n" * 63)],
            f"springtide explain metricsproducer/{'p' * 63} -n {'n' * 63}",
            id="long-names",
        ),
    ],
)
def test_hints_name_an_object_and_its_namespace(objects: list[StagedObject], hint: str) -> None:
    settings = EmbeddedSettings(controllers=CONTROLLERS)
    applied = AppliedManifests(objects)
    text = click.unstyle(ready_message("https://a", WallClock(), settings, applied, Path("/c"), nodes=1))

    hints = [line.partition("#")[0].strip() for line in text.splitlines()]
    assert hint in hints
    assert hint.replace("springtide explain", "kubectl describe").replace("/", " ") in hints
    assert all(len(line) <= 80 for line in text.splitlines() if "nnn" not in line)


def test_hints_have_no_more_columns_than_a_terminal() -> None:
    """A comment that does not fit beside its command is left out, whatever the length of the command."""
    for length in range(1, 40):
        text = message(applied=AppliedManifests([producer("p" * length)]))
        assert "# what happens" in text


def test_comments_are_aligned_whatever_the_path_of_the_kubeconfig() -> None:
    """The first command is left out of the alignment: its path may be long."""
    settings = EmbeddedSettings(controllers=CONTROLLERS)
    columns = set()
    for path in (Path("/c"), Path("/a-path-of-some-length/kubeconfig")):
        text = click.unstyle(ready_message("https://a", WallClock(), settings, AppliedManifests(), path, nodes=1))
        columns |= {line.index("#") for line in text.splitlines() if line.endswith("# all there is")}
    assert len(columns) == 1


@pytest.mark.parametrize("found", ["/usr/bin/kubectl", None], ids=["installed", "not installed"])
def test_a_missing_kubectl_is_noted(found: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: found)
    assert ("is not on your PATH" in message()) is (found is None)


CALENDARS = Resource("springtide.dev", "v1alpha1", "calendars", "Calendar", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
POOLS_V1 = Resource("karpenter.sh", "v1", "nodepools", "NodePool", namespaced=False)
POOLS_V1BETA1 = Resource("karpenter.sh", "v1beta1", "nodepools", "NodePool", namespaced=False)
USER = Write("user")
CALENDAR = """
apiVersion: springtide.dev/v1alpha1
kind: Calendar
metadata: {name: freeze}
spec: {timeZone: Europe/Berlin, dates: ["2026-12-24"]}
"""
SHOP = """
---
apiVersion: v1
kind: Node
metadata: {name: node-1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: shops}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: shop, image: "shop:1"}]}
"""


async def eventually(look: Callable[[], Awaitable[Any]]) -> Any:
    """Wait until a probe returns something, and return that."""
    deadline = time.monotonic() + PATIENCE
    while not (seen := await look()):
        assert time.monotonic() < deadline, "timed out"
        await asyncio.sleep(0.1)
    return seen


def condition(item: Any, kind: str) -> str:
    conditions = (item.get("status") or {}).get("conditions") or ()
    return next((one["status"] for one in conditions if one["type"] == kind), "")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("up")
    (folder / "manifests.yaml").write_text(CALENDAR + SHOP)
    with up(folder, folder / "manifests.yaml", "--from", "2026-12-23T22:59:00Z", "--speed", 30) as process:
        yield process


def test_controllers_act_on_manifests_by_the_time_of_the_cluster(running: Up) -> None:
    async def story(transport: HttpTransport) -> None:
        async def active() -> bool:
            return condition(await transport.get(CALENDARS, Key("", "freeze")), "Active") == "True"

        # The day starts a minute after the clock of the cluster, which is two real seconds.
        await eventually(active)

    running.ask(story)


def test_workloads_get_pods_that_run(running: Up) -> None:
    async def story(transport: HttpTransport) -> None:
        async def ready() -> bool:
            deployment = await transport.get(DEPLOYMENTS, Key("shops", "shop"))
            return bool((deployment.get("status") or {}).get("readyReplicas") == 2)

        await eventually(ready)

    running.ask(story)


def test_it_holds_the_lease_of_the_controllers(running: Up) -> None:
    async def story(transport: HttpTransport) -> None:
        async def held() -> bool:
            lease = await transport.get(LEASES, Key("springtide-system", "springtide"))
            return str(lease["spec"]["holderIdentity"]).startswith("springtide-up_")

        await eventually(held)

    running.ask(story)


def test_webhooks_refuse_what_a_schema_cannot_express(running: Up) -> None:
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "pool"},
        "spec": {
            "template": {
                "spec": {
                    "nodeClassRef": {"group": "springtide.dev", "kind": "NodeClass", "name": "x"},
                    "requirements": [],
                }
            },
            "disruption": {"budgets": [{"nodes": "1", "schedule": "0 0 30 2 *", "duration": "1h"}]},
        },
    }

    async def story(transport: HttpTransport) -> ApiError:
        with pytest.raises(ApiError) as refused:
            await transport.create(POOLS_V1, pool, USER)
        return refused.value

    answer = running.ask(story)
    assert "admission webhook" in answer.message
    assert "spec.disruption.budgets[0].schedule" in answer.message


def test_node_pools_are_served_in_both_versions(running: Up) -> None:
    old = {
        "apiVersion": "karpenter.sh/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": "old"},
        "spec": {
            "template": {
                "spec": {
                    "nodeClassRef": {"apiVersion": "springtide.dev/v1alpha1", "kind": "NodeClass", "name": "x"},
                    "requirements": [],
                }
            },
            "disruption": {"expireAfter": "720h", "consolidationPolicy": "WhenUnderutilized"},
        },
    }

    async def story(transport: HttpTransport) -> tuple[Any, Any]:
        await transport.create(POOLS_V1BETA1, old, USER)
        key = Key("", "old")
        return await transport.get(POOLS_V1, key), await transport.get(POOLS_V1BETA1, key)

    new, again = running.ask(story)
    assert new["spec"]["template"]["spec"]["expireAfter"] == "720h"
    assert new["spec"]["disruption"]["consolidationPolicy"] == "WhenEmptyOrUnderutilized"
    assert again["spec"]["disruption"] | {"expireAfter": "720h"} == again["spec"]["disruption"]


def test_the_kubeconfig_is_for_its_owner_only(running: Up) -> None:
    assert stat.S_IMODE(running.kubeconfig.stat().st_mode) == 0o600


def test_it_listens_on_loopback_only(running: Up) -> None:
    assert "server: https://127.0.0.1:" in running.kubeconfig.read_text()


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=["Ctrl-C", "SIGTERM", "a terminal that is closed"]
)
def test_a_signal_stops_it_in_order(number: int, tmp_path: Path) -> None:
    with up(tmp_path) as process:
        code, output = process.end(number)

    assert code == 0
    assert "ready" in output
    assert "Traceback" not in output
    assert not process.kubeconfig.exists()


def test_stored_data_and_the_token_survive_kill_9(tmp_path: Path) -> None:
    manifests = tmp_path / "calendar.yaml"
    manifests.write_text(CALENDAR)
    data = tmp_path / "data"

    async def write(transport: HttpTransport) -> str:
        made = await transport.create(
            CONFIG_MAPS, {"metadata": {"name": "mine"}, "data": {"a": "b"}}, USER, namespace="default"
        )
        return str(made["metadata"]["uid"])

    async def read(transport: HttpTransport) -> tuple[Any, Any]:
        return (
            await transport.get(CONFIG_MAPS, Key("default", "mine")),
            await transport.get(CALENDARS, Key("", "freeze")),
        )

    async def leader(transport: HttpTransport) -> str:
        return str((await transport.get(LEASES, Key("springtide-system", "springtide")))["spec"]["holderIdentity"])

    async def leader_anew(transport: HttpTransport) -> None:
        async def led() -> bool:
            return await leader(transport) not in ("", former)

        # Long before the lease of the killed process expires.
        await asyncio.wait_for(eventually(led), 10)

    with up(tmp_path, manifests, "--data", data) as first:
        former = first.ask(leader)
        uid = first.ask(write)
        _, before = first.ask(read)
        proof = _token(first.kubeconfig)
        second = started("up", "--data", data, "--port", 0)
        output, _ = second.communicate(timeout=PATIENCE)
        assert second.returncode == 1
        assert "error: " in output
        assert "Traceback" not in output
        first.process.kill()
        first.process.wait()
    first.kubeconfig.unlink()
    with up(tmp_path, manifests, "--data", data) as third:
        third.ask(leader_anew)
        mine, after = third.ask(read)
        assert mine["metadata"]["uid"] == uid
        assert mine["data"] == {"a": "b"}
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert _token(third.kubeconfig) == proof


def test_a_fast_clock_does_not_go_back_after_kill_9_and_a_jump_to_the_present_is_announced(tmp_path: Path) -> None:
    data, speed = tmp_path / "data", 3600
    begins = "2020-01-01T00:00:00Z"

    async def created(transport: HttpTransport) -> int:
        """Return the cluster's time, as it stands in a new object."""
        body = {"metadata": {"generateName": "mark-"}}
        made = await transport.create(CONFIG_MAPS, body, USER, namespace="default")
        return parse_instant(made["metadata"]["creationTimestamp"])

    with up(tmp_path, "--data", data, "--speed", speed, "--from", begins) as first:
        before = first.ask(created)
        first.process.kill()
        first.process.wait()
    first.kubeconfig.unlink()
    with up(tmp_path, "--data", data, "--speed", speed, "--from", begins) as second:
        after = second.ask(created)
        _, said = second.end()
        assert "stood at" not in said, "the time to begin at was given"
    assert parse_instant(begins) < before <= after
    with up(tmp_path, "--data", data) as third:
        now = third.ask(created)
        said = " ".join(third.end()[1].split())
    stood = re.search(r"the clock of the stored cluster stood at (\S+); it now continues at the present", said)
    assert stood is not None, said
    assert after <= parse_instant(stood[1]) < now
    assert f"--from {stood[1]}" in said
    assert said.index("stood at") < said.index("ready")


NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


def test_nodes_are_kept_and_not_doubled_on_restart(tmp_path: Path) -> None:
    async def nodes(transport: HttpTransport) -> dict[str, tuple[str, str]]:
        items = (await transport.list(Selection(NODES))).items
        return {
            item["metadata"]["name"]: (item["metadata"]["uid"], item["status"]["capacity"]["cpu"]) for item in items
        }

    with up(tmp_path, "--data", tmp_path / "data", "--nodes", 2) as process:
        before = process.ask(nodes)
        _, said = process.end()
    with up(tmp_path, "--data", tmp_path / "data", "--nodes", 3) as process:
        after = process.ask(nodes)

    assert list(before) == ["node-1", "node-2"]
    assert {cpu for _, cpu in before.values()} == {"16"}
    assert "nodes        2" in said
    assert "\r" not in said
    assert list(after) == ["node-1", "node-2", "node-3"]
    assert before.items() <= after.items()


def test_pods_that_fit_no_node_have_an_event(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(
        SHOP.replace('image: "shop:1"', 'image: "shop:1", resources: {requests: {cpu: "99"}}')
    )

    async def messages(transport: HttpTransport) -> list[str]:
        items = (await transport.list(Selection(EVENTS))).items
        return [event["message"] for event in items if event["reason"] == "FailedScheduling"]

    with up(tmp_path, tmp_path / "shop.yaml") as process:
        found = process.ask(lambda transport: eventually(lambda: messages(transport)))

    assert found[0].startswith("0/1 nodes are available: 1 ")


def test_a_terminal_shows_a_line_that_is_redrawn(tmp_path: Path) -> None:
    """The process runs on a pseudo terminal of 60 columns; Ctrl-C ends it in order."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-c", "from springtide.cli import main; main()", "up", "--nodes", "2", "--port", "0"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**environment, "TERM": "xterm", "PYTHONWARNINGS": "error"},
    )
    os.close(terminal)
    shown = b""
    try:
        deadline = time.monotonic() + PATIENCE
        while shown.count(b" | 2 nodes | ") < 2:
            assert time.monotonic() < deadline, shown
            if select.select([screen], [], [], 1)[0]:
                shown += os.read(screen, 4096)
        process.send_signal(signal.SIGINT)
        while select.select([screen], [], [], PATIENCE)[0]:
            try:
                shown += os.read(screen, 4096)
            except OSError:
                break
    finally:
        process.kill()
        process.wait()
        os.close(screen)

    lines = [part for part in re.split(rb"\r\x1b\[J|\r\n", shown) if b" | 2 nodes" in part]
    assert all(len(line) < 60 for line in lines), lines
    assert b"stopping; a second Ctrl-C stops at once" in shown
    assert process.returncode == 0


def test_manifests_with_errors_start_nothing(run: Run, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(CALENDAR.replace("Europe/Berlin", "Europe/Berln"))

    result = run("up", broken)

    assert result.exit_code == 1
    assert "nothing was started" in result.stderr
    assert "did you mean Europe/Berlin?" in result.stderr


def test_a_taken_port_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = started("up", "--port", port)
        output, _ = process.communicate(timeout=PATIENCE)

    assert process.returncode == 1
    assert f"error: cannot listen on 127.0.0.1:{port}" in output
    assert "--port" in output
    assert "Traceback" not in output


def test_a_kubeconfig_of_the_user_is_left_unchanged(run: Run, tmp_path: Path) -> None:
    theirs = tmp_path / "config"
    theirs.write_text("clusters: []")

    result = run("up", "--kubeconfig", theirs)

    assert result.exit_code == 1
    assert "choose another file" in result.stderr
    assert theirs.read_text() == "clusters: []"


def test_a_kubeconfig_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    process = started("up", "--port", 0, "--kubeconfig", tmp_path / "file" / "kubeconfig")
    output, _ = process.communicate(timeout=PATIENCE)

    assert process.returncode == 1
    assert "error: " in output
    assert str(tmp_path / "file") in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("--speed", "0"), "--speed", id="speed of zero"),
        pytest.param(("--speed", "fast"), "--speed", id="speed not a number"),
        pytest.param(("--port", "99999"), "--port", id="invalid port"),
        pytest.param(("--from", "yesterday"), "is not a time", id="invalid time"),
        pytest.param(("nowhere.yaml",), "no such file", id="missing file"),
    ],
)
def test_mistakes_on_the_command_line(run: Run, arguments: tuple[str, ...], message: str) -> None:
    result = run("up", *arguments)

    assert result.exit_code == 2
    assert message in result.stderr


def _token(kubeconfig: Path) -> str:
    return next(line for line in kubeconfig.read_text().splitlines() if "token:" in line)
