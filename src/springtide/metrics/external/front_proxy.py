"""Who asks: as aggregated servers learn it from the API server that passes a request on.

The API server proves itself with a certificate, and tells in headers who its client is. Which authority signs that
certificate, which names it may bear and what the headers are called stands in a ConfigMap that every cluster has.
Headers from anybody else are worth nothing.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import unquote

import msgspec
from cryptography import x509
from cryptography.x509.oid import NameOID

from springtide.cluster.errors import Unauthorized
from springtide.cluster.resources import Key, Object, Resource

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SOURCE = Key("kube-system", "extension-apiserver-authentication")
"""Where a cluster tells its aggregated servers whom to believe."""

Headers: TypeAlias = Sequence[tuple[str, str]]
"""Names, in lower case, and values, in their order."""


class Untold(ValueError):
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
            raise Untold(msg) from None

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
