"""Scaling on time, on a real control plane: a schedule crosses a boundary, and whatever follows it follows.

One process of ours runs for all tests of this file, and everything that is to happen is written at once: the tests wait
for the same boundaries. Those are seconds ahead for schedules, and the next minute for cron rules.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.e2e.control_plane import ControlPlane
from tests.e2e.objects import conditions, read, remove, write
from tests.e2e.processes import free_ports
from tests.e2e.prometheus import Prometheus, find
from tests.e2e.springtide_process import NAMESPACE, controller, started
from tests.e2e.waiting import eventually
from tests.e2e.workloads import Sizes, deployment, external_autoscaler, replicas_of, target

from springtide.apis.forecast import format_instant
from springtide.cluster.admission import ServiceTarget
from springtide.cluster.resources import Object
from springtide.metrics.external import api_service
from springtide.metrics.external.registration import NAME as API_SERVICE

KARMADA = "autoscaling.karmada.io/v1alpha1"
KARPENTER = "autoscaling.karpenter.sh/v1alpha1"
METRIC = "karpenter_scheduled_capacity"
SCRAPED = f'max({METRIC}{{name="schedule",job="springtide"}})'
"""A query for Prometheus: series have this label where they were scraped, and only there."""
BEFORE, DURING = 2, 5
AHEAD = 30
"""Seconds until the window opens: all targets follow the value before it by then."""
OPEN = 40
"""Seconds for which it is open: longer than any controller takes to react."""
PATIENCE = 90.0
BY_PROMETHEUS = pytest.param(
    "by-prometheus",
    marks=pytest.mark.skipif(
        find() is None, reason="there is no prometheus here: install Debian's package of that name"
    ),
)
FOLLOWERS = (BY_PROMETHEUS, "in-process", "stock")
UNTRUSTED = "untrusted"
"""A namespace that no Grant speaks of."""


@dataclass(frozen=True, slots=True)
class Times:
    """When things are to happen."""

    opens: int
    closes: int
    fires: int
    """The minute of the cron rules."""
    prometheus: Prometheus | None
    sizes: Sizes

    def seen(self, name: str, *sizes: int) -> float:
        """Return when a Deployment was first seen with the last of these sizes after it had the others; 0: not yet."""
        changes = self.sizes.changes(name)
        for place in range(len(changes) - len(sizes) + 1):
            if tuple(size for _, size in changes[place : place + len(sizes)]) == sizes:
                return changes[place + len(sizes) - 1][0]
        return 0


@pytest.fixture(scope="module")
def times(plane: ControlPlane, crds: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Times]:
    """Run our controllers, a Prometheus that scrapes them, and everything that is to be scaled."""
    folder = tmp_path_factory.mktemp("scaling")
    metrics, external = free_ports(2)
    service = ServiceTarget(NAMESPACE, "scaling-on-time", external)
    found = find()
    prometheus = Prometheus(found, folder / "prometheus", f"127.0.0.1:{metrics}") if found else None
    scraping = [prometheus] if prometheus is not None else []
    ours = controller(
        "scaling",
        folder,
        plane.admin,
        f"--metrics-port={metrics}",
        *(f"--prometheus-url={one.url}" for one in scraping),
        "--external-metrics",
        f"--external-metrics-port={external}",
        f"--external-metrics-service={service.name}:{external}",
    )
    plane.kubectl("create", "namespace", NAMESPACE, check=False)
    plane.kubectl("create", "namespace", UNTRUSTED)
    write(plane, external_name(service), api_service(service), *(grant(one.url) for one in scraping))
    try:
        with started(*(one.program for one in scraping), ours), Sizes(plane) as sizes:
            eventually("our API is available", lambda: is_available(plane))
            yield begin(plane, int(time.time()), prometheus, sizes)
    finally:
        for kind, names in WRITTEN.items():
            remove(plane, kind, [*names, "--namespace=default"])
        remove(plane, "service", [service.name, f"--namespace={NAMESPACE}"])
        remove(plane, "apiservice", [API_SERVICE])
        remove(plane, "grant", ["scaling"])
        remove(plane, "namespace", [UNTRUSTED])


WRITTEN = {
    "metricsproducer": ["schedule"],
    "horizontalautoscaler": ["by-prometheus", "in-process"],
    "cronfederatedhpa": ["workload", "federated", "bounded"],
    "federatedhpa": ["federated"],
    "hpa": ["stock", "bounded"],
    "deployment": ["by-prometheus", "in-process", "stock", "workload", "bounded"],
}


def begin(plane: ControlPlane, now: int, prometheus: Prometheus | None, sizes: Sizes) -> Times:
    """Write everything, with times that lie ahead."""
    # A rule whose minute has begun by the time it is written fires tomorrow.
    made = Times(now + AHEAD, now + AHEAD + OPEN, (now + 10) // 60 * 60 + 60, prometheus, sizes)
    write(
        plane,
        *(deployment(name) for name in WRITTEN["deployment"]),
        producer(made),
        autoscaler("by-prometheus", SCRAPED),
        autoscaler("in-process", f'max({METRIC}{{name="schedule"}})'),
        deployment("by-prometheus", namespace=UNTRUSTED),
        autoscaler("by-prometheus", SCRAPED, UNTRUSTED),
        external_autoscaler("stock", METRIC, {"matchLabels": {"name": "schedule"}}),
        cron("workload", target("workload"), made.fires, targetReplicas=7),
        federated_autoscaler("federated"),
        cron("federated", reference(KARMADA, "FederatedHPA", "federated"), made.fires, targetMaxReplicas=30),
        bounded_autoscaler("bounded"),
        cron(
            "bounded",
            reference("autoscaling/v2", "HorizontalPodAutoscaler", "bounded"),
            made.fires,
            targetMinReplicas=4,
            targetMaxReplicas=40,
        ),
    )
    return made


def external_name(service: ServiceTarget) -> Object:
    """Write a Service that stands for this machine."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service.name, "namespace": service.namespace},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": service.port}]},
    }


def grant(url: str) -> Object:
    """Let objects of the namespace default ask a Prometheus."""
    return {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Grant",
        "metadata": {"name": "scaling"},
        "spec": {"namespaces": ["default"], "urls": [f"{url}/"]},
    }


def producer(times: Times) -> Object:
    """Write a schedule with one window."""
    window = {"from": format_instant(times.opens), "until": format_instant(times.closes)}
    schedule = {"defaultReplicas": BEFORE, "behaviors": [{"name": "peak", "replicas": DURING, **window}]}
    return ours("MetricsProducer", "schedule", {"schedule": schedule})


def autoscaler(name: str, query: str, namespace: str = "default") -> Object:
    """Write an autoscaler of ours that has a Deployment of its name follow a query, at once."""
    metric = {"prometheus": {"query": query, "target": {"type": "AverageValue", "value": "1"}}}
    spec = {
        "scaleTargetRef": target(name),
        "minReplicas": 1,
        "maxReplicas": 20,
        "metrics": [metric],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    }
    return ours("HorizontalAutoscaler", name, spec, namespace=namespace)


def cron(name: str, what: dict[str, str], at: int, **sets: int) -> Object:
    """Write an object with one rule, of one minute of every day."""
    when = datetime.fromtimestamp(at, UTC)
    rule = {"name": "soon", "schedule": f"{when.minute} {when.hour} * * *", **sets}
    return ours("CronFederatedHPA", name, {"scaleTargetRef": what, "rules": [rule]}, KARMADA)


def federated_autoscaler(name: str) -> Object:
    """Write a FederatedHPA."""
    spec = {"scaleTargetRef": target(name), "minReplicas": 1, "maxReplicas": 10}
    return ours("FederatedHPA", name, spec, KARMADA)


def bounded_autoscaler(name: str) -> Object:
    """Write a HorizontalPodAutoscaler whose metric is not measured: only its bounds count."""
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    spec = {"scaleTargetRef": target(name), "minReplicas": 1, "maxReplicas": 10, "metrics": [cpu]}
    return ours("HorizontalPodAutoscaler", name, spec, "autoscaling/v2")


def ours(kind: str, name: str, spec: Object, version: str = KARPENTER, namespace: str = "default") -> Object:
    """Write an object."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def reference(version: str, kind: str, name: str) -> dict[str, str]:
    """Refer to an object."""
    return {"apiVersion": version, "kind": kind, "name": name}


def is_available(plane: ControlPlane) -> bool:
    """Return whether the API server reaches our external metrics."""
    return bool(conditions(read(plane, "apiservice", API_SERVICE)).get("Available", {}).get("status") == "True")


def seen(plane: ControlPlane, kind: str, name: str) -> Any:
    """Return an object, for the report of a test that fails."""
    return (read(plane, kind, name) or {}).get("status")


@pytest.mark.parametrize("name", FOLLOWERS)
def test_the_value_before_the_window_is_followed(times: Times, name: str) -> None:
    """By an autoscaler of ours that asks Prometheus, by one that is answered in process, and by a stock one."""
    at = eventually(f"{name} has its replicas", lambda: times.seen(name, BEFORE))

    assert at < times.opens, "it took too long to tell"


@pytest.mark.parametrize("name", FOLLOWERS)
def test_the_window_opens_and_is_followed(times: Times, name: str) -> None:
    """No sooner than it opens: a Deployment that is seen with more is seen so after that instant."""
    at = eventually(f"{name} has more replicas", lambda: times.seen(name, BEFORE, DURING), patience=PATIENCE)

    assert times.opens <= at < times.closes


def test_the_status_has_the_present_and_the_next_value(plane: ControlPlane, times: Times) -> None:
    def reported() -> tuple[Any, ...]:
        status = (seen(plane, "metricsproducer", "schedule") or {}).get("scheduledCapacity") or {}
        return tuple(status.get(name) for name in ("currentValue", "nextValue", "nextValueTime"))

    eventually("the open window", lambda: reported() == (DURING, BEFORE, format_instant(times.closes)))


@pytest.mark.parametrize("name", FOLLOWERS)
def test_the_window_closes_and_is_followed(times: Times, name: str) -> None:
    at = eventually(f"{name} has fewer replicas", lambda: times.seen(name, BEFORE, DURING, BEFORE), patience=PATIENCE)

    assert times.closes <= at


def executed(plane: ControlPlane, times: Times, name: str) -> Object:
    """Wait for the one execution of a cron object, and give what it says."""

    def successes() -> list[Object]:
        (history,) = (seen(plane, "cronfederatedhpa", name) or {}).get("executionHistories") or [{}]
        return history.get("successfulExecutions") or []

    (entry,) = eventually(f"the rule of {name} has fired", successes, patience=PATIENCE)
    assert entry["scheduleTime"] == format_instant(times.fires)
    assert format_instant(times.fires) <= entry["executionTime"] <= format_instant(times.fires + 10)
    return entry


def test_a_cron_rule_scales_a_deployment(plane: ControlPlane, times: Times) -> None:
    assert executed(plane, times, "workload")["appliedReplicas"] == 7
    assert replicas_of(plane, "workload") == 7


def test_a_cron_rule_moves_one_bound_of_a_federated_autoscaler(plane: ControlPlane, times: Times) -> None:
    assert executed(plane, times, "federated")["appliedMaxReplicas"] == 30
    found = read(plane, "federatedhpa", "federated")

    assert found is not None
    assert (found["spec"]["minReplicas"], found["spec"]["maxReplicas"]) == (1, 30)


def test_a_cron_rule_moves_both_bounds_of_a_stock_autoscaler(plane: ControlPlane, times: Times) -> None:
    """Which then scales its Deployment up to the new minimum by itself."""
    entry = executed(plane, times, "bounded")
    found = read(plane, "hpa", "bounded")

    assert (entry["appliedMinReplicas"], entry["appliedMaxReplicas"]) == (4, 40)
    assert found is not None
    assert (found["spec"]["minReplicas"], found["spec"]["maxReplicas"]) == (4, 40)
    eventually("the minimum is kept", lambda: replicas_of(plane, "bounded") == 4)


@pytest.mark.skipif(find() is None, reason="there is no prometheus here: install Debian's package of that name")
def test_prometheus_is_queried_for_granted_namespaces_only(plane: ControlPlane, times: Times) -> None:
    """Other namespaces get a condition that says what is missing."""

    def refusals() -> list[str]:
        found = conditions(read(plane, "horizontalautoscaler", "by-prometheus", UNTRUSTED))
        return [entry["message"] for entry in found.values() if "Grant" in entry.get("message", "")]

    assert f"no Grant lets objects of namespace {UNTRUSTED} reach" in eventually("a refusal", refusals)[0]
    assert times.prometheus is not None
    assert times.prometheus.answered() > 0
