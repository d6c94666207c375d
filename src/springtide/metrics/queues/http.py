"""Queues that answer over HTTP with JSON, somewhere in which their length stands.

The address is somebody's who writes objects, and the answer is somebody's whom nobody knows. So no redirect is followed
(it would lead past the Grant), an answer is read only so far and for so long, and what it says is told to nobody: a
message names the host and what was expected, never what came instead.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec

from springtide.apis.scheduled.queue import QueueSpec
from springtide.apis.springtide.grants import Reach
from springtide.cluster.http.connections import Connections
from springtide.metrics.queues.json_pointer import PointsNowhere, resolve
from springtide.metrics.queues.port import QueueError, QueueLength, QueueReader, Target, whole_messages

TIMEOUT = 5.0
"""Seconds for everything: finding the host, connecting, asking, reading."""
LARGEST = 1 << 20
"""Bytes of an answer that are read at most."""

_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}
_SUCCESS = 2
_REDIRECT = 3
_SERVER_TROUBLE = 500
_TOO_MANY = 429


class HttpQueues(QueueReader):
    """Reads queues by their URLs."""

    def __init__(self, *, timeout: float = TIMEOUT, largest: int = LARGEST) -> None:
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._largest = largest

    def target(self, queue: QueueSpec) -> Target | None:
        """Name the address."""
        return Target(Reach.URL, queue.id)

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:  # noqa: ARG002 - an address is no one's
        """Ask the address, and find the number in the answer."""
        host = urlsplit(queue.id).hostname or ""
        try:
            body = await self._fetch(queue.id, host)
        except TimeoutError as failure:
            msg = f"{host} has not answered within {self._timeout.total:g} seconds"
            raise QueueError("NoAnswer", msg, retryable=True) from failure
        except (aiohttp.ClientError, OSError, ValueError) as failure:
            # ValueError: a host name that cannot be written, or an address that cannot be a URL after all.
            msg = f"{host} cannot be asked: {_cause(failure)}"
            raise QueueError("NoAnswer", msg, retryable=True) from failure
        number = _number(_document(body, host), queue.pointer or "", host)
        return QueueLength(whole_messages(number, host))

    async def _fetch(self, url: str, host: str) -> bytes:
        # A session for every question: none has to be closed by anybody, and a quarter of a minute lies between two.
        async with (
            aiohttp.ClientSession(connector=Connections(), timeout=self._timeout, auto_decompress=False) as session,
            session.get(url, headers=_HEADERS, allow_redirects=False) as response,
        ):
            if response.status // 100 != _SUCCESS:
                trouble = response.status >= _SERVER_TROUBLE or response.status == _TOO_MANY
                msg = f"{host} answers with status {response.status}, expected 200{_hint(response.status)}"
                raise QueueError("UnexpectedAnswer", msg, retryable=trouble)
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > self._largest:
                    msg = f"the answer of {host} is larger than {self._largest} bytes"
                    raise QueueError("UnexpectedAnswer", msg, retryable=False)
            return bytes(body)


def _hint(status: int) -> str:
    return ": redirects are not followed, write the address that it leads to" if status // 100 == _REDIRECT else ""


def _cause(failure: Exception) -> str:
    if isinstance(failure, aiohttp.ClientConnectorDNSError):
        return "there is no host of this name"
    if isinstance(failure, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return "its certificate is not trusted"
    if isinstance(failure, aiohttp.ClientConnectorError):
        return "it refuses the connection, or cannot be reached"
    return "the connection broke" if isinstance(failure, OSError | aiohttp.ClientError) else "it is no valid address"


def _document(body: bytes, host: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError, ValueError) as failure:
        msg = f"the answer of {host} is not JSON"
        raise QueueError("UnexpectedAnswer", msg, retryable=False) from failure


def _number(document: Any, pointer: str, host: str) -> int | Fraction:
    try:
        value = resolve(document, pointer)
    except PointsNowhere as failure:
        msg = f"the pointer {pointer} names nothing in the answer of {host}: {failure}"
        raise QueueError("UnexpectedAnswer", msg, retryable=False) from failure
    place = f"at {pointer} in the answer of {host}" if pointer else f"in the answer of {host}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = f"there is no number {place}, expected how many messages wait"
        raise QueueError("NotACount", msg, retryable=False)
    if isinstance(value, float) and not math.isfinite(value):
        msg = f"the number {place} is too large"
        raise QueueError("NotACount", msg, retryable=False)
    return Fraction(value)
