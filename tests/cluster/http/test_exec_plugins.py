"""Exec plugins: small programs that play those of cloud providers."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.http.scripted_server import PODS, answers, connected, playing, refuses

from springtide.cluster.http import AccessError, Authentication, load_kubeconfig
from springtide.cluster.http.credentials import ClientCertificate
from springtide.cluster.http.exec_plugin import ExecCredentials, ExecPlugin
from springtide.cluster.resources import Key

V1 = "client.authentication.k8s.io/v1"


def printed(*, api_version: str = V1, kind: str = "ExecCredential", **status: Any) -> str:
    return json.dumps({"apiVersion": api_version, "kind": kind, "status": status})


class Plugin:
    """A program that prints one text of a list with each run, and records its environment."""

    def __init__(self, folder: Path, *outputs: str, code: str = "") -> None:
        self.folder = folder
        (folder / "outputs").write_text(json.dumps(outputs))
        self.path = folder / "plugin"
        self.path.write_text(
            f"#!{sys.executable} -S\n"
            "import json, os, pathlib, sys, time\n"
            f"folder = pathlib.Path({str(folder)!r})\n"
            "runs = len(list(folder.glob('run-*')))\n"
            "told = {'arguments': sys.argv[1:], 'info': json.loads(os.environ['KUBERNETES_EXEC_INFO']),"
            " 'variable': os.environ.get('VARIABLE'), 'terminal': sys.stdin.isatty()}\n"
            "(folder / f'run-{runs}').write_text(json.dumps(told))\n"
            f"{code}\n"
            "outputs = json.loads((folder / 'outputs').read_text())\n"
            "print(outputs[min(runs, len(outputs) - 1)])\n"
        )
        self.path.chmod(0o755)
        self.described = ExecPlugin("config: users[u]", V1, str(self.path), interactive="Never")

    @property
    def runs(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted(self.folder.glob("run-*"))]


async def proofs(plugin: ExecPlugin, count: int) -> list[Authentication]:
    credentials = ExecCredentials(plugin)
    return [await credentials.authenticate() for _ in range(count)]


def at(seconds: float) -> str:
    return datetime.fromtimestamp(time.time() + seconds, UTC).isoformat()


def test_a_token_without_expiry_is_kept(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, printed(token="one"), printed(token="two"))

    assert asyncio.run(proofs(plugin.described, 3)) == [Authentication("Bearer one")] * 3
    assert len(plugin.runs) == 1


@pytest.mark.parametrize("left", [pytest.param(-5, id="has ended"), pytest.param(5, id="is about to end")])
def test_an_expired_token_is_replaced(tmp_path: Path, left: float) -> None:
    plugin = Plugin(
        tmp_path,
        printed(token="one", expirationTimestamp=at(left)),
        printed(token="two", expirationTimestamp=at(3600)),
    )

    assert asyncio.run(proofs(plugin.described, 3)) == [
        Authentication("Bearer one"),
        *[Authentication("Bearer two")] * 2,
    ]


def test_a_plugin_may_give_a_certificate(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, printed(clientCertificateData="CERT", clientKeyData="KEY"))

    assert asyncio.run(proofs(plugin.described, 1)) == [Authentication(certificate=ClientCertificate(b"CERT", b"KEY"))]


def test_concurrent_requests_wait_for_one_run(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, printed(token="one"))

    async def play() -> list[Authentication]:
        credentials = ExecCredentials(plugin.described)
        return await asyncio.gather(*(credentials.authenticate() for _ in range(10)))

    assert asyncio.run(play()) == [Authentication("Bearer one")] * 10
    assert len(plugin.runs) == 1


def test_a_rejected_token_is_replaced_once_for_all(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, printed(token="one"), printed(token="two"))

    async def play() -> tuple[list[bool], Authentication]:
        credentials = ExecCredentials(plugin.described)
        rejected = await credentials.authenticate()
        renewed = await asyncio.gather(*(credentials.renew(rejected) for _ in range(5)))
        return renewed, await credentials.authenticate()

    assert asyncio.run(play()) == ([True] * 5, Authentication("Bearer two"))
    assert len(plugin.runs) == 2


def test_a_request_that_is_rejected_is_sent_again_with_a_new_token(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, printed(token="one"), printed(token="two"))

    async def play() -> list[str]:
        credentials = ExecCredentials(plugin.described)
        steps = refuses(401, "Unauthorized"), answers({})
        async with playing(*steps) as server, connected(server, credentials=credentials) as transport:
            await transport.get(PODS, Key("default", "web"))
        return [asked.headers["authorization"] for asked in server.asked]

    assert asyncio.run(play()) == ["Bearer one", "Bearer two"]


@pytest.mark.parametrize("api_version", [V1, f"{V1}beta1"])
def test_the_plugin_gets_the_settings_of_the_kubeconfig(tmp_path: Path, api_version: str) -> None:
    plugin = Plugin(tmp_path, printed(api_version=api_version, token="t"))
    called = {
        "apiVersion": api_version,
        "command": "./plugin",
        "args": ["get", "token"],
        "env": [{"name": "VARIABLE", "value": "value"}],
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    cluster = {"server": "https://x", "certificate-authority-data": "Q0E=", "extensions": [extension]}
    content = {
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"exec": called}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    (tmp_path / "config").write_text(json.dumps(content))

    found = load_kubeconfig(tmp_path / "config", environment={})

    assert asyncio.run(found.credentials.authenticate()) == Authentication("Bearer t")
    received = {"server": "https://x", "certificate-authority-data": "Q0E=", "config": {"audience": "x"}}
    assert plugin.runs == [
        {
            "arguments": ["get", "token"],
            "info": {
                "apiVersion": api_version,
                "kind": "ExecCredential",
                "spec": {"interactive": False, "cluster": received},
            },
            "variable": "value",
            "terminal": False,
        }
    ]


@pytest.mark.parametrize(
    ("output", "code", "message"),
    [
        pytest.param("", "print('what?', file=sys.stderr); sys.exit(3)", "failed with exit code 3: what?", id="exit"),
        pytest.param("no JSON", "", "did not print an ExecCredential", id="no JSON"),
        pytest.param(printed(kind="Token", token="t"), "", "printed a Token of", id="another kind"),
        pytest.param(printed(api_version="v9", token="t"), "", "printed a ExecCredential of v9; an", id="version"),
        pytest.param(printed(), "", "neither a token nor a certificate", id="nothing"),
        pytest.param(printed(clientCertificateData="C"), "", "a certificate without its key", id="no key"),
        pytest.param(
            printed(token="t", expirationTimestamp="2026-01-01T00:00:00"), "", "without a time zone", id="time zone"
        ),
        pytest.param(printed(token="t"), "time.sleep(9)", "has not answered within 0.3 seconds", id="slow"),
    ],
)
def test_errors_name_the_command_and_the_install_hint(tmp_path: Path, output: str, code: str, message: str) -> None:
    plugin = Plugin(tmp_path, output, code=code)
    described = replace(plugin.described, install_hint="Get it at example.com.", timeout=0.3 if "sleep" in code else 9)

    with pytest.raises(AccessError, match=message) as caught:
        asyncio.run(proofs(described, 1))
    assert str(caught.value).startswith(f"config: users[u]: the exec plugin '{plugin.path}' ")
    assert str(caught.value).endswith("\nGet it at example.com.")


def test_a_plugin_that_is_too_slow_is_killed(tmp_path: Path) -> None:
    plugin = Plugin(tmp_path, code="(folder / 'pid').write_text(str(os.getpid()))\ntime.sleep(60)")

    with pytest.raises(AccessError, match="has not answered"):
        asyncio.run(proofs(replace(plugin.described, timeout=2), 1))
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        pytest.param("there-is-no-such-program", "is not installed", id="not installed"),
        pytest.param("/there/is/none", "cannot be run: No such file or directory", id="not there"),
    ],
)
def test_a_missing_plugin_is_an_error(command: str, message: str) -> None:
    with pytest.raises(AccessError, match=message):
        asyncio.run(proofs(ExecPlugin("config", V1, command), 1))


def test_an_interactive_plugin_needs_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    plugin = replace(Plugin(tmp_path, printed(token="t")).described, interactive="Always")

    with pytest.raises(AccessError, match="needs to prompt its user, and there is no terminal"):
        asyncio.run(proofs(plugin, 1))
