"""The Calendar controller in a simulated world: the status and the times of its writes."""

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


class CalendarHarness:
    """A cluster with the Calendar kind, and one Calendar."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.world = MemoryCluster(clock)
        self.world.install_calendars()

    def start_process(self, identity: str = "") -> Process:
        """Start a process with the Calendar controller."""
        return Process(self.world, self.clock, CalendarController, identity=identity)

    def write(self, spec: Object) -> None:
        """Create the calendar or replace its spec."""
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

    async def advance_to(self, text: str) -> None:
        """Advance the clock to shortly after a time."""
        await self.clock.sleep_until(parse_instant(text))
        await self.clock.sleep(0.1)

    def status_writes(self) -> list[int]:
        """List the times of status writes, in seconds since the start."""
        return [one.at - START for one in self.world.writes if one.verb == "patch/status"]


def run_in_virtual_time(steps: Callable[[CalendarHarness], Awaitable[None]]) -> None:
    """Run a test in virtual time."""

    async def main(clock: VirtualClock) -> None:
        await steps(CalendarHarness(clock))

    run(main, start=START)


def test_status_follows_the_days() -> None:
    """It is written only at local midnights at which it changes."""

    async def steps(harness: CalendarHarness) -> None:
        harness.write(CHRISTMAS)
        process = harness.start_process()
        await harness.clock.sleep(1)
        status = harness.status()
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

        await harness.advance_to("2026-12-23T23:00:00Z")
        active = harness.status()["conditions"]["Active"]
        assert (active["status"], active["message"]) == ("True", "2026-12-24 is in the calendar (Europe/Berlin)")
        await harness.advance_to("2026-12-24T23:00:00Z")
        assert harness.status()["nextDates"] == ["2026-12-25", "2026-12-31"]
        assert harness.status()["conditions"]["Active"]["lastTransitionTime"] == "2026-12-23T23:00:00Z"

        await harness.clock.sleep(30 * DAY)
        assert "nextDates" not in harness.status()
        midnights = [
            "2026-12-20T12:00:00Z",
            "2026-12-23T23:00:00Z",
            "2026-12-24T23:00:00Z",
            "2026-12-25T23:00:00Z",
            "2026-12-30T23:00:00Z",
            "2026-12-31T23:00:00Z",
        ]
        assert harness.status_writes() == [parse_instant(midnight) - START for midnight in midnights]
        health = process.manager.health()[0]
        assert (health.errors, health.conflicts, health.delayed) == (0, 0, 0)
        await process.manager.stop()

    run_in_virtual_time(steps)


def test_changed_calendar_takes_effect_at_once() -> None:
    """The former dates are removed, and observedGeneration is the new one."""

    async def steps(harness: CalendarHarness) -> None:
        harness.write(CHRISTMAS)
        process = harness.start_process()
        await harness.clock.sleep(1)
        harness.write({"dates": ["2026-12-20"]})
        await harness.clock.sleep(1)

        status = harness.status()
        assert status["nextDates"] == ["2026-12-20"]
        assert status["conditions"]["Active"]["status"] == "True"
        assert status["conditions"]["Ready"]["message"] == "days begin and end at midnight in UTC"
        assert status["conditions"]["Ready"]["observedGeneration"] == 2
        await harness.advance_to("2026-12-21T00:00:00Z")
        assert harness.status()["conditions"]["Active"]["status"] == "False"
        await process.manager.stop()

    run_in_virtual_time(steps)


def test_invalid_calendar_is_reported() -> None:
    """A condition and an event have the errors; the dates return when it is corrected."""

    async def steps(harness: CalendarHarness) -> None:
        harness.write({"timeZone": "Mars/Olympus", "dates": ["2026-12-24"]})
        process = harness.start_process()
        await harness.clock.sleep(1)
        status = harness.status()
        assert "nextDates" not in status
        ready = status["conditions"]["Ready"]
        assert (ready["status"], ready["reason"]) == ("False", "Invalid")
        assert "Mars/Olympus" in ready["message"]
        (event,) = harness.world.events()
        assert (event["type"], event["reason"], event["message"]) == ("Warning", "Invalid", ready["message"])

        harness.write(CHRISTMAS)
        await harness.clock.sleep(1)
        assert harness.status()["conditions"]["Ready"]["status"] == "True"
        await process.manager.stop()

    run_in_virtual_time(steps)


def test_status_is_right_at_once_after_downtime() -> None:
    """A restart during a day of the calendar needs no history."""

    async def steps(harness: CalendarHarness) -> None:
        harness.write(CHRISTMAS)
        first = harness.start_process("one")
        await harness.clock.sleep(1)
        first.crash()
        await harness.advance_to("2026-12-25T10:00:00Z")
        assert harness.status()["conditions"]["Active"]["status"] == "False"

        second = harness.start_process("two")
        await harness.clock.sleep(30)
        assert harness.status()["conditions"]["Active"]["status"] == "True"
        assert harness.status()["nextDates"] == ["2026-12-25", "2026-12-31"]
        await second.manager.stop()

    run_in_virtual_time(steps)


def test_deleted_calendar_is_not_written() -> None:
    """Nothing is written at its next day."""

    async def steps(harness: CalendarHarness) -> None:
        harness.write(CHRISTMAS)
        process = harness.start_process()
        await harness.clock.sleep(1)
        harness.world.server.delete(CALENDARS, KEY, USER)
        await harness.clock.sleep(30 * DAY)

        assert harness.status_writes() == [0]
        assert process.manager.health()[0].errors == 0
        await process.manager.stop()

    run_in_virtual_time(steps)


def test_status_fields_of_other_managers_are_kept() -> None:
    """The controller owns only its conditions and dates."""

    async def steps(harness: CalendarHarness) -> None:
        harness.write(CHRISTMAS)
        process = harness.start_process()
        await harness.clock.sleep(1)
        other = {
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
            "status": {"conditions": [other]},
        }
        harness.world.server.patch(CALENDARS, KEY, Patch.apply(body), USER, subresource="status")
        await harness.advance_to("2026-12-23T23:00:00Z")

        conditions = harness.status()["conditions"]
        assert conditions["Approved"] == other
        assert conditions["Active"]["status"] == "True"
        await process.manager.stop()

    run_in_virtual_time(steps)


def test_controller_reads_calendars_and_writes_their_status() -> None:
    """It has no other permissions."""
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
