"""Calls webhooks over HTTPS: one POST each, in the time that the webhook has been given.

Timeouts are wall time, also where the cluster's clock runs faster: the network does not.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

import aiohttp
import msgspec

from springtide.cluster.http.connections import Connections
from springtide.cluster.resources import Object
from springtide.simulator.webhooks.addresses import Address, FindService, address_of, trust, unreachable
from springtide.simulator.webhooks.failures import CallFailed
from springtide.simulator.webhooks.wording import connection_failure, refusal

_MOST_BYTES = 16 * 1024 * 1024
"""No answer is longer: it is at most a patch of an object, and objects have 3 MiB."""
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, */*", "User-Agent": "springtide-admission"}


class WebhookCaller:
    """Calls webhooks; connections are kept from one call to the next."""

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

    async def ask(self, client: Object, body: bytes, timeout: int) -> bytes:
        """Send a review and give the answer; `CallFailed` where there is none."""
        address = address_of(client, self._find_service, timeout)
        try:
            async with asyncio.timeout(timeout):
                return await self._post(address, client.get("caBundle"), body)
        except TimeoutError:
            raise unreachable(address.said, "context deadline exceeded") from None
        except (aiohttp.ClientError, OSError, ValueError) as failure:
            raise unreachable(address.said, connection_failure(failure, address)) from None

    async def _post(self, address: Address, bundle: str | None, body: bytes) -> bytes:
        if self._session is None:
            # Redirects, cookies and proxies are no part of a webhook's contract.
            self._session = aiohttp.ClientSession(
                connector=Connections(),
                headers=_HEADERS,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
            )
        async with self._session.post(
            address.called,
            data=body,
            headers={"Host": address.host},
            ssl=trust(bundle),
            server_hostname=address.server_name,
            allow_redirects=False,
        ) as response:
            answer = await _limited(response.content)
            if response.status not in range(200, 300):
                raise CallFailed(f"failed to call webhook: {refusal(response.status, _told(answer), answer)}")
            if not answer:
                words = f"status code: {response.status} and content type: {response.content_type}"
                raise CallFailed(f"failed to call webhook: 0-length response with {words}")
            return answer


async def _limited(stream: aiohttp.StreamReader) -> bytes:
    """Read an answer, as long as it is not longer than any could be."""
    parts: list[bytes] = []
    length = 0
    async for part in stream.iter_any():
        length += len(part)
        if length > _MOST_BYTES:
            raise CallFailed(f"failed to call webhook: the answer has more than {_MOST_BYTES} bytes")
        parts.append(part)
    return b"".join(parts)


class _Status(msgspec.Struct, frozen=True):
    kind: str = ""
    message: str = ""


def _told(body: bytes) -> str:
    """Give the message of a refusal that is written as a `Status`."""
    try:
        status = msgspec.json.decode(body, type=_Status)
    except (msgspec.DecodeError, RecursionError):
        return ""
    return status.message if status.kind == "Status" else ""
