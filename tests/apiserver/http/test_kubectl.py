"""kubectl against the embedded server, where it is installed."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from springtide.apiserver import builtin
from springtide.apiserver.http import ApiApp, TokenAuthenticator, kubeconfig
from springtide.apiserver.server import ApiServer
from springtide.cluster.certificates import make_authority, make_serving
from springtide.cluster.serving import TlsIdentity, serving
from springtide.simulator.bootstrap import install

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on the path")

Kubectl = Callable[..., str]

_DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 2
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: main, image: nginx}]}
"""
_CALENDAR = """
apiVersion: springtide.dev/v1alpha1
kind: Calendar
metadata: {name: holidays}
spec: {timeZone: Europe/Berlin, dates: [2026-12-24]}
"""


async def _serve(folder: Path, ready: threading.Event, stop: asyncio.Event) -> None:
    server = ApiServer(now=lambda: int(time.time()), random=Random(0), converter=builtin.convert)
    install(server)
    tokens = TokenAuthenticator()
    app = ApiApp(server, authenticate=tokens)
    begun = int(time.time()) - 60
    authority = make_authority("tests", now=begun, seconds=3600)
    identity = TlsIdentity(make_serving(authority, ["127.0.0.1"], now=begun, seconds=3600))
    async with serving(app, identity=identity, dated=False) as served:
        config = folder / "config"
        config.touch(0o600)
        config.write_text(kubeconfig(served.url, authority.certificate, tokens.issue()))
        ready.set()
        await stop.wait()
        app.close()


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """Serve a cluster in another thread, and return a runner of kubectl commands."""
    folder = tmp_path_factory.mktemp("kubectl")
    ready, stop, loops = threading.Event(), asyncio.Event(), []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        await _serve(folder, ready, stop)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert ready.wait(30)
    environment = {**os.environ, "KUBECONFIG": str(folder / "config"), "HOME": str(folder)}

    def run(*arguments: str, stdin: str = "", fails: bool = False, **more: str) -> str:
        done = subprocess.run(
            [KUBECTL or "", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=environment | more,
            timeout=30,
            check=False,
        )
        message = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, message
        return message

    yield run
    loops[0].call_soon_threadsafe(stop.set)
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture
def deployed(kubectl: Kubectl, request: pytest.FixtureRequest) -> Iterator[str]:
    """Create a deployment for one test."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:40]
    kubectl("apply", "-f", "-", stdin=_DEPLOYMENT.replace("NAME", name))
    yield name
    kubectl("delete", "deployment", name, "--ignore-not-found", "--wait=false")


def test_get_describe_and_watch(kubectl: Kubectl, deployed: str) -> None:
    listed = kubectl("get", "deployments", "-o", "wide").splitlines()
    assert listed[0].split()[:5] == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert any(line.split()[:2] == [deployed, "0/2"] for line in listed)
    assert "RollingUpdateStrategy" in kubectl("describe", "deployment", deployed)
    assert deployed in kubectl("get", "deployment", deployed, "-w", "--request-timeout=1s")
    assert deployed in kubectl("get", "all")


def test_apply_on_either_side_and_diff(kubectl: Kubectl, deployed: str) -> None:
    manifest = _DEPLOYMENT.replace("NAME", deployed)
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=manifest)
    changed = manifest.replace("replicas: 2", "replicas: 3")
    assert "+  replicas: 3" in kubectl("diff", "-f", "-", stdin=changed, fails=True)
    assert "configured" in kubectl("apply", "-f", "-", stdin=changed)
    taken = kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifest)
    assert "serverside-applied" in taken
    assert "conflict" in kubectl(
        "apply", "--server-side", "--field-manager=other", "-f", "-", stdin=changed, fails=True
    )


def test_patch_edit_label_annotate_scale_and_wait(kubectl: Kubectl, deployed: str, tmp_path: Path) -> None:
    target = f"deployment/{deployed}"
    kubectl("patch", target, "-p", '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"x:2"}]}}}}')
    kubectl("patch", target, "--type=merge", "-p", '{"metadata":{"labels":{"m":"1"}}}')
    kubectl("patch", target, "--type=json", "-p", '[{"op":"add","path":"/metadata/labels/j","value":"1"}]')
    kubectl("label", target, "l=1")
    kubectl("annotate", target, "a=1")
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/replicas: 2/replicas: 5/" "$1"\n')
    editor.chmod(0o700)
    kubectl("edit", target, EDITOR=str(editor))
    kubectl("wait", target, "--for=jsonpath={.spec.replicas}=5", "--timeout=5s")
    kubectl("scale", target, "--replicas=4")
    shown = kubectl("get", target, "-o", "jsonpath={.spec.replicas} {.metadata.labels} {.metadata.annotations.a}")
    assert shown == '4 {"j":"1","l":"1","m":"1"} 1'


def test_create_run_replace_and_delete(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "made")
    kubectl("create", "configmap", "made", "--from-literal=a=b")
    kubectl("create", "secret", "generic", "made", "--from-literal=a=b")
    kubectl("create", "deployment", "made", "--image=nginx", "--replicas=0")
    assert kubectl("get", "deployment", "made", "-o", "jsonpath={.spec.replicas}") == "0"
    assert kubectl("get", "secret", "made", "-o", "jsonpath={.data.a}") == "Yg=="
    kubectl("run", "made", "--image=nginx")
    kubectl("replace", "-f", "-", stdin=kubectl("get", "configmap", "made", "-o", "yaml"))
    kubectl("delete", "configmap/made", "secret/made", "deployment/made", "pod/made", "--now")
    assert "NotFound" in kubectl("get", "pod", "made", fails=True)


def test_rollout_status_and_events(kubectl: Kubectl, deployed: str) -> None:
    kubectl("rollout", "restart", f"deployment/{deployed}")
    waited = kubectl("rollout", "status", f"deployment/{deployed}", "--timeout=1s", fails=True)
    assert "Waiting for deployment" in waited
    assert "No events found" in kubectl("events")


def test_errors_are_printed(kubectl: Kubectl) -> None:
    typo = kubectl("apply", "-f", "-", stdin=_DEPLOYMENT.replace("replicas", "replicsa"), fails=True)
    assert 'strict decoding error: unknown field "spec.replicsa"' in typo
    bad = kubectl("apply", "-f", "-", stdin=_CALENDAR.replace("[2026-12-24]", "5"), fails=True)
    assert "spec.dates" in bad
    assert "Unauthorized" in kubectl("--token=wrong", "get", "pods", fails=True) + kubectl(
        "--token=wrong", "get", "--raw", "/api/v1/pods", fails=True
    )


def test_own_kinds_and_explain(kubectl: Kubectl) -> None:
    kubectl("apply", "--validate=true", "-f", "-", stdin=_CALENDAR)
    assert "holidays" in kubectl("get", "calendars")
    assert "timeZone" in kubectl("explain", "calendar.spec", "--recursive")
    explained = kubectl("explain", "pod.spec.containers")
    assert "image\t<string>" in explained
    assert "calendars" in kubectl("api-resources")
    assert "springtide.dev/v1alpha1" in kubectl("api-versions")


def test_auth_whoami_and_can_i(kubectl: Kubectl) -> None:
    assert "springtide-admin" in kubectl("auth", "whoami")
    assert kubectl("auth", "can-i", "delete", "nodes").startswith("yes")
    assert "*.*" in kubectl("auth", "can-i", "--list")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("logs", "lonely"), "there are no logs", id="logs"),
        pytest.param(("exec", "lonely", "--", "ls"), "nothing can be executed", id="exec"),
        pytest.param(("create", "token", "default"), "issues no tokens", id="service account token"),
        pytest.param(("get", "certificatesigningrequests"), "doesn't have a resource type", id="signing-requests"),
        pytest.param(("top", "pods"), "Metrics API not available", id="top"),
    ],
)
def test_unsupported_commands_say_why(kubectl: Kubectl, arguments: tuple[str, ...], message: str) -> None:
    kubectl(
        "apply",
        "-f",
        "-",
        stdin='{"apiVersion":"v1","kind":"Pod","metadata":{"name":"lonely"},'
        '"spec":{"containers":[{"name":"c","image":"i"}]}}',
    )

    assert message in kubectl(*arguments, fails=True)
