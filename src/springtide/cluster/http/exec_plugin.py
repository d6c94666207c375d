"""Credentials from a program: exec plugins of kubeconfig files, as cloud providers give them out.

The program is run when there is no credential yet, when the one at hand has run out, or when the server has rejected
it; however many requests wait for it, it runs once. It runs beside the event loop, with a limit of time.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from time import time
from typing import Any, Literal

import msgspec

from springtide.cluster.http.credentials import AccessError, Authentication, ClientCertificate, bearer_header

_LEEWAY = 10.0
"""Seconds before its end at which a credential is not used any more: a request takes time, and clocks differ."""

Interactive = Literal["Never", "IfAvailable", "Always"]


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """Which program gives the credentials, and how it is called."""

    source: str
    """The file and the user that name it, for error messages."""
    api_version: str
    command: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict, repr=False)
    folder: Path = field(default_factory=Path)
    """What a command with a relative path is relative to."""
    install_hint: str = ""
    interactive: Interactive = "IfAvailable"
    cluster: dict[str, Any] | None = None
    """What the program is told about the cluster, if it wants to know."""
    seconds: float = 60.0
    """How long it may take."""


class _Credential(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _Credential | None = None


class ExecCredentials:
    """Proofs that a program gives."""

    def __init__(self, plugin: ExecPlugin) -> None:
        self._plugin = plugin
        self._running = asyncio.Lock()
        self._proof: Authentication | None = None
        self._until: float | None = None

    async def proof(self) -> Authentication:
        """Give the proof at hand, or run the program for another one."""
        async with self._running:
            expired = self._until is not None and time() >= self._until - _LEEWAY
            if self._proof is None or expired:
                await self._run()
            assert self._proof is not None  # noqa: S101 - it is what `_run` is for
            return self._proof

    async def renew(self, rejected: Authentication) -> bool:
        """Run the program again, unless somebody has done so since."""
        async with self._running:
            if self._proof == rejected:
                await self._run()
            return self._proof != rejected

    async def _run(self) -> None:
        output = await _output_of(self._plugin)
        credential = _credential_in(output, self._plugin)
        certificate = None
        if credential.client_certificate_data:
            certificate = ClientCertificate(
                credential.client_certificate_data.encode(), credential.client_key_data.encode()
            )
        self._proof = Authentication(bearer_header(credential.token), certificate)
        self._until = None if credential.expiration_timestamp is None else credential.expiration_timestamp.timestamp()


async def _output_of(plugin: ExecPlugin) -> bytes:
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive == "Always" and not terminal:
        raise _plugin_error(plugin, "wants to ask its user, and there is no terminal")
    asking = terminal and plugin.interactive != "Never"
    try:
        process = await asyncio.create_subprocess_exec(
            _program(plugin),
            *plugin.arguments,
            stdin=None if asking else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if asking else asyncio.subprocess.PIPE,
            env={**os.environ, **plugin.environment, "KUBERNETES_EXEC_INFO": _exec_info(plugin, asking=asking)},
        )
    except OSError as failure:
        raise _plugin_error(plugin, f"cannot be run: {failure.strerror}") from failure
    try:
        async with asyncio.timeout(plugin.seconds):
            output, complaint = await process.communicate()
    except TimeoutError:
        raise _plugin_error(plugin, f"has not answered within {plugin.seconds:g} seconds") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        said = (complaint or b"").decode(errors="replace").strip().splitlines()
        raise _plugin_error(plugin, f"failed with exit code {process.returncode}" + (f": {said[-1]}" if said else ""))
    return output


def _program(plugin: ExecPlugin) -> str:
    if os.sep in plugin.command:
        return str(plugin.folder / plugin.command)
    found = shutil.which(plugin.command)
    if found is None:
        raise _plugin_error(plugin, "is not installed")
    return found


def _exec_info(plugin: ExecPlugin, *, asking: bool) -> str:
    told: dict[str, Any] = {"interactive": asking}
    if plugin.cluster is not None:
        told["cluster"] = plugin.cluster
    document = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": told}
    return msgspec.json.encode(document).decode()


def _credential_in(output: bytes, plugin: ExecPlugin) -> _Credential:
    try:
        answer = msgspec.json.decode(output, type=_Answer)
    except msgspec.DecodeError as error:
        raise _plugin_error(plugin, f"did not print an ExecCredential: {error}") from error
    if (answer.kind, answer.api_version) != ("ExecCredential", plugin.api_version):
        printed = f"{answer.kind} of {answer.api_version}"
        raise _plugin_error(plugin, f"printed a {printed}; an ExecCredential of {plugin.api_version} was asked for")
    credential = answer.status
    if credential is None or not (credential.token or credential.client_certificate_data):
        raise _plugin_error(plugin, "printed an ExecCredential with neither a token nor a certificate")
    if bool(credential.client_certificate_data) != bool(credential.client_key_data):
        raise _plugin_error(plugin, "printed a certificate without its key, or a key without its certificate")
    if credential.expiration_timestamp is not None and credential.expiration_timestamp.tzinfo is None:
        raise _plugin_error(plugin, "printed an expirationTimestamp without a time zone")
    return credential


def _plugin_error(plugin: ExecPlugin, what: str) -> AccessError:
    hint = f"\n{plugin.install_hint.strip()}" if plugin.install_hint.strip() else ""
    return AccessError(f"{plugin.source}: the exec plugin {plugin.command!r} {what}{hint}")
