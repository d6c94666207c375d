"""Objects that are too costly are set aside with a condition that says so, and all others are reconciled as ever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple

import pytest
from tests.controllers.cron_federated_hpa.harness import changes, cron, deployment, rule
from tests.scenarios.calendar_lease import calendar

from springtide.apis.crds import Flavour, all_crds
from springtide.assembly.services import simulated_services
from springtide.cluster import trials
from springtide.cluster.client import Mode
from springtide.cluster.compute import ComputeLimitExceeded, InlineCompute
from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import Patch, Write
from springtide.controllers import CONTROLLERS
from springtide.metrics.series import SeriesStore
from springtide.simulator.processes import ProcessRun
from springtide.simulator.scenario import NoLostUpdates, Outcome, Scenario, crash, create, edit
from springtide.simulator.world import World

Args = TypeVarTuple("Args")
ComputeResult = TypeVar("ComputeResult")

LARGE = "x" * 40_000
HOSTILE = "hostile " + LARGE
SLOW = 3600
KARPENTER = "autoscaling.karpenter.sh/v1alpha1"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
METRIC = {"prometheus": {"query": "vector(3)", "target": {"type": "Value", "value": 1}}}


class LimitedCompute(InlineCompute):
    """Has no time for objects whose note begins with `hostile`, and takes an hour for `slow`; lists what it tried."""

    def __init__(self, run: ProcessRun, tried: list[str]) -> None:
        super().__init__(run.clock)
        self._tried = tried

    async def run_limited(
        self, function: Callable[[*Args], ComputeResult], *args: *Args, cost: float, cpu: float | None = None
    ) -> ComputeResult:
        """Refuse hostile objects when the modelled time is over."""
        given: tuple[Any, ...] = args
        item: Object = given[1]
        self._tried.append(f"{item['kind']}/{item['metadata']['name']}")
        if item["metadata"].get("annotations", {}).get("note", "").startswith("hostile"):
            await self._clock.sleep(cost)
            raise ComputeLimitExceeded(f"it took more than {cpu:g} s of CPU time")
        slow = item["metadata"].get("annotations", {}).get("note", "").startswith("slow")
        return await super().run_limited(function, *args, cost=SLOW if slow else cost, cpu=cpu)


def noted(item: Object, name: str, note: str) -> Object:
    """Return an object under another name, with a note among its annotations."""
    metadata = {**item["metadata"], "name": name, "annotations": {"note": note}}
    return {**item, "metadata": metadata}


def manifest(api_version: str, kind: str, spec: Object) -> Object:
    """Build an object without a name."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec}


def producer() -> Object:
    """Build a MetricsProducer."""
    peak = {"name": "peak", "replicas": 3, "start": {"hours": 9}, "end": {"hours": 17}}
    return manifest(KARPENTER, "MetricsProducer", {"schedule": {"defaultReplicas": 1, "behaviors": [peak]}})


def autoscaler() -> Object:
    """Build a HorizontalAutoscaler."""
    spec = {"scaleTargetRef": TARGET, "minReplicas": 1, "maxReplicas": 5, "metrics": [METRIC]}
    return manifest(KARPENTER, "HorizontalAutoscaler", spec)


KINDS = [
    pytest.param(calendar("any", dates=["2026-01-06"]), id="calendar"),
    pytest.param(
        manifest("springtide.dev/v1alpha1", "Grant", {"namespaces": ["team-a"], "urls": ["https://a.example/"]}),
        id="grant",
    ),
    pytest.param(producer(), id="metrics-producer"),
    pytest.param(autoscaler(), id="horizontal-autoscaler"),
    pytest.param(
        manifest(KARPENTER, "ScalableNodeGroup", {"type": "Simulated", "id": "any", "replicas": 1}),
        id="scalable-node-group",
    ),
    pytest.param(cron(rule("day", "0 8 * * *", 4)), id="cron-federated-hpa"),
]


def scenario(tried: list[str], *objects: Object, mode: Mode = Mode.ACT, replicas: int = 1) -> Scenario:
    """Run all controllers on these objects; `tried` lists the objects that are tried."""
    return (
        Scenario("set aside", start="2026-01-05T07:00:00Z")
        .given(deployment(), *objects)
        .running(
            *CONTROLLERS,
            mode=mode,
            replicas=replicas,
            services=lambda run: simulated_services(SeriesStore(), run.clock),
            compute=lambda run: LimitedCompute(run, tried),
        )
        .always(NoLostUpdates)
    )


def ready(outcome: Outcome, item: Object, name: str) -> Any:
    """Return the condition `Ready` of an object, None if it has none."""
    conditions = outcome.object(item["kind"], name).get("status", {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == "Ready"), None)


@pytest.mark.parametrize("item", KINDS)
def test_only_what_is_too_costly_is_set_aside(item: Object) -> None:
    tried: list[str] = []
    three = [noted(item, "aside", HOSTILE), noted(item, "large", LARGE), noted(item, "small", "x")]
    outcome = scenario(tried, *three).run("10m")

    aside = ready(outcome, item, "aside")
    assert (aside["status"], aside["reason"]) == ("False", "TooCostly")
    assert aside["message"].startswith("set aside, nothing is done about it: when it was validated, it took more than")
    assert "of which `metadata.annotations.note` has 40 kB: shorten that" in aside["message"]
    for other in "large", "small":
        assert ready(outcome, item, other)["reason"] != "TooCostly"
    assert sorted(tried) == [f"{item['kind']}/aside", f"{item['kind']}/large"]
    events = [one for one in outcome.objects("Event") if one["reason"] == "TooCostly"]
    assert [one["involvedObject"]["name"] for one in events] == ["aside"]


@pytest.mark.parametrize("item", KINDS)
def test_an_object_that_was_set_aside_is_reconciled_after_an_edit(item: Object) -> None:
    shorter = {"metadata": {"annotations": {"note": "short"}}}
    story = scenario([], noted(item, "aside", HOSTILE)).at("10m", edit(item["kind"], "aside", shorter))

    assert ready(story.run("20m"), item, "aside")["reason"] != "TooCostly"


def test_a_restart_does_not_try_again_what_was_set_aside() -> None:
    tried: list[str] = []
    story = scenario(tried, noted(producer(), "aside", HOSTILE), replicas=2)
    outcome = story.at("10m", crash("springtide-0")).at("20m", crash("springtide-1")).run("30m")

    # Each of two replicas tries it once at most: one may see the condition of the other first.
    assert set(tried) == {"MetricsProducer/aside"}
    assert len(tried) <= 2
    assert ready(outcome, producer(), "aside")["reason"] == "TooCostly"


def test_a_large_calendar_is_tried_before_rules_that_name_it_fire_after_a_restart() -> None:
    """Else a firing of an excluded day would be applied, as if the calendar were missing."""
    holidays = calendar("holidays", dates=["2026-01-06"])
    named = rule("day", "0 8 * * *", 4, calendars=[{"name": "holidays", "mode": "Exclude"}])
    story = scenario([], noted(holidays, "holidays", "slow " + LARGE), cron(named))
    outcome = story.at("24h59m50s", crash("springtide-0")).run("30h")

    assert changes(outcome, "Deployment", "replicas") == [("2026-01-05T08:00:00Z", 4)]
    (history,) = outcome.object("CronFederatedHPA", "daily")["status"]["executionHistories"]
    assert [one["scheduleTime"] for one in history["successfulExecutions"]] == ["2026-01-05T08:00:00Z"]


def test_an_event_reports_it_where_the_crd_has_no_conditions(caplog: pytest.LogCaptureFixture) -> None:
    """As upstream's CRD of CronFederatedHPAs."""
    (stock,) = [one for one in all_crds(Flavour.STOCK) if one["spec"]["names"]["kind"] == "CronFederatedHPA"]

    async def install(world: World) -> None:
        patch = Patch.json({"op": "replace", "path": "/spec/versions", "value": stock["spec"]["versions"]})
        world.server.patch(
            world.resource("CustomResourceDefinition"), Key("", stock["metadata"]["name"]), patch, Write("setup")
        )

    item = noted(cron(rule("day", "0 8 * * *", 4)), "daily", HOSTILE)
    outcome = scenario([]).at("1m", install).at("2m", create(item)).run("1h")

    assert [one["reason"] for one in outcome.objects("Event")] == ["TooCostly"]
    assert "status" not in outcome.object("CronFederatedHPA", "daily")
    assert not [one for one in caplog.messages if "failed" in one]


def test_another_version_tries_again_what_was_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    async def upgrade(world: World) -> None:
        monkeypatch.setattr(trials, "__version__", "99.0.0")
        await crash("springtide-0")(world)

    outcome = scenario(tried, noted(producer(), "aside", HOSTILE)).at("10m", upgrade).run("30m")

    assert len(tried) == 2
    assert "(springtide 99.0.0, content " in ready(outcome, producer(), "aside")["message"]


def test_observe_mode_reports_it_by_an_event_only() -> None:
    outcome = scenario([], noted(producer(), "aside", HOSTILE), mode=Mode.OBSERVE).run("10m")

    assert ready(outcome, producer(), "aside") is None
    assert [one["reason"] for one in outcome.objects("Event")] == ["TooCostly"]


def test_the_status_of_an_object_that_is_set_aside_stays() -> None:
    """What rules have applied is not applied or recorded once more when the object is shorter again."""
    item = cron(rule("day", "0 8 * * *", 4))
    hostile, healed = ({"metadata": {"annotations": {"note": note}}} for note in (HOSTILE, "short"))
    story = scenario([], deployment("other"), noted(item, "daily", "x"))
    outcome = (
        story.at("90m", edit("CronFederatedHPA", "daily", hostile))
        .at("30h", edit("CronFederatedHPA", "daily", healed))
        .run("50h")
    )

    # The firing of the second day came while the object was set aside: it is applied late.
    assert changes(outcome, "Deployment", "replicas") == [("2026-01-05T08:00:00Z", 4)]
    (history,) = outcome.object("CronFederatedHPA", "daily")["status"]["executionHistories"]
    times = [one["scheduleTime"] for one in history["successfulExecutions"]]
    assert times == ["2026-01-07T08:00:00Z", "2026-01-06T08:00:00Z", "2026-01-05T08:00:00Z"]


def test_the_former_record_stays_while_an_edit_is_tried() -> None:
    tried: list[str] = []
    slow = {
        "metadata": {"annotations": {"note": "slow " + LARGE}},
        "spec": {"rules": [rule("day", "0 8 * * *", 4), rule("late", "15 8 * * *", 6)]},
    }
    item = noted(cron(rule("day", "0 8 * * *", 4)), "daily", "x")
    outcome = scenario(tried, item).at("30m", edit("CronFederatedHPA", "daily", slow)).run("100m")

    assert tried == ["CronFederatedHPA/daily"]
    # At 08:00 by the former rules. The edit counts from the instant at which it was made, once its trial has passed.
    assert changes(outcome, "Deployment", "replicas") == [("2026-01-05T08:00:00Z", 4), ("2026-01-05T08:30:00Z", 6)]
