"""Failed and conflicting writes: each applied firing is recorded once and applied once."""

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
from tests.controllers.cron_federated_hpa.test_controller import EIGHT, cron_scenario, down, rules

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


class CrashAfterWrite(Invariant):
    """Kill the process right after its n-th write, and start it again five minutes later."""

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
def test_crash_between_two_writes_is_recovered(write: int, executed: str) -> None:
    """The target is scaled once, there is one record, and the cursor is moved in the end."""
    outcome = cron_scenario(deployment(), cron(EIGHT)).always(lambda: CrashAfterWrite(write)).run("1h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-06-05T08:30:00Z", 7)]
    assert successes(outcome, "r") == [("2026-06-05T08:30:00Z", executed)]
    assert failures(outcome, "r") == []
    assert cursor(outcome).startswith('{"r":{"handled":"2026-06-05T08:30:00Z"')


def test_edit_before_the_first_record_does_not_lose_the_firing() -> None:
    """The cursor is written before the first firing is applied, and has the time before the edit."""
    outcome = (
        cron_scenario(deployment(), cron(EIGHT))
        .at("0s", down(2400))
        .always(lambda: CrashAfterWrite(2))
        .at("42m", rules({**EIGHT, "targetReplicas": 9}))
        .run("1h")
    )

    assert [at for at, _ in successes(outcome, "r")] == [FIRES]


class FailStatusWrites(Invariant):
    """Fail status writes for two minutes; with `silently`, write them and lose the answer."""

    def __init__(self, *, silently: bool = False) -> None:
        self._silently = silently

    def begin(self, world: World) -> None:
        """Wrap the patch method of the API server."""
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
def test_applied_firing_is_recorded_after_status_failures(more: dict[str, int]) -> None:
    """The record has the time of the execution, also when the delay limit has passed since."""
    outcome = cron_scenario(deployment(), cron({**EIGHT, **more})).always(FailStatusWrites).run("1h")

    assert changes(outcome, "Deployment", "replicas") == ONCE
    assert (successes(outcome, "r"), failures(outcome, "r")) == ([(FIRES, FIRES)], [])
    assert len(events(outcome, "Scaled")) == 1


def test_all_firings_applied_during_status_failures_are_recorded() -> None:
    """None is recorded as missed."""
    every = rule("r", "* * * * *", 7, failedHistoryLimit=1)
    outcome = (
        cron_scenario(deployment(), cron(every), start="2026-06-05T08:29:30Z").always(FailStatusWrites).run("170s")
    )

    times = ["2026-06-05T08:32:00Z", "2026-06-05T08:31:00Z", FIRES]
    assert (successes(outcome, "r"), failures(outcome, "r")) == ([(at, at) for at in times], [])


def test_scale_set_by_a_user_is_kept_until_the_next_firing() -> None:
    """A rule sets the scale once for each firing."""
    outcome = (
        cron_scenario(deployment(), cron(EIGHT))
        .always(FailStatusWrites)
        .at("30m25s", scale("Deployment", "shop", 3))
        .run("1h")
    )

    assert changes(outcome, "Deployment", "replicas") == ONCE
    assert outcome.object("Deployment", "shop")["spec"]["replicas"] == 3


class EditAfterWrite(Invariant):
    """Change the object right after the controller's first write of a kind."""

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
        pytest.param(rule("r", "45 8 * * *", 7), ["2026-06-05T08:45:00Z", FIRES], id="schedule changed"),
        pytest.param(rule("r", "45 25 * * *", 7), [FIRES], id="invalid schedule"),
    ],
)
@pytest.mark.parametrize("silently", [False, True], ids=["refused", "unanswered"])
def test_applied_firing_is_recorded_after_its_rule_changes(
    rule_then: Object, recorded: list[str], silently: bool
) -> None:
    """One success is recorded, also when a user suspends the rule right after the firing."""
    outcome = (
        cron_scenario(deployment(), cron(EIGHT))
        .always(
            lambda: FailStatusWrites(silently=silently),
            lambda: EditAfterWrite("Deployment", lambda item: {"spec": {"rules": [rule_then]}}),
        )
        .run("1h")
    )

    assert changes(outcome, "Deployment", "replicas") == ONCE
    assert ([at for at, _ in successes(outcome, "r")], failures(outcome, "r")) == (recorded, [])


def test_cursor_moved_by_a_user_is_not_moved_back() -> None:
    """A user moves it ahead to skip firings; a concurrent write of the controller does not revert that."""

    def moved(item: Object) -> Object:
        (mark,) = (read_cursor(item["metadata"]["annotations"][ANNOTATION]) or {}).values()
        ahead = mark.__class__(parse_instant("2026-06-05T10:45:00Z"), mark.timing, mark.in_force)
        return {"metadata": {"annotations": {ANNOTATION: write_cursor({"r": ahead})}}}

    outcome = (
        cron_scenario(deployment(), cron(rule("r", "30 * * * *", 7)))
        .always(lambda: EditAfterWrite("CronFederatedHPA", moved))
        .run("4h")
    )

    assert [at for at, _ in successes(outcome, "r")] == ["2026-06-05T11:30:00Z", FIRES]
