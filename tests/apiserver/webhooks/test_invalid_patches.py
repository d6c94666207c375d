"""Arbitrary patches of webhooks are refused with an API error, or leave a valid object."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apiserver.objects import (
    DEFINITIONS,
    DEPLOYMENTS,
    PODS,
    WIDGETS,
    WRITE,
    definition,
    deployment,
    make_server,
    pod,
    widget,
)
from tests.apiserver.webhooks.webhook_server import MUTATING, USER, webhook

from springtide.apiserver.webhooks import AdmissionWebhooks
from springtide.cluster.errors import ApiError
from springtide.cluster.resources import Object, Resource, key_of
from springtide.cluster.transport import Patch

values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "v1", "1Gi", "é" * 300]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "name", "spec"]), inner, max_size=2)
    ),
    max_leaves=5,
)
paths = st.sampled_from(
    [
        "",
        "/apiVersion",
        "/kind",
        "/metadata",
        "/metadata/name",
        "/metadata/namespace",
        "/metadata/labels",
        "/metadata/annotations",
        "/metadata/finalizers",
        "/metadata/ownerReferences",
        "/metadata/managedFields",
        "/metadata/managedFields/0/fieldsV1",
        "/metadata/resourceVersion",
        "/metadata/generation",
        "/metadata/deletionTimestamp",
        "/spec",
        "/spec/containers",
        "/spec/containers/0",
        "/spec/containers/0/resources",
        "/spec/tolerations",
        "/spec/template",
        "/spec/selector",
        "/spec/replicas",
        "/spec/size",
        "/status",
    ]
)
operations = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "replace", "remove", "dance"]), "path": paths, "value": values}
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize(
    ("resource", "body"),
    [
        pytest.param(PODS, pod(labels={"a": "b"}), id="a pod"),
        pytest.param(DEPLOYMENTS, deployment(), id="a deployment"),
        pytest.param(WIDGETS, widget(), id="a custom object"),
    ],
)
@settings(max_examples=60, deadline=None)
@given(operations=operations)
def test_arbitrary_patches_are_applied_or_refused(resource: Resource, body: Object, operations: list[Any]) -> None:
    server = make_server()
    server.create(DEFINITIONS, definition(), WRITE)
    hooks = [webhook({"url": "https://example.com"}, name=f"{name}.example.com") for name in "ab"]
    # The second webhook receives what the first one left.
    hooks[1]["objectSelector"] = {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}
    server.create(MUTATING, {"metadata": {"name": "hooks"}, "webhooks": hooks}, WRITE)

    async def send(client: Object, question: bytes, timeout: int) -> bytes:
        patched = base64.b64encode(json.dumps(operations).encode()).decode()
        uid = json.loads(question)["request"]["uid"]
        response = {"uid": uid, "allowed": True, "patchType": "JSONPatch", "patch": patched}
        return json.dumps(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        ).encode()

    async def main() -> None:
        reviews = AdmissionWebhooks(server, send)
        before = server.revision
        try:
            created = await reviews.execute(lambda: server.create(resource, body, WRITE, namespace="default"), USER)
        except ApiError:
            assert server.revision == before
            return
        stored = server.get(resource, key_of(created.value))
        assert stored == created.value
        # The result is a valid object: it can be written again.
        server.patch(resource, key_of(stored), Patch.merge({"metadata": {"labels": {"z": "z"}}}), WRITE)

    asyncio.run(main())
