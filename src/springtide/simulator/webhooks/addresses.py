"""Where a webhook is: its `clientConfig`, made into something that can be called.

The embedded cluster has no pod network, so a Service leads to a webhook only if it is of type `ExternalName`. The
certificate must be valid for the Service all the same, as on a live cluster.
"""

from __future__ import annotations

import base64
import binascii
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from springtide.cluster.resources import Key, Object
from springtide.simulator.webhooks.failures import CallFailed

_HTTPS = 443

FindService = Callable[[Key], Object | None]


@dataclass(frozen=True, slots=True)
class Address:
    """What is called, and under which name."""

    said: str
    """The URL as errors show it."""
    called: str
    """The URL that is connected to."""
    host: str
    """The value of the Host header."""
    server_name: str
    """The name that the certificate must be valid for."""


def address_of(client: Object, find_service: FindService, timeout: int) -> Address:
    """Find out where a webhook is; `CallFailed` where that leads nowhere."""
    query = f"?timeout={timeout}s"
    service = client.get("service")
    if service is None:
        parts = urlsplit(client["url"])
        said = f"{parts.scheme}://{parts.netloc}{parts.path or '/'}{query}"
        return Address(said, said, parts.netloc, parts.hostname or "")
    key, port = Key(service["namespace"], service["name"]), service.get("port", _HTTPS)
    name = f"{key.name}.{key.namespace}.svc"
    path = service.get("path") or "/"
    said = f"https://{name}:{port}{path}{query}"
    found = find_service(key)
    if found is None:
        raise unreachable(said, f'service "{key.name}" not found')
    spec = found.get("spec") or {}
    if spec.get("type") != "ExternalName":
        raise unreachable(
            said,
            f'service "{key.name}" is of type {spec.get("type", "ClusterIP")}, and the embedded cluster has no pod '
            "network: use a service of type ExternalName, or clientConfig.url",
        )
    return Address(said, f"https://{spec['externalName']}:{port}{path}{query}", f"{name}:{port}", name)


def unreachable(said: str, why: str) -> CallFailed:
    """Tell why a URL could not be called."""
    return CallFailed(f'failed to call webhook: Post "{said}": {why}')


@lru_cache(maxsize=128)
def trust(bundle: str | None) -> ssl.SSLContext:
    """Trust the certificates of a `caBundle` and no others; without one, those that the system trusts."""
    if not bundle:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # A bundle may hold the serving certificate itself, or an intermediate authority.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=base64.b64decode(bundle, validate=True).decode("ascii"))
    except (binascii.Error, ValueError, ssl.SSLError):
        words = "unable to load root certificates: unable to parse bytes as PEM block"
        raise CallFailed(f"could not get REST client: {words}") from None
    return context
