"""Cron rules under everything that can go wrong: the scenario, and what must hold of its whole trace.

Three replicas of which one leads, rivals that write the same objects, rules that are suspended and resumed, targets
that go and come back; requests fail before and after they took effect, and processes crash at any await.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.controllers.cron_federated_hpa.harness import FEDERATED, KEDA, MANAGER, cron, deployment, federated, rule

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import parse_instant
from springtide.apiserver.server import CommittedWrite
from springtide.cluster.errors import ClusterError, NotFound
from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import Patch, Precondition, Write
from springtide.controllers.cron_federated_hpa import CronFederatedHPAController
from springtide.controllers.cron_federated_hpa.cursor import ANNOTATION, read_cursor
from springtide.controllers.cron_federated_hpa.records import CRON_FEDERATED_HPAS
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

START = "2026-06-05T08:00:00Z"
LENGTH = "22m"
_BEGIN = parse_instant(START)
_MINUTE = 60
_MORE = re.compile(r", and (\d+) earlier ones? (?:was|were) missed")
_TOGETHER = re.compile(r"`(\S+)` was applied (\d+) times")

LIMITS = {"successfulHistoryLimit": 32, "failedHistoryLimit": 32}
SHORT = {"successfulHistoryLimit": 1, "failedHistoryLimit": 2}
SUSPENDED, RESUMED = 5 * _MINUTE + 30, 10 * _MINUTE + 30


@dataclass(frozen=True)
class Expected:
    """A rule, with the minutes of the hour at which it fires, and what it sets."""

    object: str
    rule: str
    minutes: tuple[int, ...]
    suspended: tuple[int, int] | None = None
    """Between these seconds of the scenario it is not in force."""

    def due(self, begun: int, *, suspension_seen: bool) -> Iterator[str]:
        """Yield the times after an instant at which it must have fired."""
        for minute in self.minutes:
            after = minute * _MINUTE
            idle = self.suspended is not None and self.suspended[0] < after <= self.suspended[1]
            suspended = idle and suspension_seen
            if not suspended and _BEGIN + after > begun:
                yield format_instant(_BEGIN + after)


EXPECTED = (
    Expected("shop", "even", (2, 4, 6, 8, 10, 12, 14, 16)),
    Expected("shop", "odd", (1, 3, 5, 7, 9, 11, 13, 15)),
    Expected("shop", "third", (3, 6, 9, 12, 15)),
    Expected("bounds", "low", (1, 3, 5, 7, 9, 11, 13, 15), (SUSPENDED, RESUMED)),
    Expected("bounds", "high", tuple(range(2, 17, 2))),
    Expected("bounds", "both", (4, 8, 12, 16)),
    Expected("lost", "every", tuple(range(1, 17))),
)


def _minutes(object_: str, name: str) -> str:
    (found,) = [one for one in EXPECTED if (one.object, one.rule) == (object_, name)]
    return f"{','.join(str(minute) for minute in found.minutes)} * * * *"


SHOP = cron(
    rule("even", _minutes("shop", "even"), 2, **LIMITS),
    rule("odd", _minutes("shop", "odd"), 3, maxDelaySeconds=20, **LIMITS),
    rule("third", _minutes("shop", "third"), 4, **LIMITS),
    name="shop",
)
BOUNDS = cron(
    rule("low", _minutes("bounds", "low"), targetMinReplicas=7, **LIMITS),
    rule("high", _minutes("bounds", "high"), targetMaxReplicas=70, **LIMITS),
    rule("both", _minutes("bounds", "both"), targetMinReplicas=5, targetMaxReplicas=50, **LIMITS),
    target=FEDERATED,
    name="bounds",
)
LOST = cron(
    rule("every", _minutes("lost", "every"), 9, **SHORT),
    target={"apiVersion": "apps/v1", "kind": "Deployment", "name": "lost"},
    name="lost",
)


@dataclass
class _Reported:
    """What was recorded of a rule over the whole trace."""

    times: list[str] = field(default_factory=list)
    more: int = 0


class EveryFiringIsRecordedOnce(Invariant):
    """Every due firing is recorded exactly once, as successful, failed or missed; and nothing else is.

    If no controller read an object before it was edited, its earlier state is unknown: it begins with the edit. If
    no controller read it while a rule was suspended, the suspension is unknown.
    """

    def __init__(self) -> None:
        self._reported: dict[tuple[str, str], _Reported] = {}
        self._begun: dict[str, int] = {}
        self._suspension_seen = True

    def wrote(self, world: World, written: CommittedWrite) -> None:
        """Look for what is new in a status."""
        if written.resource != CRON_FEDERATED_HPAS or written.new is None:
            return
        if written.old is not None and written.old["spec"] != written.new["spec"]:
            marks = read_cursor((written.new["metadata"].get("annotations") or {}).get(ANNOTATION, ""))
            if marks is None:
                self._begun[written.key.name] = world.clock.now()
            elif world.clock.now() == _BEGIN + RESUMED:
                self._suspension_seen = not marks["low"].in_force
        # What can only be recorded together, and is more than a history keeps, is told by the reason of the write.
        for name, count in _TOGETHER.findall(written.write.because):
            reported = self._reported.setdefault((written.key.name, name), _Reported())
            reported.more += int(count) - len(_applied(written.new, name) - _applied(written.old or {}, name))
        before = Counter((name, at) for name, at, _ in _records(written.old or {}))
        for name, at, message in _records(written.new):
            before[name, at] -= 1
            if before[name, at] >= 0:
                continue
            reported = self._reported.setdefault((written.key.name, name), _Reported())
            if at in reported.times:
                msg = f"rule {name} of {written.key} is recorded twice for {at}"
                raise InvariantViolated(msg)
            reported.times.append(at)
            reported.more += sum(int(count) for count in _MORE.findall(message))

    def end(self, world: World) -> None:
        """Compare with what was due."""
        for expected in EXPECTED:
            begun = self._begun.get(expected.object, _BEGIN)
            due = list(expected.due(begun, suspension_seen=self._suspension_seen))
            reported = self._reported.get((expected.object, expected.rule), _Reported())
            unknown = [at for at in reported.times if at not in due]
            if unknown or len(reported.times) + reported.more != len(due):
                msg = (
                    f"rule {expected.rule} of {expected.object} was due at {due}, and recorded are"
                    f" {sorted(reported.times)} and {reported.more} more"
                )
                raise InvariantViolated(msg)


class SuccessesAreTrue(Invariant):
    """What is recorded as applied was so, after the firing was due and before it was recorded."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], list[tuple[int, object]]] = {}

    def wrote(self, world: World, written: CommittedWrite) -> None:
        """Follow the targets, and judge new records by them."""
        now = world.clock.now()
        if written.resource.kind in ("Deployment", "FederatedHPA") and written.new is not None:
            for name in ("replicas", "minReplicas", "maxReplicas"):
                if name in written.new["spec"]:
                    values = self._values.setdefault((written.key.name, name), [])
                    values.append((now, written.new["spec"][name]))
        elif written.resource == CRON_FEDERATED_HPAS and written.new is not None:
            target = written.new["spec"]["scaleTargetRef"]["name"]
            for history in (written.new.get("status") or {}).get("executionHistories") or ():
                for entry in history.get("successfulExecutions") or ():
                    self._judge(target, history["ruleName"], entry, now)

    def _judge(self, target: str, rule_name: str, entry: Object, now: int) -> None:
        at, executed = parse_instant(entry["scheduleTime"]), parse_instant(entry["executionTime"])
        if not at <= executed <= now:
            msg = f"rule {rule_name} says that what was due at {at} was done at {executed}, and it is {now}"
            raise InvariantViolated(msg)
        for applied, name in (
            ("appliedReplicas", "replicas"),
            ("appliedMinReplicas", "minReplicas"),
            ("appliedMaxReplicas", "maxReplicas"),
        ):
            if applied in entry and not self._had(target, name, entry[applied], at, executed):
                msg = f"rule {rule_name} says that it has set {name} of {target} to {entry[applied]}, and it was not so"
                raise InvariantViolated(msg)

    def _had(self, target: str, name: str, value: object, since: int, until: int) -> bool:
        values = self._values.get((target, name), [])
        ends = [*(when for when, _ in values[1:]), until + 1][: len(values)]
        return any(
            had == value and began <= until and ended >= since for (began, had), ended in zip(values, ends, strict=True)
        )


class TargetsArrive(Invariant):
    """In the end every target is where the latest firing of each field wants it, and the cursors are there too."""

    def end(self, world: World) -> None:
        """Look at the end only: the last minutes are calm."""
        spec = world.object("FederatedHPA", "shop")["spec"]
        found = (world.object("Deployment", "shop")["spec"]["replicas"], spec["minReplicas"], spec["maxReplicas"])
        if found != (2, 5, 50):
            msg = f"replicas, minimum and maximum are {found} in the end, expected (2, 5, 50)"
            raise InvariantViolated(msg)


def _records(item: Object) -> Iterator[tuple[str, str, str]]:
    for history in (item.get("status") or {}).get("executionHistories") or ():
        for entry in (*(history.get("successfulExecutions") or ()), *(history.get("failedExecutions") or ())):
            yield history["ruleName"], entry["scheduleTime"], entry.get("message", "")


def _applied(item: Object, rule_name: str) -> set[str]:
    return {
        entry["scheduleTime"]
        for history in (item.get("status") or {}).get("executionHistories") or ()
        if history["ruleName"] == rule_name
        for entry in history.get("successfulExecutions") or ()
    }


def meddling() -> Main:
    """A rival that labels the same objects all the time, so that versions change under our hands."""

    async def main(incarnation: ProcessRun) -> None:
        transport, random = incarnation.transport, incarnation.random
        count = 0
        while True:
            await incarnation.clock.sleep(2 + random.random() * 8)
            count += 1
            key = Key("default", ("shop", "bounds", "lost")[random.randrange(3)])
            try:
                item = await transport.get(CRON_FEDERATED_HPAS, key)
                await transport.patch(
                    CRON_FEDERATED_HPAS,
                    key,
                    Patch.merge({"metadata": {"labels": {"touched": str(count)}}}),
                    Write("rival"),
                    precondition=Precondition(item["metadata"]["resourceVersion"], item["metadata"]["uid"]),
                )
            except (ClusterError, NotFound):
                continue

    return main


def _suspended(value: bool) -> Object:
    rules = [{**one, "suspend": value} if one["name"] == "low" else one for one in BOUNDS["spec"]["rules"]]
    return {"spec": {"rules": rules}}


def cron_under_faults() -> Scenario:
    """Return the story."""
    return (
        Scenario("cron rules under faults", start=START)
        .given(KEDA, deployment(), federated(1, 100), SHOP, BOUNDS, LOST)
        .running(CronFederatedHPAController, replicas=3)
        .running_program("rival", meddling())
        .at(f"{SUSPENDED}s", edit("CronFederatedHPA", "bounds", _suspended(True)))
        .at(f"{RESUMED}s", edit("CronFederatedHPA", "bounds", _suspended(False)))
        .at("7m10s", create(deployment("lost")))
        .at("9m50s", delete("Deployment", "lost"))
        .under(Severity.HEAVY)
        .always(
            lambda: OnlyTheLeaderWrites(Key("springtide-system", "springtide"), MANAGER),
            SharedObjectsAreNotMutated,
            NoLostUpdates,
            StoresFollowTheServer,
            EveryFiringIsRecordedOnce,
            SuccessesAreTrue,
            TargetsArrive,
        )
        .settling("6m")
    )
