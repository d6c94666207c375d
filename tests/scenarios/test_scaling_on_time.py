"""From a schedule to replicas through everything that can go wrong; and if it were not so, it would be found."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scenarios.scaling_on_time import LENGTH, START, scaling_under_faults, timeline

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import parse_instant
from springtide.cluster.controller import Result
from springtide.controllers.metrics_producer import MetricsProducerController
from springtide.simulator.faults import Severity
from springtide.simulator.scenario import InvariantViolated, play

_BLOCK = 25


def test_without_faults_every_change_comes_at_its_second() -> None:
    """The metric, the autoscaler and the Deployment change at the instants of the preview, and at no others."""
    outcome = scaling_under_faults(Severity.NONE).run(LENGTH)

    sizes = [
        (format_instant(entry.at), entry.change["spec.replicas"][1])
        for entry in outcome.trace
        if entry.kind == "Deployment" and "spec.replicas" in entry.change
    ]
    begin = parse_instant(START)
    expected = [(format_instant(at), value) for at, value in timeline().changes(begin, begin + 40 * 60)]
    assert sizes == expected
    assert ("2026-03-29T01:00:00Z", 9) in expected, "a start that the night does not have"


@pytest.mark.parametrize("first", range(0, 6, 3))
def test_a_sample_of_seeds_ends_where_the_schedule_says(first: int) -> None:
    play(scaling_under_faults(), LENGTH, range(first, first + 3))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1000, 2000, _BLOCK))
def test_a_thousand_seeds_end_where_the_schedule_says(first: int) -> None:
    play(scaling_under_faults(), LENGTH, range(first, first + _BLOCK))


def test_a_producer_without_requeue_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """An invariant that catches nothing is worth nothing."""
    reconcile = MetricsProducerController.reconcile

    async def forgetful(self: MetricsProducerController, *given: Any) -> Result | None:
        await reconcile(self, *given)
        return None

    monkeypatch.setattr(MetricsProducerController, "reconcile", forgetful)
    with pytest.raises(InvariantViolated, match="in the end the schedule asks for"):
        scaling_under_faults(Severity.NONE).run(LENGTH)
