"""Calls of AWS services through boto3, and their errors as `ProviderError`s.

boto3 blocks, so every call runs in a thread. A write checks its permit (leadership) in the thread, immediately before
it is sent. Calls have short timeouts and are not retried here: controllers retry them with their own backoff, and by
then know whether the request is still the same.

Messages of AWS are passed on, except those about credentials: they may quote keys and signatures. Of errors of botocore
itself only the type is shown, because their messages may quote proxies with passwords.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

import msgspec

from springtide.apis.redaction import redacted
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
"""Codes of transient errors."""
_CREDENTIAL_CODES = frozenset(
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
"""Codes of errors about credentials, whose messages may quote them."""
_UNREACHABLE = ("ConnectTimeoutError", "ReadTimeoutError", "HTTPClientError", "ConnectionError")
_CREDENTIAL_ERRORS = ("CredentialRetrievalError", "MetadataRetrievalError")
_KEY = re.compile(r"\b(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}\b")
_LONGEST = 500
CONNECT_SECONDS = 3
"""Less than the margin of a lease, so that no write is sent after it has expired."""
READ_SECONDS = 10
MOST_AT_ONCE = 16
"""The largest number of concurrent calls."""
MOST_CLIENTS = 64
"""The largest number of cached clients; AWS has fewer regions, but users can write any region in an ARN."""


def connect(service: str, region: str) -> Any:
    """Create a client of a service with the credentials of the process; without a region, in that of the process."""
    try:
        import boto3.session
        from botocore.config import Config
    except ImportError as failure:
        msg = "boto3 is not installed: pip install './springtide[aws]', in the folder with the clone"
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
    """Cached clients, one for each service and region."""

    def __init__(self, connect: Callable[[str, str], Any] = connect) -> None:
        self._connect = connect
        self._threads = Threads("aws", MOST_AT_ONCE)
        self._clients: dict[tuple[str, str], Any] = {}
        self._lock = Lock()

    async def call(
        self,
        service: str,
        region: str,
        operation: str,
        *,
        permit: Callable[[], None] | None = None,
        **arguments: Any,
    ) -> dict[str, Any]:
        """Call an operation of a service; raises `ProviderError`, or what the permit raises."""
        return await self._threads.run(self._call, service, region, operation, permit, arguments)

    def close(self) -> None:
        """Stop the threads; no further calls are possible."""
        self._threads.close()

    def _call(
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
            detail = failure.response.get("Error") or {}
            http_status = (failure.response.get("ResponseMetadata") or {}).get("HTTPStatusCode") or 0
            raise error_from_response(
                service, detail.get("Code") or "Unknown", detail.get("Message") or "", http_status
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
            # Least recently used first.
            client = self._clients[service, region] = self._clients.pop((service, region))
            return client


def is_transient(code: str, http_status: int) -> bool:
    """Return whether an error is transient: the same request may succeed later."""
    return code.rpartition(".")[2] in _TRANSIENT or http_status >= 500 or http_status == 429


def decode_response(service: str, answer: Any, shape: type[S]) -> S:
    """Decode a response of AWS."""
    try:
        return msgspec.convert(answer, shape)
    except msgspec.ValidationError as failure:
        msg = f"{service}: the answer is not what AWS gives: {failure}"
        raise ProviderError("UnexpectedAnswer", msg, retryable=False) from None


def error_from_response(service: str, code: str, message: str, http_status: int) -> ProviderError:
    """Return the error of an error response."""
    retryable = is_transient(code, http_status)
    text = "the credentials of the process were not accepted" if code in _CREDENTIAL_CODES else _redacted(message)
    return ProviderError(_short(code), f"{service}: {text} ({code})", retryable=retryable)


def error_without_response(service: str, failure: BaseException) -> ProviderError:
    """Return the error of a request that got no response, or could not be made."""
    kinds = [kind.__name__ for kind in type(failure).__mro__]
    name = kinds[0]
    if name in ("NoCredentialsError", "PartialCredentialsError"):
        msg = f"{service}: there are no credentials: give the process a role, or set them in its environment"
        return ProviderError("NoCredentials", msg, retryable=False)
    if name == "NoRegionError":
        msg = f"{service}: no region is known: write the ARN of the group, or set AWS_REGION for the process"
        return ProviderError("NoRegion", msg, retryable=False)
    if any(kind in _CREDENTIAL_ERRORS for kind in kinds):
        msg = f"{service}: the credentials of the process could not be had ({name})"
        return ProviderError("CredentialsUnavailable", msg, retryable=True)
    if any(kind.endswith("TimeoutError") for kind in kinds):
        return ProviderError("Timeout", f"{service}: nothing came back in time ({name})", retryable=True)
    if any(kind in _UNREACHABLE for kind in kinds):
        return ProviderError("Unreachable", f"{service}: the service cannot be reached ({name})", retryable=True)
    return ProviderError(_short(name), f"{service}: the request could not be made ({name})", retryable=False)


def _short(code: str) -> str:
    """Make a reason for conditions from a code: one word, without the usual suffixes."""
    word = "".join(letter for letter in code.rpartition(".")[2] if letter.isascii() and letter.isalnum())
    for ending in ("Exception", "Fault", "Error"):
        if word.endswith(ending) and word != ending and word != "ValidationError":
            word = word.removesuffix(ending)
            break
    return word if word[:1].isalpha() else f"Aws{word or 'Error'}"


def _redacted(message: str) -> str:
    words = _KEY.sub("…", redacted(" ".join(message.split())))
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
