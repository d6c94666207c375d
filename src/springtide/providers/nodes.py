"""The nodes of a group in the cluster, found by a label."""

from __future__ import annotations

from springtide.apis.core.nodes import NodeView
from springtide.cluster.client import Client
from springtide.cluster.resources import NODES, Selection


async def nodes_labelled(client: Client, selector: str) -> list[NodeView]:
    """List the nodes that a label selector selects from the API server, not from a cache; ordered by name."""
    return await client.list(Selection(NODES, labels=selector, view=NodeView))
