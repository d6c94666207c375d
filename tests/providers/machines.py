"""MachineDeployments, and somebody who plays Cluster API: machines that follow what is wanted."""

from __future__ import annotations

from typing import Any

from tests.providers.bench import USER

from springtide.cluster.kinds import CUSTOM_RESOURCE_DEFINITIONS
from springtide.cluster.port import Patch
from springtide.cluster.resources import Key, Object, Resource
from springtide.simulator.api.server import ApiServer

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
