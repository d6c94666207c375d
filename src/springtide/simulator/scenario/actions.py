"""Events of a scenario: writes of users, and failures of processes, nodes and the API server.

An action is a coroutine function of the world. Those here cover what most scenarios need.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias

from springtide.cluster.errors import NotFound
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import Patch, Write
from springtide.simulator.bootstrap import DEFAULT_NAMESPACE, USER, create_as_user
from springtide.simulator.world import World

Action: TypeAlias = Callable[[World], Awaitable[None]]


def create(*objects: Object, because: str = "") -> Action:
    """A user creates objects, and the namespaces that they name where there are none."""

    async def act(world: World) -> None:
        for item in objects:
            create_as_user(world.server, item, because)

    return act


def edit(kind: str, name: str, changes: Object, *, namespace: str = "", because: str = "") -> Action:
    """A user changes an object, by a merge patch of the newest state."""
    return _patch(kind, name, changes, namespace, because, "")


def step_clock(seconds: int) -> Action:
    """The clock of all processes and of the API server is set forward, or back by a negative number."""

    async def act(world: World) -> None:
        world.clock.step(seconds)

    return act


def scale(kind: str, name: str, replicas: int, *, namespace: str = "", because: str = "") -> Action:
    """A user sets the number of replicas, as `kubectl scale` does."""
    return _patch(kind, name, {"spec": {"replicas": replicas}}, namespace, because, "scale")


def delete(kind: str, name: str, *, namespace: str = "", because: str = "") -> Action:
    """A user deletes an object; one that is gone already is no error."""

    async def act(world: World) -> None:
        resource = world.resource(kind)
        with suppress(NotFound):
            world.server.delete(resource, _key(resource, name, namespace), Write(USER, because))

    return act


def crash(process: str, *, downtime: float = 10.0) -> Action:
    """A process is killed, and started again after a while."""

    async def act(world: World) -> None:
        found = world.process(process)
        found.crash()
        await asyncio.sleep(downtime)
        found.start()

    return act


def pause(process: str, seconds: float) -> Action:
    """A process pauses: its machine is suspended or has no CPU time."""

    async def act(world: World) -> None:
        found = world.process(process)
        found.pause()
        await asyncio.sleep(seconds)
        found.resume()

    return act


def restart_server(downtime: float = 5.0) -> Action:
    """The API server restarts: all streams break, and requests fail for a while."""

    async def act(world: World) -> None:
        world.availability.go_down()
        await asyncio.sleep(downtime)
        world.availability.come_up()

    return act


def compact() -> Action:
    """The API server compacts all history: watches from older versions must list again."""

    async def act(world: World) -> None:
        world.server.compact()

    return act


def lose(node: str) -> Action:
    """A node stops sending heartbeats until `find`."""

    async def act(world: World) -> None:
        world.lose_node(node)

    return act


def find(node: str) -> Action:
    """A lost node sends heartbeats again."""

    async def act(world: World) -> None:
        world.find_node(node)

    return act


def _patch(kind: str, name: str, changes: Any, namespace: str, because: str, subresource: str) -> Action:
    async def act(world: World) -> None:
        resource = world.resource(kind)
        world.server.patch(
            resource,
            _key(resource, name, namespace),
            Patch.merge(changes),
            Write(USER, because),
            subresource=subresource,
        )

    return act


def _key(resource: Resource, name: str, namespace: str) -> Key:
    return Key((namespace or DEFAULT_NAMESPACE) if resource.namespaced else "", name)
