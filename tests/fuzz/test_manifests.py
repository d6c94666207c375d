"""Ten thousand mutated manifests: checking never raises, and every rejection has a position."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from tests.conformance.cases.autoscalers import AUTOSCALERS
from tests.conformance.cases.workloads import WORKLOADS
from tests.fuzz.mutations import mutated_text, mutated_tree

from springtide.apis.canonical import canonical_text
from springtide.apis.forecast import Forecast, ForecastQuery, LaneStyle, to_plain
from springtide.apis.kinds import ValidationContext
from springtide.apis.objects import forecast_of, with_calendars
from springtide.apis.scheduled.follower_forecast import forecast_follower
from springtide.apis.scheduled.followers import read_followers
from springtide.assembly.manifests import CheckedManifests, ManifestSource, check_sources
from springtide.cli.console import data_pieces

NOW = 1_795_000_000
BATCHES = 40
EACH = 250


def checked(text: str) -> CheckedManifests:
    """Check a text as `springtide check` does."""
    return check_sources([ManifestSource("fuzzed.yaml", text)], [], ValidationContext(now=NOW))


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_rejection_has_a_position(batch: int) -> None:
    random = Random(batch)
    for number in range(EACH):
        text = mutated_text(random) if number % 2 else mutated_tree(random)
        try:
            found = checked(text)
        except Exception as failure:
            failure.add_note(f"batch {batch}, number {number}:\n{text}")
            raise
        for problem in found.problems:
            assert problem.message, text
            assert problem.path or (problem.line and problem.column), (problem, text)


def check_forecast(forecast: Forecast) -> None:
    """Read all that a forecast has, which is computed while it is read."""
    for lane in forecast.drawn:
        instants = [change.at for change in lane.changes]
        assert instants == sorted(set(instants)), lane.name
        assert all(forecast.start < at <= forecast.until for at in instants), lane.name
        values = [lane.current, *(change.value for change in lane.changes)]
        assert lane.style is LaneStyle.FIRINGS or all(a != b for a, b in pairwise(values)), lane.name
    assert all(collision.text for collision in forecast.collisions)
    (written,) = json.loads("".join(data_pieces({"objects": iter([to_plain(forecast)])}, "json")))["objects"]
    assert [lane["lane"] for lane in written["lanes"]] == [lane.name for lane in forecast.lanes]


_WRONG: tuple[Any, ...] = (None, "", "x", 0, -1, 1.5, True, [], [None], {}, {"a": None})


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    for step, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, step)
        yield from _places(part, (*path, step))


def test_objects_of_kubernetes_are_judged_whatever_a_field_holds() -> None:
    """Every field of the tables of the API server, with values of every other type."""
    tried: set[str] = set()
    for item in (*AUTOSCALERS.values(), *WORKLOADS.values()):
        for *holder, last in _places(item):
            for wrong in _WRONG if holder else ():
                field = [step if isinstance(step, str) else 0 for step in (*holder, last)]
                kind = repr([item["apiVersion"], item["kind"], field, wrong])
                if kind in tried:
                    continue
                tried.add(kind)
                changed = deepcopy(item)
                part: Any = changed
                for step in holder:
                    part = part[step]
                part[last] = wrong
                for problem in checked(json.dumps(changed)).problems:
                    assert problem.message
                    assert problem.line
                    assert problem.column


_FOLLOWED: tuple[dict[str, Any], ...] = (
    {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "MetricsProducer",
        "metadata": {"name": "peak"},
        "spec": {
            "schedule": {
                "timezone": "Europe/Berlin",
                "defaultReplicas": 2,
                "behaviors": [{"replicas": 20, "start": {"hours": "8"}, "end": {"hours": "20"}}],
            }
        },
    },
    {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "HorizontalAutoscaler",
        "metadata": {"name": "ours"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1,
            "maxReplicas": 3,
            "metrics": [
                {
                    "prometheus": {
                        "query": 'karpenter_scheduled_capacity{name="peak"}',
                        "target": {"type": "AverageValue", "value": 1},
                    }
                }
            ],
        },
    },
    {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "shop"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"},
            "maxReplicas": 3,
            "behavior": {
                "scaleUp": {
                    "stabilizationWindowSeconds": 60,
                    "tolerance": "0.2",
                    "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}],
                }
            },
            "metrics": [
                {
                    "type": "External",
                    "external": {
                        "metric": {
                            "name": "karpenter_scheduled_capacity",
                            "selector": {"matchLabels": {"name": "peak"}},
                        },
                        "target": {"type": "AverageValue", "averageValue": "1"},
                    },
                }
            ],
        },
    },
    {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "worker"},
        "spec": {
            "scaleTargetRef": {"name": "worker"},
            "maxReplicaCount": 3,
            "triggers": [
                {
                    "type": "prometheus",
                    "metadata": {
                        "serverAddress": "http://prometheus:9090",
                        "query": 'karpenter_scheduled_capacity{name="peak"}',
                        "threshold": "1",
                    },
                }
            ],
        },
    },
    {
        "apiVersion": "autoscaling.karmada.io/v1alpha1",
        "kind": "CronFederatedHPA",
        "metadata": {"name": "evenings"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "shop"},
            "rules": [{"name": "evening", "schedule": "0 20 * * *", "targetMaxReplicas": 5}],
        },
    },
)
"""A schedule, the autoscalers that follow it, and rules that change the bounds of one of them."""


@pytest.mark.parametrize("number", [pytest.param(at, id=item["kind"]) for at, item in enumerate(_FOLLOWED)])
def test_a_schedule_and_its_followers_are_judged_whatever_a_field_of_one_holds(number: int) -> None:
    for place in _places(_FOLLOWED[number]):
        for wrong in (*_WRONG, [1]):
            changed = deepcopy(_FOLLOWED)
            part: Any = changed[number]
            for step in place[:-1]:
                part = part[step]
            part[place[-1]] = wrong
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": changed})
            try:
                found = checked(text)
                objects = [manifest.object for manifest in found.manifests]
                question = with_calendars(ForecastQuery(NOW, NOW + 86400), objects)
                for follower in read_followers(objects):
                    forecast = forecast_follower(follower, question, always=True)
                    if forecast is not None:
                        check_forecast(forecast)
            except Exception as failure:
                failure.add_note(text)
                raise
            for problem in found.problems:
                assert problem.message
                assert problem.path or problem.line, (problem, text)


@pytest.mark.parametrize("batch", range(10))
def test_readable_manifests_can_be_forecast_and_converted(batch: int) -> None:
    random = Random(1000 + batch)
    for number in range(40):
        text = mutated_text(random) if number % 2 else mutated_tree(random)
        try:
            objects = [manifest.object for manifest in checked(text).manifests]
            question = with_calendars(ForecastQuery(NOW, NOW + 7 * 86400, nodes=10), objects)
            for loaded in objects:
                forecast = forecast_of(loaded, question)
                if forecast is not None:
                    check_forecast(forecast)
            rewritten = canonical_text(text)
            assert canonical_text(rewritten.text).text == rewritten.text, "a canonical text is left as it is"
        except Exception as failure:
            failure.add_note(f"batch {batch}, number {number}:\n{text}")
            raise
