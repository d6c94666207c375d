"""ScalableNodeGroups: groups of nodes at providers, scaled as workloads are."""

from springtide.controllers.scalable_node_group.controller import ScalableNodeGroupController
from springtide.controllers.scalable_node_group.requests import SCALABLE_NODE_GROUPS

__all__ = ["SCALABLE_NODE_GROUPS", "ScalableNodeGroupController"]
