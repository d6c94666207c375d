"""Calendars that are edited once, in one process that nothing restarts: whatever is missed is missed for good.

Where leaders change and people edit all the time, everything is looked at again soon, and a lost wake-up does no harm.
Here half of the calendars change once in all, and the days of the others change by themselves while everything settles.
"""

from __future__ import annotations

from tests.scenarios.calendar_lease import LENGTH, StatusIsRight, calendar

from springtide.controllers.calendar import CalendarController
from springtide.simulator.faults import Faults, Severity
from springtide.simulator.scenario import (
    NoLostUpdates,
    Scenario,
    SharedObjectsAreNotMutated,
    StoresFollowTheServer,
    edit,
)

__all__ = ["LENGTH", "quiet_calendars"]


_CALENDARS = 24
_BETWEEN = 32
"""Seconds between two edits."""


def quiet_calendars() -> Scenario:
    """Return the story: midnight in Berlin falls into the time when everything settles."""
    scenario = (
        Scenario("calendars that are edited once", start="2026-12-31T22:44:00Z")
        .running(CalendarController)
        .under(Faults.of(Severity.HEAVY).but(crash_every=0, pause_every=0))
        .always(SharedObjectsAreNotMutated, NoLostUpdates, StoresFollowTheServer, StatusIsRight)
        .settling("4m")
    )
    for number in range(_CALENDARS):
        name = f"quiet-{number}"
        far = number % 2 == 0
        zone = "America/New_York" if far else "Europe/Berlin"
        before = ["2027-03-01"] if far else ["2026-12-31", "2027-01-01"]
        after = [f"2027-03-{2 + number:02d}"] if far else ["2026-12-31", f"2027-01-{2 + number:02d}"]
        scenario = scenario.given(calendar(name, timeZone=zone, dates=before)).at(
            f"{60 + number * _BETWEEN}s", edit("Calendar", name, {"spec": {"dates": after}})
        )
    return scenario
