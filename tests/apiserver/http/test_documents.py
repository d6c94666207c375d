"""What clients read before they do anything: discovery, OpenAPI, versions, health, and who they are.

Answers bear the time of the cluster's clock, whatever they answer.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Any

import pytest
import yaml
from tests.apiserver.http.asgi_client import BEE, CRDS, TOKEN, Asker

from springtide.apiserver.http import TokenAuthenticator, kubeconfig
from springtide.apiserver.http.discovery import newest_first

_WHOLE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def test_every_group_and_version_that_is_named_is_served() -> None:
    asker = Asker(crds=True)

    groups = asker.ask("GET", "/apis").json["groups"]
    for group in groups:
        assert asker.ask("GET", f"/apis/{group['name']}").json["versions"] == group["versions"]
        for version in group["versions"]:
            listed = asker.ask("GET", f"/apis/{version['groupVersion']}").json
            assert (listed["kind"], listed["groupVersion"]) == ("APIResourceList", version["groupVersion"])
            assert listed["resources"]


def test_both_forms_of_discovery_tell_the_same() -> None:
    asker = Asker(crds=True)

    for root in ("/api", "/apis"):
        for group in asker.ask("GET", root, accept=_WHOLE).json["items"]:
            for version in group["versions"]:
                name = group["metadata"].get("name")
                path = f"/apis/{name}/{version['version']}" if name else f"/api/{version['version']}"
                apart = {each["name"]: each["verbs"] for each in asker.ask("GET", path).json["resources"]}
                assert _flat(version["resources"]) == apart


def _flat(resources: list[Any]) -> dict[str, list[str]]:
    found = {}
    for each in resources:
        found[each["resource"]] = each["verbs"]
        for part in each.get("subresources", ()):
            found[f"{each['resource']}/{part['subresource']}"] = part["verbs"]
    return found


def test_discovery_changes_with_a_definition_and_says_so_in_its_tag() -> None:
    asker = Asker()
    before = asker.ask("GET", "/apis", accept=_WHOLE)
    assert asker.ask("GET", "/apis", accept=_WHOLE, if_none_match=before.header("etag")).status == 304

    asker.ask("POST", CRDS, BEE)
    after = asker.ask("GET", "/apis", accept=_WHOLE, if_none_match=before.header("etag"))

    assert after.status == 200
    (group,) = [each for each in after.json["items"] if each["metadata"]["name"] == "example.com"]
    (bees,) = group["versions"][0]["resources"]
    assert (bees["resource"], bees["shortNames"], bees["categories"]) == ("bees", ["b"], ["all"])


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        pytest.param(f"{_WHOLE},application/json", "APIGroupDiscoveryList", id="new clients"),
        pytest.param("application/json", "APIGroupList", id="old clients"),
        pytest.param(f"application/json,{_WHOLE}", "APIGroupList", id="the first choice counts"),
        pytest.param(_WHOLE.replace("v=v2", "v=v9"), "APIGroupList", id="a version of the future"),
    ],
)
def test_the_form_of_discovery_is_the_clients_choice(accept: str, form: str) -> None:
    assert Asker().ask("GET", "/apis", accept=accept).json["kind"] == form


def test_versions_are_ordered_by_preference() -> None:
    mixed = {"v1", "v2", "v10", "v1beta1", "v2beta1", "v1alpha1", "v11alpha2", "foo1", "bar"}

    assert newest_first(mixed) == ["v10", "v2", "v1", "v2beta1", "v1beta1", "v11alpha2", "v1alpha1", "bar", "foo1"]


def test_every_document_is_found_by_the_index_and_is_complete() -> None:
    asker = Asker(crds=True)

    for place, entry in asker.ask("GET", "/openapi/v3").json["paths"].items():
        document = asker.ask("GET", entry["serverRelativeURL"])
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


def test_a_document_is_named_anew_when_its_definition_changes() -> None:
    asker = Asker()
    asker.ask("POST", CRDS, BEE)

    def url() -> str:
        found: str = asker.ask("GET", "/openapi/v3").json["paths"]["apis/example.com/v1"]["serverRelativeURL"]
        return found

    first = url()
    schema = asker.ask("GET", first).json["components"]["schemas"]["com.example.v1.Bee"]
    assert schema["description"] == "An insect."
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "example.com", "version": "v1", "kind": "Bee"}]
    change = [{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/description", "value": "A friend."}]
    asker.ask("PATCH", f"{CRDS}/bees.example.com", change, content_type="application/json-patch+json")
    assert url() != first
    moved = asker.ask("GET", first)
    assert (moved.status, moved.header("location")) == (301, url())
    assert asker.ask("GET", url()).json["components"]["schemas"]["com.example.v1.Bee"]["description"] == "A friend."


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
def test_the_former_document_describes_nothing(accept: str, media: str, begins: bytes) -> None:
    """kubectl reads it for kinds that it finds nowhere else, and then says that there is no such kind."""
    told = Asker().ask("GET", "/openapi/v2", accept=accept)

    assert (told.status, told.header("content-type")) == (200, media)
    assert told.body.startswith(begins)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
def test_health_and_version_need_no_token(path: str) -> None:
    assert Asker().ask("GET", path, authorization="").status == 200


def test_health_is_told_in_detail_to_those_who_ask() -> None:
    told = Asker().ask("GET", "/readyz?verbose").body.decode()

    assert told.startswith("[+]ping ok\n")
    assert told.endswith("readyz check passed\n")


def test_the_version_is_one_that_clients_can_read() -> None:
    version = Asker().ask("GET", "/version").json

    assert version["gitVersion"] == f"v{version['major']}.{version['minor']}.0+springtide"


@pytest.mark.parametrize(
    ("path", "body", "place", "expected"),
    [
        pytest.param(
            "authentication.k8s.io/v1/selfsubjectreviews",
            {},
            ("userInfo", "username"),
            "springtide-admin",
            id="who am i",
        ),
        pytest.param("authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}}, ("allowed",), True, id="may i"),
        pytest.param(
            "authorization.k8s.io/v1/namespaces/x/localsubjectaccessreviews", {}, ("allowed",), True, id="here"
        ),
        pytest.param(
            "authorization.k8s.io/v1/selfsubjectrulesreviews", {}, ("resourceRules", 0, "verbs"), ["*"], id="what may i"
        ),
        pytest.param(
            "authentication.k8s.io/v1/tokenreviews", {"spec": {"token": TOKEN}}, ("authenticated",), True, id="token"
        ),
        pytest.param(
            "authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}, ("user",), {}, id="another token"
        ),
    ],
)
def test_reviews_are_answered_and_not_stored(path: str, body: Any, place: tuple[Any, ...], expected: Any) -> None:
    asker = Asker()
    revision = asker.server.revision

    got = asker.ask("POST", f"/apis/{path}", body)

    found = got.json["status"]
    for step in place:
        found = found[step]
    assert (got.status, found) == (201, expected)
    assert asker.server.revision == revision


def test_a_token_belongs_to_whom_it_was_issued() -> None:
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
def test_every_answer_bears_the_clusters_time(path: str) -> None:
    asker = Asker()
    for later in (0, 0, 1, 86_400, -3600):
        asker.now += later
        dates = [value for name, value in asker.ask("GET", path).headers if name == "date"]
        assert [int(parsedate_to_datetime(date).timestamp()) for date in dates] == [asker.now]
