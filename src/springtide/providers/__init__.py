"""Where nodes come from: groups of nodes at a provider, which can be looked at and resized."""

from springtide.providers.port import GROUP_NOT_FOUND, GroupState, NodeGroup, Provider, ProviderError, Providers

__all__ = ["GROUP_NOT_FOUND", "GroupState", "NodeGroup", "Provider", "ProviderError", "Providers"]
