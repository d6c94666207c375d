"""The Calendar controller in a small world: what stands in the status, when, and how often it is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.cluster.manager_process import Process
from tests.cluster.memory_cluster import USER, MemoryCluster

from springtide.apis.meta.times import parse_instant
from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import Patch
from springtide.controllers.calendar import CALENDARS, CalendarController
from springtide.simulator.virtual_time import VirtualClock, run

START = parse_instant("2026-12-20T12:00:00Z")
DAY = 86_400
KEY = Key("", "days")
CHRISTMAS = {"timeZone": "Europe/Berlin", "dates": ["2026-12-24", "2026-12-25", "2026-12-31"]}


class Office:
    """A server that knows calendars, and one of them."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.world = MemoryCluster(clock)
        self.world.install_calendars()

    def open(self, identity: str = "") -> Process:
        """Start a process with our controllers."""
        return Process(self.world, self.clock, CalendarController, identity=identity)

    def write(self, spec: Object) -> None:
        """Create the calendar, or give it another spec."""
        body = {
            "apiVersion": "springtide.dev/v1alpha1",
            "kind": "Calendar",
            "metadata": {"name": "days"},
            "spec": spec,
        }
        self.world.server.patch(CALENDARS, KEY, Patch.apply(body, force=True), USER)

    def status(self) -> Any:
        """Return the status, with conditions by their types."""
        status = self.world.server.get(CALENDARS, KEY)["status"]
        return {**status, "conditions": {entry["type"]: entry for entry in status["conditions"]}}

    async def until(self, text: str) -> None:
        """Let the world go on."""
        await self.clock.sleep_until(parse_instant(text))
        await self.clock.sleep(0.1)

    def written(self) -> list[int]:
        """List when the status was written, in seconds since the start."""
        return [one.at - START for one in self.world.writes if one.verb == "patch/status"]


def play(story: Callable[[Office], Awaitable[None]]) -> None:
    """Play a story in virtual time."""

    async def main(clock: VirtualClock) -> None:
        await story(Office(clock))

    run(main, start=START)


def test_the_status_follows_the_days() -> None:
    """It is written at local midnights at which it changes, and at no other time."""

    async def story(office: Office) -> None:
        office.write(CHRISTMAS)
        process = office.open()
        await office.clock.sleep(1)
        status = office.status()
        assert status["nextDates"] == ["2026-12-24", "2026-12-25", "2026-12-31"]
        assert status["conditions"]["Ready"] == {
            "type": "Ready",
            "status": "True",
            "reason": "Resolved",
            "message": "days begin and end at midnight in Europe/Berlin",
            "lastTransitionTime": "2026-12-20T12:00:00Z",
            "observedGeneration": 1,
        }
        assert status["conditions"]["Active"]["status"] == "False"

        await office.until("2026-12-23T23:00:00Z")
        active = office.status()["conditions"]["Active"]
        assert (active["status"], active["message"]) == ("True", "2026-12-24 is in the calendar (Europe/Berlin)")
        await office.until("2026-12-24T23:00:00Z")
        assert office.status()["nextDates"] == ["2026-12-25", "2026-12-31"]
        assert office.status()["conditions"]["Active"]["lastTransitionTime"] == "2026-12-23T23:00:00Z"

        await office.clock.sleep(30 * DAY)
        assert "nextDates" not in office.status()
        midnights = [
            "2026-12-20T12:00:00Z",
            "2026-12-23T23:00:00Z",
            "2026-12-24T23:00:00Z",
            "2026-12-25T23:00:00Z",
            "2026-12-30T23:00:00Z",
            "2026-12-31T23:00:00Z",
        ]
        assert office.written() == [parse_instant(midnight) - START for midnight in midnights]
        health = process.manager.health()[0]
        assert (health.errors, health.conflicts, health.delayed) == (0, 0, 0)
        await process.manager.stop()

    play(story)


def test_a_change_of_the_calendar_counts_at_once() -> None:
    """Nothing of what it came to before is left, and the generation is the new one."""

    async def story(office: Office) -> None:
        office.write(CHRISTMAS)
        process = office.open()
        await office.clock.sleep(1)
        office.write({"dates": ["2026-12-20"]})
        await office.clock.sleep(1)

        status = office.status()
        assert status["nextDates"] == ["2026-12-20"]
        assert status["conditions"]["Active"]["status"] == "True"
        assert status["conditions"]["Ready"]["message"] == "days begin and end at midnight in UTC"
        assert status["conditions"]["Ready"]["observedGeneration"] == 2
        await office.until("2026-12-21T00:00:00Z")
        assert office.status()["conditions"]["Active"]["status"] == "False"
        await process.manager.stop()

    play(story)


def test_a_calendar_that_cannot_be_used_says_why() -> None:
    """In its condition and in an event; when it is mended, the days come back."""

    async def story(office: Office) -> None:
        office.write({"timeZone": "Mars/Olympus", "dates": ["2026-12-24"]})
        process = office.open()
        await office.clock.sleep(1)
        status = office.status()
        assert "nextDates" not in status
        ready = status["conditions"]["Ready"]
        assert (ready["status"], ready["reason"]) == ("False", "Invalid")
        assert "Mars/Olympus" in ready["message"]
        (event,) = office.world.events()
        assert (event["type"], event["reason"], event["message"]) == ("Warning", "Invalid", ready["message"])

        office.write(CHRISTMAS)
        await office.clock.sleep(1)
        assert office.status()["conditions"]["Ready"]["status"] == "True"
        await process.manager.stop()

    play(story)


def test_after_a_time_away_the_status_is_right_at_once() -> None:
    """A restart in the middle of a day of the calendar needs no history."""

    async def story(office: Office) -> None:
        office.write(CHRISTMAS)
        first = office.open("one")
        await office.clock.sleep(1)
        first.crash()
        await office.until("2026-12-25T10:00:00Z")
        assert office.status()["conditions"]["Active"]["status"] == "False"

        second = office.open("two")
        await office.clock.sleep(30)
        assert office.status()["conditions"]["Active"]["status"] == "True"
        assert office.status()["nextDates"] == ["2026-12-25", "2026-12-31"]
        await second.manager.stop()

    play(story)


def test_a_calendar_that_goes_is_forgotten() -> None:
    """Nothing is written when its next day would have come."""

    async def story(office: Office) -> None:
        office.write(CHRISTMAS)
        process = office.open()
        await office.clock.sleep(1)
        office.world.server.delete(CALENDARS, KEY, USER)
        await office.clock.sleep(30 * DAY)

        assert office.written() == [0]
        assert process.manager.health()[0].errors == 0
        await process.manager.stop()

    play(story)


def test_what_others_write_into_the_status_stays() -> None:
    """We own our conditions and dates, and nothing else."""

    async def story(office: Office) -> None:
        office.write(CHRISTMAS)
        process = office.open()
        await office.clock.sleep(1)
        theirs = {
            "type": "Approved",
            "status": "True",
            "reason": "Board",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        body = {
            "apiVersion": "springtide.dev/v1alpha1",
            "kind": "Calendar",
            "metadata": {"name": "days"},
            "status": {"conditions": [theirs]},
        }
        office.world.server.patch(CALENDARS, KEY, Patch.apply(body), USER, subresource="status")
        await office.until("2026-12-23T23:00:00Z")

        conditions = office.status()["conditions"]
        assert conditions["Approved"] == theirs
        assert conditions["Active"]["status"] == "True"
        await process.manager.stop()

    play(story)


def test_the_permissions_are_those_that_are_used() -> None:
    """It reads calendars and writes their status."""
    needed = {
        (permission.resource, verb, permission.subresource)
        for permission in CalendarController.permissions
        for verb in permission.verbs
    }

    assert needed == {
        (CALENDARS, "get", ""),
        (CALENDARS, "list", ""),
        (CALENDARS, "watch", ""),
        (CALENDARS, "patch", "status"),
    }
