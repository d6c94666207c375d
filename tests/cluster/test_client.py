"""The client of a controller: preconditions, permits, observe mode, and read-your-writes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from tests.cluster.memory_cluster import CONFIG_MAPS, SECRETS, START, USER, MemoryCluster

from springtide.cluster.client import Client, Mode, WriteBarrier
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.errors import Conflict, NotFound, NotSent, RequestTimeout
from springtide.cluster.reflector import Reflector
from springtide.cluster.resources import PODS, Key, Object, Resource, Selection
from springtide.cluster.store import Store
from springtide.cluster.transport import ObjectVersion, Patch
from springtide.simulator.virtual_time import VirtualClock, run

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
CALENDARS = Resource("springtide.dev", "v1alpha1", "calendars", "Calendar", namespaced=False)
LABEL = Patch.merge({"metadata": {"labels": {"seen": "yes"}}})


class ClientHarness:
    """A client, with a store of ConfigMaps that follows the server."""

    def __init__(self, clock: VirtualClock, mode: Mode = Mode.ACT) -> None:
        self.clock = clock
        self.world = MemoryCluster(clock)
        self.line = self.world.line()
        self.store: Store[Any] = Store()
        selection = Selection(CONFIG_MAPS)
        reflector = Reflector(self.line, selection, self.store, clock=clock, random=Random(1))
        self.following = asyncio.ensure_future(reflector.run())
        self.barrier = WriteBarrier(self.line, [(selection, self.store)])
        self.paused = False
        self.client = Client(
            self.line,
            manager="springtide-test",
            barrier=self.barrier,
            permit=self._permit,
            mode=mode,
            log=logging.getLogger("test"),
        )

    def _permit(self) -> None:
        if self.paused:
            raise NotSent("not now")


def play(story: Callable[[ClientHarness], Awaitable[None]], mode: Mode = Mode.ACT) -> None:
    """Play a story in virtual time."""

    async def main(clock: VirtualClock) -> None:
        harness = ClientHarness(clock, mode)
        await harness.store.wait_synced()
        await story(harness)
        harness.following.cancel()

    run(main, start=START)


def test_writes_carry_field_manager_and_reason() -> None:
    """The field manager is that of the controller."""

    async def story(harness: ClientHarness) -> None:
        body = {"metadata": {"name": "made", "namespace": "work"}}
        made = await harness.client.create(CONFIG_MAPS, body, because="it is needed")
        await harness.client.patch(CONFIG_MAPS, LABEL, of=made, because="it was seen")

        assert [(one.write.manager, one.verb, one.write.because) for one in harness.world.writes] == [
            ("springtide-test", "create", "it is needed"),
            ("springtide-test", "patch", "it was seen"),
        ]
        assert harness.client.traffic.sent == 2

    play(story)


def test_a_patch_of_an_object_that_has_changed_is_refused() -> None:
    """The patch was computed from an older version: it must be computed again."""

    async def story(harness: ClientHarness) -> None:
        old = harness.world.config_map("a")
        harness.world.change("a", data={"x": "1"})

        with pytest.raises(Conflict):
            await harness.client.patch(CONFIG_MAPS, LABEL, of=old, because="?")
        with pytest.raises(Conflict):
            await harness.client.delete(CONFIG_MAPS, of=old, because="?")
        assert harness.world.written() == []

    play(story)


def test_a_patch_that_is_not_exact_still_requires_the_uid() -> None:
    """Without `exact` the version may differ, but another object of the same name is refused."""

    async def story(harness: ClientHarness) -> None:
        old = harness.world.config_map("a")
        harness.world.change("a", data={"x": "1"})
        await harness.client.patch(CONFIG_MAPS, LABEL, of=old, because="?", exact=False)
        harness.world.server.delete(CONFIG_MAPS, Key("work", "a"), USER)
        harness.world.config_map("a")

        with pytest.raises(Conflict):
            await harness.client.patch(CONFIG_MAPS, LABEL, of=old, because="?", exact=False)
        with pytest.raises(Conflict):
            await harness.client.delete(CONFIG_MAPS, of=old, because="?", exact=False)

    play(story)


@pytest.mark.parametrize(
    ("of", "exact"),
    [
        pytest.param({"metadata": {"name": "a", "namespace": "work"}}, True, id="never-read"),
        pytest.param({"metadata": {"name": "a", "uid": "1"}}, True, id="no-version"),
        pytest.param(ObjectVersion(Key("work", "a"), "", "1"), False, id="no-uid"),
    ],
)
def test_writes_without_a_precondition_are_not_sent(of: Any, exact: bool) -> None:
    """An object that was not read from a cluster cannot be changed."""

    async def story(harness: ClientHarness) -> None:
        asked = len(harness.line.asked)
        with pytest.raises(ValueError, match="expected one that was read from a cluster"):
            await harness.client.patch(CONFIG_MAPS, LABEL, of=of, because="?", exact=exact)
        with pytest.raises(ValueError, match="expected one that was read from a cluster"):
            await harness.client.delete(CONFIG_MAPS, of=of, because="?", exact=exact)
        assert len(harness.line.asked) == asked

    play(story)


def test_a_write_without_permit_is_not_sent() -> None:
    """The transport asks for the permit as the request leaves."""

    async def story(harness: ClientHarness) -> None:
        item = harness.world.config_map("a")
        harness.paused = True
        with pytest.raises(NotSent):
            await harness.client.patch(CONFIG_MAPS, LABEL, of=item, because="?")
        assert harness.world.written() == []

    play(story)


def test_observe_mode_withholds_and_logs_every_write(caplog: pytest.LogCaptureFixture) -> None:
    """All kinds of writes are counted; the caller gets what would have been sent."""
    caplog.set_level(logging.INFO)

    async def story(harness: ClientHarness) -> None:
        item = harness.world.config_map("a")
        harness.world.writes.clear()
        body = {"metadata": {"name": "made", "namespace": "work"}}

        assert await harness.client.create(CONFIG_MAPS, body, because="needed") == body
        assert await harness.client.patch(CONFIG_MAPS, LABEL, of=item, because="seen") == {
            "metadata": {
                "labels": {"seen": "yes"},
                **{name: item["metadata"][name] for name in ("namespace", "name", "uid", "resourceVersion")},
            }
        }
        await harness.client.delete(CONFIG_MAPS, of=item, because="old")
        await harness.client.evict(of=item, because="full")
        await harness.client.bind("node", of=item, because="fits")
        await harness.client.scale(DEPLOYMENTS, 3, of=item, because="busy")

        assert harness.world.writes == []
        assert (harness.client.traffic.sent, harness.client.traffic.held_back) == (0, 6)
        assert "would patch ConfigMap work/a: seen" in caplog.messages
        assert "would scale Deployment work/a to 3: busy" in caplog.messages, "the replicas are not known"

    play(story, Mode.OBSERVE)


def test_lists_have_all_pages() -> None:
    """However many pages there are."""

    async def story(harness: ClientHarness) -> None:
        for number in range(1201):
            harness.world.config_map(f"n{number:04}")
        found = await harness.client.list(Selection(CONFIG_MAPS, "work"))

        assert [item["metadata"]["name"] for item in found] == [f"n{number:04}" for number in range(1201)]

    play(story)


def pod(name: str) -> Object:
    spec = {"containers": [{"name": "main", "image": "main"}]}
    return {"metadata": {"name": name, "namespace": "work"}, "spec": spec}


def test_binding_and_evicting_a_pod() -> None:
    """Both use their subresources, with the uid that was read as precondition."""

    async def story(harness: ClientHarness) -> None:
        read = harness.world.server.create(PODS, pod("a"), USER, namespace="work")
        await harness.client.bind("node-1", of=read, because="it fits")
        assert harness.world.server.get(PODS, Key("work", "a"))["spec"]["nodeName"] == "node-1"

        await harness.client.evict(of=read, because="the node goes", grace_seconds=0)
        with pytest.raises(NotFound):
            harness.world.server.get(PODS, Key("work", "a"))

        harness.world.server.create(PODS, pod("a"), USER, namespace="work")
        with pytest.raises(Conflict):
            await harness.client.evict(of=read, because="the node goes")
        with pytest.raises(Conflict):
            await harness.client.bind("node-1", of=read, because="it fits")

    play(story)


def test_scaling_goes_through_the_subresource() -> None:
    """Only the number changes."""

    async def story(harness: ClientHarness) -> None:
        labels = {"app": "web"}
        body = {
            "metadata": {"name": "web", "namespace": "work"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod("x")["spec"]},
            },
        }
        harness.world.server.create(DEPLOYMENTS, body, USER, namespace="work")
        scale = await harness.client.get(DEPLOYMENTS, Key("work", "web"), subresource="scale")
        await harness.client.scale(DEPLOYMENTS, 7, of=scale, because="it is busy")

        assert harness.world.server.get(DEPLOYMENTS, Key("work", "web"))["spec"]["replicas"] == 7
        with pytest.raises(Conflict):
            await harness.client.scale(DEPLOYMENTS, 8, of=scale, because="it is busy")

    play(story)


def test_a_status_is_applied_once_and_keeps_fields_of_others() -> None:
    """The second time there is nothing to do; conditions and fields of other managers stay."""

    async def story(harness: ClientHarness) -> None:
        harness.world.install_calendars()
        body = {
            "apiVersion": "springtide.dev/v1alpha1",
            "kind": "Calendar",
            "metadata": {"name": "days"},
            "spec": {"yearly": ["01-01"]},
        }
        server = harness.world.server
        server.create(CALENDARS, body, USER)
        theirs = {
            "type": "Theirs",
            "status": "True",
            "reason": "R",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        server.patch(
            CALENDARS, Key("", "days"), Patch.merge({"status": {"conditions": [theirs]}}), USER, subresource="status"
        )

        async def write(dates: list[str] | None) -> bool:
            item = server.get(CALENDARS, Key("", "days"))
            ready = Condition("Ready", ConditionStatus.TRUE, "Fine", "all is well")
            fields = {"nextDates": dates}
            return await harness.client.apply_status(CALENDARS, fields, [ready], of=item, now=START, because="?")

        assert await write(["2027-01-01"])
        assert not await write(["2027-01-01"])
        status = server.get(CALENDARS, Key("", "days"))["status"]
        assert status["nextDates"] == ["2027-01-01"]
        assert sorted(entry["type"] for entry in status["conditions"]) == ["Ready", "Theirs"]

        assert await write(None)
        assert "nextDates" not in server.get(CALENDARS, Key("", "days"))["status"]

    play(story)


async def is_waiting(waiting: asyncio.Future[None]) -> bool:
    """Run all ready tasks, and tell whether one still waits."""
    for _ in range(20):
        await asyncio.sleep(0)
    return not waiting.done()


async def create(harness: ClientHarness) -> None:
    await harness.client.create(CONFIG_MAPS, {"metadata": {"name": "b", "namespace": "work"}}, because="?")


async def patch(harness: ClientHarness) -> None:
    await harness.client.patch(CONFIG_MAPS, LABEL, of=harness.store.get(Key("work", "a")), because="?")


async def delete(harness: ClientHarness) -> None:
    await harness.client.delete(CONFIG_MAPS, of=harness.store.get(Key("work", "a")), because="?")


async def lose_the_answer(harness: ClientHarness) -> None:
    async def lose(verb: str, resource: Resource, key: Key) -> None:
        if verb == "patch":
            raise RequestTimeout("no answer")

    harness.line.after = lose
    with pytest.raises(RequestTimeout):
        await patch(harness)


@pytest.mark.parametrize("write", [create, patch, delete, lose_the_answer])
def test_the_barrier_waits_until_the_store_shows_the_write(write: Callable[[ClientHarness], Awaitable[None]]) -> None:
    """For every kind of write, also if its answer had no version or was lost."""

    async def story(harness: ClientHarness) -> None:
        harness.world.config_map("a")
        await harness.store.wait_for_version(harness.world.server.revision)
        before = harness.store.version
        harness.line.flowing.clear()
        await write(harness)

        waiting = asyncio.ensure_future(harness.barrier.wait_for_writes())
        assert await is_waiting(waiting)
        assert harness.store.version == before
        began = harness.clock.monotonic()
        harness.line.flowing.set()
        await waiting
        # At once, not with the next bookmark.
        assert harness.clock.monotonic() == began
        assert harness.store.values() == list(harness.world.server.list(Selection(CONFIG_MAPS)).items)

    play(story)


def test_the_barrier_ignores_other_writes() -> None:
    """Writes to other resources, of other clients, and writes that did not happen."""

    async def story(harness: ClientHarness) -> None:
        harness.line.flowing.clear()
        harness.world.config_map("a")
        body = {"metadata": {"name": "s", "namespace": "work"}}
        secret = await harness.client.create(SECRETS, body, because="?")
        await harness.client.delete(SECRETS, of=secret, because="?")

        async def refuse(verb: str, resource: Resource, key: Key) -> None:
            if verb == "create":
                raise RequestTimeout("never left")

        harness.line.before = refuse
        with pytest.raises(RequestTimeout):
            await create(harness)
        await harness.barrier.wait_for_writes()

        harness.line.before = harness.line.after
        await create(harness)
        await harness.barrier.wait_for_writes(SECRETS)
        waiting = asyncio.ensure_future(harness.barrier.wait_for_writes(CONFIG_MAPS))
        assert await is_waiting(waiting)
        waiting.cancel()

    play(story)


def test_a_lookup_after_a_lost_answer_is_retried() -> None:
    """The state of the object stays unknown until the server answers."""

    async def story(harness: ClientHarness) -> None:
        harness.world.config_map("a")
        await harness.store.wait_for_version(harness.world.server.revision)
        await delete(harness)

        async def refuse(verb: str, resource: Resource, key: Key) -> None:
            raise RequestTimeout("no answer")

        harness.line.before = refuse
        for _ in range(2):
            with pytest.raises(RequestTimeout):
                await harness.barrier.wait_for_writes()
        harness.line.before = harness.line.after
        await harness.barrier.wait_for_writes()
        assert Key("work", "a") not in harness.store

    play(story)


def test_all_workers_wait_for_a_lookup_after_a_lost_answer() -> None:
    """While one worker asks, another one of the same controller must not decide on the old state."""

    async def story(harness: ClientHarness) -> None:
        harness.world.config_map("a")
        await harness.store.wait_for_version(harness.world.server.revision)
        harness.line.flowing.clear()
        await delete(harness)
        waiting = [asyncio.ensure_future(harness.barrier.wait_for_writes()) for _ in range(2)]
        assert [await is_waiting(one) for one in waiting] == [True, True]
        harness.line.flowing.set()
        await asyncio.gather(*waiting)
        assert Key("work", "a") not in harness.store
        asked = len(harness.line.asked)
        await harness.barrier.wait_for_writes()
        assert len(harness.line.asked) == asked

    play(story)


def test_a_write_during_a_lookup_leads_to_another_lookup() -> None:
    """The answer is about the write before."""

    async def story(harness: ClientHarness) -> None:
        harness.world.config_map("a")
        await harness.store.wait_for_version(harness.world.server.revision)

        async def write_again(verb: str, resource: Resource, key: Key) -> None:
            if verb == "list" and harness.line.asked.count("list configmaps") == 1:
                harness.line.flowing.clear()
                harness.world.server.delete(CONFIG_MAPS, Key("work", "a"), USER)
                harness.barrier.note_unknown(CONFIG_MAPS, Key("work", "a"))

        harness.line.after = write_again
        harness.barrier.note_unknown(CONFIG_MAPS, Key("work", "a"))
        waiting = asyncio.ensure_future(harness.barrier.wait_for_writes())
        assert await is_waiting(waiting)
        harness.line.flowing.set()
        await waiting
        assert Key("work", "a") not in harness.store

    play(story)


def test_a_cancelled_write_may_have_taken_effect() -> None:
    """The barrier asks the server for the object."""

    async def story(harness: ClientHarness) -> None:
        async def dawdle(verb: str, resource: Resource, key: Key) -> None:
            if verb == "create":
                await asyncio.sleep(30)

        harness.line.flowing.clear()
        harness.line.after = dawdle
        writing = asyncio.ensure_future(create(harness))
        await harness.clock.sleep(1)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        waiting = asyncio.ensure_future(harness.barrier.wait_for_writes())
        assert await is_waiting(waiting)
        harness.line.flowing.set()
        await waiting
        assert Key("work", "b") in harness.store

    play(story)


def test_the_barrier_waits_for_the_newest_write() -> None:
    """Also if an older one is answered later."""

    async def story(harness: ClientHarness) -> None:
        harness.line.flowing.clear()
        new, old = harness.world.config_map("a"), harness.store.version
        harness.barrier.note_write(CONFIG_MAPS, Key("work", "a"), int(new["metadata"]["resourceVersion"]))
        harness.barrier.note_write(CONFIG_MAPS, Key("work", "a"), old)
        waiting = asyncio.ensure_future(harness.barrier.wait_for_writes())
        assert await is_waiting(waiting)
        harness.line.flowing.set()
        await waiting

    play(story)


def test_the_barrier_of_a_store_with_a_namespace_ignores_other_namespaces() -> None:
    """Such a store learns about other namespaces only by bookmarks."""

    async def story(harness: ClientHarness) -> None:
        barrier = WriteBarrier(harness.line, [(Selection(CONFIG_MAPS, "work"), harness.store)])
        barrier.note_write(CONFIG_MAPS, Key("elsewhere", "a"), harness.store.version + 1000)
        barrier.note_unknown(CONFIG_MAPS, Key("elsewhere", "a"))
        await asyncio.wait_for(barrier.wait_for_writes(), 1)
        assert harness.line.asked == []

    play(story)


def test_an_object_that_was_recreated_does_not_block_the_barrier() -> None:
    """The store never shows its deletion."""

    async def story(harness: ClientHarness) -> None:
        harness.world.config_map("a")
        await harness.store.wait_for_version(harness.world.server.revision)
        harness.line.flowing.clear()
        await delete(harness)
        waiting = asyncio.ensure_future(harness.barrier.wait_for_writes())
        assert await is_waiting(waiting)
        harness.world.config_map("a")
        # Both at once: the store only sees the new one.
        harness.line.flowing.set()
        await asyncio.wait_for(waiting, 1)

    play(story)


def test_observe_mode_may_change_objects_that_it_would_have_created() -> None:
    """They have no uid, and nothing is sent."""

    async def story(harness: ClientHarness) -> None:
        body = {"metadata": {"name": "made", "namespace": "work"}}
        made = await harness.client.create(CONFIG_MAPS, body, because="needed")
        changed = await harness.client.patch(
            CONFIG_MAPS, Patch.json({"op": "remove", "path": "/x"}), of=made, because="?"
        )
        await harness.client.patch(CONFIG_MAPS, LABEL, of=changed, because="?", exact=False)
        await harness.client.evict(of=made, because="?")
        await harness.client.bind("node", of=made, because="?")
        await harness.client.delete(CONFIG_MAPS, of=made, because="?")
        assert harness.client.traffic.held_back == 6

    play(story, Mode.OBSERVE)


def test_a_status_field_of_another_manager_is_removed() -> None:
    """An apply removes only fields of its own manager; the second patch is sent once, not at every reconcile."""

    async def story(harness: ClientHarness) -> None:
        harness.world.install_calendars()
        key, server = Key("", "days"), harness.world.server
        body = {"apiVersion": "springtide.dev/v1alpha1", "kind": "Calendar", "metadata": {"name": "days"}, "spec": {}}
        server.create(CALENDARS, body, USER)
        theirs = Patch.merge({"status": {"nextDates": ["2030-01-01"]}})
        server.patch(CALENDARS, key, theirs, USER, subresource="status")
        ready = Condition("Ready", ConditionStatus.TRUE, "Fine", "all is well")

        async def write() -> bool:
            of = server.get(CALENDARS, key)
            return await harness.client.apply_status(
                CALENDARS, {"nextDates": None}, [ready], of=of, now=START, because="?"
            )

        assert await write()
        status = server.get(CALENDARS, key)["status"]
        assert (status.get("nextDates"), [one["type"] for one in status["conditions"]]) == (None, ["Ready"])
        assert not await write()

    play(story)
