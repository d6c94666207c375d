"""What AWS answers instead of doing what it was asked for: whether to ask again, and in which words to tell it.

Words of AWS are passed on, but for those about who we are: they may quote keys and signatures. What botocore itself
fails with is told by its kind alone, because it may quote proxies and their passwords.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from springtide.providers.port import ProviderError

S = TypeVar("S")

_PASSING = frozenset(
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


def passes(code: str, http_status: int) -> bool:
    """Tell whether the same request may be answered otherwise a little later."""
    return code.rpartition(".")[2] in _PASSING or http_status >= 500 or http_status == 429


def read(service: str, answer: Any, shape: type[S]) -> S:
    """Read an answer of AWS, or of whoever answers in its place."""
    try:
        return msgspec.convert(answer, shape)
    except msgspec.ValidationError as failure:
        msg = f"{service}: the answer is not what AWS gives: {failure}"
        raise ProviderError("UnexpectedAnswer", msg, retryable=False) from None


def refused(service: str, code: str, message: str, http_status: int) -> ProviderError:
    """Tell of an answer of AWS."""
    retryable = passes(code, http_status)
    words = "our credentials were not accepted" if code in _ABOUT_US else _harmless(message)
    return ProviderError(_short(code), f"{service}: {words} ({code})", retryable=retryable)


def not_answered(service: str, failure: BaseException) -> ProviderError:
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


def _harmless(message: str) -> str:
    words = _KEY.sub("…", " ".join(message.split()))
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
