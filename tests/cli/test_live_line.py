"""The live line of `springtide up`: what it counts, what fits into which width, and how it is redrawn."""

from __future__ import annotations

import io
import sys
from random import Random
from typing import Any

import pytest
from rich.cells import cell_len

from springtide.apis.meta.times import parse_instant
from springtide.apiserver.server import ApiServer
from springtide.cli.live_line import ClusterActivity, LiveLine, live_line, render_activity
from springtide.cluster.resources import NODES, PODS, Key, Object, Resource
from springtide.cluster.transport import Patch, Write

NOW = parse_instant("2026-11-27T06:00:00Z")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
USER = Write("user")


class World:
    """An API server and the activity in it."""

    def __init__(self) -> None:
        self.server = ApiServer(now=lambda: NOW, random=Random(1))
        self.server.create(NAMESPACES, {"metadata": {"name": "shops"}}, USER)
        self.create(PODS, "before", containers=[{"name": "a", "image": "a:1"}])
        self.activity = ClusterActivity(self.server)

    def create(self, resource: Resource, name: str, namespace: str = "default", owner: str = "", **spec: Any) -> None:
        owners = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "uid": "u", "controller": True}]
        metadata: Object = {"name": name, **({"ownerReferences": owners} if owner else {})}
        full = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
        self.server.create(resource, full, USER, namespace=namespace if resource.namespaced else "")

    def patch(self, resource: Resource, name: str, body: Object, because: str = "", **place: str) -> None:
        key = Key(place.get("namespace", "default"), name)
        subresource = place.get("subresource", "")
        self.server.patch(resource, key, Patch.merge(body), Write("test", because), subresource=subresource)

    def workload(self, resource: Resource, name: str, **options: Any) -> None:
        template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
        self.create(resource, name, selector={"matchLabels": {"app": "a"}}, template=template, replicas=2, **options)

    def line(self, width: int = 200) -> str:
        return render_activity(self.activity, NOW, width)


def test_nodes_and_pods_are_counted_from_writes() -> None:
    world = World()
    world.create(NODES, "n")
    world.create(PODS, "p", containers=[{"name": "a", "image": "a:1"}])
    assert world.line() == "11-27 06:00:00Z | 1 node | 0 pods running, 2 pending | 0 changes"

    world.patch(PODS, "p", {"status": {"phase": "Running"}}, subresource="status")
    world.server.delete(PODS, Key("default", "before"), USER)
    assert world.line() == "11-27 06:00:00Z | 1 node | 1 pod running | 0 changes"

    world.patch(PODS, "p", {"status": {"phase": "Succeeded"}}, subresource="status")
    assert world.line() == "11-27 06:00:00Z | 1 node | 0 pods running | 0 changes"


@pytest.mark.parametrize(
    ("resource", "name", "spec", "expected"),
    [
        pytest.param(DEPLOYMENTS, "web", {"replicas": 6}, "web 2 → 6: the peak begins", id="replicas"),
        pytest.param(
            AUTOSCALERS,
            "web",
            {"minReplicas": 4, "maxReplicas": 20},
            "web min 1 → 4, max 10 → 20: the peak begins",
            id="bounds",
        ),
        pytest.param(DEPLOYMENTS, "web", {"minReadySeconds": 5}, "", id="another-field"),
        pytest.param(REPLICA_SETS, "owned", {"replicas": 6}, "", id="a-part-of-a-rollout"),
    ],
)
def test_scaling_changes_are_shown_with_their_reason(
    resource: Resource, name: str, spec: Object, expected: str
) -> None:
    world = World()
    world.workload(DEPLOYMENTS, "web")
    world.workload(REPLICA_SETS, "owned", owner="web")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    world.create(AUTOSCALERS, "web", scaleTargetRef=target, minReplicas=1, maxReplicas=10)

    world.patch(resource, name, {"spec": spec}, "the peak begins")

    counted = "1 change, 06:00 " if expected else "0 changes"
    assert world.line().endswith(f"| {counted}{expected}")


def test_other_namespaces_are_named() -> None:
    world = World()
    world.workload(DEPLOYMENTS, "web", namespace="shops")

    world.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 3}}, namespace="shops")

    assert world.line().endswith("06:00 shops/web 2 → 3")


def test_the_line_fits_into_every_width() -> None:
    world = World()
    world.workload(DEPLOYMENTS, "web")
    world.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 6}}, "Behaviour `über 界`\nbegins")

    lines = [world.line(width) for width in range(1, 200)]

    assert all(cell_len(line) <= width for width, line in enumerate(lines, 1))
    assert all("\n" not in line for line in lines)
    assert lines[29] == "11-27 06:00:00Z | 0 nodes"
    assert "1 change, 06:00 web 2 → 6: Behav" in lines[89]
    assert lines[78].endswith("…")
    assert [cell_len(line) for line in lines] == sorted(cell_len(line) for line in lines)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line_is_erased_before_it_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    stream = Terminal()
    line = LiveLine(stream)

    line.draw("one")
    line.draw("one")
    line.draw("two")
    line.clear()
    line.clear()

    assert stream.getvalue() == "\r\x1b[Jone\r\x1b[Jtwo\r\x1b[J"


def test_a_line_that_a_narrower_terminal_wraps_is_erased_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    line = LiveLine(stream)
    monkeypatch.setenv("COLUMNS", "80")
    line.draw("x" * 25)
    monkeypatch.setenv("COLUMNS", "10")

    line.draw("short")

    assert stream.getvalue().endswith("\r\x1b[2A\x1b[Jshort")


def test_messages_appear_above_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with live_line() as line:
        assert line is not None
        line.draw("state")
        sys.stderr.write("a warning\n")
        line.draw("state")

    assert screen.getvalue() == "\r\x1b[Jstate\r\x1b[Ja warning\n\r\x1b[Jstate\n"


@pytest.mark.parametrize(
    ("stdout", "stderr", "term"),
    [
        pytest.param(io.StringIO, Terminal, "xterm", id="stdout-is-no-terminal"),
        pytest.param(Terminal, io.StringIO, "xterm", id="stderr-is-no-terminal"),
        pytest.param(Terminal, Terminal, "dumb", id="dumb-terminal"),
    ],
)
def test_there_is_no_line_elsewhere(
    monkeypatch: pytest.MonkeyPatch, stdout: type[io.StringIO], stderr: type[io.StringIO], term: str
) -> None:
    monkeypatch.setattr("sys.stdout", stdout())
    monkeypatch.setattr("sys.stderr", stderr())
    monkeypatch.setenv("TERM", term)
    with live_line() as line:
        assert line is None
