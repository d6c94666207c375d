"""How reviews go wrong: a webhook says no, or nothing that can be understood."""

from __future__ import annotations

from typing import Any

from springtide.cluster.errors import (
    About,
    AlreadyExists,
    ApiError,
    BadRequest,
    Cause,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    MethodNotAllowed,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    UnsupportedPatch,
)

_BY_CODE: dict[int, type[ApiError]] = {
    kind.code: kind
    for kind in (
        BadRequest,
        Unauthorized,
        Forbidden,
        NotFound,
        MethodNotAllowed,
        Conflict,
        Gone,
        UnsupportedPatch,
        Invalid,
        TooManyRequests,
        ServerError,
    )
}
_LEAST_REFUSAL = 400
_MOST = 599


class CallFailed(Exception):
    """A webhook could not be reached, or its answer makes no sense; its failure policy decides."""


def call_failed(webhook: str, failure: CallFailed) -> ServerError:
    """Refuse a request because a webhook could not be asked about it."""
    return internal_error(f'failed calling webhook "{webhook}": {failure}')


def internal_error(words: str) -> ServerError:
    """Tell that the server could not do what it was asked to."""
    return ServerError(f"Internal error occurred: {words}", causes=(Cause("", words, ""),))


def dry_run_unsupported(webhook: str) -> BadRequest:
    """Refuse a dry run that would not be one."""
    return BadRequest(f'admission webhook "{webhook}" does not support dry run')


def denied(webhook: str, *, code: int, reason: str, message: str, details: dict[str, Any]) -> ApiError:
    """Pass on the refusal of a webhook, with the code and the reason that it gives."""
    said = f'admission webhook "{webhook}" denied the request'
    told = message or reason
    after = details.get("retryAfterSeconds")
    code = min(code, _MOST) if code >= _LEAST_REFUSAL else _LEAST_REFUSAL
    error = _refusal(code, reason)(
        f"{said}: {told}" if told else f"{said} without explanation",
        code=code,
        causes=_causes(details.get("causes")),
        about=_about(details),
        retry_after=float(after) if type(after) is int and after > 0 else None,
    )
    error.answered = reason
    return error


def _refusal(code: int, reason: str) -> type[ApiError]:
    """Give the nearest kind of error: a webhook may answer with any code."""
    if (code, reason) == (AlreadyExists.code, AlreadyExists.reason):
        return AlreadyExists
    return _BY_CODE.get(code, ServerError if code >= ServerError.code else ApiError)


def _about(details: dict[str, Any]) -> About | None:
    """Pass on what the webhook says the refusal is about, as far as it is text: kubectl names the object by it."""
    given = {name: details[name] for name in ("name", "group", "kind") if isinstance(details.get(name), str)}
    return About(**given) if given else None


def _causes(given: Any) -> tuple[Cause, ...]:
    listed = given if isinstance(given, list) else []
    return tuple(
        Cause(*(str(each.get(name) or "") for name in ("field", "message", "reason")))
        for each in listed
        if isinstance(each, dict)
    )
