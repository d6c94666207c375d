"""Builds reviews as an API server sends them, and decodes the responses."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.apis.karpenter.samples import node_pool
from tests.apis.manifests import CONTEXT

from springtide.apis.kinds import ValidationContext
from springtide.apiserver.patches.json_patches import json_patch as patched_by
from springtide.cluster.admission.handlers import default_object, validate

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def review(item: Any, old: Any = None, **request: Any) -> bytes:
    """Write an AdmissionReview; with an old object it is an update."""
    asked = {"uid": UID, "operation": "CREATE" if old is None else "UPDATE", "object": item, "oldObject": old}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**asked, **request}}
    return json.dumps(body).encode()


def conversion_review(version: str, *objects: Any) -> bytes:
    """Write a ConversionReview."""
    asked = {"uid": UID, "desiredAPIVersion": version, "objects": list(objects)}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": asked}
    return json.dumps(body).encode()


def response_of(answer: bytes) -> dict[str, Any]:
    """Return the response of an answer that is for us."""
    received = json.loads(answer)
    response: dict[str, Any] = received["response"]
    assert response["uid"] == UID
    return response


def validated(item: Any, old: Any = None, *, context: ValidationContext = CONTEXT, **request: Any) -> dict[str, Any]:
    """Have an object validated."""
    return response_of(validate(review(item, old, **request), context))


def defaulted(item: Any, old: Any = None, **request: Any) -> tuple[Any, dict[str, Any]]:
    """Have an object defaulted; gives it as it would be stored, and the response."""
    response = response_of(default_object(review(item, old, **request)))
    patch = json.loads(base64.b64decode(response.get("patch", base64.b64encode(b"[]"))))
    assert ("patch" in response) == ("patchType" in response)
    return patched_by(item, patch), response


def foreign_pool(disruption: dict[str, Any]) -> dict[str, Any]:
    """Write a NodePool whose nodes Karpenter makes."""
    made = node_pool(disruption)
    made["spec"]["template"]["spec"]["nodeClassRef"] = {"group": "karpenter.k8s.aws", "kind": "E", "name": "a"}
    return made
