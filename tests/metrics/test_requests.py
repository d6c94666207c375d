"""Requests are counted by their result, and not changed otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from random import Random
from typing import Any

import pytest
from tests.cluster.memory_cluster import CONFIG_MAPS, USER, MemoryCluster
from tests.metrics.exposition import Samples

from springtide.cluster.errors import ClusterError, ConnectionLost, NotLeader, RequestTimeout, ServerError
from springtide.cluster.resources import Key, Resource, Selection
from springtide.cluster.transport import Patch, Precondition, Transport
from springtide.metrics import ProcessMetrics
from springtide.simulator.virtual_time import VirtualClock, run

KEY = Key("work", "a")
BODY = {"metadata": {"name": "a", "namespace": "work"}}


async def _watch(line: Transport) -> None:
    async with aclosing(line.watch(Selection(CONFIG_MAPS), timeout=5, initial_events=True)) as events:
        async for _ in events:
            pass


@pytest.mark.parametrize(
    ("ask", "verb", "code"),
    [
        pytest.param(lambda line: line.get(CONFIG_MAPS, KEY), "get", "200", id="get"),
        pytest.param(lambda line: line.get(CONFIG_MAPS, Key("work", "b")), "get", "404", id="get a missing object"),
        pytest.param(lambda line: line.list(Selection(CONFIG_MAPS)), "list", "200", id="list"),
        pytest.param(_watch, "watch", "200", id="watch"),
        pytest.param(
            lambda line: line.create(CONFIG_MAPS, BODY, USER, namespace="work"), "create", "409", id="create twice"
        ),
        pytest.param(
            lambda line: line.patch(CONFIG_MAPS, KEY, Patch.merge({"data": {"x": "y"}}), USER),
            "patch",
            "200",
            id="patch",
        ),
        pytest.param(
            lambda line: line.patch(CONFIG_MAPS, KEY, Patch.merge({}), USER, precondition=Precondition("1")),
            "patch",
            "409",
            id="patch with a conflict",
        ),
        pytest.param(lambda line: line.delete(CONFIG_MAPS, KEY, USER), "delete", "200", id="delete"),
    ],
)
def test_a_request_is_counted_by_verb_resource_and_code(
    ask: Callable[[Transport], Awaitable[Any]], verb: str, code: str
) -> None:
    """All but watches are timed, too: the duration of a watch means nothing."""

    async def main(clock: VirtualClock) -> None:
        world = MemoryCluster(clock)
        world.config_map("a")
        metrics = ProcessMetrics()
        try:
            await ask(metrics.measured(world.line()))
        except ClusterError:
            assert code != "200"
        samples = Samples(metrics.registry)
        assert samples.labelled("springtide_api_requests_total") == {(code, "configmaps", verb): 1}
        timed = samples.labelled("springtide_api_request_duration_seconds_count")
        assert timed == ({} if verb == "watch" else {(verb,): 1})

    run(main, start=0)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        pytest.param(ServerError("broken"), "500", id="server"),
        pytest.param(ConnectionLost("cut"), "no_answer", id="connection"),
        pytest.param(RequestTimeout("late"), "timeout", id="timeout"),
        pytest.param(NotLeader("no"), "not_sent", id="not sent"),
    ],
)
def test_failures_without_an_answer_have_their_own_codes(failure: ClusterError, code: str) -> None:
    """The error is raised unchanged."""

    async def fail(verb: str, resource: Resource, key: Key) -> None:
        raise failure

    async def main(clock: VirtualClock) -> None:
        world = MemoryCluster(clock)
        line = world.line()
        line.before = fail
        metrics = ProcessMetrics()
        with pytest.raises(type(failure)):
            await metrics.measured(line).get(CONFIG_MAPS, KEY)
        assert Samples(metrics.registry).labelled("springtide_api_requests_total") == {(code, "configmaps", "get"): 1}

    run(main, start=0)


def test_a_cancelled_request_is_no_success() -> None:
    """A leader waits for the renewal of its lease for a few seconds only."""

    async def wait(verb: str, resource: Resource, key: Key) -> None:
        await asyncio.get_running_loop().create_future()

    async def main(clock: VirtualClock) -> None:
        line = MemoryCluster(clock).line()
        line.before = wait
        metrics = ProcessMetrics()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(metrics.measured(line).get(CONFIG_MAPS, KEY), 5)
        counted = Samples(metrics.registry).labelled("springtide_api_requests_total")
        assert counted == {("given_up", "configmaps", "get"): 1}

    run(main, start=0)


def test_subresources_are_counted_separately() -> None:
    async def main(clock: VirtualClock) -> None:
        metrics = ProcessMetrics()
        measured = metrics.measured(MemoryCluster(clock).line())
        pods = Resource("", "v1", "pods", "Pod")
        with pytest.raises(ClusterError):
            await measured.patch(pods, KEY, Patch.merge({}), USER, subresource="status")
        assert ("404", "pods/status", "patch") in Samples(metrics.registry).labelled("springtide_api_requests_total")

    run(main, start=0)


def test_closing_a_watch_closes_the_inner_watch() -> None:
    """Otherwise its connection would stay open."""
    closed = []

    class Endless:
        async def watch(self, selection: Selection, **options: Any) -> Any:
            try:
                while True:
                    yield Random(0)
            finally:
                closed.append(selection)

    async def main() -> None:
        metrics = ProcessMetrics()
        transport: Any = Endless()
        async with aclosing(metrics.measured(transport).watch(Selection(CONFIG_MAPS))) as events:
            async for _ in events:
                break
        assert closed == [Selection(CONFIG_MAPS)]
        assert Samples(metrics.registry)(
            "springtide_api_requests_total", verb="watch", resource="configmaps", code="200"
        )

    asyncio.run(main())
