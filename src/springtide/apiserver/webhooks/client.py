"""The HTTPS client for webhooks: resolves a `clientConfig`, sends the review, and explains failures as Go does.

The embedded cluster has no pod network, so a Service reaches a webhook only if its type is `ExternalName`. The
certificate must still be valid for the Service, as on a live cluster.

Timeouts are wall time even when the cluster's clock is faster.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import aiohttp
import msgspec

from springtide.apiserver.webhooks.messages import WebhookCallFailed
from springtide.cluster.http.connections import TrackedConnector
from springtide.cluster.resources import Key, Object

_HTTPS = 443

FindService = Callable[[Key], Object | None]

_MAX_SHOWN = 2048
_X509 = {
    9: "certificate has expired or is not yet valid",
    10: "certificate has expired or is not yet valid",
    18: "certificate signed by unknown authority",
    19: "certificate signed by unknown authority",
    20: "certificate signed by unknown authority",
    21: "certificate signed by unknown authority",
}
"""The messages for OpenSSL's verification errors, by number."""
_BY_STATUS = {
    401: "the server has asked for the client to provide credentials",
    403: "the server does not allow this method on the requested resource",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
}
_SERVER_FAILURE = 500

_MAX_BYTES = 16 * 1024 * 1024
"""The largest accepted response: a patch of an object, and objects have at most 3 MiB."""
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, */*", "User-Agent": "springtide-admission"}


@dataclass(frozen=True, slots=True)
class WebhookAddress:
    """The address of a webhook."""

    display_url: str
    """The URL in error messages."""
    url: str
    """The URL to connect to."""
    host: str
    """The Host header."""
    server_name: str
    """The name that the certificate must be valid for."""


def resolve_address(client: Object, find_service: FindService, timeout: int) -> WebhookAddress:
    """Resolve a `clientConfig`; `WebhookCallFailed` where that fails."""
    query = f"?timeout={timeout}s"
    service = client.get("service")
    if service is None:
        parts = urlsplit(client["url"])
        display_url = f"{parts.scheme}://{parts.netloc}{parts.path or '/'}{query}"
        return WebhookAddress(display_url, display_url, parts.netloc, parts.hostname or "")
    key, port = Key(service["namespace"], service["name"]), service.get("port", _HTTPS)
    name = f"{key.name}.{key.namespace}.svc"
    path = service.get("path") or "/"
    display_url = f"https://{name}:{port}{path}{query}"
    found = find_service(key)
    if found is None:
        raise unreachable(display_url, f'service "{key.name}" not found')
    spec = found.get("spec") or {}
    if spec.get("type") != "ExternalName":
        raise unreachable(
            display_url,
            f'service "{key.name}" is of type {spec.get("type", "ClusterIP")}, and the embedded cluster has no pod '
            "network: use a service of type ExternalName, or clientConfig.url",
        )
    return WebhookAddress(display_url, f"https://{spec['externalName']}:{port}{path}{query}", f"{name}:{port}", name)


def unreachable(display_url: str, why: str) -> WebhookCallFailed:
    """Return the error for a URL that could not be called."""
    return WebhookCallFailed(f'failed to call webhook: Post "{display_url}": {why}')


@lru_cache(maxsize=128)
def ca_context(bundle: str | None) -> ssl.SSLContext:
    """Return a TLS context that trusts a `caBundle` only; without one, the certificates that the system trusts."""
    if not bundle:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # A bundle may hold the serving certificate itself, or an intermediate authority.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=base64.b64decode(bundle, validate=True).decode("ascii"))
    except (binascii.Error, ValueError, ssl.SSLError):
        message = "unable to load root certificates: unable to parse bytes as PEM block"
        raise WebhookCallFailed(f"could not get REST client: {message}") from None
    return context


def connection_failure_message(failure: Exception, address: WebhookAddress) -> str:
    """Return the message for a failed connection."""
    match failure:
        case aiohttp.ClientConnectorCertificateError():
            return _certificate_error(failure.certificate_error, address)
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {failure.host}: no such host"
        case aiohttp.ClientConnectorSSLError():
            cause = failure.os_error
            reason = getattr(cause, "reason", None) or cause.strerror or str(cause)
            return f"tls: {str(reason).lower().replace('_', ' ')}"
        case aiohttp.ClientConnectorError():
            message = _system_error(failure.os_error)
            return f"dial tcp {failure.host}:{failure.port}: connect: {message}" if message else "EOF"
        case aiohttp.ServerDisconnectedError():
            return "EOF"
        case _:
            return str(failure) or type(failure).__name__


def _system_error(error: OSError) -> str:
    """Return the message for a system error; empty where the other side closed the connection."""
    # For a name with several addresses, the event loop joins the errors of all into one text.
    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
        return "connection refused"
    return (error.strerror or "").lower()


def status_message(status: int, message: str, body: bytes) -> str:
    """Return the message for a status other than success; `message` is the message of the response, if any."""
    if message:
        return message
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= _SERVER_FAILURE:
        shown = json.dumps(body[:_MAX_SHOWN].decode(errors="replace"), ensure_ascii=False)
        return f"an error on the server ({shown}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"


def _certificate_error(error: Exception, address: WebhookAddress) -> str:
    message = f"certificate is not valid for {address.server_name}"
    if isinstance(error, ssl.SSLCertVerificationError):
        message = _X509.get(error.verify_code, message if "mismatch" in error.verify_message else error.verify_message)
    return f"tls: failed to verify certificate: x509: {message}"


class WebhookCaller:
    """Calls webhooks over kept connections."""

    def __init__(self, find_service: FindService) -> None:
        self._find_service = find_service
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, client: Object, body: bytes, timeout: int) -> bytes:
        """Send a review and return the response; `WebhookCallFailed` where there is none."""
        address = resolve_address(client, self._find_service, timeout)
        try:
            async with asyncio.timeout(timeout):
                return await self._post(address, client.get("caBundle"), body)
        except TimeoutError:
            raise unreachable(address.display_url, "context deadline exceeded") from None
        except (aiohttp.ClientError, OSError, ValueError) as failure:
            raise unreachable(address.display_url, connection_failure_message(failure, address)) from None

    async def _post(self, address: WebhookAddress, bundle: str | None, body: bytes) -> bytes:
        if self._session is None:
            # Redirects, cookies and proxies are not part of the webhook contract.
            self._session = aiohttp.ClientSession(
                connector=TrackedConnector(),
                headers=_HEADERS,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
            )
        async with self._session.post(
            address.url,
            data=body,
            headers={"Host": address.host},
            ssl=ca_context(bundle),
            server_hostname=address.server_name,
            allow_redirects=False,
        ) as response:
            answer = await _read_limited(response.content)
            if response.status not in range(200, 300):
                raise WebhookCallFailed(
                    f"failed to call webhook: {status_message(response.status, _status_text(answer), answer)}"
                )
            if not answer:
                message = f"status code: {response.status} and content type: {response.content_type}"
                raise WebhookCallFailed(f"failed to call webhook: 0-length response with {message}")
            return answer


async def _read_limited(stream: aiohttp.StreamReader) -> bytes:
    """Read a response up to the size limit."""
    parts: list[bytes] = []
    length = 0
    async for part in stream.iter_any():
        length += len(part)
        if length > _MAX_BYTES:
            raise WebhookCallFailed(f"failed to call webhook: the answer has more than {_MAX_BYTES} bytes")
        parts.append(part)
    return b"".join(parts)


class _Status(msgspec.Struct, frozen=True):
    kind: str = ""
    message: str = ""


def _status_text(body: bytes) -> str:
    """Return the message of a response that is a `Status`."""
    try:
        status = msgspec.json.decode(body, type=_Status)
    except (msgspec.DecodeError, RecursionError):
        return ""
    return status.message if status.kind == "Status" else ""
