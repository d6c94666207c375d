"""Fault injection for HorizontalAutoscaler: an invariant of scale down, and the final scale."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from tests.controllers.horizontal_autoscaler.harness import (
    SCHEDULED,
    START,
    AutoscalerHarness,
    autoscaler,
    deployment,
    metric,
    scaled,
)

from springtide.apis.meta.times import parse_instant
from springtide.apiserver.server import CommittedWrite
from springtide.cluster.resources import Key
from springtide.simulator.faults import Faults, Severity
from springtide.simulator.scenario import (
    Invariant,
    InvariantViolated,
    NoLostUpdates,
    OnlyTheLeaderWrites,
    Scenario,
    SharedObjectsAreNotMutated,
    StoresFollowTheServer,
    play,
)
from springtide.simulator.world import World

MANAGER = "springtide-horizontal-autoscaler"
WINDOW = 120
LEAST, MOST = 2, 9
SCHEDULE = ((0, 4), (300, 8), (700, 3), (1000, 12), (1400, 5), (1700, 1))
"""Seconds since the start, and the replicas of the schedule from then on."""


class ScaleDownRespectsTheWindow(Invariant):
    """The autoscaler stays within the bounds, and goes no lower than the schedule within the stabilization window."""

    def wrote(self, world: World, written: CommittedWrite) -> None:
        """Check every scale change of the autoscaler."""
        if written.write.manager != MANAGER or written.resource.kind != "Deployment" or written.new is None:
            return
        after, before = written.new["spec"]["replicas"], (written.old or written.new)["spec"]["replicas"]
        if not LEAST <= after <= MOST:
            raise InvariantViolated(f"{after} replicas are outside the bounds")
        if after < before and after < max(_scheduled(world.clock.now() - parse_instant(START), WINDOW)):
            raise InvariantViolated(
                f"from {before} to {after} replicas, although more were asked for within the window"
            )


def _scheduled(now: int, window: int) -> Sequence[int]:
    """List the replicas of the schedule within a window, clamped to the bounds."""
    ends = [at for at, _ in SCHEDULE[1:]] + [10**9]
    return [
        max(LEAST, min(MOST, value))
        for (at, value), end in zip(SCHEDULE, ends, strict=True)
        if at <= now and end > now - window
    ]


def _fault_scenario() -> Scenario:
    harness = AutoscalerHarness()

    async def begin(world: World) -> None:
        # The harness is used for several runs: each run begins with the first value.
        harness.set_metric(SCHEDULED, SCHEDULE[0][1])

    harness.set_metric(SCHEDULED, SCHEDULE[0][1])
    written = autoscaler(
        metric(), least=LEAST, most=MOST, behavior={"scaleDown": {"stabilizationWindowSeconds": WINDOW}}
    )
    scenario = harness.scenario(deployment(4), written, replicas=2).at("0s", begin)
    for at, value in SCHEDULE[1:]:
        scenario = scenario.at(f"{at}s", harness.metric_change(SCHEDULED, value))
    return (
        scenario.under(Severity.HEAVY)
        .always(
            ScaleDownRespectsTheWindow,
            NoLostUpdates,
            SharedObjectsAreNotMutated,
            StoresFollowTheServer,
            lambda: OnlyTheLeaderWrites(Key("springtide-system", "springtide"), MANAGER),
        )
        .settling("5m")
    )


def _check_final_scale(seeds: range) -> None:
    for outcome in play(_fault_scenario(), "40m", seeds):
        assert outcome.object("Deployment", "web", namespace="shop")["spec"]["replicas"] == LEAST
        status = outcome.object("HorizontalAutoscaler", "web", namespace="shop")["status"]
        assert (status["desiredReplicas"], status["currentReplicas"]) == (LEAST, LEAST)


def test_scale_follows_the_schedule_under_heavy_faults() -> None:
    _check_final_scale(range(3))


@pytest.mark.soak
def test_scale_follows_the_schedule_under_heavy_faults_with_many_seeds() -> None:
    _check_final_scale(range(300))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(Faults(failed_after=0.5), id="written before the failure"),
        pytest.param(Faults(failed_before=0.5), id="not written"),
    ],
)
def test_scale_change_with_unknown_result_counts_for_policies_if_written(faults: Faults, seed: int) -> None:
    """Half of the writes fail without an answer; the policy allows two replicas a minute, each change has one event."""
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 12)
    policies = [{"type": "Count", "value": 2, "periodSeconds": 60}]
    written = autoscaler(metric(), behavior={"scaleUp": {"policies": policies}})
    outcome = harness.scenario(deployment(2), written).under(faults).settling("2m").run("10m", seed=seed)

    sizes = scaled(outcome)
    assert [size for _, size in sizes] == [4, 6, 8, 10, 12]
    assert all(later - earlier >= 60 for (earlier, _), (later, _) in pairwise(sizes))
    status = outcome.object("HorizontalAutoscaler", "web", namespace="shop")["status"]
    last = parse_instant(status["lastScaleTime"]) - parse_instant(START)
    assert last == sizes[-1][0]
    events = [one for one in outcome.objects("Event") if one["reason"] == "SuccessfulRescale"]
    assert sorted(one["message"].split(":")[0] for one in events) == sorted(
        f"scaled Deployment web from {size - 2} to {size}" for size in (4, 6, 8, 10, 12)
    )
    assert all(one.get("count", 1) == 1 for one in events)


@pytest.mark.parametrize("seed", range(4))
def test_scale_change_refused_with_a_conflict_is_retried_soon(seed: int) -> None:
    """The retry does not wait for the next period."""
    harness = AutoscalerHarness()
    harness.set_metric(SCHEDULED, 3)
    outcome = (
        harness.scenario(deployment(3), autoscaler(metric()))
        .at("100s", harness.metric_change(SCHEDULED, 7))
        .under(Faults(conflict=0.6))
        .run("130s", seed=seed)
    )

    ((at, size),) = scaled(outcome)
    assert size == 7
    assert at < 105
