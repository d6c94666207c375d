"""The scenario that the runtime is proven by: calendars that people edit, replicas of which one leads, and rivals.

Everything can happen to it: requests fail before and after they took effect, streams lag, repeat themselves and break,
history is compacted, the server is restarted, and the replicas crash and stand still at any await.
"""

from __future__ import annotations

from random import Random
from typing import Any

from springtide.apiserver.kinds import collection_id
from springtide.apiserver.server import CommittedWrite
from springtide.cluster.errors import ClusterError, Conflict
from springtide.cluster.pausing import ANNOTATION as PAUSED
from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import Patch, Precondition, Write
from springtide.controllers.calendar import CALENDARS, CalendarController
from springtide.controllers.calendar.decide import decide
from springtide.simulator.faults import Severity
from springtide.simulator.processes import Main, ProcessRun
from springtide.simulator.scenario import (
    Invariant,
    InvariantViolated,
    NoLostUpdates,
    OnlyTheLeaderWrites,
    Scenario,
    SharedObjectsAreNotMutated,
    StoresFollowTheServer,
    create,
    delete,
    edit,
)
from springtide.simulator.world import World

START = "2026-12-31T22:52:00Z"
"""Minutes before midnight in Berlin: the status of calendars changes by itself meanwhile."""
LENGTH = "18m"
TOKENS = "tests.springtide.dev/tokens"
MANAGER = "springtide-calendar"
_NAMES = ("berlin", "freeze", "holidays", "utc")


def calendar(name: str, **spec: Any) -> Object:
    """A calendar with these days."""
    return {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Calendar",
        "metadata": {"name": name},
        "spec": {"dates": ["2027-01-01"], **spec},
    }


class TokensStay(Invariant):
    """No update is lost: a token written to a calendar stays until the calendar is deleted."""

    def wrote(self, world: World, written: CommittedWrite) -> None:
        """Compare the tokens before and after."""
        if written.resource != CALENDARS or written.old is None or written.new is None:
            return
        before, after = _tokens(written.old), _tokens(written.new)
        lost = [token for token in before if token not in after]
        if lost:
            msg = f"{written.verb} of {written.key} by {written.write.manager} lost the updates {', '.join(lost)}"
            raise InvariantViolated(msg)


class PausedStays(Invariant):
    """Paused objects are not written, not even by a controller that decided before the pause."""

    def wrote(self, world: World, written: CommittedWrite) -> None:
        """Look at what the write has met."""
        if written.write.manager == MANAGER and written.old is not None and _is_paused(written.old):
            msg = f"{written.verb} of {written.key} took effect although it was paused"
            raise InvariantViolated(msg)


class StatusIsRight(Invariant):
    """In the end every calendar that is not paused says what it comes to."""

    def end(self, world: World) -> None:
        """Decide once more, and compare."""
        for _, item in world.server.objects(collection_id(CALENDARS)):
            expected = decide(item, world.clock.now()).status["nextDates"] or []
            if not _is_paused(item) and item.get("status", {}).get("nextDates", []) != expected:
                msg = f"{item['metadata']['name']} says {item.get('status')}, expected the dates {expected}"
                raise InvariantViolated(msg)


def putting_tokens() -> Main:
    """A rival that reads a calendar, adds a token, and writes it back: the classic lost update, if it were careless."""

    async def main(incarnation: ProcessRun) -> None:
        count = 0
        transport, random = incarnation.transport, incarnation.random
        while True:
            await incarnation.clock.sleep(5 + random.random() * 30)
            count += 1
            token = f"{incarnation.identity}.{count}"
            for _ in range(5):
                try:
                    await _put_token(transport, _NAMES[random.randrange(len(_NAMES))], token)
                    break
                except Conflict:
                    continue
                except ClusterError:
                    await incarnation.clock.sleep(1)

    return main


async def _put_token(transport: Any, name: str, token: str) -> None:
    item = await transport.get(CALENDARS, Key("", name))
    tokens = ",".join([*_tokens(item), token])
    metadata = item["metadata"]
    await transport.patch(
        CALENDARS,
        Key("", name),
        Patch.merge({"metadata": {"annotations": {TOKENS: tokens}}}),
        Write("rival", f"{token} is put"),
        precondition=Precondition(version=metadata["resourceVersion"], uid=metadata["uid"]),
    )


def _is_paused(item: Object) -> bool:
    return (item["metadata"].get("annotations") or {}).get(PAUSED) == "true"


def _tokens(item: Object) -> list[str]:
    return [token for token in (item["metadata"].get("annotations") or {}).get(TOKENS, "").split(",") if token]


async def redate(world: World) -> None:
    """A user gives some calendar other days, so that the controller has work."""
    random: Random = world.random(f"redate at {world.clock.now()}")
    name = _NAMES[random.randrange(len(_NAMES))]
    days = sorted({f"2027-01-{1 + random.randrange(28):02d}" for _ in range(3)})
    if random.randrange(8) == 0:
        days.append("2027-02-30")  # no such day: the controller complains, by a condition and an event
    if world.server.find(collection_id(CALENDARS), Key("", name)) is not None:
        await edit("Calendar", name, {"spec": {"dates": days}})(world)


async def pause_or_resume(world: World) -> None:
    """A user pauses some calendar, or lets it go on."""
    random: Random = world.random(f"pause at {world.clock.now()}")
    name = _NAMES[random.randrange(len(_NAMES))]
    item = world.server.find(collection_id(CALENDARS), Key("", name))
    if item is not None:
        wish = None if _is_paused(item) else "true"
        await edit("Calendar", name, {"metadata": {"annotations": {PAUSED: wish}}})(world)


def calendar_lease() -> Scenario:
    """Return the story."""
    return (
        Scenario("calendars under a lease", start=START)
        .given(
            calendar("berlin", timeZone="Europe/Berlin"),
            calendar("freeze", ranges=[{"from": "2026-12-30", "until": "2027-01-03"}]),
            calendar("holidays", timeZone="Asia/Tokyo", yearly=["01-01", "01-02"]),
            calendar("utc"),
        )
        .running(CalendarController, replicas=3)
        .running_program("rival-a", putting_tokens())
        .running_program("rival-b", putting_tokens())
        .every("12s", redate)
        .every("25s", pause_or_resume)
        .at("4m", delete("Calendar", "utc"))
        .at("5m", create(calendar("utc", dates=["2027-01-02"])))
        .at("9m", delete("Calendar", "freeze"))
        .under(Severity.HEAVY)
        .always(
            lambda: OnlyTheLeaderWrites(Key("springtide-system", "springtide"), MANAGER),
            SharedObjectsAreNotMutated,
            NoLostUpdates,
            StoresFollowTheServer,
            TokensStay,
            PausedStays,
            StatusIsRight,
        )
        .settling("4m")
    )
