"""What is said between the server and a webhook: `AdmissionReview`, there and back.

An answer is not trusted: whatever is not exactly what was asked for is a failed call, told in a kube-apiserver's words.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from springtide.cluster.resources import Object
from springtide.simulator.api.performing import User
from springtide.simulator.api.reviews import Review
from springtide.simulator.webhooks.failures import CallFailed
from springtide.simulator.webhooks.matching import Invocation, namespace_of

_VERSIONS = ("v1", "v1beta1")
_OPTIONAL = ("subResource", "requestSubResource", "name", "namespace")


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


class Verdict(msgspec.Struct, frozen=True):
    """What a webhook has decided."""

    allowed: bool
    code: int = 0
    reason: str = ""
    message: str = ""
    details: dict[str, Any] = {}
    operations: list[Any] = []
    """The JSON patch that makes of the object what the webhook wants."""
    warnings: tuple[str, ...] = ()


def request_of(
    review: Review, invocation: Invocation, user: User, uid: str, new: Object | None, old: Object | None
) -> Object:
    """Describe a request; the objects are given in the version of the invocation."""
    matter = review.matter
    asked = review.new if review.new is not None else review.old or {}
    told = new if new is not None else old or {}
    return {
        "uid": uid,
        "kind": _kind(told),
        "resource": _resource(invocation.resource),
        "subResource": matter.subresource,
        "requestKind": _kind(asked),
        "requestResource": _resource(matter.resource),
        "requestSubResource": matter.subresource,
        "name": matter.key.name,
        "namespace": namespace_of(matter),
        "operation": matter.operation.value,
        "userInfo": user.info(),
        "object": new,
        "oldObject": old,
        "dryRun": matter.dry_run,
        "options": matter.options,
    }


def question(version: str, request: Object) -> bytes:
    """Write the review that is sent."""
    said = {name: value for name, value in request.items() if value or name not in _OPTIONAL}
    return msgspec.json.encode(
        {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": said}
    )


def version_for(accepted: tuple[str, ...]) -> str:
    """Choose the version of the review: the first that the webhook accepts and we know."""
    known = next((version for version in accepted if version in _VERSIONS), None)
    if known is None:
        words = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
        raise CallFailed(f"could not create admission objects: {words}")
    return known


def verdict(body: bytes, version: str, uid: str, *, may_patch: bool) -> Verdict:
    """Read an answer; `CallFailed` where it is none."""
    answer = _decoded(body)
    if answer.response is None:
        raise _invalid("webhook response was absent")
    response = answer.response
    if version == "v1":
        _check(answer, response, uid, may_patch=may_patch)
    status = response.status or _Status()
    return Verdict(
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
        words = f"couldn't get version/kind; json parse error: {failure}"
        raise CallFailed(f"failed to call webhook: {words}") from None
    known = [f"admission.k8s.io/{version}" for version in _VERSIONS]
    if answer.kind and (answer.kind != "AdmissionReview" or answer.api_version not in known):
        words = f'no kind "{answer.kind}" is registered for version "{answer.api_version}"'
        raise CallFailed(f"failed to call webhook: {words}")
    return answer


def _operations(response: _Response) -> list[Any]:
    if not response.patch:
        return []
    if response.patch_type not in (None, "JSONPatch"):
        raise CallFailed(f'unsupported patch type "{response.patch_type}"')
    try:
        operations = msgspec.json.decode(base64.b64decode(response.patch, validate=True))
    except (binascii.Error, ValueError, RecursionError) as failure:
        raise CallFailed(f"received undecodable patch in webhook response: {failure}") from None
    if not isinstance(operations, list):
        raise CallFailed("received undecodable patch in webhook response: a JSON patch is a list of operations")
    return operations


def _invalid(why: str) -> CallFailed:
    return CallFailed(f"received invalid webhook response: {why}")


def _kind(item: Object) -> Object:
    group, _, version = item.get("apiVersion", "").rpartition("/")
    return {"group": group, "version": version, "kind": item.get("kind", "")}


def _resource(resource: Any) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}
