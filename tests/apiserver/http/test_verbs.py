"""The verbs over HTTP: their options and responses."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.http.asgi_client import BEE, BEES, CONFIGS, CRDS, PODS, AsgiClient, pod

from springtide.apiserver.admission import ExecutedWrite

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
_CONFIG = {"metadata": {"name": "a", "labels": {"x": "1"}}, "data": {"k": "v"}}


def test_create_read_update_delete() -> None:
    client = AsgiClient()

    made = client.request("POST", CONFIGS, _CONFIG)
    assert (made.status, made.json["kind"], made.json["metadata"]["namespace"]) == (201, "ConfigMap", "default")
    assert client.request("GET", f"{CONFIGS}/a").json == made.json
    put = client.request("PUT", f"{CONFIGS}/a", made.json | {"data": {"k": "w"}})
    assert (put.status, put.json["data"]) == (200, {"k": "w"})
    assert client.request("PUT", f"{CONFIGS}/a", made.json).json["reason"] == "Conflict"
    gone = client.request("DELETE", f"{CONFIGS}/a")
    uid = made.json["metadata"]["uid"]
    assert (gone.status, gone.json["status"]) == (200, "Success")
    assert gone.json["details"] == {"name": "a", "kind": "configmaps", "uid": uid}
    lost = client.request("GET", f"{CONFIGS}/a")
    assert lost.json["details"] == {"name": "a", "kind": "configmaps"}
    assert (lost.status, lost.json["code"], lost.json["reason"]) == (404, 404, "NotFound")


@pytest.mark.parametrize(
    ("media", "body", "expected"),
    [
        pytest.param("merge-patch+json", {"data": {"k": None, "l": "2"}}, {"l": "2"}, id="merge"),
        pytest.param(
            "json-patch+json", [{"op": "add", "path": "/data/m", "value": "3"}], {"k": "v", "m": "3"}, id="json"
        ),
        pytest.param("strategic-merge-patch+json", {"data": {"n": "4"}}, {"k": "v", "n": "4"}, id="strategic"),
    ],
)
def test_patches(media: str, body: Any, expected: dict[str, str]) -> None:
    client = AsgiClient()
    client.request("POST", CONFIGS, _CONFIG)

    patched = client.request("PATCH", f"{CONFIGS}/a", body, content_type=f"application/{media}")

    assert (patched.status, patched.json["data"]) == (200, expected)


def test_an_apply_in_yaml_creates_then_updates() -> None:
    client = AsgiClient()
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: %s\n"
    apply, media = f"{CONFIGS}/a?fieldManager=me", "application/apply-patch+yaml"

    assert client.request("PATCH", apply, text % b"one", content_type=media).status == 201
    again = client.request("PATCH", apply, text % b"two", content_type=media)
    assert (again.status, again.json["data"]["k"]) == (200, "two")
    clash = client.request("PATCH", f"{CONFIGS}/a?fieldManager=other", text % b"three", content_type=media)
    assert (clash.status, clash.json["details"]["causes"][0]["reason"]) == (409, "FieldManagerConflict")
    forced = client.request("PATCH", f"{CONFIGS}/a?fieldManager=other&force=true", text % b"three", content_type=media)
    assert (forced.status, forced.json["data"]["k"]) == (200, "three")


@pytest.mark.parametrize(
    ("agent", "query", "expected"),
    [
        pytest.param("kubectl/v1.36 (linux)", "", "kubectl", id="first part of the user agent"),
        pytest.param("a b\x7f/1", "", "a b", id="unprintable characters are dropped"),
        pytest.param("x" * 200, "", "x" * 128, id="cut to the maximum length"),
        pytest.param("kubectl/1", "?fieldManager=me", "me", id="given"),
    ],
)
def test_the_field_manager_defaults_to_the_user_agent(agent: str, query: str, expected: str) -> None:
    made = AsgiClient().request("POST", CONFIGS + query, _CONFIG, user_agent=agent)

    assert made.json["metadata"]["managedFields"][0]["manager"] == expected


@pytest.mark.parametrize(
    ("query", "body"),
    [
        pytest.param("?gracePeriodSeconds=7", None, id="query"),
        pytest.param("", {"gracePeriodSeconds": 7}, id="body"),
        pytest.param(
            "?gracePeriodSeconds=9", {"kind": "DeleteOptions", "gracePeriodSeconds": 7}, id="body before query"
        ),
    ],
)
def test_delete_options_come_from_the_query_or_the_body(query: str, body: Any) -> None:
    client = AsgiClient()
    client.request("POST", PODS, pod(nodeName="n"))

    going = client.request("DELETE", f"{PODS}/p{query}", body)

    assert (going.status, going.json["metadata"]["deletionGracePeriodSeconds"]) == (200, 7)


def test_deletion_honours_preconditions_and_dry_run() -> None:
    client = AsgiClient()
    client.request("POST", CONFIGS, _CONFIG)

    assert client.request("DELETE", f"{CONFIGS}/a", {"preconditions": {"uid": "another"}}).status == 409
    assert client.request("DELETE", f"{CONFIGS}/a?dryRun=All").status == 200
    assert client.request("GET", f"{CONFIGS}/a").status == 200


def test_deletecollection_honours_selectors() -> None:
    client = AsgiClient()
    for name, label in (("a", "1"), ("b", "1"), ("c", "2")):
        client.request("POST", CONFIGS, {"metadata": {"name": name, "labels": {"x": label}}})

    gone = client.request("DELETE", f"{CONFIGS}?labelSelector=x=1")

    assert [each["metadata"]["name"] for each in gone.json["items"]] == ["a", "b"]
    assert [each["metadata"]["name"] for each in client.request("GET", CONFIGS).json["items"]] == ["c"]


def test_a_pod_is_bound_evicted_and_its_workload_scaled() -> None:
    client = AsgiClient()
    client.request("POST", PODS, pod())
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    workloads = "/apis/apps/v1/namespaces/default/deployments"
    client.request("POST", workloads, {"metadata": {"name": "w"}, "spec": spec})

    bound = client.request("POST", f"{PODS}/p/binding", {"target": {"kind": "Node", "name": "n"}})
    assert (bound.status, bound.json["status"], bound.json["code"]) == (201, "Success", 201)
    assert client.request("GET", f"{PODS}/p").json["spec"]["nodeName"] == "n"
    assert client.request("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}}).status == 201
    scale = client.request(
        "PATCH", f"{workloads}/w/scale", {"spec": {"replicas": 4}}, content_type="application/merge-patch+json"
    )
    assert (scale.json["kind"], scale.json["spec"]) == ("Scale", {"replicas": 4})
    assert client.request("GET", f"{workloads}/w").json["spec"]["replicas"] == 4


def test_an_executor_may_add_warnings() -> None:
    async def warning(verb: Any, user: Any) -> ExecutedWrite[Any]:
        return ExecutedWrite(verb(), (f'"{user.name}" \\ is\nwatched',))

    made = AsgiClient(executor=warning).request("POST", CONFIGS, _CONFIG)

    assert made.warnings == ['"springtide-admin" \\ is watched']


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        pytest.param("POST", "/api/v1/pods", 405, id="creation without a namespace"),
        pytest.param("DELETE", "/api/v1/namespaces", 405, id="all namespaces"),
        pytest.param("PUT", CONFIGS, 405, id="replacing a collection"),
        pytest.param("PATCH", f"{PODS}/p/eviction", 405, id="patching an eviction"),
        pytest.param("HEAD", CONFIGS, 405, id="HEAD"),
        pytest.param("GET", "/api/v1/pods/p", 404, id="a pod without its namespace"),
        pytest.param("GET", "/api/v1/namespaces/default/nodes", 404, id="nodes in a namespace"),
        pytest.param("GET", "/api/v1/namespaces/default/poems", 404, id="unknown kind"),
        pytest.param("GET", f"{CONFIGS}/a/scale", 404, id="unknown subresource"),
        pytest.param("GET", f"{PODS}/p/log", 501, id="logs"),
        pytest.param("GET", "/apis/certificates.k8s.io/v1/certificatesigningrequests", 404, id="signing-requests"),
        pytest.param("GET", "/apis/nowhere.example.com/v1/things", 404, id="unknown group"),
    ],
)
def test_missing_paths_say_why(method: str, path: str, code: int) -> None:
    got = AsgiClient().request(method, path, {})

    assert got.status == code
    if got.header("content-type") == "application/json":
        assert (got.json["kind"], got.json["code"]) == ("Status", code)
    else:
        assert got.body == b"404 page not found\n"


def test_a_missing_subresource_of_a_custom_kind_is_not_found() -> None:
    client = AsgiClient()
    client.request("POST", CRDS, BEE)

    got = client.request("GET", f"{BEES}/maya/scale")

    assert (got.status, got.json["message"]) == (404, 'bees.example.com "maya" not found')
    assert got.json["details"] == {"name": "maya", "group": "example.com", "kind": "bees"}


def test_an_update_of_a_missing_lease_creates_it() -> None:
    client = AsgiClient()
    lease = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}}

    made = client.request("PUT", f"{_LEASES}/a", lease)
    assert (made.status, made.json["spec"]) == (201, {"holderIdentity": "me"})
    assert client.request("PUT", f"{_LEASES}/a", made.json).status == 200
    assert client.request("PUT", f"{CONFIGS}/a", _CONFIG).status == 404


def test_watch_on_the_path_of_an_object_reads_it() -> None:
    client = AsgiClient()
    made = client.request("POST", CONFIGS, _CONFIG)

    assert client.request("GET", f"{CONFIGS}/a?watch=true").json == made.json
    assert client.request("GET", f"{CONFIGS}/b?watch=true").status == 404


def test_an_apply_with_a_version_creates() -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "5"}}

    made = AsgiClient().request(
        "PATCH", f"{CONFIGS}/a?fieldManager=me", body, content_type="application/apply-patch+yaml"
    )

    assert made.status == 201


def test_a_kind_is_served_once_its_definition_is_created() -> None:
    client = AsgiClient()

    assert client.request("GET", BEES).status == 404
    assert client.request("POST", CRDS, BEE).status == 201
    made = client.request("POST", BEES, {"apiVersion": "example.com/v1", "kind": "Bee", "metadata": {"name": "maya"}})
    assert made.status == 201
    assert client.request("DELETE", f"{CRDS}/bees.example.com").status == 200
    assert client.request("GET", BEES).status == 404


_PODS_ARE = 'Pod in version "v1" cannot be handled as a Pod: '


@pytest.mark.parametrize(
    ("spec", "expected_text"),
    [
        pytest.param(
            {"containers": "main"}, 'spec.containers: Invalid value: "main": must be of type array', id="list"
        ),
        pytest.param(
            {"priority": "high"}, 'spec.priority: Invalid value: "high": must be of type integer', id="number"
        ),
        pytest.param(
            {"overhead": {"cpu": "lots"}}, 'spec.overhead[cpu]: Invalid value: "lots": quantities', id="amount"
        ),
    ],
)
def test_undecodable_bodies_are_bad_requests(spec: dict[str, Any], expected_text: str) -> None:
    """Decoding fails before the object is looked up: the pod need not exist."""
    body = pod("p") | {"spec": spec}

    for method, path in (("POST", PODS), ("PUT", f"{PODS}/p")):
        answer = AsgiClient().request(method, path, body)
        assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
        assert answer.json["message"].startswith(_PODS_ARE + expected_text)


def test_a_patch_with_a_wrong_type_is_invalid() -> None:
    client = AsgiClient()
    client.request("POST", CONFIGS, _CONFIG)
    media = "application/merge-patch+json"

    wrong = client.request("PATCH", f"{CONFIGS}/a", {"data": {"k": 1}}, content_type=media)
    assert (wrong.status, wrong.json["details"]["causes"][0]["field"]) == (422, "data[k]")
    no_object = client.request("PATCH", f"{CONFIGS}/a", [1], content_type=media)
    expected_text = "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
    assert (no_object.status, no_object.json["message"]) == (400, expected_text)


def test_duplicate_owners_cause_a_warning() -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u-1"}
    metadata = {"name": "a", "ownerReferences": [owner, owner]}

    made = AsgiClient().request("POST", CONFIGS, {"metadata": metadata})

    assert made.json["metadata"]["ownerReferences"] == [owner]
    assert made.header("warning").endswith('please fix your requests; duplicate UID(s) observed: u-1"')
