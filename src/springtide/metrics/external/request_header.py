"""Who asks: as aggregated servers learn it from the API server that passes a request on.

The API server proves itself with a certificate, and tells in headers who its client is. Which authority signs that
certificate, which names it may bear and what the headers are called stands in a ConfigMap that every cluster has.
Headers from anybody else are worth nothing.

The TLS side of an aggregated server: what it shows, and whose certificates it takes; both can change while it runs.

A context of OpenSSL can be told to trust more, and never less. So whatever changes, a new context is made, and every
connection that begins is led to the newest. One that is open keeps what it began with.

Keeps an aggregated server told whom to believe: the cluster's ConfigMap is read again and again.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import unquote

import msgspec
from cryptography import x509
from cryptography.x509.oid import NameOID

from springtide.cluster.certificates import CertificatePair
from springtide.cluster.clock import Backoff
from springtide.cluster.errors import ClusterError, Forbidden, Unauthorized
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.serving import TlsIdentity
from springtide.cluster.transport import Transport

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SOURCE = Key("kube-system", "extension-apiserver-authentication")
"""Where a cluster tells its aggregated servers whom to believe."""

Headers: TypeAlias = Sequence[tuple[str, str]]
"""Names, in lower case, and values, in their order."""


class RequestHeaderError(ValueError):
    """The ConfigMap does not say whom to believe; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who asks the API server for something."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """Whom to believe, and what the headers are called."""

    authorities: str
    """The certificates, in PEM, of those who sign for the API server."""
    names: frozenset[str] = frozenset()
    """The common names that its certificate may have; none: any."""
    user_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = field(default=("x-remote-extra-",))

    @classmethod
    def read(cls, config_map: Object) -> FrontProxy:
        """Read it from the ConfigMap; raises `Untold`."""
        data = config_map.get("data") or {}
        authorities = data.get("requestheader-client-ca-file", "")
        try:
            x509.load_pem_x509_certificates(authorities.encode())
            return cls(
                authorities,
                frozenset(_listed(data, "requestheader-allowed-names", str)),
                _listed(data, "requestheader-username-headers"),
                _listed(data, "requestheader-uid-headers"),
                _listed(data, "requestheader-group-headers"),
                _listed(data, "requestheader-extra-headers-prefix"),
            )
        except (ValueError, msgspec.DecodeError) as failure:
            hint = "run kube-apiserver with --requestheader-client-ca-file and its companions"
            msg = f"the ConfigMap {SOURCE} does not say whom aggregated servers believe ({failure}): {hint}"
            raise RequestHeaderError(msg) from None

    def caller(self, certificate: str, headers: Headers, now: int) -> Caller:
        """Tell who asks; raises `Unauthorized` where it is not the API server that says so.

        The certificate is the one of the connection, whose signature was verified when that was made; empty where
        there was none.
        """
        if not certificate:
            raise Unauthorized("no client certificate was shown: ask through the API server of the cluster")
        name, begins, ends = _read_certificate(certificate)
        if self.names and name not in self.names:
            raise Unauthorized(f"{name!r} may not speak for others: it is none of the allowed names of the front proxy")
        if not begins <= now < ends:
            raise Unauthorized(f"the client certificate of {name!r} is not valid now")
        user = next((value for wanted in self.user_headers for key, value in headers if key == wanted and value), "")
        if not user:
            raise Unauthorized(f"the request does not say who asks: {' or '.join(self.user_headers)} is not set")
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
    """Read a list of names; those of headers are compared in lower case."""
    return tuple(spelt(each) for each in msgspec.json.decode(data.get(name) or "[]", type=list[str]))


@lru_cache(maxsize=64)
def _read_certificate(pem: str) -> tuple[str, int, int]:
    """Give the common name of a certificate, and from when and until when it is good."""
    certificate = x509.load_der_x509_certificate(ssl.PEM_cert_to_DER_cert(pem))
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return (
        str(names[0].value) if names else "",
        int(certificate.not_valid_before_utc.timestamp()),
        int(certificate.not_valid_after_utc.timestamp()),
    )


class RequestHeaderTls(TlsIdentity):
    """What a server proves itself with, and which authorities its clients may be signed by."""

    def __init__(self, pair: CertificatePair) -> None:
        self._pair = pair
        self._trusted = ""
        super().__init__(pair)
        # What is negotiated before a connection is led on is read from this context.
        _ask_for_certificates(self.context)
        self.context.sni_callback = self._lead_on

    def replace(self, pair: CertificatePair) -> None:
        """Show another certificate, to whoever connects from now on."""
        super().replace(pair)
        self._pair = pair
        self._renew()

    def trust(self, authorities: str) -> None:
        """Take certificates that these authorities, in PEM, have signed, and no others, from now on."""
        if authorities != self._trusted:
            self._trusted = authorities
            self._renew()

    def _renew(self) -> None:
        newest = TlsIdentity(self._pair).context
        _ask_for_certificates(newest)
        if self._trusted:
            newest.load_verify_locations(cadata=self._trusted)
        self._newest = newest

    def _lead_on(self, connection: ssl.SSLObject, name: str | None, entered: ssl.SSLContext) -> None:  # noqa: ARG002
        connection.context = self._newest


def _ask_for_certificates(context: ssl.SSLContext) -> None:
    context.verify_mode = ssl.CERT_OPTIONAL
    # Sessions are not resumed: whoever comes back must be trusted still.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0


ROUND_SECONDS = 30.0
"""How often it is read; authorities hand over in days."""
_RETRIES = Backoff(first=0.5, longest=ROUND_SECONDS)

log = logging.getLogger(__name__)


class RequestHeaderWatcher:
    """The front proxy, as the cluster tells it."""

    def __init__(self, transport: Transport, door: RequestHeaderTls, *, round_seconds: float = ROUND_SECONDS) -> None:
        self._transport = transport
        self._door = door
        self._round_seconds = round_seconds
        self.front_proxy: FrontProxy | None = None
        """Whom to believe; None until the cluster has told. What it told last counts while it does not answer."""
        self.problem = f"the ConfigMap {SOURCE} has not been read yet"
        """Why nobody is believed, or nobody new; empty where all is well."""

    async def run(self) -> None:
        """Read it until cancelled; whatever goes wrong is tried again."""
        failures = 0
        while True:
            try:
                await self._read()
                failures = 0
            except (ClusterError, RequestHeaderError) as failure:
                failures += 1
                self._tell(_failure_text(failure))
            except Exception:
                failures += 1
                log.exception("the ConfigMap %s could not be made use of", SOURCE)
            await asyncio.sleep(_RETRIES.after(failures) if failures else self._round_seconds)

    async def _read(self) -> None:
        told = FrontProxy.read(await self._transport.get(CONFIG_MAPS, SOURCE))
        self._door.trust(told.authorities)
        self.front_proxy = told
        self._tell("")

    def _tell(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.warning("whom to believe is not known for sure: %s", problem)
        self.problem = problem


def _failure_text(failure: Exception) -> str:
    if isinstance(failure, Forbidden):
        role = "extension-apiserver-authentication-reader"
        return f"{failure}; bind the Role {role} of kube-system to our service account"
    return str(failure)
