"""The messages to and from webhooks."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.apiserver.webhooks.messages import (
    WebhookCallFailed,
    WebhookVerdict,
    decode_verdict,
    denied,
    version_for,
)
from springtide.cluster.errors import AlreadyExists, ApiError, BadRequest, Conflict, Forbidden, ServerError
from springtide.cluster.resources import Object

REVIEW = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
PATCH = base64.b64encode(b'[{"op":"add","path":"/a","value":1}]').decode()


def body(response: Any = None, **fields: Any) -> bytes:
    return json.dumps(REVIEW | fields | ({} if response is None else {"response": response})).encode()


def failure(answer: bytes, *, version: str = "v1", may_patch: bool = True) -> str:
    with pytest.raises(WebhookCallFailed) as caught:
        decode_verdict(answer, version, "u", may_patch=may_patch)
    return str(caught.value)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(b"nonsense", "failed to call webhook: couldn't get version/kind; json parse error", id="not JSON"),
        pytest.param(b"[]", "failed to call webhook: couldn't get version/kind; json parse error", id="not an object"),
        pytest.param(b"[" * 100_000, "failed to call webhook: couldn't get version/kind", id="deeply nested"),
        pytest.param(body(), "received invalid webhook response: webhook response was absent", id="no response"),
        pytest.param(
            body({"uid": "v", "allowed": True}),
            'received invalid webhook response: expected response.uid="u", got "v"',
            id="another uid",
        ),
        pytest.param(
            json.dumps({"response": {"uid": "u"}}).encode(),
            "received invalid webhook response: expected webhook response of "
            "admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
            id="no kind",
        ),
        pytest.param(
            body({"uid": "u"}, kind="Pod", apiVersion="v1"),
            'failed to call webhook: no kind "Pod" is registered for version "v1"',
            id="another kind",
        ),
        pytest.param(
            body({"uid": "u", "allowed": True, "patch": PATCH}),
            "received invalid webhook response: webhook returned response.patch but not response.patchType",
            id="patch without a type",
        ),
        pytest.param(
            body({"uid": "u", "allowed": True, "patchType": "JSONPatch"}),
            "received invalid webhook response: webhook returned response.patchType but not response.patch",
            id="type without a patch",
        ),
        pytest.param(
            body({"uid": "u", "allowed": True, "patchType": "Merge", "patch": PATCH}),
            'unsupported patch type "Merge"',
            id="another type of patch",
        ),
        pytest.param(
            body({"uid": "u", "allowed": True, "patchType": "JSONPatch", "patch": "e30="}),
            "received undecodable patch in webhook response",
            id="patch is not a list",
        ),
        pytest.param(
            body({"uid": "u", "allowed": True, "patchType": "JSONPatch", "patch": "%%"}),
            "received undecodable patch in webhook response",
            id="patch is not base64",
        ),
        pytest.param(
            body({"uid": "u", "allowed": "yes"}),
            "failed to call webhook: couldn't get version/kind",
            id="allowed is not a boolean",
        ),
    ],
)
def test_invalid_reviews(answer: bytes, expected: str) -> None:
    assert failure(answer).startswith(expected)


@pytest.mark.parametrize("field", ["patch", "patchType"])
def test_validating_webhooks_may_not_patch(field: str) -> None:
    answer = body({"uid": "u", "allowed": True, field: PATCH})

    assert failure(answer, may_patch=False).endswith(f"validating webhook may not return response.{field}")


def test_a_valid_review_is_decoded() -> None:
    found = decode_verdict(
        body({"uid": "u", "allowed": True, "patchType": "JSONPatch", "patch": PATCH, "warnings": ["a"]}),
        "v1",
        "u",
        may_patch=True,
    )

    assert (found.allowed, found.warnings) == (True, ("a",))
    assert found.operations == [{"op": "add", "path": "/a", "value": 1}]


def test_v1beta1_is_less_strict() -> None:
    found = decode_verdict(
        json.dumps({"response": {"allowed": True, "patch": PATCH}}).encode(), "v1beta1", "u", may_patch=True
    )

    assert found.allowed
    assert len(found.operations) == 1


@pytest.mark.parametrize(
    ("accepted", "expected"), [(("v2", "v1"), "v1"), (("v1beta1", "v1"), "v1beta1"), (("v1",), "v1")], ids=str
)
def test_the_first_common_review_version(accepted: tuple[str, ...], expected: str) -> None:
    assert expected == version_for(accepted)


def test_no_common_review_version() -> None:
    with pytest.raises(WebhookCallFailed, match="webhook does not accept known AdmissionReview versions"):
        version_for(("v3",))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
_fields = dict.fromkeys(("uid", "allowed", "status", "patch", "patchType", "warnings"), json_values)


@given(st.binary(max_size=60) | st.fixed_dictionaries({}, optional=_fields).map(body))
def test_any_response_is_a_verdict_or_a_failed_call(answer: bytes) -> None:
    with suppress(WebhookCallFailed):
        assert isinstance(decode_verdict(answer, "v1", "u", may_patch=True), WebhookVerdict)


@pytest.mark.parametrize(
    ("status", "kind", "code", "reason", "message"),
    [
        pytest.param({}, BadRequest, 400, "", "denied the request without explanation", id="no explanation"),
        pytest.param({"message": "no"}, BadRequest, 400, "", "denied the request: no", id="a message"),
        pytest.param(
            {"reason": "Forbidden"}, BadRequest, 400, "Forbidden", "denied the request: Forbidden", id="a reason"
        ),
        pytest.param(
            {"code": 200, "message": "no"}, BadRequest, 400, "", "denied the request: no", id="code below 400"
        ),
        pytest.param(
            {"code": 403, "reason": "Forbidden", "message": "no"},
            Forbidden,
            403,
            "Forbidden",
            "denied the request: no",
            id="forbidden",
        ),
        pytest.param(
            {"code": 409, "reason": "Conflict"}, Conflict, 409, "Conflict", "denied the request: Conflict", id="409"
        ),
        pytest.param(
            {"code": 409, "reason": "AlreadyExists"},
            AlreadyExists,
            409,
            "AlreadyExists",
            "denied the request: AlreadyExists",
            id="already exists",
        ),
        pytest.param(
            {"code": 418, "reason": "Teapot"}, ApiError, 418, "Teapot", "denied the request: Teapot", id="unknown code"
        ),
        pytest.param({"code": 503}, ServerError, 503, "", "denied the request without explanation", id="server error"),
        pytest.param({"code": 99999}, ServerError, 599, "", "denied the request without explanation", id="no code"),
    ],
)
def test_refusals_are_passed_on(status: Object, kind: type[ApiError], code: int, reason: str, message: str) -> None:
    given_: Object = {"code": 0, "reason": "", "message": "", "details": {}} | status

    error = denied("h.example.com", **given_)

    assert isinstance(error, kind)
    assert (code, reason) == (error.code, error.answered)
    assert error.message == f'admission webhook "h.example.com" {message}'
    assert error.status()["code"] == code


def test_the_details_of_a_refusal_are_passed_on() -> None:
    details = {
        "name": "mine",
        "group": "g",
        "kind": "Kind",
        "uid": 1,
        "causes": [{"field": "spec.x", "message": "m", "reason": "R"}, "junk"],
        "retryAfterSeconds": 7,
    }

    error = denied("h", code=429, reason="TooManyRequests", message="later", details=details)

    assert error.status()["details"] == {
        "name": "mine",
        "group": "g",
        "kind": "Kind",
        "causes": [{"field": "spec.x", "message": "m", "reason": "R"}],
        "retryAfterSeconds": 7,
    }
