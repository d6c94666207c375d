"""The caches of all pods and of all nodes: one of each in a process, shared by every controller that names it."""

from __future__ import annotations

from springtide.apis.core.nodes import NodeView, node_record
from springtide.apis.core.pod_record import PodView, pod_record
from springtide.cluster.controller import Cached, Permission
from springtide.cluster.resources import NODES, PODS, Selection

ALL_NODES = Cached(Selection(NODES, view=NodeView), record=node_record)
ALL_PODS = Cached(Selection(PODS, view=PodView), record=pod_record)

READ_PERMISSIONS = tuple(Permission(resource, ("get", "list", "watch")) for resource in (NODES, PODS))
"""What a controller needs that reads them."""
