"""What preview forecasts of an autoscaler is what comes: the forecast and the real controllers, side by side."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from springtide.almanac import Timeline, steps
from springtide.apis.forecast import ForecastQuery, format_instant
from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.times import parse_instant
from springtide.apis.objects import LoadedObject, load_tree
from springtide.apis.scheduled.follower_forecast import forecast_follower
from springtide.apis.scheduled.followers import read_followers
from springtide.assembly.simulated_cluster import simulated_scenario

START = "2026-11-27T00:00:00Z"
BEGIN = parse_instant(START)
HOURS = 10
SETTLED = 120
"""Seconds after a change in which a HorizontalPodAutoscaler, which acts every 15 seconds, may still be under way."""

METRIC = {"name": "karpenter_scheduled_capacity", "selector": {"matchLabels": {"name": "web"}}}
QUERY = 'karpenter_scheduled_capacity{name="web"}'


def producer(default: int, windows: list[tuple[int, int, int]]) -> dict[str, Any]:
    """Return a schedule of windows, each with first minute, last minute and replicas."""
    behaviors = [
        {
            "name": f"window-{number}",
            "replicas": replicas,
            "from": format_instant(BEGIN + first * 60),
            "until": format_instant(BEGIN + last * 60),
        }
        for number, (first, last, replicas) in enumerate(windows)
    ]
    schedule = {"timezone": "Europe/Berlin", "defaultReplicas": default, "behaviors": behaviors}
    return {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "MetricsProducer",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"schedule": schedule},
    }


def autoscaler(least: int, most: int, target: int, behavior: dict[str, Any], *, stock: bool = False) -> dict[str, Any]:
    """Return an autoscaler that follows the schedule: ours, or the one of Kubernetes."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metadata = {"name": "web", "namespace": "default"}
    spec: dict[str, Any] = {"scaleTargetRef": reference, "minReplicas": least, "maxReplicas": most}
    if behavior:
        spec["behavior"] = behavior
    if stock:
        external = {"metric": METRIC, "target": {"type": "AverageValue", "averageValue": str(target)}}
        spec["metrics"] = [{"type": "External", "external": external}]
        return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}
    spec["metrics"] = [{"prometheus": {"query": QUERY, "target": {"type": "AverageValue", "value": target}}}]
    group = "autoscaling.karpenter.sh/v1alpha1"
    return {"apiVersion": group, "kind": "HorizontalAutoscaler", "metadata": metadata, "spec": spec}


def deployment(replicas: int) -> dict[str, Any]:
    """Return the workload that is scaled."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        },
    }


def forecast(*objects: dict[str, Any]) -> Timeline[int]:
    """Return the replicas over time that `preview` draws."""
    context = ValidationContext(now=BEGIN)
    loaded = [load_tree(json.loads(json.dumps(item)), context) for item in objects]
    known = [item for item in loaded if isinstance(item, LoadedObject)]
    assert [item.problems for item in known if not item.sound] == []
    (follower,) = read_followers(known)
    found = forecast_follower(follower, ForecastQuery(BEGIN, BEGIN + HOURS * 3600), always=True)
    assert found is not None
    lane = found.lanes[0]
    return steps(_number(lane.current), [(change.at, _number(change.value)) for change in lane.changes])


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


def simulated(*objects: dict[str, Any]) -> Timeline[int]:
    """Return the replicas over time that the real controllers set in a simulated cluster."""
    changes: list[tuple[int, int]] = []

    def listen(entry: Any) -> None:
        if entry.kind == "Deployment" and "spec.replicas" in entry.change:
            changes.append((entry.at, entry.change["spec.replicas"][1]))

    scenario = simulated_scenario(objects, start=START, faults="none", default_zone="UTC", listener=listen)
    scenario.run(f"{HOURS}h")
    workload = next(item for item in objects if item["kind"] == "Deployment")
    return steps(workload["spec"]["replicas"], changes)


def differences(expected: Timeline[int], found: Timeline[int], within: int) -> list[tuple[str, int, int]]:
    """List the instants at which two timelines differ, some time after every change of the expected one."""
    end = BEGIN + HOURS * 3600
    changes = [at for at, _ in expected.changes(BEGIN, end)]
    unsettled = [BEGIN, *changes]
    instants = sorted({at + within for at in unsettled} | {at - 1 for at in changes} | {end - 1})
    settled = [at for at in instants if at < end and not any(change <= at < change + within for change in unsettled)]
    assert settled
    return [(format_instant(at), expected.at(at), found.at(at)) for at in settled if expected.at(at) != found.at(at)]


BLACK_FRIDAY = producer(2, [(60, 420, 20)])


@pytest.mark.parametrize(
    ("follower", "within"),
    [
        pytest.param(autoscaler(1, 3, 1, {}), 2, id="ours"),
        pytest.param(autoscaler(1, 3, 1, {}, stock=True), SETTLED, id="of-kubernetes"),
    ],
)
def test_black_friday_comes_as_it_is_forecast(follower: dict[str, Any], within: int) -> None:
    objects = (BLACK_FRIDAY, follower, deployment(2))
    expected, found = forecast(*objects), simulated(*objects)
    assert [expected.at(BEGIN + minute * 60) for minute in (30, 120, 500)] == [2, 3, 2]
    assert differences(expected, found, within) == []


def test_two_schedules_come_as_forecast_where_each_direction_selects_another() -> None:
    """The highest counts on the way up, and the lowest in the next evaluation, 15 seconds later."""
    behavior = {"scaleDown": {"selectPolicy": "Min", "stabilizationWindowSeconds": 0}}
    other = producer(5, [(180, 420, 2)])
    other["metadata"]["name"] = "other"
    follower = autoscaler(1, 30, 1, behavior)
    metric = follower["spec"]["metrics"][0]["prometheus"]
    follower["spec"]["metrics"].append({"prometheus": {**metric, "query": QUERY.replace("web", "other")}})
    objects = (producer(4, [(60, 300, 8)]), other, follower, deployment(5))
    expected, found = forecast(*objects), simulated(*objects)
    assert expected.changes(BEGIN, BEGIN + HOURS * 3600)
    assert differences(expected, found, 2) == []


@pytest.mark.parametrize(
    ("behavior", "replicas"),
    [
        pytest.param({"scaleUp": {"tolerance": "0.5"}}, [10, 10, 10], id="within-the-tolerance"),
        pytest.param({"scaleDown": {"stabilizationWindowSeconds": 3600}}, [10, 14, 14], id="a-window"),
        pytest.param({"scaleDown": {"selectPolicy": "Disabled"}}, [10, 14, 14], id="never-down"),
        pytest.param(
            {"scaleUp": {"policies": [{"type": "Count", "value": 1, "periodSeconds": 1800}]}},
            [10, 12, 10],
            id="a-policy",
        ),
    ],
)
def test_behaviours_come_as_they_are_forecast(behavior: dict[str, Any], replicas: list[int]) -> None:
    objects = (producer(10, [(60, 140, 14)]), autoscaler(1, 30, 1, behavior), deployment(10))
    expected = forecast(*objects)
    assert [expected.at(BEGIN + minute * 60) for minute in (30, 100, 150)] == replicas
    assert differences(expected, simulated(*objects), 2) == []


windows = st.lists(
    st.tuples(st.integers(15, 400), st.integers(20, 180), st.integers(0, 30)).map(
        lambda window: (window[0], window[0] + window[1], window[2])
    ),
    max_size=4,
)
policies = st.fixed_dictionaries(
    {"type": st.sampled_from(["Count", "Percent"]), "value": st.integers(1, 60), "periodSeconds": st.integers(60, 900)}
)
directions = st.fixed_dictionaries(
    {},
    optional={
        "stabilizationWindowSeconds": st.sampled_from([0, 60, 300, 900]),
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
        "policies": st.lists(policies, min_size=1, max_size=2),
        "tolerance": st.sampled_from(["0", "0.1", "0.5"]),
    },
)
behaviors = st.fixed_dictionaries({}, optional={"scaleUp": directions, "scaleDown": directions})
bounds = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(lambda pair: (min(pair), max(*pair, 1)))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(default=st.integers(0, 15), times=windows, limits=bounds, target=st.integers(1, 3), behavior=behaviors)
def test_every_schedule_and_bound_comes_as_it_is_forecast(
    default: int, times: list[tuple[int, int, int]], limits: tuple[int, int], target: int, behavior: dict[str, Any]
) -> None:
    """The autoscaler of Springtide: second by second, with windows, policies and tolerances."""
    first = forecast(producer(default, times), autoscaler(*limits, target, behavior), deployment(1)).at(BEGIN)
    objects = (producer(default, times), autoscaler(*limits, target, behavior), deployment(first))
    assert differences(forecast(*objects), simulated(*objects), 2) == []


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(default=st.integers(1, 15), times=windows, limits=bounds, target=st.integers(1, 3))
def test_an_autoscaler_of_kubernetes_comes_as_it_is_forecast(
    default: int, times: list[tuple[int, int, int]], limits: tuple[int, int], target: int
) -> None:
    """The autoscaler of Kubernetes: some time after each change, as it acts every 15 seconds in steps."""
    least, most = max(1, limits[0]), limits[1]
    first = forecast(producer(default, times), autoscaler(least, most, target, {}, stock=True), deployment(1)).at(BEGIN)
    objects = (producer(default, times), autoscaler(least, most, target, {}, stock=True), deployment(first))
    assert differences(forecast(*objects), simulated(*objects), SETTLED) == []
