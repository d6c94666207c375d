"""Groups of simulated nodes: Node objects in the cluster itself, which its simulated kubelets (or KWOK's) make ready.

The nodes are all the state there is, so a group is right after a restart at any moment. They are named after their
group, with numbers from 0 on; whoever makes the same node a second time is refused. A node belongs to the group that
its label names, and groups to the whole cluster, as nodes do. When the object that scales a group goes, the nodes stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType

import msgspec

from springtide.apis.core.node_record import NodeView
from springtide.apis.scheduled.node_group import SimulatedGroupId, read_group_id
from springtide.cluster.client import Client
from springtide.cluster.controller import Permission
from springtide.cluster.errors import AlreadyExists, NotFound
from springtide.cluster.resources import NODES, Key, Object
from springtide.providers.nodes import nodes_labelled
from springtide.providers.port import (
    GroupState,
    NodeGroup,
    Provider,
    ProviderError,
    check_bounds,
    cluster_errors_as_provider_errors,
    nodes_text,
    ready_text,
)

TYPE = "Simulated"
LABEL = "springtide.dev/node-group"
"""Names the group of a node."""
PERMISSIONS = (Permission(NODES, ("get", "list", "create", "delete")),)
"""What whoever offers simulated groups needs. It is much: a live cluster has machines of its own."""

_FAKE = MappingProxyType({"kwok.x-k8s.io/node": "fake"})
"""By this annotation KWOK knows nodes that it is to look after; our own kubelets look after all."""


@dataclass(frozen=True, slots=True)
class SimulatedMachine:
    """What simulated nodes are like."""

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
    """The largest group: as many nodes as Kubernetes supports in one cluster."""


_ORDINARY = SimulatedMachine()


class SimulatedProvider(Provider):
    """Makes and removes Node objects."""

    types = (TYPE,)

    def __init__(self, machine: SimulatedMachine = _ORDINARY) -> None:
        self._machine = machine

    def group(self, type_: str, id_: str, client: Client) -> NodeGroup:
        """Give a group by its name; it need not have nodes yet."""
        found = read_group_id(type_, id_)
        if not isinstance(found, SimulatedGroupId):
            raise ProviderError("InvalidId", f'"{id_}" is not the name of a simulated group', retryable=False)
        return SimulatedGroup(found.name, client, self._machine)


class SimulatedGroup(NodeGroup):
    """The nodes that have one label."""

    def __init__(self, name: str, client: Client, machine: SimulatedMachine) -> None:
        self.selector = f"{LABEL}={name}"
        self._name = name
        self._client = client
        self._machine = machine

    async def observe(self) -> GroupState:
        """Count the nodes; those that are there are wanted."""
        found = await self._nodes()
        staying = [node for node in found if not node.is_terminating]
        ready = sum(node.is_usable for node in staying)
        told = [ready_text(ready, len(staying))] if ready < len(staying) else []
        if len(staying) < len(found):
            told.append(f"{nodes_text(len(found) - len(staying))} on the way out")
        return GroupState(replicas=ready, wanted=len(staying), stable=not told, message="; ".join(told))

    async def resize(self, replicas: int, *, because: str) -> None:
        """Make the nodes that are missing, or remove those that are too many."""
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
        """Make nodes under the lowest numbers that are free; one whose name is taken may be ours all the same."""
        missing = replicas - len(staying)
        taken = {node.name for node in staying}
        for name in (f"{self._name}-{number}" for number in count()):
            if missing <= 0:
                return
            if name not in taken:
                missing -= await self._make(name, because) or await self._is_ours(name)

    async def _make(self, name: str, because: str) -> bool:
        try:
            with cluster_errors_as_provider_errors(f"making the node {name}"):
                await self._client.create(NODES, self._body(name), because=because)
        except AlreadyExists:
            return False
        return True

    async def _is_ours(self, name: str) -> bool:
        """Tell whether a node belongs to the group that was not among its nodes a moment ago."""
        try:
            node = msgspec.convert(await self._client.get(NODES, Key("", name)), NodeView)
        except NotFound:
            return False
        return (node.metadata.labels or {}).get(LABEL) == self._name and not node.is_terminating

    async def _remove(self, node: NodeView, because: str) -> None:
        with cluster_errors_as_provider_errors(f"removing the node {node.name}"), suppress(NotFound):
            # Whatever else has changed about the node meanwhile: this one is too many.
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
    """Choose the nodes to remove until so many are left: first those that are not ready, then the highest numbers."""
    in_order = sorted(staying, key=lambda node: (node.is_usable, -_number(node), node.name))
    return in_order[: max(len(staying) - replicas, 0)]


def _number(node: NodeView) -> int:
    """Give the number of a node; a node that somebody else has labelled may have none, and goes last."""
    number = node.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1
