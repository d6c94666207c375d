"""Scenarios: what happens in a simulated cluster, written in a few lines and run by the simulator.

::

    outcome = (
        Scenario("a calendar follows its days", start="2026-12-23T12:00:00Z")
        .given(calendar("holidays", dates=["2026-12-24", "2026-12-25"]))
        .running(CalendarController, replicas=2)
        .at("6h", edit("Calendar", "holidays", {"spec": {"dates": ["2026-12-25"]}}))
        .under(Severity.HEAVY)
        .always(NoLostUpdates, StoresFollowTheServer)
        .settling("10m")
        .run("1d", seed=7)
    )

    assert outcome.object("Calendar", "holidays")["status"]["nextDates"] == ["2026-12-25"]

See `docs/scenarios.md`.
"""

from springtide.simulator.scenario.actions import (
    compact,
    crash,
    create,
    delete,
    edit,
    find,
    lose,
    pause,
    restart_server,
    scale,
    step_clock,
)
from springtide.simulator.scenario.invariants import (
    Invariant,
    InvariantViolated,
    NoLostUpdates,
    OnlyTheLeaderWrites,
    SharedObjectsAreNotMutated,
    StoresFollowTheServer,
)
from springtide.simulator.scenario.scenario import Outcome, Scenario, play

__all__ = [
    "Invariant",
    "InvariantViolated",
    "NoLostUpdates",
    "OnlyTheLeaderWrites",
    "Outcome",
    "Scenario",
    "SharedObjectsAreNotMutated",
    "StoresFollowTheServer",
    "compact",
    "crash",
    "create",
    "delete",
    "edit",
    "find",
    "lose",
    "pause",
    "play",
    "restart_server",
    "scale",
    "step_clock",
]
