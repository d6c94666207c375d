"""Writes that fail, or that somebody gets in between: what was applied is recorded so, once, and not applied again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.controllers.cron_federated_hpa.harness import (
    MANAGER,
    changes,
    cron,
    cursor,
    deployment,
    events,
    failures,
    rule,
    successes,
)
from tests.controllers.cron_federated_hpa.test_controller import EIGHT, down, rules, story

from springtide.apis.meta.times import parse_instant
from springtide.apiserver.server import CommittedWrite
from springtide.cluster.errors import ServerError
from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import Patch, Write
from springtide.controllers.cron_federated_hpa.cursor import ANNOTATION, read_cursor, write_cursor
from springtide.simulator.scenario import Invariant, scale
from springtide.simulator.world import World

FIRES = "2026-06-05T08:30:00Z"
ONCE = [(FIRES, 7)]


class DiesAfter(Invariant):
    """Kills the process right after its n-th write, and starts it again five minutes later."""

    def __init__(self, number: int) -> None:
        self._left = number

    def wrote(self, world: World, written: CommittedWrite) -> None:
        """Count the writes from the first firing on."""
        if (
            written.write.manager != MANAGER
            or written.resource.kind == "Event"
            or world.clock.now() < parse_instant(FIRES)
        ):
            return
        self._left -= 1
        if self._left == 0:
            process = world.process("springtide-0")
            process.crash()
            world.loop.call_later(300, process.start)


@pytest.mark.parametrize(
    ("write", "executed"),
    [
        pytest.param(1, "2026-06-05T08:35:00Z", id="after-the-target"),
        pytest.param(2, "2026-06-05T08:30:00Z", id="after-the-status"),
        pytest.param(3, "2026-06-05T08:30:00Z", id="after-the-cursor"),
    ],
)
def test_whoever_dies_between_two_writes_is_made_up_for(write: int, executed: str) -> None:
    """The target is scaled once, there is one record, and in the end the cursor is where it belongs."""
    outcome = story(deployment(), cron(EIGHT)).always(lambda: DiesAfter(write)).run("1h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:30:00Z", 7)]
    assert successes(outcome, "r") == [("2026-06-05T08:30:00Z", executed)]
    assert failures(outcome, "r") == []
    assert cursor(outcome).startswith('{"r":{"handled":"2026-06-05T08:30:00Z"')


def test_an_object_that_is_edited_before_its_first_firing_is_recorded_loses_nothing() -> None:
    """It began before it was edited, and that stands in its cursor before anything is done."""
    outcome = (
        story(deployment(), cron(EIGHT))
        .at("0s", down(2400))
        .always(lambda: DiesAfter(2))
        .at("42m", rules({**EIGHT, "targetReplicas": 9}))
        .run("1h")
    )

    assert [at for at, _ in successes(outcome, "r")] == [FIRES]


class StatusFails(Invariant):
    """For two minutes no status can be written; or they are written, and nobody is told so."""

    def __init__(self, *, silently: bool = False) -> None:
        self._silently = silently

    def begin(self, world: World) -> None:
        """Stand before the server."""
        world.server.patch = self._failing(world, world.server.patch)  # type: ignore[method-assign]

    def _failing(self, world: World, patch: Callable[..., Object]) -> Callable[..., Object]:
        def failing(resource: Any, *given: Any, **more: Any) -> Object:
            concerned = resource.kind == "CronFederatedHPA" and more.get("subresource") == "status"
            if not concerned or not 0 <= world.clock.now() - parse_instant(FIRES) < 120:
                return patch(resource, *given, **more)
            if self._silently:
                patch(resource, *given, **more)
            raise ServerError("etcdserver: request timed out")

        return failing


@pytest.mark.parametrize("more", [{}, {"maxDelaySeconds": 60}], ids=["whenever", "in-time"])
def test_what_was_applied_is_recorded_when_the_status_can_be_written_again(more: dict[str, int]) -> None:
    """At the second at which it was applied, even if by now it would be too late."""
    outcome = story(deployment(), cron({**EIGHT, **more})).always(StatusFails).run("1h")

    assert changes(outcome, "Deployment", "replicas") == ONCE
    assert (successes(outcome, "r"), failures(outcome, "r")) == ([(FIRES, FIRES)], [])
    assert len(events(outcome, "Scaled")) == 1


def test_all_that_was_applied_meanwhile_is_recorded() -> None:
    """None of it was missed."""
    every = rule("r", "* * * * *", 7, failedHistoryLimit=1)
    outcome = story(deployment(), cron(every), start="2026-06-05T08:29:30Z").always(StatusFails).run("170s")

    times = ["2026-06-05T08:32:00Z", "2026-06-05T08:31:00Z", FIRES]
    assert (successes(outcome, "r"), failures(outcome, "r")) == ([(at, at) for at in times], [])


def test_what_somebody_does_meanwhile_is_left_alone() -> None:
    """A rule sets its number once: hands that come later win until it fires again."""
    outcome = (
        story(deployment(), cron(EIGHT)).always(StatusFails).at("30m25s", scale("Deployment", "shop", 3)).run("1h")
    )

    assert changes(outcome, "Deployment", "replicas") == ONCE
    assert outcome.object("Deployment", "shop")["spec"]["replicas"] == 3


class GetsInBetween(Invariant):
    """Somebody changes the object right after our first write of a kind."""

    def __init__(self, kind: str, change: Callable[[Object], Object]) -> None:
        self._kind: str | None = kind
        self._change = change

    def wrote(self, world: World, written: CommittedWrite) -> None:
        """Wait for the first firing."""
        late = world.clock.now() >= parse_instant(FIRES)
        if not late or written.write.manager != MANAGER or written.resource.kind != self._kind:
            return
        self._kind = None
        world.loop.call_soon(self._write, world)

    def _write(self, world: World) -> None:
        resource, key = world.resource("CronFederatedHPA"), Key("default", "daily")
        change = self._change(world.object("CronFederatedHPA", "daily"))
        world.server.patch(resource, key, Patch.merge(change), Write("user"))


@pytest.mark.parametrize(
    ("rule_then", "recorded"),
    [
        pytest.param({**EIGHT, "suspend": True}, [FIRES], id="suspended"),
        pytest.param(rule("r", "45 8 * * *", 7), ["2026-06-05T08:45:00Z", FIRES], id="other-times"),
        pytest.param(rule("r", "45 25 * * *", 7), [FIRES], id="impossible-times"),
    ],
)
@pytest.mark.parametrize("silently", [False, True], ids=["refused", "unanswered"])
def test_what_was_applied_is_recorded_whatever_becomes_of_its_rule(
    rule_then: Object, recorded: list[str], silently: bool
) -> None:
    """Exactly once, as a success: who suspends a rule that has just fired did not keep it from firing."""
    outcome = (
        story(deployment(), cron(EIGHT))
        .always(
            lambda: StatusFails(silently=silently),
            lambda: GetsInBetween("Deployment", lambda item: {"spec": {"rules": [rule_then]}}),
        )
        .run("1h")
    )

    assert changes(outcome, "Deployment", "replicas") == ONCE
    assert ([at for at, _ in successes(outcome, "r")], failures(outcome, "r")) == (recorded, [])


def test_a_cursor_that_somebody_moves_is_not_moved_back() -> None:
    """Whoever moves it ahead wants firings to be left out, and is not overruled by a write that was under way."""

    def moved(item: Object) -> Object:
        (mark,) = (read_cursor(item["metadata"]["annotations"][ANNOTATION]) or {}).values()
        ahead = mark.__class__(parse_instant("2026-06-05T10:45:00Z"), mark.timing, mark.in_force)
        return {"metadata": {"annotations": {ANNOTATION: write_cursor({"r": ahead})}}}

    outcome = (
        story(deployment(), cron(rule("r", "30 * * * *", 7)))
        .always(lambda: GetsInBetween("CronFederatedHPA", moved))
        .run("4h")
    )

    assert [at for at, _ in successes(outcome, "r")] == ["2026-06-05T11:30:00Z", FIRES]
