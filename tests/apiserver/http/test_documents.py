"""Discovery, OpenAPI, version, health and review requests, and the Date header."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Any

import pytest
import yaml
from tests.apiserver.http.asgi_client import BEE, CRDS, TOKEN, AsgiClient

from springtide.apiserver.http import TokenAuthenticator, kubeconfig
from springtide.apiserver.http.discovery import newest_first

_WHOLE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def test_every_discovered_group_version_is_served() -> None:
    client = AsgiClient(crds=True)

    groups = client.request("GET", "/apis").json["groups"]
    for group in groups:
        assert client.request("GET", f"/apis/{group['name']}").json["versions"] == group["versions"]
        for version in group["versions"]:
            listed = client.request("GET", f"/apis/{version['groupVersion']}").json
            assert (listed["kind"], listed["groupVersion"]) == ("APIResourceList", version["groupVersion"])
            assert listed["resources"]


def test_both_forms_of_discovery_agree() -> None:
    client = AsgiClient(crds=True)

    for root in ("/api", "/apis"):
        for group in client.request("GET", root, accept=_WHOLE).json["items"]:
            for version in group["versions"]:
                name = group["metadata"].get("name")
                path = f"/apis/{name}/{version['version']}" if name else f"/api/{version['version']}"
                apart = {each["name"]: each["verbs"] for each in client.request("GET", path).json["resources"]}
                assert _flat(version["resources"]) == apart


def _flat(resources: list[Any]) -> dict[str, list[str]]:
    found = {}
    for each in resources:
        found[each["resource"]] = each["verbs"]
        for part in each.get("subresources", ()):
            found[f"{each['resource']}/{part['subresource']}"] = part["verbs"]
    return found


def test_a_new_definition_changes_discovery_and_its_etag() -> None:
    client = AsgiClient()
    before = client.request("GET", "/apis", accept=_WHOLE)
    assert client.request("GET", "/apis", accept=_WHOLE, if_none_match=before.header("etag")).status == 304

    client.request("POST", CRDS, BEE)
    after = client.request("GET", "/apis", accept=_WHOLE, if_none_match=before.header("etag"))

    assert after.status == 200
    (group,) = [each for each in after.json["items"] if each["metadata"]["name"] == "example.com"]
    (bees,) = group["versions"][0]["resources"]
    assert (bees["resource"], bees["shortNames"], bees["categories"]) == ("bees", ["b"], ["all"])


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        pytest.param(f"{_WHOLE},application/json", "APIGroupDiscoveryList", id="new clients"),
        pytest.param("application/json", "APIGroupList", id="old clients"),
        pytest.param(f"application/json,{_WHOLE}", "APIGroupList", id="first clause wins"),
        pytest.param(_WHOLE.replace("v=v2", "v=v9"), "APIGroupList", id="unknown version"),
    ],
)
def test_the_client_chooses_the_form_of_discovery(accept: str, form: str) -> None:
    assert AsgiClient().request("GET", "/apis", accept=accept).json["kind"] == form


def test_versions_are_ordered_by_preference() -> None:
    mixed = {"v1", "v2", "v10", "v1beta1", "v2beta1", "v1alpha1", "v11alpha2", "foo1", "bar"}

    assert newest_first(mixed) == ["v10", "v2", "v1", "v2beta1", "v1beta1", "v11alpha2", "v1alpha1", "bar", "foo1"]


def test_the_index_lists_every_openapi_document() -> None:
    client = AsgiClient(crds=True)

    for place, entry in client.request("GET", "/openapi/v3").json["paths"].items():
        document = client.request("GET", entry["serverRelativeURL"])
        assert document.status == 200, place
        schemas = document.json["components"]["schemas"]
        assert {name.rpartition("/")[2] for name in _references(document.json)} <= set(schemas)
        for path, operations in document.json["paths"].items():
            assert path.startswith(f"/{place}/")
            if "patch" in operations and not path.endswith(("status", "scale")):
                assert "fieldValidation" in {each["name"] for each in operations["patch"]["parameters"]}


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [each for part in value.values() for each in _references(part)]
    return [each for part in value for each in _references(part)] if isinstance(value, list) else []


def test_a_changed_definition_changes_the_hash_of_its_document() -> None:
    client = AsgiClient()
    client.request("POST", CRDS, BEE)

    def url() -> str:
        found: str = client.request("GET", "/openapi/v3").json["paths"]["apis/example.com/v1"]["serverRelativeURL"]
        return found

    first = url()
    schema = client.request("GET", first).json["components"]["schemas"]["com.example.v1.Bee"]
    assert schema["description"] == "An insect."
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "example.com", "version": "v1", "kind": "Bee"}]
    change = [{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/description", "value": "A friend."}]
    client.request("PATCH", f"{CRDS}/bees.example.com", change, content_type="application/json-patch+json")
    assert url() != first
    moved = client.request("GET", first)
    assert (moved.status, moved.header("location")) == (301, url())
    assert (
        client.request("GET", url()).json["components"]["schemas"]["com.example.v1.Bee"]["description"] == "A friend."
    )


@pytest.mark.parametrize(
    ("accept", "media", "begins"),
    [
        pytest.param("application/json", "application/json", b'{"swagger":"2.0"', id="JSON"),
        pytest.param(
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            b"\x0a\x032.0",
            id="protobuf",
        ),
    ],
)
def test_the_openapi_v2_document_is_empty(accept: str, media: str, begins: bytes) -> None:
    """kubectl reads it for kinds without a v3 document, and then reports an unknown kind."""
    message = AsgiClient().request("GET", "/openapi/v2", accept=accept)

    assert (message.status, message.header("content-type")) == (200, media)
    assert message.body.startswith(begins)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
def test_health_and_version_need_no_token(path: str) -> None:
    assert AsgiClient().request("GET", path, authorization="").status == 200


def test_verbose_health_lists_checks() -> None:
    message = AsgiClient().request("GET", "/readyz?verbose").body.decode()

    assert message.startswith("[+]ping ok\n")
    assert message.endswith("readyz check passed\n")


def test_the_version_has_the_format_of_kubernetes() -> None:
    version = AsgiClient().request("GET", "/version").json

    assert version["gitVersion"] == f"v{version['major']}.{version['minor']}.0+springtide"


@pytest.mark.parametrize(
    ("path", "body", "place", "expected"),
    [
        pytest.param(
            "authentication.k8s.io/v1/selfsubjectreviews",
            {},
            ("userInfo", "username"),
            "springtide-admin",
            id="self subject review",
        ),
        pytest.param(
            "authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}}, ("allowed",), True, id="access review"
        ),
        pytest.param(
            "authorization.k8s.io/v1/namespaces/x/localsubjectaccessreviews",
            {},
            ("allowed",),
            True,
            id="namespaced access review",
        ),
        pytest.param(
            "authorization.k8s.io/v1/selfsubjectrulesreviews",
            {},
            ("resourceRules", 0, "verbs"),
            ["*"],
            id="rules review",
        ),
        pytest.param(
            "authentication.k8s.io/v1/tokenreviews", {"spec": {"token": TOKEN}}, ("authenticated",), True, id="token"
        ),
        pytest.param(
            "authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}, ("user",), {}, id="unknown token"
        ),
    ],
)
def test_reviews_are_answered_and_not_stored(path: str, body: Any, place: tuple[Any, ...], expected: Any) -> None:
    client = AsgiClient()
    revision = client.server.revision

    got = client.request("POST", f"/apis/{path}", body)

    found = got.json["status"]
    for step in place:
        found = found[step]
    assert (got.status, found) == (201, expected)
    assert client.server.revision == revision


def test_a_token_authenticates_its_user() -> None:
    tokens = TokenAuthenticator()
    token = tokens.issue()

    user = tokens(token)
    assert user is not None
    assert user.name == "springtide-admin"
    assert [tokens(other) for other in ("", token[:-1], token + "x", "ü")] == [None] * 4
    assert tokens.issue() != token


def test_a_kubeconfig_names_one_cluster() -> None:
    config = yaml.safe_load(kubeconfig("https://127.0.0.1:1", b"pem", "secret"))

    assert config["current-context"] == "springtide"
    assert config["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:1",
        "certificate-authority-data": "cGVt",
    }
    assert config["users"][0]["user"] == {"token": "secret"}


@pytest.mark.parametrize("path", ["/version", "/api/v1/pods", "/api/v1/namespaces/shop/pods/gone", "/nowhere"])
def test_every_response_has_the_cluster_time(path: str) -> None:
    client = AsgiClient()
    for later in (0, 0, 1, 86_400, -3600):
        client.now += later
        dates = [value for name, value in client.request("GET", path).headers if name == "date"]
        assert [int(parsedate_to_datetime(date).timestamp()) for date in dates] == [client.now]
