"""Words that the sentences of all providers share.

The port of providers: one contract, which one suite of tests holds all of them to.

The bounds that a provider sets to a group: asking for more or less is refused before anybody is asked.

What the cluster refuses for good, as an error of the provider whose groups live in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from springtide.cluster.client import Client
from springtide.cluster.errors import BadRequest, Forbidden, Invalid, MethodNotAllowed, NotFound


def nodes_text(count: int) -> str:
    """Write a number of nodes."""
    return f"{count} node" if count == 1 else f"{count} nodes"


def ready_text(ready: int, wanted: int) -> str:
    """Write how many nodes of those that are wanted are ready."""
    return f"{ready} of {nodes_text(wanted)} {'is' if wanted == 1 else 'are'} ready"


GROUP_NOT_FOUND = "GroupNotFound"
"""The code of every provider for a group that is not there."""


class ProviderError(Exception):
    """What a provider answered instead of doing what it was asked for."""

    def __init__(self, code: str, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.code = code
        """In one CamelCase word, for conditions."""
        self.retryable = retryable
        """Whether the same request may succeed later, with nobody changing anything."""


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group of nodes as it is."""

    replicas: int
    """Nodes that are there and ready."""
    wanted: int
    """Nodes that the provider is working towards."""
    stable: bool
    """Whether the provider has come to rest: nothing is being made, mended or taken away."""
    message: str = ""
    """What it is busy with, where it is not stable."""


class NodeGroup(ABC):
    """One group of nodes.

    Groups of the cluster itself may also raise a `ClusterError` that is worth another try: it is no answer of a
    provider, and whoever runs controllers tries those again anyway. What the client holds back raises `NotSent`.
    """

    selector: str = ""
    """The labels of the group's nodes in the cluster; empty where they have none in common."""

    @abstractmethod
    async def observe(self) -> GroupState:
        """Look at the group; raises `ProviderError`."""

    @abstractmethod
    async def resize(self, replicas: int, *, because: str) -> None:
        """Ask for a number of nodes; returns when the provider has taken the order. Raises `ProviderError`.

        Asking for what is already wanted changes nothing. A call that failed, or of which nobody knows the outcome, is
        made again as it is: it never leads to more nodes than it says.
        """


class Provider(ABC):
    """Somebody who has groups of nodes."""

    types: ClassVar[tuple[str, ...]]
    """The values of `spec.type` of ScalableNodeGroups that are his."""

    @abstractmethod
    def group(self, type_: str, id_: str, client: Client) -> NodeGroup:
        """Give a group by its id; raises `ProviderError` where that is none of his.

        What is written to the cluster goes through the client: under its leadership, its mode and its name.
        """


class Providers:
    """The providers of a process, by the types that they serve."""

    def __init__(self, providers: Iterable[Provider]) -> None:
        self._by_type = {type_: provider for provider in providers for type_ in provider.types}

    def of(self, type_: str) -> Provider:
        """Give the provider of a type; raises `ProviderError` where this process has none."""
        found = self._by_type.get(type_)
        if found is None:
            known = ", ".join(self._by_type) or "none"
            msg = f"this process has no provider of {type_}; it has {known}"
            raise ProviderError("ProviderMissing", msg, retryable=False)
        return found


def check_bounds(replicas: int, *, least: int, most: int, fix: str) -> None:
    """Refuse a number of nodes that a group does not take; the fix says where the bounds are changed."""
    if replicas > most:
        msg = f"{nodes_text(replicas)} cannot be had, the group may have {most} at most: {fix}"
        raise ProviderError("AboveMaximum", msg, retryable=False)
    if replicas < least:
        msg = f"{nodes_text(replicas)} cannot be had, the group must have {least} at least: {fix}"
        raise ProviderError("BelowMinimum", msg, retryable=False)


@contextmanager
def cluster_errors_as_provider_errors(doing: str) -> Iterator[None]:
    """Turn refusals that the same request will meet again into a `ProviderError`; all others pass as they are."""
    try:
        yield
    except (BadRequest, Forbidden, Invalid, MethodNotAllowed, NotFound) as failure:
        raise ProviderError(type(failure).__name__, f"{doing}: {failure}", retryable=False) from failure
