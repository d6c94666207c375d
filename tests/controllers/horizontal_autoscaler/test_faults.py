"""The controller while everything goes wrong: what is never done, and where it ends."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from tests.controllers.horizontal_autoscaler.harness import (
    SCHEDULED,
    START,
    Stage,
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
TOLD = ((0, 4), (300, 8), (700, 3), (1000, 12), (1400, 5), (1700, 1))
"""Seconds since the start, and what the schedule asks for from then on."""


class NothingIsTakenAwayTooSoon(Invariant):
    """The autoscaler stays within the bounds, and goes no lower than the schedule was within the window."""

    def wrote(self, world: World, written: CommittedWrite) -> None:
        """Look at every change of the Deployment's size that the autoscaler makes."""
        if written.write.manager != MANAGER or written.resource.kind != "Deployment" or written.new is None:
            return
        after, before = written.new["spec"]["replicas"], (written.old or written.new)["spec"]["replicas"]
        if not LEAST <= after <= MOST:
            raise InvariantViolated(f"{after} replicas are outside the bounds")
        if after < before and after < max(_asked(world.clock.now() - parse_instant(START), WINDOW)):
            raise InvariantViolated(
                f"from {before} to {after} replicas, although more were asked for within the window"
            )


def _asked(now: int, window: int) -> Sequence[int]:
    """List what was asked for within a window, brought within the bounds."""
    ends = [at for at, _ in TOLD[1:]] + [10**9]
    return [
        max(LEAST, min(MOST, value))
        for (at, value), end in zip(TOLD, ends, strict=True)
        if at <= now and end > now - window
    ]


def _troubled() -> Scenario:
    stage = Stage()

    async def begin(world: World) -> None:
        # The stage outlives a run: every run begins with the first value.
        stage.tell(SCHEDULED, TOLD[0][1])

    stage.tell(SCHEDULED, TOLD[0][1])
    written = autoscaler(
        metric(), least=LEAST, most=MOST, behavior={"scaleDown": {"stabilizationWindowSeconds": WINDOW}}
    )
    scenario = stage.scenario(deployment(4), written, replicas=2).at("0s", begin)
    for at, value in TOLD[1:]:
        scenario = scenario.at(f"{at}s", stage.telling(SCHEDULED, value))
    return (
        scenario.under(Severity.HEAVY)
        .always(
            NothingIsTakenAwayTooSoon,
            NoLostUpdates,
            SharedObjectsAreNotMutated,
            StoresFollowTheServer,
            lambda: OnlyTheLeaderWrites(Key("springtide-system", "springtide"), MANAGER),
        )
        .settling("5m")
    )


def _ends_well(seeds: range) -> None:
    for outcome in play(_troubled(), "40m", seeds):
        assert outcome.object("Deployment", "web", namespace="shop")["spec"]["replicas"] == LEAST
        status = outcome.object("HorizontalAutoscaler", "web", namespace="shop")["status"]
        assert (status["desiredReplicas"], status["currentReplicas"]) == (LEAST, LEAST)


def test_it_follows_the_schedule_through_heavy_faults() -> None:
    _ends_well(range(3))


@pytest.mark.soak
def test_it_follows_the_schedule_through_heavy_faults_of_many_worlds() -> None:
    _ends_well(range(300))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "faults",
    [pytest.param(Faults(failed_after=0.5), id="made"), pytest.param(Faults(failed_before=0.5), id="not-made")],
)
def test_a_change_without_an_answer_counts_against_the_policies_if_it_was_made(faults: Faults, seed: int) -> None:
    """Of half of all writes nobody tells what became of them; two replicas a minute are two, and are told of once."""
    stage = Stage()
    stage.tell(SCHEDULED, 12)
    policies = [{"type": "Count", "value": 2, "periodSeconds": 60}]
    written = autoscaler(metric(), behavior={"scaleUp": {"policies": policies}})
    outcome = stage.scenario(deployment(2), written).under(faults).settling("2m").run("10m", seed=seed)

    sizes = scaled(outcome)
    assert [size for _, size in sizes] == [4, 6, 8, 10, 12]
    assert all(later - earlier >= 60 for (earlier, _), (later, _) in pairwise(sizes))
    status = outcome.object("HorizontalAutoscaler", "web", namespace="shop")["status"]
    last = parse_instant(status["lastScaleTime"]) - parse_instant(START)
    assert last == sizes[-1][0]
    told = [one for one in outcome.objects("Event") if one["reason"] == "SuccessfulRescale"]
    assert sorted(one["message"].split(":")[0] for one in told) == sorted(
        f"scaled Deployment web from {size - 2} to {size}" for size in (4, 6, 8, 10, 12)
    )
    assert all(one.get("count", 1) == 1 for one in told)


@pytest.mark.parametrize("seed", range(4))
def test_a_change_that_was_refused_is_tried_again_soon(seed: int) -> None:
    """The wake-up by the series is not forgotten with the look that failed."""
    stage = Stage()
    stage.tell(SCHEDULED, 3)
    outcome = (
        stage.scenario(deployment(3), autoscaler(metric()))
        .at("100s", stage.telling(SCHEDULED, 7))
        .under(Faults(conflict=0.6))
        .run("130s", seed=seed)
    )

    ((at, size),) = scaled(outcome)
    assert size == 7
    assert at < 105
