"""Each fault by itself: what the process sees, and what has become of its request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from springtide.apiserver.direct import DirectTransport
from springtide.apiserver.server import ApiServer
from springtide.cluster.errors import (
    ClusterError,
    Conflict,
    ConnectionLost,
    Gone,
    Invalid,
    NotFound,
    NotLeader,
    RequestTimeout,
    ServerError,
    TooManyRequests,
)
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.transport import Patch, Precondition, WatchEventType, Write
from springtide.simulator.faults import Faults
from springtide.simulator.faults.connection import FaultyConnection, SentRequest
from springtide.simulator.faults.profile import ServerAvailability
from springtide.simulator.virtual_time import VirtualClock, VirtualLoop, run

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
KEY = Key("default", "settings")
WRITE = Write("tester", "a test says so")


@dataclass
class Wire:
    """A server, and one connection to it."""

    server: ApiServer
    connection: FaultyConnection
    availability: ServerAvailability
    clock: VirtualClock
    left: list[SentRequest] = field(default_factory=list)

    def value(self) -> str | None:
        """What the server has, whatever the connection says."""
        try:
            return str(self.server.get(CONFIG_MAPS, KEY)["data"]["value"])
        except NotFound:
            return None

    async def set(self, value: str, **how: Any) -> Object:
        """Change the object through the connection."""
        return await self.connection.patch(CONFIG_MAPS, KEY, Patch.merge({"data": {"value": value}}), WRITE, **how)


def settings(value: str) -> Object:
    """The object that all tests are about."""
    return {"metadata": {"name": KEY.name}, "data": {"value": value}}


def over(faults: Faults, story: Callable[[Wire], Awaitable[Any]], *, watch_list: bool = True, seed: int = 0) -> Any:
    """Tell a story over a connection with these faults."""

    async def main(clock: VirtualClock) -> Any:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        server = ApiServer(now=clock.now, random=Random(1))
        server.create(CONFIG_MAPS, settings("old"), WRITE, namespace="default")
        availability = ServerAvailability(faults, watch_list=watch_list)
        left: list[SentRequest] = []
        connection = FaultyConnection(
            DirectTransport(server),
            loop=loop,
            random=Random(seed),
            availability=availability,
            identity="tester-1",
            left=left.append,
            crossed=lambda: None,
        )
        try:
            return await story(Wire(server, connection, availability, clock, left))
        finally:
            await clock.sleep(100)

    return run(main)


@pytest.mark.parametrize(
    ("faults", "error", "value"),
    [
        pytest.param(Faults(conflict=1), Conflict, "old", id="conflict"),
        pytest.param(Faults(throttled=1), TooManyRequests, "old", id="throttled"),
        pytest.param(Faults(timeout_before=1), RequestTimeout, "old", id="timeout before"),
        pytest.param(Faults(failed_before=1), (ServerError, ConnectionLost), "old", id="failed before"),
        pytest.param(Faults(failed_after=1), (ServerError, ConnectionLost, RequestTimeout), "new", id="failed after"),
    ],
)
@pytest.mark.parametrize("seed", range(6))
def test_a_write_fails_before_or_after_its_effect(
    faults: Faults, error: type[ClusterError], value: str, seed: int
) -> None:
    async def story(wire: Wire) -> str | None:
        version = wire.server.get(CONFIG_MAPS, KEY)["metadata"]["resourceVersion"]
        with pytest.raises(error):
            await wire.set("new", precondition=Precondition(version))
        await wire.clock.sleep(60)
        return wire.value()

    assert over(faults, story, seed=seed) == value


def test_an_unconditional_write_meets_no_conflict() -> None:
    async def story(wire: Wire) -> str | None:
        await wire.set("new")
        return wire.value()

    assert over(Faults(conflict=1), story) == "new"


def test_a_slow_write_may_take_effect_after_its_timeout() -> None:
    async def story(wire: Wire) -> list[tuple[str | None, str | None]]:
        seen = []
        for number in range(40):
            try:
                await wire.set(str(number))
            except RequestTimeout:
                before = wire.value()
                await wire.clock.sleep(10)
                seen.append((before, wire.value()))
        return [pair for pair in seen if pair[0] != pair[1]]

    assert over(Faults(latency=0.01, slow=1), story)


def test_a_request_in_flight_arrives_within_the_longest_travel() -> None:
    """Leadership depends on it: from the permit to the effect it takes no longer."""

    async def story(wire: Wire) -> list[float]:
        late: list[float] = []
        wire.server.observers.append(
            lambda written: (
                late.append(wire.clock.monotonic() - written.write.at)
                if isinstance(written.write, SentRequest)
                else None
            )
        )
        for number in range(200):
            try:
                await wire.set(str(number))
            except ClusterError:
                await wire.clock.sleep(10)
        return late

    late = over(Faults(latency=0.5, slow=0.5, failed_after=0.2, failed_before=0.2), story)

    assert len(late) > 100
    assert max(late) <= 4.0


def test_the_write_permit_is_checked_when_the_request_is_sent() -> None:
    async def story(wire: Wire) -> tuple[str | None, int]:
        deadline = wire.clock.monotonic() + 0.5

        def permit() -> None:
            if wire.clock.monotonic() >= deadline:
                raise NotLeader("too late")

        refused = 0
        for number in range(30):
            deadline = wire.clock.monotonic() + 0.5
            try:
                await wire.connection.patch(
                    CONFIG_MAPS, KEY, Patch.merge({"data": {"value": str(number)}}), Write("t", permit=permit)
                )
            except NotLeader:
                refused += 1
        return wire.value(), refused

    _, refused = over(Faults(latency=1.0), story)

    assert 5 < refused < 25


def test_a_cut_connection_drops_requests_in_flight() -> None:
    async def story(wire: Wire) -> str | None:
        task = asyncio.ensure_future(wire.set("new"))
        while not wire.left:
            await asyncio.sleep(0.001)
        wire.connection.cut()
        with pytest.raises(ConnectionLost):
            await task
        with pytest.raises(ConnectionLost):
            await wire.set("newer")
        return wire.value()

    assert over(Faults(latency=1.0), story) == "old"


def test_sent_requests_arrive_although_the_process_is_paused() -> None:
    async def story(wire: Wire) -> tuple[str | None, str | None]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)

        async def send() -> None:
            await wire.set("new")

        loop.create_owned_task("process", send())
        while not wire.left:
            await asyncio.sleep(0.001)
        loop.freeze("process")
        before = wire.value()
        await wire.clock.sleep(10)
        after = wire.value()
        loop.thaw("process")
        return before, after

    assert over(Faults(latency=1.0), story) == ("old", "new")


def test_a_server_that_is_down_refuses_and_breaks_all_streams() -> None:
    async def story(wire: Wire) -> list[str]:
        reported: list[str] = []

        async def follow() -> None:
            try:
                async with aclosing(wire.connection.watch(Selection(CONFIG_MAPS))) as events:
                    async for event in events:
                        reported.append(event.change)  # noqa: PERF401 - what came before the end counts
            except ConnectionLost:
                reported.append("lost")

        following = asyncio.ensure_future(follow())
        await wire.clock.sleep(5)
        wire.availability.go_down()
        await following
        with pytest.raises(ConnectionLost):
            await wire.connection.get(CONFIG_MAPS, KEY)
        wire.availability.come_up()
        await wire.connection.get(CONFIG_MAPS, KEY)
        return reported

    assert over(Faults(latency=0.1), story) == ["ADDED", "lost"]


async def _followed(wire: Wire, seconds: float, **how: Any) -> list[tuple[WatchEventType, str]]:
    """Follow a watch for a while, and tell what came."""
    reported: list[tuple[WatchEventType, str]] = []

    async def follow() -> None:
        async with aclosing(wire.connection.watch(Selection(CONFIG_MAPS), **how)) as events:
            async for event in events:
                if event.change is not WatchEventType.BOOKMARK:
                    reported.append((event.change, event.object["data"]["value"]))  # noqa: PERF401 - as above

    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await follow()
    return reported


def test_a_lagging_watch_is_late_but_in_order() -> None:
    async def story(wire: Wire) -> list[Any]:
        version = str(wire.server.revision)
        for number in range(20):
            wire.server.patch(CONFIG_MAPS, KEY, Patch.merge({"data": {"value": str(number)}}), WRITE)
        soon = await _followed(wire, 5, version=version)
        return [soon, await _followed(wire, 60, version=version)]

    soon, late = over(Faults(lag=1, longest_lag=20), story)

    assert len(soon) < 20
    assert [value for _, value in late] == [str(number) for number in range(20)]


def test_events_in_flight_are_lost_when_a_watch_breaks() -> None:
    async def story(wire: Wire) -> list[str]:
        reported: list[str] = []

        async def follow() -> None:
            try:
                async with aclosing(wire.connection.watch(Selection(CONFIG_MAPS), version="7")) as events:
                    async for event in events:
                        reported.append(event.object["data"]["value"])  # noqa: PERF401 - what came before the end counts
            except ConnectionLost:
                reported.append(f"lost at {wire.clock.now()}")

        following = asyncio.ensure_future(follow())
        for number in range(30):
            await wire.clock.sleep(1)
            wire.server.patch(CONFIG_MAPS, KEY, Patch.merge({"data": {"value": str(number)}}), WRITE)
            if number == 19:
                wire.availability.go_down()
        await following
        return reported

    *came, end = over(Faults(lag=1, longest_lag=20), story)

    assert end == "lost at 20"
    assert came == [str(number) for number in range(len(came))]
    assert 0 < len(came) < 20


def test_a_replay_starts_before_the_requested_version() -> None:
    async def story(wire: Wire) -> list[Any]:
        for number in range(30):
            wire.server.patch(CONFIG_MAPS, KEY, Patch.merge({"data": {"value": str(number)}}), WRITE)
        return [await _followed(wire, 1, version=str(wire.server.revision)) for _ in range(10)]

    reported = over(Faults(replay=1), story)

    assert any(reported)
    assert all([value for _, value in each] == [str(n) for n in range(30)][30 - len(each) :] for each in reported)


def test_expired_versions_are_answered_with_gone() -> None:
    async def story(wire: Wire) -> None:
        with pytest.raises(Gone):
            await _followed(wire, 1, version="1")
        assert await _followed(wire, 1) == [(WatchEventType.ADDED, "old")]

    over(Faults(expired=1), story)


def test_a_watch_is_cut_within_its_lifetime() -> None:
    async def story(wire: Wire) -> float:
        began = wire.clock.monotonic()
        with suppress(ConnectionLost):
            await _followed(wire, 1000)
        return wire.clock.monotonic() - began

    assert over(Faults(cut=1, stream_life=120), story) <= 120


def test_only_a_list_at_version_0_may_be_stale() -> None:
    async def story(wire: Wire) -> tuple[list[str], list[str]]:
        for number in range(40):
            wire.server.patch(CONFIG_MAPS, KEY, Patch.merge({"data": {"value": str(number)}}), WRITE)
        selection = Selection(CONFIG_MAPS)
        stale = [await wire.connection.list(selection, version="0") for _ in range(20)]
        fresh = [await wire.connection.list(selection) for _ in range(20)]
        return [page.items[0]["data"]["value"] for page in stale], [page.items[0]["data"]["value"] for page in fresh]

    stale, fresh = over(Faults(stale=1), story)

    assert any(value != "39" for value in stale)
    assert set(fresh) == {"39"}


def test_a_server_without_watch_list_says_so() -> None:
    async def story(wire: Wire) -> None:
        with pytest.raises(Invalid, match="WatchList"):
            await _followed(wire, 1, initial_events=True)

    over(Faults(), story, watch_list=False)


def test_without_faults_requests_are_unchanged() -> None:
    async def story(wire: Wire) -> list[Any]:
        await wire.set("new")
        return await _followed(wire, 1, version="1")

    assert (WatchEventType.MODIFIED, "new") in over(Faults(), story)
