"""How one cluster is accessed: server URL, TLS trust, credentials, and the proxy of the environment.

HTTPS_PROXY, HTTP_PROXY and NO_PROXY are read as kubectl reads them. Python's standard library does not support
networks in NO_PROXY, and would send requests to loopback through a proxy.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from springtide.apis.redaction import redacted_address
from springtide.cluster.http.connections import ServerTrust
from springtide.cluster.http.credentials import AccessError, ClusterCredentials, StaticCredentials


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Everything needed to send requests to one cluster."""

    server: str
    """The URL of the server, without a trailing slash; it may have a path."""
    origin: str = "given"
    """Where this configuration was found, for messages."""
    trust: ServerTrust = field(default=ServerTrust())
    credentials: ClusterCredentials = field(default_factory=StaticCredentials)
    namespace: str = "default"
    """The default namespace."""
    proxy: str = field(default="", repr=False)
    """The URL of the proxy; empty: none."""
    compress: bool = True
    """Whether the server may compress responses."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers sent with every request: impersonation."""


Address = IPv4Address | IPv6Address


def proxy_for(server: str, environment: Mapping[str, str]) -> str:
    """Return the URL of the proxy for a server; empty: it is reached directly."""
    url = urlsplit(server)
    host = (url.hostname or "").rstrip(".")
    port = url.port or (443 if url.scheme == "https" else 80)
    proxy = _environment_variable(environment, f"{url.scheme}_proxy")
    if not proxy or on_loopback(host) or _is_bypassed(host, port, _environment_variable(environment, "no_proxy")):
        return ""
    return checked_proxy(proxy if "://" in proxy else f"http://{proxy}", f"{url.scheme.upper()}_PROXY")


def checked_proxy(proxy: str, place: str) -> str:
    """Return the URL of a proxy if it can be used, else raise `AccessError`; `place` is where it was configured."""
    if proxy and not is_http_url(proxy):
        raise AccessError(
            f"{place}: {redacted_address(proxy)!r} is not a proxy that can be used: give one that begins with http://"
        )
    return proxy


def is_http_url(text: str) -> bool:
    """Return whether a text is an HTTP or HTTPS URL with a host."""
    try:
        url = urlsplit(text)
        return url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        return False


def on_loopback(host: str) -> bool:
    """Return whether a host is a loopback address or `localhost`."""
    address = _address(host)
    return address.is_loopback if address is not None else host == "localhost"


def _is_bypassed(host: str, port: int, rules: str) -> bool:
    return any(_matches(host, port, rule.strip().lower()) for rule in rules.split(",") if rule.strip())


def _matches(host: str, port: int, rule: str) -> bool:
    """Match a host against one entry of NO_PROXY: `*`, a network, or an address or a domain with an optional port."""
    if rule == "*":
        return True
    address = _address(host)
    if "/" in rule:
        with suppress(ValueError):
            return address is not None and address in ip_network(rule, strict=False)
    named, colon, only = rule.rpartition(":")
    if colon and only.isdigit() and (named.count(":") == 0 or named.endswith("]")):
        if int(only) != port:
            return False
        rule = named
    rule = rule.strip("[]")
    if address is not None:
        return address == _address(rule)
    rule = rule.removeprefix("*")
    return host.endswith(rule) if rule.startswith(".") else host == rule or host.endswith(f".{rule}")


def _address(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _environment_variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""
