"""MachineDeployments, with a simulation of Cluster API whose machines follow the desired number.

MachineDeployments: the contract, versions, and when one has come to rest.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.providers.clusters import USER, ProviderEnvironment, run
from tests.providers.contract import WHY, ProviderContract

from springtide.apiserver.server import ApiServer
from springtide.cluster.errors import Forbidden, RequestTimeout, ServerError
from springtide.cluster.kinds import CUSTOM_RESOURCE_DEFINITIONS
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Patch
from springtide.providers import Provider, ProviderError
from springtide.providers.cluster_api import ClusterApiProvider, newest_served, state_of

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


def definition(*versions: str, unserved: tuple[str, ...] = ()) -> Object:
    """Cluster API's definition, in these versions, the first of which is stored."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "machinedeployments.cluster.x-k8s.io"},
        "spec": {
            "group": "cluster.x-k8s.io",
            "scope": "Namespaced",
            "names": {"plural": "machinedeployments", "kind": "MachineDeployment"},
            "versions": [
                {
                    "name": version,
                    "served": version not in unserved,
                    "storage": version == versions[0],
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {**anything, "properties": {"replicas": {"type": "integer"}}},
                                "status": {**anything, "properties": {"replicas": {"type": "integer"}}},
                            },
                        }
                    },
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                    },
                }
                for version in versions
            ],
        },
    }


class Machines:
    """A cluster with one MachineDeployment."""

    def __init__(self, server: ApiServer, version: str, key: Key) -> None:
        self.resource = Resource("cluster.x-k8s.io", version, "machinedeployments", "MachineDeployment")
        self._server = server
        self._key = key

    def create(self, replicas: int) -> None:
        """Have it."""
        self._server.create(NAMESPACES, {"metadata": {"name": self._key.namespace}}, USER)
        body = {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": {"name": self._key.name},
            "spec": {"replicas": replicas},
        }
        self._server.create(self.resource, body, USER, namespace=self._key.namespace)

    def get(self) -> Object:
        """Read it."""
        return self._server.get(self.resource, self._key)

    def report(self, **status: Any) -> None:
        """Let Cluster API write its status: what is not said is as it should be."""
        item = self.get()
        wanted = item["spec"]["replicas"]
        whole = {
            "observedGeneration": item["metadata"]["generation"],
            "replicas": wanted,
            "readyReplicas": wanted,
            "upToDateReplicas": wanted,
        }
        patch = Patch.merge({"status": whole | status})
        self._server.patch(self.resource, self._key, patch, USER, subresource="status")


def install(server: ApiServer, *versions: str) -> None:
    """Teach a server MachineDeployments."""
    server.create(CUSTOM_RESOURCE_DEFINITIONS, definition(*versions), USER)


class ClusterApiEnvironment(ProviderEnvironment):
    """A MachineDeployment."""

    type = "ClusterAPI"
    id = "infra/workers"
    missing_id = "infra/missing"

    def __init__(self, *versions: str) -> None:
        super().__init__()
        install(self.server, *versions)
        self.machines = Machines(self.server, versions[0], Key("infra", "workers"))

    def make_provider(self) -> Provider:
        return ClusterApiProvider()

    def begin(self, replicas: int) -> None:
        self.machines.create(replicas)
        self.machines.report()

    def settle(self) -> None:
        self.machines.report()

    def break_one(self) -> None:
        self.machines.report(readyReplicas=self.machines.get()["spec"]["replicas"] - 1)

    def orders(self) -> int:
        return self.line.writes

    def refuse_reading(self, *, for_good: bool) -> None:
        self.line.fail("get", Forbidden("not yours") if for_good else ServerError("out of order"))

    def refuse_resizing(self, *, for_good: bool) -> None:
        self.line.failing.pop("patch", None)
        self.line.fail("patch", Forbidden("not yours") if for_good else ServerError("out of order"))

    def lose_answer(self) -> None:
        self.line.failing.pop("patch", None)
        self.line.fail("patch", RequestTimeout("nothing came back"), after=True)


@pytest.fixture(params=["v1beta1", "v1beta2"])
def env(request: pytest.FixtureRequest) -> ProviderEnvironment:
    return ClusterApiEnvironment(request.param)


class TestClusterApi(ProviderContract):
    """The contract."""


@pytest.mark.parametrize(
    ("versions", "unserved", "expected"),
    [
        pytest.param(["v1beta1"], (), "v1beta1", id="only-one"),
        pytest.param(["v1beta1", "v1beta2"], (), "v1beta2", id="the-higher"),
        pytest.param(["v1beta10", "v1beta9"], (), "v1beta10", id="numbers-not-letters"),
        pytest.param(["v1beta2", "v1", "v2alpha1"], (), "v1", id="stable-first"),
        pytest.param(["v1alpha4", "v1beta1"], (), "v1beta1", id="beta-before-alpha"),
        pytest.param(["v1beta1", "v1beta2"], ("v1beta2",), "v1beta1", id="not-served"),
        pytest.param(["strange", "v1alpha3"], (), "v1alpha3", id="a-name-that-is-no-version"),
    ],
)
def test_the_version_that_is_spoken(versions: list[str], unserved: tuple[str, ...], expected: str) -> None:
    """The most mature one that is served."""
    assert expected == newest_served(definition(*versions, unserved=unserved))


def test_the_version_is_asked_for_once() -> None:
    """It does not change from one look to the next."""
    env = ClusterApiEnvironment("v1beta2")
    env.begin(1)
    asked: list[str] = []
    get = env.line.inner.get

    async def counting(resource: Any, key: Key, *, subresource: str = "") -> Any:
        asked.append(resource.kind)
        return await get(resource, key, subresource=subresource)

    env.line.inner.get = counting  # type: ignore[method-assign]
    run(env.group().observe())
    run(env.group().observe())

    assert asked == ["CustomResourceDefinition", "MachineDeployment", "MachineDeployment"]


def test_a_version_that_is_served_no_more_is_given_up() -> None:
    """After an upgrade of Cluster API the next look finds the new one."""
    env = ClusterApiEnvironment("v1beta1", "v1beta2")
    env.begin(2)
    run(env.group().observe())
    versions = definition("v1beta1", "v1beta2", unserved=("v1beta2",))["spec"]["versions"]
    key = Key("", "machinedeployments.cluster.x-k8s.io")
    env.server.patch(CUSTOM_RESOURCE_DEFINITIONS, key, Patch.merge({"spec": {"versions": versions}}), USER)

    with pytest.raises(ProviderError):
        run(env.group().observe())

    assert run(env.group().observe()).wanted == 2


def test_a_cluster_without_cluster_api() -> None:
    """The words say what is missing."""
    env = ClusterApiEnvironment("v1beta1")
    env.server.delete(CUSTOM_RESOURCE_DEFINITIONS, Key("", "machinedeployments.cluster.x-k8s.io"), USER)

    with pytest.raises(ProviderError, match="install Cluster API") as failed:
        run(env.group().observe())

    assert (failed.value.code, failed.value.retryable) == ("ClusterApiMissing", False)


def test_an_order_goes_through_the_scale_subresource() -> None:
    """Only the number is written, so no rights on the whole object are needed."""
    env = ClusterApiEnvironment("v1beta2")
    env.begin(1)
    verbs: list[str] = []
    env.server.observers.append(lambda written: verbs.append(written.verb))

    run(env.group().resize(4, because=WHY))

    assert verbs == ["patch/scale"]
    assert env.machines.get()["spec"] == {"replicas": 4}


def deployment(wanted: int | None, generation: int = 1, *, paused: bool = False, **status: int) -> dict[str, Any]:
    spec: dict[str, Any] = {"paused": paused} if wanted is None else {"replicas": wanted, "paused": paused}
    return {"metadata": {"generation": generation}, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param(
            deployment(2, observedGeneration=1, replicas=2, readyReplicas=2, updatedReplicas=2), "", id="v1beta1"
        ),
        pytest.param(
            deployment(2, observedGeneration=1, replicas=2, readyReplicas=2, upToDateReplicas=2), "", id="v1beta2"
        ),
        pytest.param(
            deployment(None, observedGeneration=1, replicas=1, readyReplicas=1, updatedReplicas=1),
            "",
            id="one-if-not-said",
        ),
        pytest.param(deployment(0, observedGeneration=1), "", id="nothing"),
        pytest.param(
            deployment(2, 5, observedGeneration=4, replicas=2, readyReplicas=2, updatedReplicas=2),
            "Cluster API has not seen the last change yet",
            id="not-seen",
        ),
        pytest.param(deployment(2), "Cluster API has not seen the last change yet", id="no-status"),
        pytest.param(
            deployment(2, observedGeneration=1, replicas=2, readyReplicas=1, updatedReplicas=2),
            "1 of 2 nodes are ready",
            id="not-ready",
        ),
        pytest.param(
            deployment(2, observedGeneration=1, replicas=3, readyReplicas=2, updatedReplicas=2),
            "1 node too many",
            id="one-is-going",
        ),
        pytest.param(
            deployment(2, observedGeneration=1, replicas=2, readyReplicas=2, updatedReplicas=1),
            "1 node not yet replaced by a newer one",
            id="rollout",
        ),
        pytest.param(
            deployment(2, observedGeneration=1, replicas=1, readyReplicas=1, updatedReplicas=1, paused=True),
            "1 of 2 nodes are ready; the MachineDeployment is paused",
            id="paused",
        ),
    ],
)
def test_when_it_has_come_to_rest(item: dict[str, Any], expected: str) -> None:
    """It is stable when there is nothing to say."""
    state = state_of(item)

    assert (state.message, state.stable) == (expected, not expected)
