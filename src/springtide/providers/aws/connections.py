"""Connections to AWS: boto3's clients, made when they are first needed, called in threads.

boto3 blocks, so every call runs beside the event loop. It has no leadership either: a write asks for its permit in the
thread, immediately before it leaves. A try ends soon and is not repeated here; the controller does that, with its own
delays, and knows by then whether the order is still the same.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

from springtide.cluster.threads import Threads
from springtide.providers.aws.answers import not_answered, refused
from springtide.providers.port import ProviderError

CONNECT_SECONDS = 3
"""Less than the margin of a lease: what has not left by then does not leave."""
READ_SECONDS = 10
MOST_AT_ONCE = 16
"""How many calls wait for AWS at a time."""
MOST_CLIENTS = 64
"""How many clients are kept; AWS has fewer regions, but whoever may name any writes what he likes."""


def connect(service: str, region: str) -> Any:
    """Make a client of a service with the credentials of the process; in the region of the process if none is named."""
    try:
        import boto3.session
        from botocore.config import Config
    except ImportError as failure:
        msg = "boto3 is not installed: install springtide[aws]"
        raise ProviderError("AwsMissing", msg, retryable=False) from failure

    settings = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": 1},
        user_agent_extra="springtide",
    )
    # A session of its own: the shared default one is not safe in several threads.
    return boto3.session.Session().client(service, region_name=region or None, config=settings)


class Connections:
    """One client for each service and region."""

    def __init__(self, connect: Callable[[str, str], Any] = connect) -> None:
        self._connect = connect
        self._threads = Threads("aws", MOST_AT_ONCE)
        self._clients: dict[tuple[str, str], Any] = {}
        self._lock = Lock()

    async def ask(
        self,
        service: str,
        region: str,
        operation: str,
        *,
        permit: Callable[[], None] | None = None,
        **arguments: Any,
    ) -> dict[str, Any]:
        """Call an operation of a service and give its answer; raises `ProviderError`, or what the permit raises."""
        return await self._threads.run(self._ask, service, region, operation, permit, arguments)

    def close(self) -> None:
        """Ask nothing more."""
        self._threads.close()

    def _ask(
        self,
        service: str,
        region: str,
        operation: str,
        permit: Callable[[], None] | None,
        arguments: dict[str, Any],
    ) -> dict[str, Any]:
        client = self._client(service, region)
        from botocore.exceptions import BotoCoreError, ClientError

        if permit is not None:
            permit()
        try:
            answer: dict[str, Any] = getattr(client, operation)(**arguments)
        except ClientError as failure:
            told = failure.response.get("Error") or {}
            http_status = (failure.response.get("ResponseMetadata") or {}).get("HTTPStatusCode") or 0
            raise refused(service, told.get("Code") or "Unknown", told.get("Message") or "", http_status) from None
        except BotoCoreError as failure:
            raise not_answered(service, failure) from None
        return answer

    def _client(self, service: str, region: str) -> Any:
        with self._lock:
            if (service, region) not in self._clients:
                try:
                    made = self._connect(service, region)
                except ProviderError:
                    raise
                except Exception as failure:
                    raise not_answered(service, failure) from None
                if len(self._clients) >= MOST_CLIENTS:
                    del self._clients[next(iter(self._clients))]
                self._clients[service, region] = made
            # The one that was not asked for in the longest time stands first, and goes first.
            client = self._clients[service, region] = self._clients.pop((service, region))
            return client
