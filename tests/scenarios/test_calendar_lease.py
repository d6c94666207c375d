"""Nothing is lost under heavy faults; and if something were, these scenarios would find it."""

from __future__ import annotations

import pytest
from tests.scenarios.bugs import UNDER_A_LEASE, WHERE_NOTHING_COMES_AGAIN, Bug
from tests.scenarios.calendar_lease import LENGTH, calendar_lease
from tests.scenarios.quiet_calendars import quiet_calendars

from springtide.simulator.scenario import InvariantViolated, Scenario, play

_BLOCK = 25
_ENOUGH = 200


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_a_sample_of_seeds_breaks_nothing(first: int) -> None:
    """No ex-leader's write has an effect, no update is lost, every store follows the server and arrives."""
    play(calendar_lease(), LENGTH, range(first, first + 10))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1000, 2000, _BLOCK))
def test_a_thousand_seeds_break_nothing(first: int) -> None:
    """The same, a thousand times."""
    play(calendar_lease(), LENGTH, range(first, first + _BLOCK))


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_no_window_is_missed_without_resync(first: int) -> None:
    """Every wake-up counts: of failures, of instants, of changes."""
    play(quiet_calendars(), LENGTH, range(first, first + 10))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1000, 1200, _BLOCK))
def test_two_hundred_seeds_miss_no_window(first: int) -> None:
    """The same, more often."""
    play(quiet_calendars(), LENGTH, range(first, first + _BLOCK))


@pytest.mark.parametrize(
    ("bug", "scenario"),
    [
        *(pytest.param(bug, calendar_lease(), id=bug.__name__) for bug in UNDER_A_LEASE),
        *(pytest.param(bug, quiet_calendars(), id=bug.__name__) for bug in WHERE_NOTHING_COMES_AGAIN),
    ],
)
def test_a_deliberate_bug_is_found(bug: Bug, scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariants that catch nothing are worth nothing."""
    bug(monkeypatch)

    assert any(_breaks(scenario, seed) for seed in range(_ENOUGH))


def _breaks(scenario: Scenario, seed: int) -> bool:
    try:
        scenario.run(LENGTH, seed=seed)
    except InvariantViolated:
        return True
    return False


def test_faults_are_injected() -> None:
    """A calm world would break nothing either: leadership must change hands, and processes must be restarted."""
    (outcome,) = play(calendar_lease(), LENGTH, [3])

    holders = [
        change[1]
        for entry in outcome.trace
        if entry.kind == "Lease"
        for path, change in entry.change.items()
        if path == "spec.holderIdentity"
    ]
    assert len(holders) >= 3
    assert sum(process.starts for process in outcome.world.processes) > len(outcome.world.processes)
