"""Addresses that mean the same to everybody who reads them.

A grant compares addresses here, but others fetch them: HTTP libraries, proxies and servers, which mend what they are
given, each in its own way. So whatever would need mending is no address here: users, backslashes, dots and slashes in
disguise, unusual characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address
from urllib.parse import unquote, urlsplit

_PORTS = {"http": 80, "https": 443}
_PLAIN = re.compile(r"[!$&-;=@-Z_a-z~%\[\]]+")
"""The characters before a query; no backslash, space, quote, brace or anything beyond ASCII among them."""
_QUERY = re.compile(r"[ !\"$-\[\]-~]*")
"""The characters of a query: whatever is printed, but for `#` and the backslash."""
_HOST = re.compile(r"[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)*\.?")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_DISGUISED = re.compile(r"%(2[ef5]|5c|[01][0-9a-f]|7f)|[\[\]]", re.IGNORECASE)
"""Escapes of dots, slashes, percent signs, backslashes and control characters: nobody needs them in a path.

Nor brackets, which belong to hosts.
"""


@dataclass(frozen=True, slots=True)
class Address:
    """An address in its one form."""

    scheme: str
    host: str
    port: int
    path: str
    """Without escapes; never empty."""
    query: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """Who is asked."""
        return self.scheme, self.host, self.port


def read_address(url: str) -> Address | None:
    """Read an address; None where it is none, or can be read in more than one way."""
    place, _, query = url.partition("?")
    if not _PLAIN.fullmatch(place) or _ESCAPE.search(place) or not _QUERY.fullmatch(query):
        return None
    try:
        parts = urlsplit(place)
        port = parts.port
        path = unquote(parts.path, errors="strict") or "/"
    except ValueError:
        return None
    host = _host(parts.netloc)
    if parts.scheme not in _PORTS or host is None or _DISGUISED.search(parts.path) or not _is_tidy(path):
        return None
    return Address(
        scheme=parts.scheme,
        host=host,
        port=_PORTS[parts.scheme] if port is None else port,
        path=path,
        query=query,
    )


def _host(netloc: str) -> str | None:
    """Read the host, which is all that may stand before the port."""
    if "@" in netloc:
        return None  # who is asked stands behind it, however much what stands before it looks like a host
    if netloc.startswith("["):
        inner, _, rest = netloc[1:].partition("]")
        if rest and not rest.startswith(":"):
            return None
        try:
            return f"[{IPv6Address(inner).compressed}]" if "%" not in inner else None
        except AddressValueError:
            return None
    host = netloc.partition(":")[0].lower()
    return host if _HOST.fullmatch(host) else None


def _is_tidy(path: str) -> bool:
    """Tell whether a path without escapes leads to where it says, whoever walks it.

    Without: HTTP libraries undo some of them before they send a path, and servers the others.
    """
    segments = path.split("/")[1:]
    names = [segment.partition(";")[0].strip() for segment in segments]
    return not any(name in (".", "..") for name in names) and all(segments[:-1])
