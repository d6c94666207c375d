"""A small controller and a process that runs a manager, for tests."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any, ClassVar

from tests.cluster.memory_cluster import CONFIG_MAPS, SECRETS, MemoryCluster

from springtide.cluster.client import Mode
from springtide.cluster.controller import Cached, Controller, Permission, Result, Watch
from springtide.cluster.events import normal
from springtide.cluster.leader_election import LeaderElector
from springtide.cluster.manager import Manager
from springtide.cluster.resources import Key, Selection
from springtide.cluster.transport import Patch
from springtide.simulator.virtual_time import VirtualClock

WORK = Cached(Selection(CONFIG_MAPS, "work"))


class StampController(Controller):
    """Writes into every ConfigMap how long its text is."""

    name = "stamper"
    watches = (Watch(WORK),)
    permissions: ClassVar[tuple[Permission, ...]] = (Permission(CONFIG_MAPS, ("get", "list", "watch", "patch")),)
    seen: ClassVar[list[tuple[str, int]]]
    """Keys that were reconciled, and when."""

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Write the length where it is not there yet."""
        self.seen.append((key.name, now))
        item = self.context.store(WORK).get(key)
        if item is None:
            return None
        data = item.get("data") or {}
        length = str(len(data.get("text", "")))
        if data.get("length") != length:
            await self.context.client.patch(
                CONFIG_MAPS, Patch.merge({"data": {"length": length}}), of=item, because=f"the length is {length}"
            )
            self.context.events.record(CONFIG_MAPS, item, normal("Stamped", f"its length is {length}"))
        return None


def stamp_controller(**parts: Any) -> type[StampController]:
    """Make a variant of the controller, with its own list of reconciled keys."""
    return type("Variant", (StampController,), {"seen": [], **parts})


class Process:
    """A process that runs controllers, with its own connection to the API server."""

    def __init__(
        self,
        world: MemoryCluster,
        clock: VirtualClock,
        *controllers: type[Controller],
        identity: str = "",
        mode: Mode = Mode.ACT,
        **options: Any,
    ) -> None:
        """Without an identity there is no leader election."""
        self.line = world.line()
        self.leadership = (
            LeaderElector(self.line, clock, identity=identity, random=Random(identity)) if identity else None
        )
        self.manager = Manager(
            self.line, clock, controllers, random=Random(1), election=self.leadership, mode=mode, **options
        )
        self.task = asyncio.ensure_future(self.manager.run())

    def crash(self) -> None:
        """End it as a kill does: nothing that is under way takes effect."""
        self.line.cut()
        self.task.cancel()


SECRET_OF = Cached(Selection(SECRETS, "work"))


def named_by_label(key: Key, item: Any) -> list[Key]:
    """Map a Secret to the ConfigMap that its label names."""
    return [Key(key.namespace, item["metadata"]["labels"]["for"])]


def length(world: MemoryCluster, name: str) -> str | None:
    """Read what was written into a ConfigMap."""
    item = world.server.get(CONFIG_MAPS, Key("work", name))
    found: str | None = (item.get("data") or {}).get("length")
    return found


def names(kind: type[StampController]) -> list[str]:
    """List what was reconciled."""
    return [name for name, _ in kind.seen]
