"""What happens in a scenario from outside: users who write, machines that fail.

An action is a function of the world; any coroutine function with a docstring of its own will do. Those here cover what
most scenarios need.
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


def scale(kind: str, name: str, replicas: int, *, namespace: str = "", because: str = "") -> Action:
    """A user sets the number of replicas, as `kubectl scale` does."""
    return _patch(kind, name, {"spec": {"replicas": replicas}}, namespace, because, "scale")


def delete(kind: str, name: str, *, namespace: str = "", because: str = "") -> Action:
    """A user deletes an object; if it is gone already, it is as wished."""

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
    """A process stands still for a while: its machine is suspended, or starved."""

    async def act(world: World) -> None:
        found = world.process(process)
        found.pause()
        await asyncio.sleep(seconds)
        found.resume()

    return act


def restart_server(downtime: float = 5.0) -> Action:
    """The API server is restarted: every stream breaks, and for a while nobody answers."""

    async def act(world: World) -> None:
        world.weather.go_down()
        await asyncio.sleep(downtime)
        world.weather.come_up()

    return act


def compact() -> Action:
    """The API server forgets all history: whoever watches from an older version must list again."""

    async def act(world: World) -> None:
        world.server.compact()

    return act


def lose(node: str) -> Action:
    """A node stops answering: its kubelet says nothing any more, until it is found again."""

    async def act(world: World) -> None:
        world.lose_node(node)

    return act


def find(node: str) -> Action:
    """A lost node answers again."""

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
