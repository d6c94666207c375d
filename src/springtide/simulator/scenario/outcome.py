"""How a scenario ended."""

from __future__ import annotations

from dataclasses import dataclass

from springtide.cluster.resources import Object
from springtide.simulator.trace import Entry
from springtide.simulator.world import World


@dataclass(frozen=True, slots=True)
class Outcome:
    """The world as it was at the end, and how it came to that."""

    world: World
    seed: int

    @property
    def trace(self) -> list[Entry]:
        """Every write that had an effect, in order."""
        return self.world.trace.entries

    def trace_bytes(self) -> bytes:
        """Give the trace as JSON lines: what two runs are compared by."""
        return self.world.trace.as_bytes()

    def object(self, kind: str, name: str, *, namespace: str = "") -> Object:
        """Give an object as it was at the end; raises `NotFound`."""
        return self.world.object(kind, name, namespace=namespace)

    def objects(self, kind: str) -> list[Object]:
        """Give all objects of a kind, in all namespaces, in the order of their keys."""
        return self.world.objects(kind)
