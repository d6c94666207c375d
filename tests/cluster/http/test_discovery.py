"""Discovery: aggregated in two responses, or group by group."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.cluster.http.scripted_server import Asked, Step, connected, playing, raw, status

from springtide.cluster.errors import ServerError
from springtide.cluster.http.discovery import AGGREGATED, ServerDiscovery, discover
from springtide.cluster.resources import Resource

POD = Resource("", "v1", "pods", "Pod")
DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
OLD_DEPLOYMENT = Resource("apps", "v1beta1", "deployments", "Deployment")
POOL = Resource("karpenter.sh", "v1", "nodepools", "NodePool", namespaced=False)
IMPOSTOR = Resource("other.io", "v1", "deployments", "Deployment")
EVERYTHING = (POD, DEPLOYMENT, OLD_DEPLOYMENT, POOL, IMPOSTOR)
SHORT = {"pods": ["po"], "deployments": ["deploy"], "nodepools": []}


def group_by_group() -> dict[str, Any]:
    """Return the answers of an old server, with subresources among the resources."""
    lists: dict[str, Any] = {}
    for resource in EVERYTHING:
        known = {"kind": resource.kind, "namespaced": resource.namespaced, "verbs": ["get", "list"]}
        lists[f"/{'apis' if resource.group else 'api'}/{resource.api_version}"] = {
            "kind": "APIResourceList",
            "groupVersion": resource.api_version,
            "resources": [
                known | {"name": resource.plural, "singularName": "", "shortNames": SHORT[resource.plural]},
                known | {"name": f"{resource.plural}/status", "singularName": ""},
            ],
        }
    groups = [
        {
            "name": "apps",
            "versions": [{"groupVersion": "apps/v1beta1"}, {"groupVersion": "apps/v1"}],
            "preferredVersion": {"groupVersion": "apps/v1"},
        },
        {"name": "karpenter.sh", "versions": [{"groupVersion": "karpenter.sh/v1"}]},
        {"name": "other.io", "versions": [{"groupVersion": "other.io/v1"}]},
    ]
    return lists | {
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "groups": groups},
    }


def at_once() -> dict[str, Any]:
    """Return the answers of a new server."""

    def listed(*groups: str) -> dict[str, Any]:
        items = []
        for group in groups:
            versions = [
                {
                    "version": resource.version,
                    "resources": [
                        {
                            "resource": resource.plural,
                            "responseKind": {"group": "", "version": "", "kind": resource.kind},
                            "scope": "Namespaced" if resource.namespaced else "Cluster",
                            "singularResource": resource.kind.lower(),
                            "verbs": ["get", "list"],
                            "shortNames": SHORT[resource.plural],
                            "subresources": [{"subresource": "status", "verbs": ["get"]}],
                        }
                    ],
                }
                for resource in EVERYTHING
                if resource.group == group
            ]
            items.append({"metadata": {"name": group} if group else {}, "versions": versions})
        return {"kind": "APIGroupDiscoveryList", "items": items}

    return {"/api": listed(""), "/apis": listed("apps", "karpenter.sh", "other.io")}


def serves(answers: dict[str, Any]) -> Step:
    async def step(asked: Asked, writer: asyncio.StreamWriter) -> None:
        known = {"/version": {"gitVersion": "v1.36.0"}} | answers
        found = known.get(asked.path)
        body = json.dumps(found if found is not None else status(404, "NotFound")).encode()
        writer.write(raw(200 if found is not None else 404, body))

    return step


async def discovered(answers: dict[str, Any]) -> tuple[ServerDiscovery, list[Asked]]:
    async with playing(serves(answers)) as server, connected(server) as transport:
        return await discover(transport), server.asked


@pytest.mark.parametrize(
    "answers", [pytest.param(at_once(), id="at once"), pytest.param(group_by_group(), id="group by group")]
)
def test_everything_is_found_in_the_servers_order(answers: dict[str, Any]) -> None:
    found, asked = asyncio.run(discovered(answers))

    assert tuple(served.resource for served in found.served) == EVERYTHING
    assert found.server_version == "v1.36.0"
    assert all(served.verbs == {"get", "list"} for served in found.served)
    assert AGGREGATED in asked[1].headers["accept"]
    assert found.resource_of("apps/v1beta1", "Deployment") == OLD_DEPLOYMENT
    assert found.resource_of("apps/v2", "Deployment") is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("po", POD),
        ("pod", POD),
        ("pods", POD),
        ("Pod", POD),
        ("deploy", DEPLOYMENT),
        ("deployments.apps", DEPLOYMENT),
        ("deployment.v1beta1.apps", OLD_DEPLOYMENT),
        ("deploy.other.io", IMPOSTOR),
        ("nodepools.karpenter.sh", POOL),
        ("nodepool", POOL),
        ("deployments.nowhere", None),
        ("nothing", None),
        ("", None),
    ],
)
def test_a_resource_is_found_by_the_names_that_people_use(name: str, expected: Resource | None) -> None:
    found, _ = asyncio.run(discovered(at_once()))

    assert found.named(name) == expected


def test_a_group_whose_server_is_down_is_left_out() -> None:
    answers = group_by_group()
    del answers["/apis/other.io/v1"]

    found, _ = asyncio.run(discovered(answers))

    assert tuple(served.resource for served in found.served) == EVERYTHING[:-1]


@pytest.mark.parametrize("path", ["/version", "/api"])
def test_a_malformed_response_is_a_server_error(path: str) -> None:
    with pytest.raises(ServerError, match=f"the server's answer at {path} cannot be read"):
        asyncio.run(discovered(at_once() | {path: "what?"}))
