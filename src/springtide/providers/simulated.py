"""Groups of simulated nodes: Node objects in the cluster itself, which simulated kubelets (or KWOK) make ready.

The Node objects are the whole state, so a restart at any time is safe. Their names are that of the group plus a number
from 0 on, so that creating the same node twice fails. A label names the group of a node. Groups are not namespaced, as
nodes are not. When the ScalableNodeGroup is deleted, its nodes stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType

import msgspec

from springtide.apis.core.nodes import NodeView
from springtide.apis.scheduled.node_group import SimulatedGroupId, read_group_id
from springtide.cluster.client import Client
from springtide.cluster.controller import Permission
from springtide.cluster.errors import AlreadyExists, NotFound
from springtide.cluster.resources import NODES, Key, Object
from springtide.providers.port import (
    GroupState,
    NodeGroup,
    Provider,
    ProviderError,
    check_bounds,
    cluster_errors_as_provider_errors,
    nodes_labelled,
    nodes_text,
    ready_text,
)
from springtide.quantity import whole_number

TYPE = "Simulated"
LABEL = "springtide.dev/node-group"
"""The label that names the group of a node."""
PERMISSIONS = (Permission(NODES, ("get", "list", "create", "delete")),)
"""What a process with simulated groups needs; a live cluster has real machines, and does not need it."""

_FAKE = MappingProxyType({"kwok.x-k8s.io/node": "fake"})
"""The annotation by which KWOK selects the nodes that it manages; our simulated kubelets manage all nodes."""


@dataclass(frozen=True, slots=True)
class SimulatedMachine:
    """The capacity and the labels of simulated nodes."""

    capacity: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType(
            {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}
        )
    )
    labels: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType(
            {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "simulated",
            }
        )
    )
    most: int = 5_000
    """The largest group: the number of nodes that Kubernetes supports in one cluster."""


_DEFAULT_MACHINE = SimulatedMachine()


class SimulatedProvider(Provider):
    """Creates and deletes Node objects."""

    types = (TYPE,)

    def __init__(self, machine: SimulatedMachine = _DEFAULT_MACHINE) -> None:
        self._machine = machine

    def group(self, type_: str, id_: str, client: Client) -> NodeGroup:
        """Return a group by its name; it may have no nodes yet."""
        found = read_group_id(type_, id_)
        if not isinstance(found, SimulatedGroupId):
            raise ProviderError("InvalidId", f'"{id_}" is not the name of a simulated group', retryable=False)
        return SimulatedGroup(found.name, client, self._machine)


class SimulatedGroup(NodeGroup):
    """The nodes with the label of one group."""

    def __init__(self, name: str, client: Client, machine: SimulatedMachine) -> None:
        self.selector = f"{LABEL}={name}"
        self._name = name
        self._client = client
        self._machine = machine

    async def observe(self) -> GroupState:
        """Count the nodes; the desired number is that of the nodes that are not being deleted."""
        found = await self._nodes()
        staying = [node for node in found if not node.is_terminating]
        ready = sum(node.is_usable for node in staying)
        reasons = [ready_text(ready, len(staying))] if ready < len(staying) else []
        if len(staying) < len(found):
            reasons.append(f"{nodes_text(len(found) - len(staying))} being deleted")
        return GroupState(replicas=ready, wanted=len(staying), stable=not reasons, message="; ".join(reasons))

    async def resize(self, replicas: int, *, because: str) -> None:
        """Create the missing nodes, or delete the surplus ones."""
        check_bounds(replicas, least=0, most=self._machine.most, fix="a simulated group is never larger")
        staying = [node for node in await self._nodes() if not node.is_terminating]
        if len(staying) < replicas:
            await self._grow(staying, replicas, because)
        else:
            for node in nodes_to_remove(staying, replicas):
                await self._remove(node, because)

    async def _nodes(self) -> list[NodeView]:
        with cluster_errors_as_provider_errors(f"reading the nodes of the simulated group {self._name}"):
            return await nodes_labelled(self._client, self.selector)

    async def _grow(self, staying: list[NodeView], replicas: int, because: str) -> None:
        """Create nodes with the lowest free numbers; an existing node may belong to the group after all."""
        missing = replicas - len(staying)
        taken = {node.name for node in staying}
        for name in (f"{self._name}-{number}" for number in count()):
            if missing <= 0:
                return
            if name not in taken:
                missing -= await self._create(name, because) or await self._is_member(name)

    async def _create(self, name: str, because: str) -> bool:
        try:
            with cluster_errors_as_provider_errors(f"creating the node {name}"):
                await self._client.create(NODES, self._body(name), because=because)
        except AlreadyExists:
            return False
        return True

    async def _is_member(self, name: str) -> bool:
        """Return whether a node that the earlier list did not contain belongs to the group."""
        try:
            node = msgspec.convert(await self._client.get(NODES, Key("", name)), NodeView)
        except NotFound:
            return False
        return (node.metadata.labels or {}).get(LABEL) == self._name and not node.is_terminating

    async def _remove(self, node: NodeView, because: str) -> None:
        with cluster_errors_as_provider_errors(f"deleting the node {node.name}"), suppress(NotFound):
            # Without a resourceVersion precondition: the node is surplus whatever else has changed about it.
            await self._client.delete(NODES, of=node, because=because, exact=False)

    def _body(self, name: str) -> Object:
        machine = self._machine
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {**machine.labels, "kubernetes.io/hostname": name, LABEL: self._name},
                "annotations": dict(_FAKE),
            },
            "spec": {"providerID": f"simulated://{self._name}/{name}"},
            "status": {"capacity": dict(machine.capacity), "allocatable": dict(machine.capacity)},
        }


def nodes_to_remove(staying: list[NodeView], replicas: int) -> list[NodeView]:
    """Choose the nodes to delete until `replicas` are left: those that are not ready, then the highest numbers."""
    in_order = sorted(staying, key=lambda node: (node.is_usable, -_number(node), node.name))
    return in_order[: max(len(staying) - replicas, 0)]


def _number(node: NodeView) -> int:
    """Return the number in the name of a node; -1 for a node that a user has labelled, which is deleted last."""
    number = whole_number(node.name.rpartition("-")[2])
    return -1 if number is None else number
