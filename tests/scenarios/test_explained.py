"""What `springtide explain` foretells comes true, and what it says of the present is so: with the real controllers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.controllers.horizontal_autoscaler.harness import FakeMetricReader, autoscaler, deployment, metric, node

from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.times import parse_instant
from springtide.apis.objects import LoadedObject, load_tree
from springtide.cluster.context import Services
from springtide.cluster.resources import Object
from springtide.controllers.cron_federated_hpa import CronFederatedHPAController
from springtide.controllers.explain import explain
from springtide.controllers.explanation import Explanation, ExplanationInput, TargetState
from springtide.controllers.grant.state import GrantPolicy
from springtide.controllers.horizontal_autoscaler import HorizontalAutoscalerController
from springtide.controllers.metrics_producer import MetricsProducerController
from springtide.metrics.series import SeriesStore
from springtide.simulator.behaviours import NODES, SCHEDULING, WORKLOADS
from springtide.simulator.processes import ProcessRun
from springtide.simulator.scenario import Scenario
from springtide.simulator.scenario.actions import Action
from springtide.simulator.scenario.scenario import Outcome
from springtide.simulator.world import World

START = "2026-10-24T15:00:00Z"  # 17:00 in Berlin; in the night the clocks go back
PEAK: Object = {
    "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
    "kind": "MetricsProducer",
    "metadata": {"name": "peak", "namespace": "shop"},
    "spec": {
        "schedule": {
            "timezone": "Europe/Berlin",
            "defaultReplicas": 2,
            "behaviors": [{"name": "day", "replicas": 6, "start": {"hours": 9}, "end": {"hours": 18}}],
        }
    },
}
NIGHTLY: Object = {
    "apiVersion": "autoscaling.karmada.io/v1alpha1",
    "kind": "CronFederatedHPA",
    "metadata": {"name": "nightly", "namespace": "shop"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "batch"},
        "rules": [
            {"name": "up", "schedule": "30 2 * * *", "targetReplicas": 4, "timeZone": "Europe/Berlin"},
            {"name": "down", "schedule": "0 5 * * *", "targetReplicas": 1, "timeZone": "Europe/Berlin"},
        ],
    },
}
AT_ONCE = {"scaleDown": {"stabilizationWindowSeconds": 0}}


class Album:
    """Explanations that were asked for while a story went on."""

    def __init__(self) -> None:
        self.taken: list[Explanation] = []

    def taking(self, kind: str, name: str, target: str) -> Action:
        """Explain an object, as it and all others are at that time."""

        async def act(world: World) -> None:
            scaled = world.object("Deployment", target, namespace="shop")
            self.taken.append(explain(_facts(world, kind, name, scaled)))

        return act


def _facts(world: World, kind: str, name: str, target: Object) -> ExplanationInput:
    now = world.clock.now()
    item = world.object(kind, name, namespace="shop")
    asked = target["spec"]["replicas"]
    observed = target.get("status", {}).get("replicas")
    return ExplanationInput(
        object=_loaded(item, now),
        status=item.get("status") or {},
        at=now,
        others=tuple(
            _loaded(other, now)
            for other_kind in ("MetricsProducer", "HorizontalAutoscaler", "CronFederatedHPA")
            for other in world.objects(other_kind)
            if other["metadata"]["uid"] != item["metadata"]["uid"]
        ),
        target=TargetState(f"Deployment `{target['metadata']['name']}`", {"replicas": asked}, observed),
    )


def _loaded(item: Object, now: int) -> LoadedObject:
    written = {name: part for name, part in item.items() if name != "status"}
    loaded = load_tree(written, ValidationContext(now=now, deep_search=False))
    assert isinstance(loaded, LoadedObject)
    return loaded


def _services(incarnation: ProcessRun) -> Services:
    book = SeriesStore()
    return Services(book, FakeMetricReader(book, {}), GrantPolicy(everything=True))


def _play(objects: list[Object], duration: str, moments: dict[str, Action]) -> Outcome:
    scenario = (
        Scenario("a shop", start=START)
        .given(node(), *objects)
        .behaving(*NODES, *SCHEDULING, *WORKLOADS)
        .running(
            MetricsProducerController,
            HorizontalAutoscalerController,
            CronFederatedHPAController,
            services=_services,
        )
    )
    for when, action in moments.items():
        scenario = scenario.at(when, action)
    return scenario.run(duration)


def _scaled(outcome: Outcome, name: str, since: int) -> list[tuple[int, Any]]:
    return [
        (entry.at, entry.change["spec.replicas"][1])
        for entry in outcome.trace
        if (entry.kind, entry.name) == ("Deployment", name) and "spec.replicas" in entry.change and entry.at > since
    ]


def _foretold(explanation: Explanation, value: Callable[[Any], Any] = lambda value: value) -> list[tuple[int, Any]]:
    return [(one.at, value(one.value)) for one in explanation.next]


def test_a_schedule_and_its_autoscaler_match_explain_across_the_end_of_summer_time() -> None:
    album = Album()
    outcome = _play(
        [PEAK, autoscaler(metric(), least=1, most=5, behavior=AT_ONCE), deployment(1)],
        "18h",
        {
            "30m": album.taking("HorizontalAutoscaler", "web", "web"),
            "2h": album.taking("HorizontalAutoscaler", "web", "web"),
            "2h1s": album.taking("MetricsProducer", "peak", "web"),
        },
    )
    day, night, schedule = album.taken
    assert (day.wants["replicas"], night.wants["replicas"], schedule.wants["replicas"]) == (5, 2, 2)
    assert _foretold(day)[:3] == [
        (parse_instant("2026-10-24T16:00:00Z"), 2),
        (parse_instant("2026-10-25T08:00:00Z"), 5),
        (parse_instant("2026-10-25T17:00:00Z"), 2),
    ]
    assert _scaled(outcome, "web", day.subject.at) == _foretold(day)[:2]
    assert [at for at, _ in _foretold(night)] == [at for at, _ in _foretold(schedule)]
    assert night.stopped == schedule.stopped == ()
    assert [stop.what for stop in day.stopped] == ["ScalingUnbounded is False"]
    assert "6 replicas" in day.because[0]


def test_a_delayed_scale_down_comes_when_explain_said() -> None:
    album = Album()
    outcome = _play(
        [PEAK, autoscaler(metric(), least=1, most=10), deployment(1)],
        "2h",
        {"61m": album.taking("HorizontalAutoscaler", "web", "web")},
    )
    (held,) = album.taken
    (stop,) = held.stopped
    assert stop.what == "AbleToScale is False"
    assert _scaled(outcome, "web", held.subject.at) == [(stop.until, 2)]


def test_a_schedule_within_the_tolerance_changes_nothing() -> None:
    album = Album()
    tolerant = {"scaleUp": {"tolerance": "0.1"}, "scaleDown": {"tolerance": "0.1", "stabilizationWindowSeconds": 0}}
    outcome = _play(
        [
            _schedule("peak", 10, (11, 18, 30), (5, 20, 0)),
            autoscaler(metric(), least=1, most=20, behavior=tolerant),
            deployment(10),
        ],
        "8h",
        {"1h": album.taking("HorizontalAutoscaler", "web", "web")},
    )
    (explanation,) = album.taken
    assert explanation.wants["replicas"] == 10
    # 11 replicas from 18:30 on are within the tolerance of the 10 that there are.
    assert _foretold(explanation)[0] == (parse_instant("2026-10-24T20:00:00Z"), 5)
    assert _scaled(outcome, "web", explanation.subject.at)[:1] == _foretold(explanation)[:1]


@pytest.mark.parametrize("seed", range(8))
def test_what_explain_foretells_is_what_the_controller_does(seed: int) -> None:
    """Schedules, tolerances, windows, policies and bounds are random; the replicas are those of the simulation."""
    random = Random(seed)
    names = ["peak", "early"][: random.choice([1, 1, 2])]
    schedules = [
        _schedule(
            name,
            random.randint(1, 12),
            *((random.randint(1, 24), random.randint(0, 23), random.choice([0, 1, 4, 30])) for _ in range(4)),
        )
        for name in names
    ]
    metrics = [
        metric(f'karpenter_scheduled_capacity{{name="{name}"}}', value=random.choice([1, 1, 2, "1500m"]))
        for name in names
    ]
    least = random.randint(0, 4)
    select = random.choice(["Min", "Max"])
    behavior = {direction: _random_rules(random, select) for direction in ("scaleUp", "scaleDown")}
    album = Album()
    explain_web = album.taking("HorizontalAutoscaler", "web", "web")
    outcome = _play(
        [
            *schedules,
            autoscaler(*metrics, least=least, most=least + random.randint(3, 20), behavior=behavior),
            deployment(random.randint(1, 12)),
        ],
        "26h",
        {f"{random.randint(660, 80_000)}s": explain_web for _ in range(12)},
    )
    end = parse_instant(START) + 26 * 3600
    for explanation in album.taken:
        assert explanation.next_unknown == "" or "was given up" in explanation.next_unknown
        foretold = [change for change in _foretold(explanation) if change[0] < end]
        done = _scaled(outcome, "web", explanation.subject.at)
        assert done[: len(foretold)] == foretold
        assert len(done) == len(foretold) or len(explanation.next) == len(foretold)
    assert len(album.taken) > 5


def _schedule(name: str, default: int, *changes: tuple[int, int, int]) -> Object:
    """Build a producer whose value is the default, or for an hour that of each (value, hour, minute)."""
    behaviors = [
        {
            "name": f"b{number}",
            "replicas": value,
            "priority": number,
            "start": {"hours": hour, "minutes": minute},
            "end": {"hours": (hour + 1) % 24, "minutes": minute},
        }
        for number, (value, hour, minute) in enumerate(changes)
    ]
    spec = {"schedule": {"timezone": "UTC", "defaultReplicas": default, "behaviors": behaviors}}
    return {**PEAK, "metadata": {"name": name, "namespace": "shop"}, "spec": spec}


def _random_rules(random: Random, select: str) -> Object:
    rules: Object = {"stabilizationWindowSeconds": random.choice([0, 0, 60, 300, 600]), "selectPolicy": select}
    if random.random() < 0.5:
        rules["tolerance"] = random.choice(["0.1", "0.25", "0.5"])
    if random.random() < 0.5:
        rules["policies"] = [
            {"type": kind, "value": random.choice([1, 2, 50]), "periodSeconds": random.choice([15, 60, 600, 1800])}
            for kind in random.sample(["Count", "Percent"], random.randint(1, 2))
        ]
    return rules


def test_rules_match_explain_and_their_history_is_shown() -> None:
    album = Album()
    outcome = _play(
        [NIGHTLY, deployment(1, "batch")],
        "14h",
        {
            "1h": album.taking("CronFederatedHPA", "nightly", "batch"),
            "10h": album.taking("CronFederatedHPA", "nightly", "batch"),
        },
    )
    before, after = album.taken
    assert before.headline == "nothing yet"
    foretold = _foretold(before, lambda value: value["replicas"])
    assert foretold == [(parse_instant("2026-10-25T00:30:00Z"), 4), (parse_instant("2026-10-25T04:00:00Z"), 1)]
    assert _scaled(outcome, "batch", before.subject.at) == foretold
    assert dict(after.wants) == {"replicas": 4}
    assert after.because[0] == "rule `up` set 4 replicas on Sun 2026-10-25 02:30 Europe/Berlin"
    assert before.stopped == after.stopped == ()
