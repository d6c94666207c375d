"""MachineDeployments of Cluster API, scaled through their scale subresource.

The newest version that the cluster serves is used: `spec.replicas` and the counts in the status are the same in all
versions.
"""

from __future__ import annotations

import re
from typing import Any

from springtide.apis.scheduled.node_group import MachineDeploymentId, read_group_id
from springtide.cluster.client import Client
from springtide.cluster.controller import Permission
from springtide.cluster.errors import NotFound
from springtide.cluster.kinds import CUSTOM_RESOURCE_DEFINITIONS
from springtide.cluster.resources import Key, Object, Resource
from springtide.providers.port import (
    GROUP_NOT_FOUND,
    GroupState,
    NodeGroup,
    Provider,
    ProviderError,
    cluster_errors_as_provider_errors,
    nodes_text,
    ready_text,
)

TYPE = "ClusterAPI"
_GROUP, _PLURAL, _KIND = "cluster.x-k8s.io", "machinedeployments", "MachineDeployment"
_DEFINITION = Key("", f"{_PLURAL}.{_GROUP}")
_ANY_VERSION = Resource(_GROUP, "v1beta2", _PLURAL, _KIND)
PERMISSIONS = (
    Permission(CUSTOM_RESOURCE_DEFINITIONS, ("get",)),
    Permission(_ANY_VERSION, ("get",)),
    Permission(_ANY_VERSION, ("patch",), subresource="scale"),
)

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STAGES = ("alpha", "beta", None)


class ClusterApiProvider(Provider):
    """Scales MachineDeployments."""

    types = (TYPE,)

    def __init__(self) -> None:
        self._resource: Resource | None = None

    def group(self, type_: str, id_: str, client: Client) -> NodeGroup:
        """Return the group of a MachineDeployment."""
        found = read_group_id(type_, id_)
        if not isinstance(found, MachineDeploymentId):
            raise ProviderError("InvalidId", f'"{id_}" is not NAMESPACE/NAME of a MachineDeployment', retryable=False)
        return MachineDeployment(Key(found.namespace, found.name), client, self)

    async def resource(self, client: Client) -> Resource:
        """Return the resource in the newest served version, which is looked up once."""
        if self._resource is None:
            try:
                with cluster_errors_as_provider_errors("looking for the versions of MachineDeployments"):
                    definition = await client.get(CUSTOM_RESOURCE_DEFINITIONS, _DEFINITION)
            except ProviderError as failure:
                if not isinstance(failure.__cause__, NotFound):
                    raise
                msg = "the cluster has no MachineDeployments: install Cluster API, or choose another type"
                raise ProviderError("ClusterApiMissing", msg, retryable=False) from failure
            self._resource = Resource(_GROUP, newest_served(definition), _PLURAL, _KIND)
        return self._resource

    def invalidate_version(self) -> None:
        """Look the version up again before the next request: it may no longer be served."""
        self._resource = None


class MachineDeployment(NodeGroup):
    """One MachineDeployment."""

    def __init__(self, key: Key, client: Client, provider: ClusterApiProvider) -> None:
        self._key = key
        self._client = client
        self._provider = provider

    async def observe(self) -> GroupState:
        """Read the MachineDeployment."""
        return state_of(await self._read(await self._provider.resource(self._client)))

    async def resize(self, replicas: int, *, because: str) -> None:
        """Set the number of replicas if it differs."""
        resource = await self._provider.resource(self._client)
        found = await self._read(resource)
        if _wanted(found) != replicas:
            with cluster_errors_as_provider_errors(f"scaling the MachineDeployment {self._key}"):
                await self._client.scale(resource, replicas, of=found, because=because)

    async def _read(self, resource: Resource) -> Object:
        try:
            with cluster_errors_as_provider_errors(f"reading the MachineDeployment {self._key}"):
                return await self._client.get(resource, self._key)
        except ProviderError as failure:
            if not isinstance(failure.__cause__, NotFound):
                raise
            self._provider.invalidate_version()
            raise ProviderError(
                GROUP_NOT_FOUND,
                f"there is no MachineDeployment {self._key}: create it, or correct spec.id",
                retryable=False,
            ) from failure


def newest_served(definition: Object) -> str:
    """Choose the served version of a CRD: stable before beta before alpha, then the higher number."""
    served: list[str] = [each["name"] for each in definition["spec"]["versions"] if each.get("served")]
    return max(served, key=_maturity)


def state_of(deployment: Object) -> GroupState:
    """Derive the state of a MachineDeployment from the counts that all versions have."""
    status: dict[str, Any] = deployment.get("status") or {}
    wanted, ready, there = _wanted(deployment), status.get("readyReplicas") or 0, status.get("replicas") or 0
    current = status.get("upToDateReplicas", status.get("updatedReplicas")) or 0
    generation = deployment["metadata"].get("generation") or 0
    message = ""
    if (status.get("observedGeneration") or 0) < generation:
        message = "Cluster API has not seen the last change yet"
    elif there > wanted:
        message = f"{nodes_text(there - wanted)} too many"
    elif ready != wanted:
        message = ready_text(ready, wanted)
    elif current < wanted:
        message = f"{nodes_text(wanted - current)} not yet replaced by a newer one"
    if message and (deployment.get("spec") or {}).get("paused"):
        message += "; the MachineDeployment is paused"
    return GroupState(replicas=ready, wanted=wanted, stable=not message, message=message)


def _wanted(deployment: Object) -> int:
    wanted = (deployment.get("spec") or {}).get("replicas")
    return 1 if wanted is None else int(wanted)


def _maturity(version: str) -> tuple[int, int, int]:
    found = _VERSION.fullmatch(version)
    if found is None:
        return -1, 0, 0
    return _STAGES.index(found[2]), int(found[1]), int(found[3] or 0)
