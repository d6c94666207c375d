"""Node providers: groups of nodes that can be observed and resized."""

from springtide.providers.port import GROUP_NOT_FOUND, GroupState, NodeGroup, Provider, ProviderError, Providers

__all__ = ["GROUP_NOT_FOUND", "GroupState", "NodeGroup", "Provider", "ProviderError", "Providers"]
