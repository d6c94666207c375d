"""Exec plugins of kubeconfig files: programs of cloud providers that print credentials.

The program runs when there is no credential yet, when it has expired, or when the server has rejected it. It runs once
however many requests wait for it, as a subprocess with a time limit.
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
"""Seconds before its expiry from which on a credential is not used: a request takes time, and clocks differ."""

Interactive = Literal["Never", "IfAvailable", "Always"]


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """An exec plugin, as configured."""

    source: str
    """The kubeconfig file and the user entry, for error messages."""
    api_version: str
    command: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict, repr=False)
    folder: Path = field(default_factory=Path)
    """The folder of the kubeconfig file: relative commands are relative to it."""
    install_hint: str = ""
    interactive: Interactive = "IfAvailable"
    cluster: dict[str, Any] | None = None
    """The cluster as the program sees it; None: `provideClusterInfo` is not set."""
    timeout: float = 60.0
    """The time limit."""


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
    """Credentials of an exec plugin."""

    def __init__(self, plugin: ExecPlugin) -> None:
        self._plugin = plugin
        self._running = asyncio.Lock()
        self._authentication: Authentication | None = None
        self._until: float | None = None

    async def authenticate(self) -> Authentication:
        """Return the cached credentials, or run the program for new ones."""
        async with self._running:
            expired = self._until is not None and time() >= self._until - _LEEWAY
            if self._authentication is None or expired:
                await self._run()
            assert self._authentication is not None  # noqa: S101 - `_run` sets it
            return self._authentication

    async def renew(self, rejected: Authentication) -> bool:
        """Run the program again, unless another request has caused that already."""
        async with self._running:
            if self._authentication == rejected:
                await self._run()
            return self._authentication != rejected

    async def _run(self) -> None:
        output = await _output_of(self._plugin)
        credential = _credential_in(output, self._plugin)
        certificate = None
        if credential.client_certificate_data:
            certificate = ClientCertificate(
                credential.client_certificate_data.encode(), credential.client_key_data.encode()
            )
        self._authentication = Authentication(bearer_header(credential.token), certificate)
        self._until = None if credential.expiration_timestamp is None else credential.expiration_timestamp.timestamp()


async def _output_of(plugin: ExecPlugin) -> bytes:
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive == "Always" and not terminal:
        raise _plugin_error(plugin, "needs to prompt its user, and there is no terminal")
    interactive = terminal and plugin.interactive != "Never"
    environment = {**os.environ, **plugin.environment}
    try:
        process = await asyncio.create_subprocess_exec(
            _program(plugin),
            *plugin.arguments,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if interactive else asyncio.subprocess.PIPE,
            env=environment | {"KUBERNETES_EXEC_INFO": _exec_info(plugin, interactive=interactive)},
        )
    except OSError as failure:
        raise _plugin_error(plugin, f"cannot be run: {failure.strerror}") from failure
    try:
        async with asyncio.timeout(plugin.timeout):
            output, stderr = await process.communicate()
    except TimeoutError:
        raise _plugin_error(plugin, f"has not answered within {plugin.timeout:g} seconds") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        lines = (stderr or b"").decode(errors="replace").strip().splitlines()
        raise _plugin_error(plugin, f"failed with exit code {process.returncode}" + (f": {lines[-1]}" if lines else ""))
    return output


def _program(plugin: ExecPlugin) -> str:
    if os.sep in plugin.command:
        return str(plugin.folder / plugin.command)
    found = shutil.which(plugin.command)
    if found is None:
        raise _plugin_error(plugin, "is not installed")
    return found


def _exec_info(plugin: ExecPlugin, *, interactive: bool) -> str:
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    document = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
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
