"""What a crash test asks of a cluster, whichever way it is reached: a process of its own that can be killed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from springtide.cluster.resources import Object


class Died(Exception):
    """No answer came: the process has ended. A write may have taken effect, or not."""


@dataclass(frozen=True)
class Listed:
    """All objects, by name, and the version that they are of."""

    items: dict[str, Object]
    version: int


@dataclass(frozen=True)
class Told:
    """One line of a watch."""

    change: str
    item: Object


class ClusterUnderTest(Protocol):
    """A cluster in one folder that is started and killed again and again; tests write ConfigMaps of one namespace."""

    def start(self) -> None:
        """Start the process, and wait until it answers; `Died` where it is killed before that."""
        ...

    def kill(self) -> None:
        """End the process as `kill -9` does; from any thread, and also where it has ended."""
        ...

    def create(self, body: Object) -> Object:
        """Create an object."""
        ...

    def patch(self, name: str, body: Object) -> Object:
        """Merge into an object."""
        ...

    def delete(self, name: str) -> None:
        """Delete an object."""
        ...

    def listed(self) -> Listed:
        """List all objects."""
        ...

    def events(self, version: int, count: int) -> list[Told] | None:
        """Give what a watch from a version tells; None where that is gone. To wait for more than `count` is no use."""
        ...
