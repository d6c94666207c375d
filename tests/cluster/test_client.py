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


class Desk:
    """A client at work, with a store of ConfigMaps that follows the server."""

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


def play(story: Callable[[Desk], Awaitable[None]], mode: Mode = Mode.ACT) -> None:
    """Play a story in virtual time."""

    async def main(clock: VirtualClock) -> None:
        desk = Desk(clock, mode)
        await desk.store.wait_synced()
        await story(desk)
        desk.following.cancel()

    run(main, start=START)


def test_writes_carry_field_manager_and_reason() -> None:
    """The field manager is that of the controller."""

    async def story(desk: Desk) -> None:
        body = {"metadata": {"name": "made", "namespace": "work"}}
        made = await desk.client.create(CONFIG_MAPS, body, because="it is needed")
        await desk.client.patch(CONFIG_MAPS, LABEL, of=made, because="it was seen")

        assert [(one.write.manager, one.verb, one.write.because) for one in desk.world.writes] == [
            ("springtide-test", "create", "it is needed"),
            ("springtide-test", "patch", "it was seen"),
        ]
        assert desk.client.traffic.sent == 2

    play(story)


def test_a_patch_of_an_object_that_has_changed_is_refused() -> None:
    """The patch was computed from an older version: it must be computed again."""

    async def story(desk: Desk) -> None:
        old = desk.world.config_map("a")
        desk.world.change("a", data={"x": "1"})

        with pytest.raises(Conflict):
            await desk.client.patch(CONFIG_MAPS, LABEL, of=old, because="?")
        with pytest.raises(Conflict):
            await desk.client.delete(CONFIG_MAPS, of=old, because="?")
        assert desk.world.written() == []

    play(story)


def test_a_patch_that_is_not_exact_still_requires_the_uid() -> None:
    """Without `exact` the version may differ, but another object of the same name is refused."""

    async def story(desk: Desk) -> None:
        old = desk.world.config_map("a")
        desk.world.change("a", data={"x": "1"})
        await desk.client.patch(CONFIG_MAPS, LABEL, of=old, because="?", exact=False)
        desk.world.server.delete(CONFIG_MAPS, Key("work", "a"), USER)
        desk.world.config_map("a")

        with pytest.raises(Conflict):
            await desk.client.patch(CONFIG_MAPS, LABEL, of=old, because="?", exact=False)
        with pytest.raises(Conflict):
            await desk.client.delete(CONFIG_MAPS, of=old, because="?", exact=False)

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

    async def story(desk: Desk) -> None:
        asked = len(desk.line.asked)
        with pytest.raises(ValueError, match="expected one that was read from a cluster"):
            await desk.client.patch(CONFIG_MAPS, LABEL, of=of, because="?", exact=exact)
        with pytest.raises(ValueError, match="expected one that was read from a cluster"):
            await desk.client.delete(CONFIG_MAPS, of=of, because="?", exact=exact)
        assert len(desk.line.asked) == asked

    play(story)


def test_a_write_without_permit_is_not_sent() -> None:
    """The transport asks for the permit as the request leaves."""

    async def story(desk: Desk) -> None:
        item = desk.world.config_map("a")
        desk.paused = True
        with pytest.raises(NotSent):
            await desk.client.patch(CONFIG_MAPS, LABEL, of=item, because="?")
        assert desk.world.written() == []

    play(story)


def test_observe_mode_withholds_and_logs_every_write(caplog: pytest.LogCaptureFixture) -> None:
    """All kinds of writes are counted; the caller gets what would have been sent."""
    caplog.set_level(logging.INFO)

    async def story(desk: Desk) -> None:
        item = desk.world.config_map("a")
        desk.world.writes.clear()
        body = {"metadata": {"name": "made", "namespace": "work"}}

        assert await desk.client.create(CONFIG_MAPS, body, because="needed") == body
        assert await desk.client.patch(CONFIG_MAPS, LABEL, of=item, because="seen") == {
            "metadata": {
                "labels": {"seen": "yes"},
                **{name: item["metadata"][name] for name in ("namespace", "name", "uid", "resourceVersion")},
            }
        }
        await desk.client.delete(CONFIG_MAPS, of=item, because="old")
        await desk.client.evict(of=item, because="full")
        await desk.client.bind("node", of=item, because="fits")
        await desk.client.scale(DEPLOYMENTS, 3, of=item, because="busy")

        assert desk.world.writes == []
        assert (desk.client.traffic.sent, desk.client.traffic.held_back) == (0, 6)
        assert "would patch ConfigMap work/a: seen" in caplog.messages

    play(story, Mode.OBSERVE)


def test_lists_have_all_pages() -> None:
    """However many pages there are."""

    async def story(desk: Desk) -> None:
        for number in range(1201):
            desk.world.config_map(f"n{number:04}")
        found = await desk.client.list(Selection(CONFIG_MAPS, "work"))

        assert [item["metadata"]["name"] for item in found] == [f"n{number:04}" for number in range(1201)]

    play(story)


def pod(name: str) -> Object:
    spec = {"containers": [{"name": "main", "image": "main"}]}
    return {"metadata": {"name": name, "namespace": "work"}, "spec": spec}


def test_binding_and_evicting_a_pod() -> None:
    """Both use their subresources, with the uid that was read as precondition."""

    async def story(desk: Desk) -> None:
        read = desk.world.server.create(PODS, pod("a"), USER, namespace="work")
        await desk.client.bind("node-1", of=read, because="it fits")
        assert desk.world.server.get(PODS, Key("work", "a"))["spec"]["nodeName"] == "node-1"

        await desk.client.evict(of=read, because="the node goes", grace_seconds=0)
        with pytest.raises(NotFound):
            desk.world.server.get(PODS, Key("work", "a"))

        desk.world.server.create(PODS, pod("a"), USER, namespace="work")
        with pytest.raises(Conflict):
            await desk.client.evict(of=read, because="the node goes")
        with pytest.raises(Conflict):
            await desk.client.bind("node-1", of=read, because="it fits")

    play(story)


def test_scaling_goes_through_the_subresource() -> None:
    """Only the number changes."""

    async def story(desk: Desk) -> None:
        labels = {"app": "web"}
        body = {
            "metadata": {"name": "web", "namespace": "work"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod("x")["spec"]},
            },
        }
        desk.world.server.create(DEPLOYMENTS, body, USER, namespace="work")
        scale = await desk.client.get(DEPLOYMENTS, Key("work", "web"), subresource="scale")
        await desk.client.scale(DEPLOYMENTS, 7, of=scale, because="it is busy")

        assert desk.world.server.get(DEPLOYMENTS, Key("work", "web"))["spec"]["replicas"] == 7
        with pytest.raises(Conflict):
            await desk.client.scale(DEPLOYMENTS, 8, of=scale, because="it is busy")

    play(story)


def test_a_status_is_applied_once_and_keeps_fields_of_others() -> None:
    """The second time there is nothing to do; conditions and fields of other managers stay."""

    async def story(desk: Desk) -> None:
        desk.world.install_calendars()
        body = {
            "apiVersion": "springtide.dev/v1alpha1",
            "kind": "Calendar",
            "metadata": {"name": "days"},
            "spec": {"yearly": ["01-01"]},
        }
        server = desk.world.server
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
            return await desk.client.apply_status(CALENDARS, fields, [ready], of=item, now=START, because="?")

        assert await write(["2027-01-01"])
        assert not await write(["2027-01-01"])
        status = server.get(CALENDARS, Key("", "days"))["status"]
        assert status["nextDates"] == ["2027-01-01"]
        assert sorted(entry["type"] for entry in status["conditions"]) == ["Ready", "Theirs"]

        assert await write(None)
        assert "nextDates" not in server.get(CALENDARS, Key("", "days"))["status"]

    play(story)


async def is_waiting(waiting: asyncio.Future[None]) -> bool:
    """Let everything run that can, and tell whether somebody still waits."""
    for _ in range(20):
        await asyncio.sleep(0)
    return not waiting.done()


async def create(desk: Desk) -> None:
    await desk.client.create(CONFIG_MAPS, {"metadata": {"name": "b", "namespace": "work"}}, because="?")


async def patch(desk: Desk) -> None:
    await desk.client.patch(CONFIG_MAPS, LABEL, of=desk.store.get(Key("work", "a")), because="?")


async def delete(desk: Desk) -> None:
    await desk.client.delete(CONFIG_MAPS, of=desk.store.get(Key("work", "a")), because="?")


async def lose_the_answer(desk: Desk) -> None:
    async def lose(verb: str, resource: Resource, key: Key) -> None:
        if verb == "patch":
            raise RequestTimeout("no answer")

    desk.line.after = lose
    with pytest.raises(RequestTimeout):
        await patch(desk)


@pytest.mark.parametrize("write", [create, patch, delete, lose_the_answer])
def test_the_barrier_waits_until_the_store_shows_the_write(write: Callable[[Desk], Awaitable[None]]) -> None:
    """For every kind of write, also if its answer had no version or was lost."""

    async def story(desk: Desk) -> None:
        desk.world.config_map("a")
        await desk.store.wait_for_version(desk.world.server.revision)
        before = desk.store.version
        desk.line.flowing.clear()
        await write(desk)

        waiting = asyncio.ensure_future(desk.barrier.wait_for_writes())
        assert await is_waiting(waiting)
        assert desk.store.version == before
        began = desk.clock.monotonic()
        desk.line.flowing.set()
        await waiting
        # At once, not with the next bookmark.
        assert desk.clock.monotonic() == began
        assert desk.store.values() == list(desk.world.server.list(Selection(CONFIG_MAPS)).items)

    play(story)


def test_the_barrier_ignores_other_writes() -> None:
    """Writes to other resources, of other clients, and writes that did not happen."""

    async def story(desk: Desk) -> None:
        desk.line.flowing.clear()
        desk.world.config_map("a")
        body = {"metadata": {"name": "s", "namespace": "work"}}
        secret = await desk.client.create(SECRETS, body, because="?")
        await desk.client.delete(SECRETS, of=secret, because="?")

        async def refuse(verb: str, resource: Resource, key: Key) -> None:
            if verb == "create":
                raise RequestTimeout("never left")

        desk.line.before = refuse
        with pytest.raises(RequestTimeout):
            await create(desk)
        await desk.barrier.wait_for_writes()

        desk.line.before = desk.line.after
        await create(desk)
        await desk.barrier.wait_for_writes(SECRETS)
        waiting = asyncio.ensure_future(desk.barrier.wait_for_writes(CONFIG_MAPS))
        assert await is_waiting(waiting)
        waiting.cancel()

    play(story)


def test_a_lookup_after_a_lost_answer_is_retried() -> None:
    """The state of the object stays unknown until the server answers."""

    async def story(desk: Desk) -> None:
        desk.world.config_map("a")
        await desk.store.wait_for_version(desk.world.server.revision)
        await delete(desk)

        async def refuse(verb: str, resource: Resource, key: Key) -> None:
            raise RequestTimeout("no answer")

        desk.line.before = refuse
        for _ in range(2):
            with pytest.raises(RequestTimeout):
                await desk.barrier.wait_for_writes()
        desk.line.before = desk.line.after
        await desk.barrier.wait_for_writes()
        assert Key("work", "a") not in desk.store

    play(story)


def test_all_workers_wait_for_a_lookup_after_a_lost_answer() -> None:
    """While one worker asks, another one of the same controller must not decide on the old state."""

    async def story(desk: Desk) -> None:
        desk.world.config_map("a")
        await desk.store.wait_for_version(desk.world.server.revision)
        desk.line.flowing.clear()
        await delete(desk)
        waiting = [asyncio.ensure_future(desk.barrier.wait_for_writes()) for _ in range(2)]
        assert [await is_waiting(one) for one in waiting] == [True, True]
        desk.line.flowing.set()
        await asyncio.gather(*waiting)
        assert Key("work", "a") not in desk.store
        asked = len(desk.line.asked)
        await desk.barrier.wait_for_writes()
        assert len(desk.line.asked) == asked

    play(story)


def test_a_write_during_a_lookup_leads_to_another_lookup() -> None:
    """The answer is about the write before."""

    async def story(desk: Desk) -> None:
        desk.world.config_map("a")
        await desk.store.wait_for_version(desk.world.server.revision)

        async def write_again(verb: str, resource: Resource, key: Key) -> None:
            if verb == "list" and desk.line.asked.count("list configmaps") == 1:
                desk.line.flowing.clear()
                desk.world.server.delete(CONFIG_MAPS, Key("work", "a"), USER)
                desk.barrier.note_unknown(CONFIG_MAPS, Key("work", "a"))

        desk.line.after = write_again
        desk.barrier.note_unknown(CONFIG_MAPS, Key("work", "a"))
        waiting = asyncio.ensure_future(desk.barrier.wait_for_writes())
        assert await is_waiting(waiting)
        desk.line.flowing.set()
        await waiting
        assert Key("work", "a") not in desk.store

    play(story)


def test_a_cancelled_write_may_have_taken_effect() -> None:
    """The barrier asks the server for the object."""

    async def story(desk: Desk) -> None:
        async def dawdle(verb: str, resource: Resource, key: Key) -> None:
            if verb == "create":
                await asyncio.sleep(30)

        desk.line.flowing.clear()
        desk.line.after = dawdle
        writing = asyncio.ensure_future(create(desk))
        await desk.clock.sleep(1)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        waiting = asyncio.ensure_future(desk.barrier.wait_for_writes())
        assert await is_waiting(waiting)
        desk.line.flowing.set()
        await waiting
        assert Key("work", "b") in desk.store

    play(story)


def test_the_barrier_waits_for_the_newest_write() -> None:
    """Also if an older one is answered later."""

    async def story(desk: Desk) -> None:
        desk.line.flowing.clear()
        new, old = desk.world.config_map("a"), desk.store.version
        desk.barrier.note_write(CONFIG_MAPS, Key("work", "a"), int(new["metadata"]["resourceVersion"]))
        desk.barrier.note_write(CONFIG_MAPS, Key("work", "a"), old)
        waiting = asyncio.ensure_future(desk.barrier.wait_for_writes())
        assert await is_waiting(waiting)
        desk.line.flowing.set()
        await waiting

    play(story)


def test_the_barrier_of_a_store_with_a_namespace_ignores_other_namespaces() -> None:
    """Such a store learns about other namespaces only by bookmarks."""

    async def story(desk: Desk) -> None:
        barrier = WriteBarrier(desk.line, [(Selection(CONFIG_MAPS, "work"), desk.store)])
        barrier.note_write(CONFIG_MAPS, Key("elsewhere", "a"), desk.store.version + 1000)
        barrier.note_unknown(CONFIG_MAPS, Key("elsewhere", "a"))
        await asyncio.wait_for(barrier.wait_for_writes(), 1)
        assert desk.line.asked == []

    play(story)


def test_an_object_that_was_recreated_does_not_block_the_barrier() -> None:
    """The store never shows its deletion."""

    async def story(desk: Desk) -> None:
        desk.world.config_map("a")
        await desk.store.wait_for_version(desk.world.server.revision)
        desk.line.flowing.clear()
        await delete(desk)
        waiting = asyncio.ensure_future(desk.barrier.wait_for_writes())
        assert await is_waiting(waiting)
        desk.world.config_map("a")
        # Both at once: whoever waits finds the new one.
        desk.line.flowing.set()
        await asyncio.wait_for(waiting, 1)

    play(story)


def test_observe_mode_may_change_objects_that_it_would_have_created() -> None:
    """They have no uid, and nothing is sent."""

    async def story(desk: Desk) -> None:
        body = {"metadata": {"name": "made", "namespace": "work"}}
        made = await desk.client.create(CONFIG_MAPS, body, because="needed")
        changed = await desk.client.patch(CONFIG_MAPS, Patch.json({"op": "remove", "path": "/x"}), of=made, because="?")
        await desk.client.patch(CONFIG_MAPS, LABEL, of=changed, because="?", exact=False)
        await desk.client.evict(of=made, because="?")
        await desk.client.bind("node", of=made, because="?")
        await desk.client.delete(CONFIG_MAPS, of=made, because="?")
        assert desk.client.traffic.held_back == 6

    play(story, Mode.OBSERVE)


def test_a_status_field_of_another_manager_is_removed() -> None:
    """An apply removes only fields of its own manager; the second patch is sent once, not at every reconcile."""

    async def story(desk: Desk) -> None:
        desk.world.install_calendars()
        key, server = Key("", "days"), desk.world.server
        body = {"apiVersion": "springtide.dev/v1alpha1", "kind": "Calendar", "metadata": {"name": "days"}, "spec": {}}
        server.create(CALENDARS, body, USER)
        theirs = Patch.merge({"status": {"nextDates": ["2030-01-01"]}})
        server.patch(CALENDARS, key, theirs, USER, subresource="status")
        ready = Condition("Ready", ConditionStatus.TRUE, "Fine", "all is well")

        async def write() -> bool:
            of = server.get(CALENDARS, key)
            return await desk.client.apply_status(
                CALENDARS, {"nextDates": None}, [ready], of=of, now=START, because="?"
            )

        assert await write()
        status = server.get(CALENDARS, key)["status"]
        assert (status.get("nextDates"), [one["type"] for one in status["conditions"]]) == (None, ["Ready"])
        assert not await write()

    play(story)
