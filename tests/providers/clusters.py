"""Environments of provider tests: a cluster in memory, and clients that lead, that do not, or that only observe."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any, TypeVar

from springtide.apiserver.direct import DirectTransport
from springtide.apiserver.kinds import collection_id
from springtide.apiserver.server import ApiServer
from springtide.cluster.client import Client, Mode, WriteBarrier
from springtide.cluster.errors import ClusterError, NotLeader
from springtide.cluster.resources import NODES, Key, Object
from springtide.cluster.transport import ApiRequest, Patch, WrappingTransport, Write
from springtide.providers import NodeGroup, Provider, ProviderError

T = TypeVar("T")
USER = Write("user")
NOW = 1_767_571_200  # 2026-01-05T00:00:00Z


class FailingTransport(WrappingTransport):
    """A transport whose next requests of a verb fail, before or after they took effect."""

    def __init__(self, inner: DirectTransport) -> None:
        super().__init__(inner)
        self.failing: dict[str, deque[tuple[ClusterError, bool]]] = {}
        self.writes = 0

    def fail(self, verb: str, failure: ClusterError, *, after: bool = False) -> None:
        """Let the next request of a verb fail."""
        self.failing.setdefault(verb, deque()).append((failure, after))

    async def intercept(self, request: ApiRequest, send: Callable[[], Awaitable[T]]) -> T:
        failure, after = self._next(request.verb)
        if failure is not None and not after:
            raise failure
        answer = await send()
        if request.verb not in ("get", "list"):
            self.writes += 1
        if failure is not None:
            raise failure
        return answer

    def _next(self, verb: str) -> tuple[ClusterError | None, bool]:
        failing = self.failing.get(verb)
        return failing.popleft() if failing else (None, False)


class ProviderEnvironment(ABC):
    """A provider with one group, and the simulation of the machines behind it."""

    def __init__(self) -> None:
        self.server = ApiServer(now=lambda: NOW, random=Random(1))
        self.line = FailingTransport(DirectTransport(self.server))
        self.provider = self.make_provider()
        self.leads = True

    @property
    @abstractmethod
    def type(self) -> str:
        """The type of the groups."""

    @property
    @abstractmethod
    def id(self) -> str:
        """The id of the existing group."""

    @property
    @abstractmethod
    def missing_id(self) -> str:
        """The id of a group that does not exist."""

    @abstractmethod
    def make_provider(self) -> Provider:
        """Make the provider."""

    @abstractmethod
    def begin(self, replicas: int) -> None:
        """Create the group, stable with so many ready nodes."""

    @abstractmethod
    def settle(self) -> None:
        """Let the machines behind the group reach the desired number."""

    @abstractmethod
    def break_one(self) -> None:
        """Make one node of the group not ready."""

    @abstractmethod
    def orders(self) -> int:
        """Count the writes that took effect on the provider's side."""

    @abstractmethod
    def refuse_reading(self, *, for_good: bool) -> None:
        """Let the next observation of the group fail."""

    @abstractmethod
    def refuse_resizing(self, *, for_good: bool) -> None:
        """Let the next resize fail without effect."""

    @abstractmethod
    def lose_answer(self) -> None:
        """Let the next resize take effect, and lose its response."""

    def client(self, mode: Mode = Mode.ACT) -> Client:
        """Make a client as controllers have it."""
        return Client(
            self.line,
            manager="springtide-test",
            barrier=WriteBarrier(self.line, []),
            permit=self._permit,
            mode=mode,
            log=logging.getLogger("springtide.test"),
        )

    def group(self, *, mode: Mode = Mode.ACT) -> NodeGroup:
        """Return the group as controllers get it."""
        return self.provider.group(self.type, self.id, self.client(mode))

    def nodes(self) -> list[Object]:
        """List all nodes of the cluster."""
        return [item for _, item in self.server.objects(collection_id(NODES))]

    def report(self, name: str, *, ready: bool) -> None:
        """Set the Ready condition of a node."""
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        patch = Patch.merge({"status": {"conditions": conditions}})
        self.server.patch(NODES, Key("", name), patch, USER, subresource="status")

    def _permit(self) -> None:
        if not self.leads:
            raise NotLeader("the lease is not ours any more")


def run(scenario: Coroutine[Any, Any, T]) -> T:
    """Run a test: real threads, so real time."""
    return asyncio.run(scenario)


def is_retryable(failure: Exception) -> bool:
    """Return whether an error is retryable."""
    return failure.retryable if isinstance(failure, ProviderError) else getattr(failure, "retriable", False)
