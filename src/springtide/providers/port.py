"""The interface of node providers, with the errors and messages that all of them share.

One suite of tests, `tests/providers/contract.py`, runs against every implementation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from springtide.apis.core.nodes import NodeView
from springtide.cluster.client import Client
from springtide.cluster.errors import BadRequest, Forbidden, Invalid, MethodNotAllowed, NotFound
from springtide.cluster.resources import NODES, Selection

GROUP_NOT_FOUND = "GroupNotFound"
"""The code of all providers for a group that does not exist."""


class ProviderError(Exception):
    """A request that a provider refused, or did not answer."""

    def __init__(self, code: str, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.code = code
        """A CamelCase word, for conditions."""
        self.retryable = retryable
        """Whether the same request may succeed later, without a change by a user."""


@dataclass(frozen=True, slots=True)
class GroupState:
    """The observed state of a group."""

    replicas: int
    """The number of ready nodes."""
    wanted: int
    """The desired number of nodes at the provider."""
    stable: bool
    """Whether the provider is not creating, repairing or deleting nodes."""
    message: str = ""
    """Why the group is not stable."""


class NodeGroup(ABC):
    """One group of nodes.

    Groups that are objects of the cluster may also raise a retriable `ClusterError`, which controllers retry anyway.
    A write that the client withholds raises `NotSent`.
    """

    selector: str = ""
    """The label selector of the group's nodes in the cluster; empty: they have no common label."""

    @abstractmethod
    async def observe(self) -> GroupState:
        """Read the state of the group; raises `ProviderError`."""

    @abstractmethod
    async def resize(self, replicas: int, *, because: str) -> None:
        """Request a number of nodes; returns when the provider has accepted it. Raises `ProviderError`.

        The call is idempotent: one that failed, or whose outcome is unknown, is repeated, and never leads to more nodes
        than requested.
        """


class Provider(ABC):
    """Gives access to the node groups of one provider."""

    types: ClassVar[tuple[str, ...]]
    """The values of `spec.type` of ScalableNodeGroups that it serves."""

    @abstractmethod
    def group(self, type_: str, id_: str, client: Client) -> NodeGroup:
        """Return a group by its id; raises `ProviderError` for an invalid id.

        Writes to the cluster go through the client, which enforces leadership and mode, and sets the field manager.
        """


class Providers:
    """The providers of a process, by the types that they serve."""

    def __init__(self, providers: Iterable[Provider]) -> None:
        self._by_type = {type_: provider for provider in providers for type_ in provider.types}

    def of(self, type_: str) -> Provider:
        """Return the provider of a type; raises `ProviderError` if this process has none."""
        found = self._by_type.get(type_)
        if found is None:
            known = ", ".join(self._by_type) or "none"
            msg = f"this process has no provider of {type_}; it has {known}"
            raise ProviderError("ProviderMissing", msg, retryable=False)
        return found


def check_bounds(replicas: int, *, least: int, most: int, fix: str) -> None:
    """Refuse a number of nodes outside the bounds of a group; `fix` says how to change the bounds."""
    if replicas > most:
        msg = f"cannot resize to {nodes_text(replicas)}, the group may have {most} at most: {fix}"
        raise ProviderError("AboveMaximum", msg, retryable=False)
    if replicas < least:
        msg = f"cannot resize to {nodes_text(replicas)}, the group must have {least} at least: {fix}"
        raise ProviderError("BelowMinimum", msg, retryable=False)


@contextmanager
def cluster_errors_as_provider_errors(doing: str) -> Iterator[None]:
    """Turn errors of the API server that a retry would not fix into a `ProviderError`; others are not changed."""
    try:
        yield
    except (BadRequest, Forbidden, Invalid, MethodNotAllowed, NotFound) as failure:
        raise ProviderError(type(failure).__name__, f"{doing}: {failure}", retryable=False) from failure


async def nodes_labelled(client: Client, selector: str) -> list[NodeView]:
    """List the nodes that a label selector selects from the API server, not from a cache; ordered by name."""
    return await client.list(Selection(NODES, labels=selector, view=NodeView))


def nodes_text(count: int) -> str:
    """Format a number of nodes."""
    return f"{count} node" if count == 1 else f"{count} nodes"


def ready_text(ready: int, wanted: int) -> str:
    """Format how many of the desired nodes are ready."""
    return f"{ready} of {nodes_text(wanted)} {'is' if wanted == 1 else 'are'} ready"
