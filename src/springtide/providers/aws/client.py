"""What AWS answers instead of doing what it was asked for: whether to ask again, and in which words to tell it.

Words of AWS are passed on, but for those about who we are: they may quote keys and signatures. What botocore itself
fails with is told by its kind alone, because it may quote proxies and their passwords.

Connections to AWS: boto3's clients, made when they are first needed, called in threads.

boto3 blocks, so every call runs beside the event loop. It has no leadership either: a write asks for its permit in the
thread, immediately before it leaves. A try ends soon and is not repeated here; the controller does that, with its own
delays, and knows by then whether the order is still the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

import msgspec

from springtide.cluster.compute import Threads
from springtide.providers.port import ProviderError

S = TypeVar("S")

_TRANSIENT = frozenset(
    (
        "BandwidthLimitExceeded",
        "EC2ThrottledException",
        "ExpiredToken",
        "ExpiredTokenException",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "InternalServerException",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "RequestExpired",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeout",
        "RequestTimeoutException",
        "ResourceContention",
        "ResourceInUseException",
        "ScalingActivityInProgress",
        "ServerException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    )
)
"""Codes of answers that are other ones a little later, with nobody changing anything."""

_ABOUT_US = frozenset(
    (
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "InvalidToken",
        "MissingAuthenticationToken",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    )
)
"""Codes of answers about our credentials, whose words may quote them."""

_UNREACHABLE = ("ConnectTimeoutError", "ReadTimeoutError", "HTTPClientError", "ConnectionError")
_OUR_SETTINGS = ("CredentialRetrievalError", "MetadataRetrievalError")
_KEY = re.compile(r"\b(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}\b")
_LONGEST = 500


def is_transient(code: str, http_status: int) -> bool:
    """Tell whether the same request may be answered otherwise a little later."""
    return code.rpartition(".")[2] in _TRANSIENT or http_status >= 500 or http_status == 429


def decode_response(service: str, answer: Any, shape: type[S]) -> S:
    """Read an answer of AWS, or of whoever answers in its place."""
    try:
        return msgspec.convert(answer, shape)
    except msgspec.ValidationError as failure:
        msg = f"{service}: the answer is not what AWS gives: {failure}"
        raise ProviderError("UnexpectedAnswer", msg, retryable=False) from None


def error_from_response(service: str, code: str, message: str, http_status: int) -> ProviderError:
    """Tell of an answer of AWS."""
    retryable = is_transient(code, http_status)
    words = "our credentials were not accepted" if code in _ABOUT_US else _redacted(message)
    return ProviderError(_short(code), f"{service}: {words} ({code})", retryable=retryable)


def error_without_response(service: str, failure: BaseException) -> ProviderError:
    """Tell of a request that never got an answer, or could not be made."""
    kinds = [kind.__name__ for kind in type(failure).__mro__]
    name = kinds[0]
    if name in ("NoCredentialsError", "PartialCredentialsError"):
        msg = f"{service}: there are no credentials: give the process a role, or set them in its environment"
        return ProviderError("NoCredentials", msg, retryable=False)
    if name == "NoRegionError":
        msg = f"{service}: no region is known: write the ARN of the group, or set AWS_REGION for the process"
        return ProviderError("NoRegion", msg, retryable=False)
    if any(kind in _OUR_SETTINGS for kind in kinds):
        msg = f"{service}: the credentials of the process could not be had ({name})"
        return ProviderError("CredentialsUnavailable", msg, retryable=True)
    if any(kind.endswith("TimeoutError") for kind in kinds):
        return ProviderError("Timeout", f"{service}: nothing came back in time ({name})", retryable=True)
    if any(kind in _UNREACHABLE for kind in kinds):
        return ProviderError("Unreachable", f"{service}: the service cannot be reached ({name})", retryable=True)
    return ProviderError(_short(name), f"{service}: the request could not be made ({name})", retryable=False)


def _short(code: str) -> str:
    """Make a reason of a condition from a code: one word, without what all of them end in."""
    word = "".join(letter for letter in code.rpartition(".")[2] if letter.isascii() and letter.isalnum())
    for ending in ("Exception", "Fault", "Error"):
        if word.endswith(ending) and word != ending and word != "ValidationError":
            word = word.removesuffix(ending)
            break
    return word if word[:1].isalpha() else f"Aws{word or 'Error'}"


def _redacted(message: str) -> str:
    words = _KEY.sub("…", " ".join(message.split()))
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


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


class AwsClients:
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
            raise error_from_response(
                service, told.get("Code") or "Unknown", told.get("Message") or "", http_status
            ) from None
        except BotoCoreError as failure:
            raise error_without_response(service, failure) from None
        return answer

    def _client(self, service: str, region: str) -> Any:
        with self._lock:
            if (service, region) not in self._clients:
                try:
                    made = self._connect(service, region)
                except ProviderError:
                    raise
                except Exception as failure:
                    raise error_without_response(service, failure) from None
                if len(self._clients) >= MOST_CLIENTS:
                    del self._clients[next(iter(self._clients))]
                self._clients[service, region] = made
            # The one that was not asked for in the longest time stands first, and goes first.
            client = self._clients[service, region] = self._clients.pop((service, region))
            return client
