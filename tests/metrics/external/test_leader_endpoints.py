"""The Endpoints of external metrics: the address of the leader only, and never that of a former leader."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from tests.metrics.external.fake_cluster import FakeCluster

from springtide.cluster.errors import ConnectionLost
from springtide.cluster.resources import Key, Object
from springtide.metrics.external import ENDPOINTS, PERMISSIONS, SERVICE_NAME
from springtide.metrics.external.leader_endpoints import LeaderEndpoints
from springtide.simulator.virtual_time import VirtualClock, run

SERVICE = Key("home", SERVICE_NAME)
ADDRESSES = {"a": "10.0.0.1", "b": "fd00::2"}


class World:
    """Two replicas, each in its own pod, of which one leads."""

    def __init__(self, *, installed: bool = True) -> None:
        self.cluster = FakeCluster()
        self.leader = ""
        if installed:
            self.write(None)

    def write(self, subsets: list[Object] | None) -> None:
        """Write the Endpoints as another writer does."""
        metadata = {"name": SERVICE.name, "namespace": SERVICE.namespace, "labels": {"app": "springtide"}}
        self.cluster.put(ENDPOINTS, {"metadata": metadata, **({} if subsets is None else {"subsets": subsets})})

    def addresses(self) -> list[str]:
        """Return the addresses of the Endpoints."""
        subsets = self.cluster.objects["endpoints", SERVICE].get("subsets") or []
        return [address["ip"] for subset in subsets for address in subset["addresses"]]

    def run(self, scenario: Callable[[VirtualClock], Coroutine[Any, Any, None]]) -> None:
        """Run both replicas during a test."""

        async def everything(clock: VirtualClock) -> None:
            writers = [
                LeaderEndpoints(
                    self.cluster.transport,
                    SERVICE,
                    address,
                    6443,
                    lambda name=name: self.leader == name,  # type: ignore[misc]
                )
                for name, address in ADDRESSES.items()
            ]
            tasks = [asyncio.create_task(writer.run()) for writer in writers]
            try:
                await scenario(clock)
            finally:
                for task in tasks:
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task

        run(everything)


def test_the_right_is_for_one_object() -> None:
    (permission,) = [one for one in PERMISSIONS if one.resource.plural in ("endpoints", "pods", "endpointslices")]
    assert (permission.resource, permission.names, permission.own_namespace) == (ENDPOINTS, (SERVICE_NAME,), True)
    assert set(permission.verbs) == {"get", "patch"}


def test_the_address_follows_the_leader() -> None:
    world = World()

    async def scenario(clock: VirtualClock) -> None:
        for leader in ("", "a", "b", "", "a"):
            world.leader = leader
            await clock.sleep(3)
            assert world.addresses() == ([ADDRESSES[leader]] if leader else [])

    world.run(scenario)
    written = world.cluster.objects["endpoints", SERVICE]
    assert written["metadata"]["labels"] == {"app": "springtide"}
    assert written["subsets"][0]["ports"] == [{"name": "https", "port": 6443, "protocol": "TCP"}]


def test_a_leader_replaces_the_address_of_a_dead_pod() -> None:
    world = World()
    world.write([{"addresses": [{"ip": "10.0.0.9"}], "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}]}])

    async def scenario(clock: VirtualClock) -> None:
        await clock.sleep(3)
        assert world.addresses() == ["10.0.0.9"]
        world.leader = "a"
        await clock.sleep(3)
        assert world.addresses() == ["10.0.0.1"]

    world.run(scenario)


def test_a_removed_address_is_restored() -> None:
    world = World()

    async def scenario(clock: VirtualClock) -> None:
        world.leader = "a"
        await clock.sleep(3)
        world.write(None)
        await clock.sleep(40)
        assert world.addresses() == ["10.0.0.1"]

    world.run(scenario)


def test_failures_are_retried() -> None:
    world = World()

    async def scenario(clock: VirtualClock) -> None:
        world.cluster.failing = ConnectionLost("connection refused")
        world.leader = "a"
        await clock.sleep(20)
        assert world.addresses() == []
        world.cluster.failing = None
        await clock.sleep(3)
        assert world.addresses() == ["10.0.0.1"]

    world.run(scenario)


def test_missing_endpoints_are_reported_by_the_leader_only(caplog: pytest.LogCaptureFixture) -> None:
    world = World(installed=False)

    async def scenario(clock: VirtualClock) -> None:
        with caplog.at_level(logging.WARNING):
            await clock.sleep(40)
            assert not caplog.records
            world.leader = "a"
            await clock.sleep(1.5)
        world.write(None)
        await clock.sleep(3)
        assert world.addresses() == ["10.0.0.1"]

    world.run(scenario)
    assert "are not installed" in caplog.text


def test_a_former_leader_does_not_write_its_address() -> None:
    """Not even until the next leader would replace it."""
    world = World()
    history: list[list[str]] = []

    async def scenario(clock: VirtualClock) -> None:
        def deposed() -> None:
            world.leader = "b"
            history.append(world.addresses())

        world.cluster.before_patch = deposed
        world.leader = "a"
        await clock.sleep(3)

    world.run(scenario)
    assert world.addresses() == [ADDRESSES["b"]]
    assert all(ADDRESSES["a"] not in addresses for addresses in history)


def test_a_standby_does_not_remove_the_address_of_the_next_leader() -> None:
    """The write is refused where the object has changed since it was read."""
    world = World()

    async def scenario(clock: VirtualClock) -> None:
        world.leader = "a"
        await clock.sleep(3)

        def overtaken() -> None:
            world.cluster.before_patch = lambda: None
            world.write([{"addresses": [{"ip": "10.0.0.7"}], "ports": []}])

        world.cluster.before_patch = overtaken
        world.leader = ""
        await clock.sleep(3)
        assert world.addresses() == ["10.0.0.7"]

    world.run(scenario)
