"""Plays a scenario and prints its trace: in a process of its own, to compare the bytes with those of another one."""

from __future__ import annotations

import sys

from tests.scenarios.calendar_lease import LENGTH, calendar, calendar_lease

from springtide.controllers.calendar import CalendarController
from springtide.simulator.scenario import Scenario, edit


def four_hundred_days() -> Scenario:
    """Calendars over more than a year: leap seconds of floats, a year's end and four clock changes."""
    return (
        Scenario("a year and a month", start="2026-11-16T00:00:00Z")
        .given(
            calendar("berlin", timeZone="Europe/Berlin", yearly=["03-28", "10-31", "12-25"]),
            calendar("samoa", timeZone="Pacific/Apia", yearly=["04-01", "09-30"], dates=["2027-12-20"]),
            calendar("sao-paulo", timeZone="America/Sao_Paulo", ranges=[{"from": "2027-06-01", "until": "2027-06-20"}]),
        )
        .running(CalendarController)
        .at("30d", edit("Calendar", "berlin", {"spec": {"yearly": ["01-01", "12-25"]}}))
        .at("399d", edit("Calendar", "samoa", {"spec": {"dates": ["2027-12-21"]}}))
    )


def main() -> None:
    """Print the trace of the story that the first argument names, played with the seed of the second."""
    name, seed = sys.argv[1], int(sys.argv[2])
    if name == "lease":
        outcome = calendar_lease().run(LENGTH, seed=seed)
    else:
        outcome = four_hundred_days().run("400d", seed=seed)
    sys.stdout.buffer.write(outcome.trace_bytes())


if __name__ == "__main__":
    main()
