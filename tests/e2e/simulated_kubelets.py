"""Simulated kubelets in a real cluster, over HTTP, with the real scheduler and controller-manager."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from tests.e2e.control_plane import ControlPlane

from springtide.cluster.clock import WallClock
from springtide.cluster.http import HttpTransport, load_kubeconfig
from springtide.cluster.manager import Manager, ManagerSettings
from springtide.cluster.resources import Object
from springtide.simulator.behaviours import NODES, BehaviourSettings, Delay, configured

_QUICK = BehaviourSettings(node_boot=Delay(0), node_grace=1, pod_start=Delay(0))


@asynccontextmanager
async def machines(plane: ControlPlane) -> AsyncIterator[None]:
    """Let the nodes of the cluster live for as long as the block lasts."""
    async with HttpTransport(load_kubeconfig(plane.admin), random=Random(1)) as transport:
        manager = Manager(
            transport,
            WallClock(),
            configured(_QUICK, NODES),
            random=Random(2),
            settings=ManagerSettings(pausable=False, field_manager_prefix="simulated-"),
        )
        running = asyncio.create_task(manager.run())
        try:
            yield
        finally:
            await manager.stop()
            await running


def node(name: str, **labels: str) -> Object:
    """Write a node that is about to boot."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
