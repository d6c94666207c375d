"""The nodes of a group in the cluster, found by a label, and whether pods can use them."""

from __future__ import annotations

from msgspec import Struct

from springtide.cluster.client import Client
from springtide.cluster.resources import Resource, Selection

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


class _Metadata(Struct, frozen=True, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class _Spec(Struct, frozen=True):
    unschedulable: bool = False


class _Condition(Struct, frozen=True):
    type: str
    status: str


class _Status(Struct, frozen=True):
    conditions: tuple[_Condition, ...] | None = None


class GroupNode(Struct, frozen=True):
    """A node, as far as a group counts it."""

    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.metadata.name

    @property
    def going(self) -> bool:
        """Whether somebody has asked it to go."""
        return self.metadata.deletion_timestamp is not None

    @property
    def ready(self) -> bool:
        """Whether pods can use it: it is ready, takes new ones, and stays."""
        reports = any(one.type == "Ready" and one.status == "True" for one in self.status.conditions or ())
        return reports and not self.spec.unschedulable and not self.going


async def nodes_labelled(client: Client, selector: str) -> list[GroupNode]:
    """Read the nodes that a selector of labels finds, from the server itself, in the order of their names."""
    return await client.list(Selection(NODES, labels=selector, view=GroupNode))
