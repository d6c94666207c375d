"""Request header authentication of aggregated API servers.

The API server (the front proxy) authenticates with a client certificate and passes its user on in request headers. The
ConfigMap `kube-system/extension-apiserver-authentication` names the authorities of that certificate, its allowed common
names and the headers; it is read periodically. Request headers of other clients are ignored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import unquote

import msgspec

from springtide.cluster.certificates.clients import ClientVerifyingTls, check_authorities, read_client_certificate
from springtide.cluster.clock import Backoff
from springtide.cluster.errors import ClusterError, Forbidden, Unauthorized
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Transport

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SOURCE = Key("kube-system", "extension-apiserver-authentication")
"""The ConfigMap with the settings of request header authentication."""
Headers: TypeAlias = Sequence[tuple[str, str]]
"""Names in lower case, and values, in order."""
ROUND_SECONDS = 30.0
"""How often the ConfigMap is read; authorities are rotated within days."""
_RETRIES = Backoff(first=0.5, longest=ROUND_SECONDS)
log = logging.getLogger(__name__)


class RequestHeaderError(ValueError):
    """The ConfigMap has no valid settings; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The user of a request, as the API server authenticated it."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """The settings of request header authentication."""

    authorities: str
    """The authorities of the client certificate, in PEM."""
    names: frozenset[str] = frozenset()
    """The allowed common names of the client certificate; empty: any."""
    user_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = field(default=("x-remote-extra-",))

    @classmethod
    def read(cls, config_map: Object) -> FrontProxy:
        """Read the settings from the ConfigMap; raises `RequestHeaderError`."""
        data = config_map.get("data") or {}
        try:
            return cls(
                check_authorities(data.get("requestheader-client-ca-file", "")),
                frozenset(_listed(data, "requestheader-allowed-names", str)),
                _listed(data, "requestheader-username-headers"),
                _listed(data, "requestheader-uid-headers"),
                _listed(data, "requestheader-group-headers"),
                _listed(data, "requestheader-extra-headers-prefix"),
            )
        except (ValueError, msgspec.DecodeError) as failure:
            hint = "run kube-apiserver with --requestheader-client-ca-file and its companions"
            msg = f"the ConfigMap {SOURCE} has no request header settings for aggregated servers ({failure}): {hint}"
            raise RequestHeaderError(msg) from None

    def caller(self, certificate: str, headers: Headers, now: int) -> Caller:
        """Return the user of a request; raises `Unauthorized` if the request is not from the API server.

        `certificate` is the client certificate of the connection, whose signature TLS has verified; empty: none.
        """
        if not certificate:
            raise Unauthorized("no client certificate was sent: send requests through the API server of the cluster")
        client = read_client_certificate(certificate)
        if self.names and client.name not in self.names:
            msg = f"{client.name!r} is not an allowed name of the front proxy: its request headers are ignored"
            raise Unauthorized(msg)
        if not client.begins <= now < client.ends:
            raise Unauthorized(f"the client certificate of {client.name!r} is not valid now")
        user = next((value for wanted in self.user_headers for key, value in headers if key == wanted and value), "")
        if not user:
            raise Unauthorized(f"the request has no user: {' or '.join(self.user_headers)} is not set")
        return Caller(
            user,
            next((value for wanted in self.uid_headers for key, value in headers if key == wanted), ""),
            tuple(value for wanted in self.group_headers for key, value in headers if key == wanted),
            self._extra(headers),
        )

    def _extra(self, headers: Headers) -> tuple[tuple[str, tuple[str, ...]], ...]:
        found: dict[str, list[str]] = {}
        for prefix in self.extra_prefixes:
            for key, value in headers:
                if key.startswith(prefix):
                    found.setdefault(unquote(key.removeprefix(prefix)), []).append(value)
        return tuple((name, tuple(values)) for name, values in sorted(found.items()))


def _listed(data: Mapping[str, str], name: str, spelt: Callable[[str], str] = str.lower) -> tuple[str, ...]:
    """Parse a list of names; names of headers are compared in lower case."""
    return tuple(spelt(each) for each in msgspec.json.decode(data.get(name) or "[]", type=list[str]))


class RequestHeaderWatcher:
    """Reads the settings of request header authentication periodically."""

    def __init__(self, transport: Transport, tls: ClientVerifyingTls, *, round_seconds: float = ROUND_SECONDS) -> None:
        self._transport = transport
        self._tls = tls
        self._round_seconds = round_seconds
        self.front_proxy: FrontProxy | None = None
        """The last settings that were read; None: none so far."""
        self.problem = f"the ConfigMap {SOURCE} has not been read yet"
        """Why the settings could not be read the last time; empty: they could."""

    async def run(self) -> None:
        """Read the settings until cancelled; failures are retried with backoff."""
        failures = 0
        while True:
            try:
                await self._read()
                failures = 0
            except (ClusterError, RequestHeaderError) as failure:
                failures += 1
                self._report(_failure_text(failure))
            except Exception:
                failures += 1
                log.exception("unexpected error while reading the ConfigMap %s", SOURCE)
            await asyncio.sleep(_RETRIES.after(failures) if failures else self._round_seconds)

    async def _read(self) -> None:
        settings = FrontProxy.read(await self._transport.get(CONFIG_MAPS, SOURCE))
        self._tls.trust(settings.authorities)
        self.front_proxy = settings
        self._report("")

    def _report(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.warning("the request header settings could not be read: %s", problem)
        self.problem = problem


def _failure_text(failure: Exception) -> str:
    if isinstance(failure, Forbidden):
        role = "extension-apiserver-authentication-reader"
        return f"{failure}; bind the Role {role} of kube-system to the service account of springtide"
    return str(failure)
