"""The `AdmissionReview` messages between the server and webhooks, and the errors of failed or refused reviews.

Responses are not trusted: anything that does not match the request is a failed call, with the message of a
kube-apiserver.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from springtide.apiserver.admission import AdmissionRequest, User
from springtide.apiserver.webhooks.configurations import WebhookInvocation, namespace_of
from springtide.cluster.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    MethodNotAllowed,
    NotFound,
    ServerError,
    StatusCause,
    StatusDetails,
    TooManyRequests,
    Unauthorized,
    UnsupportedPatch,
)
from springtide.cluster.resources import Object

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
_MIN_ERROR_CODE = 400
_MAX_CODE = 599

_VERSIONS = ("v1", "v1beta1")
_OPTIONAL = ("subResource", "requestSubResource", "name", "namespace")


class WebhookCallFailed(Exception):
    """A webhook could not be reached, or its response is invalid; its failure policy decides."""


def call_failed(webhook: str, failure: WebhookCallFailed) -> ServerError:
    """Return the error for a failed call."""
    return internal_error(f'failed calling webhook "{webhook}": {failure}')


def internal_error(message: str) -> ServerError:
    """Return an internal error."""
    return ServerError(f"Internal error occurred: {message}", causes=(StatusCause("", message, ""),))


def dry_run_unsupported(webhook: str) -> BadRequest:
    """Return the error for a dry run that would have side effects."""
    return BadRequest(f'admission webhook "{webhook}" does not support dry run')


def denied(webhook: str, *, code: int, reason: str, message: str, details: dict[str, Any]) -> ApiError:
    """Return the refusal of a webhook, with its code and reason."""
    sent = f'admission webhook "{webhook}" denied the request'
    text = message or reason
    after = details.get("retryAfterSeconds")
    code = min(code, _MAX_CODE) if code >= _MIN_ERROR_CODE else _MIN_ERROR_CODE
    error = _pending_error(code, reason)(
        f"{sent}: {text}" if text else f"{sent} without explanation",
        code=code,
        causes=_causes(details.get("causes")),
        about=_about(details),
        retry_after=float(after) if type(after) is int and after > 0 else None,
    )
    error.answered = reason
    return error


def _pending_error(code: int, reason: str) -> type[ApiError]:
    """Return the closest error class: a webhook may answer with any code."""
    if (code, reason) == (AlreadyExists.code, AlreadyExists.reason):
        return AlreadyExists
    return _BY_CODE.get(code, ServerError if code >= ServerError.code else ApiError)


def _about(details: dict[str, Any]) -> StatusDetails | None:
    """Return the details of a refusal, as far as they are text; kubectl shows the object's name from them."""
    given = {name: details[name] for name in ("name", "group", "kind") if isinstance(details.get(name), str)}
    return StatusDetails(**given) if given else None


def _causes(given: Any) -> tuple[StatusCause, ...]:
    listed = given if isinstance(given, list) else []
    return tuple(
        StatusCause(*(str(each.get(name) or "") for name in ("field", "message", "reason")))
        for each in listed
        if isinstance(each, dict)
    )


class _Status(msgspec.Struct, frozen=True):
    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: dict[str, Any] | None = None


class _Response(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    allowed: bool = False
    status: _Status | None = None
    patch: str | None = None
    patch_type: str | None = None
    warnings: list[str] | None = None


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    response: _Response | None = None


class WebhookVerdict(msgspec.Struct, frozen=True):
    """The decision of a webhook."""

    allowed: bool
    code: int = 0
    reason: str = ""
    message: str = ""
    details: dict[str, Any] = {}
    operations: list[Any] = []
    """The JSON patch to apply to the object."""
    warnings: tuple[str, ...] = ()


def admission_request(
    review: AdmissionRequest,
    invocation: WebhookInvocation,
    user: User,
    uid: str,
    new: Object | None,
    old: Object | None,
) -> Object:
    """Describe a request for a webhook; the objects are in the version of the invocation."""
    attributes = review.attributes
    asked = review.new if review.new is not None else review.old or {}
    text = new if new is not None else old or {}
    return {
        "uid": uid,
        "kind": _kind(text),
        "resource": _resource(invocation.resource),
        "subResource": attributes.subresource,
        "requestKind": _kind(asked),
        "requestResource": _resource(attributes.resource),
        "requestSubResource": attributes.subresource,
        "name": attributes.key.name,
        "namespace": namespace_of(attributes),
        "operation": attributes.operation.value,
        "userInfo": user.info(),
        "object": new,
        "oldObject": old,
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    }


def encode_review(version: str, request: Object) -> bytes:
    """Encode the review."""
    sent = {name: value for name, value in request.items() if value or name not in _OPTIONAL}
    return msgspec.json.encode(
        {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": sent}
    )


def version_for(accepted: tuple[str, ...]) -> str:
    """Return the first review version that the webhook accepts and the server supports."""
    known = next((version for version in accepted if version in _VERSIONS), None)
    if known is None:
        message = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
        raise WebhookCallFailed(f"could not create admission objects: {message}")
    return known


def decode_verdict(body: bytes, version: str, uid: str, *, may_patch: bool) -> WebhookVerdict:
    """Decode a response; `WebhookCallFailed` where it is invalid."""
    answer = _decoded(body)
    if answer.response is None:
        raise _invalid("webhook response was absent")
    response = answer.response
    if version == "v1":
        _check(answer, response, uid, may_patch=may_patch)
    status = response.status or _Status()
    return WebhookVerdict(
        allowed=response.allowed,
        code=status.code or 0,
        reason=status.reason or "",
        message=status.message or "",
        details=status.details or {},
        operations=_operations(response) if may_patch and response.allowed else [],
        warnings=tuple(response.warnings or ()),
    )


def _check(answer: _Answer, response: _Response, uid: str, *, may_patch: bool) -> None:
    if response.uid != uid:
        raise _invalid(f'expected response.uid="{uid}", got "{response.uid}"')
    if (answer.api_version, answer.kind) != ("admission.k8s.io/v1", "AdmissionReview"):
        wanted = "admission.k8s.io/v1, Kind=AdmissionReview"
        raise _invalid(f"expected webhook response of {wanted}, got {answer.api_version or '/'}, Kind={answer.kind}")
    if not may_patch:
        for name, given in (("patch", response.patch), ("patchType", response.patch_type)):
            if given is not None:
                raise _invalid(f"validating webhook may not return response.{name}")
    elif response.patch and response.patch_type is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    elif not response.patch and response.patch_type is not None:
        raise _invalid("webhook returned response.patchType but not response.patch")
    elif response.patch_type == "":
        raise _invalid('webhook returned invalid response.patchType of ""')


def _decoded(body: bytes) -> _Answer:
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except (msgspec.DecodeError, RecursionError) as failure:
        message = f"couldn't get version/kind; json parse error: {failure}"
        raise WebhookCallFailed(f"failed to call webhook: {message}") from None
    known = [f"admission.k8s.io/{version}" for version in _VERSIONS]
    if answer.kind and (answer.kind != "AdmissionReview" or answer.api_version not in known):
        message = f'no kind "{answer.kind}" is registered for version "{answer.api_version}"'
        raise WebhookCallFailed(f"failed to call webhook: {message}")
    return answer


def _operations(response: _Response) -> list[Any]:
    if not response.patch:
        return []
    if response.patch_type not in (None, "JSONPatch"):
        raise WebhookCallFailed(f'unsupported patch type "{response.patch_type}"')
    try:
        operations = msgspec.json.decode(base64.b64decode(response.patch, validate=True))
    except (binascii.Error, ValueError, RecursionError) as failure:
        raise WebhookCallFailed(f"received undecodable patch in webhook response: {failure}") from None
    if not isinstance(operations, list):
        raise WebhookCallFailed("received undecodable patch in webhook response: a JSON patch is a list of operations")
    return operations


def _invalid(why: str) -> WebhookCallFailed:
    return WebhookCallFailed(f"received invalid webhook response: {why}")


def _kind(item: Object) -> Object:
    group, _, version = item.get("apiVersion", "").rpartition("/")
    return {"group": group, "version": version, "kind": item.get("kind", "")}


def _resource(resource: Any) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}
