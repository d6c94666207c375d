"""Nothing is lost under heavy faults; and if something were, these scenarios would find it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.scenarios.bugs import BUGS
from tests.scenarios.calendar_lease import LENGTH, calendar_lease
from tests.scenarios.seeds import play

from springtide.simulator.scenario import Broken

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


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_deliberate_bug_is_found(bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariants that catch nothing are worth nothing."""
    bug(monkeypatch)

    assert any(_breaks(seed) for seed in range(_ENOUGH))


def _breaks(seed: int) -> bool:
    try:
        calendar_lease().run(LENGTH, seed=seed)
    except Broken:
        return True
    return False


def test_faults_do_strike() -> None:
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
