"""ScalableNodeGroups: groups of nodes at providers, scaled as workloads are."""

from springtide.controllers.scalable_node_group.controller import SCALABLE_NODE_GROUPS, ScalableNodeGroupController

__all__ = ["SCALABLE_NODE_GROUPS", "ScalableNodeGroupController"]
