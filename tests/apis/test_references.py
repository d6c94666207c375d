"""Objects judged together: what is missing, what stands twice, and who fights over a target."""

from __future__ import annotations

from typing import Any

import pytest

from springtide.apis.fields import Context
from springtide.apis.objects import LoadedObject, load
from springtide.apis.problems import format_path
from springtide.apis.references import check_together
from springtide.apis.yaml import dump

CONTEXT = Context(now=1_780_000_000)


def manifest(api_version: str, kind: str, name: str, spec: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def deployment(name: str = "web", consumes: str | None = None) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    if consumes is not None:
        pod["metadata"]["annotations"] = {
            "autoscaling.x-k8s.io/consume-provisioning-request": consumes,
            "autoscaling.x-k8s.io/provisioning-class-name": "check-capacity.autoscaling.x-k8s.io",
        }
    return manifest("apps/v1", "Deployment", name, {"selector": {"matchLabels": {"app": name}}, "template": pod})


def target(kind: str = "Deployment", api_version: str = "apps/v1", name: str = "web") -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "name": name}


HPA_TARGET = target("HorizontalPodAutoscaler", "autoscaling/v2", "hpa")
KEDA_TARGET = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "keda"}


def hpa(name: str = "hpa") -> dict[str, Any]:
    spec = {"scaleTargetRef": target(), "maxReplicas": 5}
    return manifest("autoscaling/v2", "HorizontalPodAutoscaler", name, spec)


def scaled_object(name: str = "keda") -> dict[str, Any]:
    trigger = {"type": "cpu", "metadata": {"value": "50"}}
    return manifest(
        "keda.sh/v1alpha1", "ScaledObject", name, {"scaleTargetRef": {"name": "web"}, "triggers": [trigger]}
    )


def cron(name: str, *rules: dict[str, Any], to: dict[str, Any] | None = None) -> dict[str, Any]:
    spec = {"scaleTargetRef": to or target(), "rules": list(rules)}
    return manifest("autoscaling.karmada.io/v1alpha1", "CronFederatedHPA", name, spec)


def rule(name: str, schedule: str, replicas: int, **extra: Any) -> dict[str, Any]:
    return {"name": name, "schedule": schedule, "targetReplicas": replicas, **extra}


def found(*values: dict[str, Any]) -> list[str]:
    """Give what is wrong with the objects together, as `name path: message`."""
    objects = load("---\n".join(dump(value) for value in values), CONTEXT)
    assert all(isinstance(item, LoadedObject) and item.sound for item in objects), [
        problem for item in objects if isinstance(item, LoadedObject) for problem in item.problems
    ]
    loaded = [item for item in objects if isinstance(item, LoadedObject)]
    return [
        f"{item.name} {format_path(problem.path)}: {problem.message}"
        for item, problems in zip(loaded, check_together(loaded, CONTEXT), strict=True)
        for problem in problems
    ]


CALENDARS = [{"name": "holidays"}]
KARPENTER = "autoscaling.karpenter.sh/v1alpha1"


def autoscaler(query: str) -> dict[str, Any]:
    source = {"query": query, "target": {"type": "AverageValue", "value": 1}}
    spec = {"scaleTargetRef": target(), "minReplicas": 1, "maxReplicas": 9, "metrics": [{"prometheus": source}]}
    return manifest(KARPENTER, "HorizontalAutoscaler", "auto", spec)


def producer(name: str) -> dict[str, Any]:
    return manifest(KARPENTER, "MetricsProducer", name, {"schedule": {"defaultReplicas": 1, "behaviors": []}})


def group(name: str, id_: str, type_: str = "AWSEC2AutoScalingGroup") -> dict[str, Any]:
    return manifest(KARPENTER, "ScalableNodeGroup", name, {"replicas": 1, "type": type_, "id": id_})


def also(name: str, others: str) -> str:
    """Write what is said of an object for somebody else's node group."""
    return (
        f"{name} spec.id: this node group is also that of ScalableNodeGroup {others}:"
        " only the object that was created first scales it"
    )


def arn(region: str) -> str:
    return f"arn:aws:autoscaling:{region}:123456789012:autoScalingGroup:x:autoScalingGroupName/web"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([cron("c", rule("a", "0 9 * * *", 3)), deployment()], [], id="complete"),
        pytest.param(
            [cron("c", rule("a", "0 9 * * *", 3))],
            ["c spec.scaleTargetRef.name: Deployment `web` is not in these files"],
            id="a target that is not there",
        ),
        pytest.param(
            [cron("c", rule("a", "0 9 * * *", 3, calendars=CALENDARS)), deployment()],
            ["c spec.rules[0].calendars[0].name: Calendar `holidays` is not in these files"],
            id="a calendar that is not there",
        ),
        pytest.param(
            [cron("c", rule("a", "0 9 * * *", 3), to=target("Widget", "example.com/v1"))],
            [],
            id="a kind that we cannot read",
        ),
        pytest.param(
            [hpa(), scaled_object(), deployment()],
            [
                "hpa spec.scaleTargetRef.name: Deployment `web` is also scaled by ScaledObject `keda`: "
                "they will undo each other's work",
                "keda spec.scaleTargetRef.name: Deployment `web` is also scaled by HorizontalPodAutoscaler `hpa`: "
                "they will undo each other's work",
            ],
            id="two autoscalers on one target",
        ),
        pytest.param(
            [cron("c", rule("a", "0 9 * * *", 3)), hpa(), deployment()],
            [
                "c spec.scaleTargetRef.name: Deployment `web` is also scaled by HorizontalPodAutoscaler `hpa`, "
                "which will undo what the rules set"
            ],
            id="a cron rule against an autoscaler",
        ),
        pytest.param(
            [deployment(), deployment()],
            ["web metadata.name: Deployment `web` stands twice in these files: the one applied last wins"],
            id="twice",
        ),
        pytest.param(
            [cron("c", rule("a", "0 9 * * *", 3)), cron("d", rule("b", "0 9 * * 1", 5)), deployment()],
            [
                "d spec.rules[0]: rules `c/a` and `d/b` set replicas of one target to different values "
                "at Mon 2026-06-01 09:00 UTC: `d/b` wins, the name of its object coming last"
            ],
            id="rules of two objects at the same minute",
        ),
        pytest.param(
            [cron("d", rule("b", "0 9 * * 1", 5)), cron("c", rule("a", "0 9 * * *", 3)), deployment()],
            [
                "d spec.rules[0]: rules `c/a` and `d/b` set replicas of one target to different values "
                "at Mon 2026-06-01 09:00 UTC: `d/b` wins, the name of its object coming last"
            ],
            id="the same, whatever stands first",
        ),
        pytest.param(
            [deployment("pods", consumes="run")],
            [
                "pods spec.template.metadata.annotations[autoscaling.x-k8s.io/consume-provisioning-request]: "
                "ProvisioningRequest `run` is not in these files"
            ],
            id="a request that is not there",
        ),
        pytest.param(
            [
                cron("c", {"name": "a", "schedule": "0 9 * * *", "targetMinReplicas": 9}, to=HPA_TARGET),
                hpa(),
                deployment(),
            ],
            [
                "c spec.rules[0].targetMinReplicas: targetMinReplicas 9 is greater than the maximum of "
                "HorizontalPodAutoscaler `hpa`, 5"
            ],
            id="a minimum above the target's maximum",
        ),
        pytest.param(
            [
                cron("c", {"name": "a", "schedule": "0 9 * * *", "targetMinReplicas": 101}, to=KEDA_TARGET),
                scaled_object(),
                deployment(),
            ],
            [
                "c spec.rules[0].targetMinReplicas: targetMinReplicas 101 is greater than the maximum of "
                "ScaledObject `keda`, 100"
            ],
            id="a minimum above the maximum that KEDA sets by itself",
        ),
        pytest.param(
            [
                cron(
                    "c",
                    {"name": "a", "schedule": "0 9 * * *", "targetMinReplicas": 9, "targetMaxReplicas": 10},
                    to=HPA_TARGET,
                ),
                hpa(),
                deployment(),
            ],
            [],
            id="both bounds at once",
        ),
        pytest.param(
            [cron("c", rule("a", "0 9 * * *", 3)), cron("d", rule("b", "0 9 * * 1", 3)), deployment()],
            [],
            id="rules that agree",
        ),
        pytest.param(
            [autoscaler('karpenter_scheduled_capacity{name="peak"}'), producer("peak"), deployment()],
            [],
            id="a producer that is there",
        ),
        pytest.param(
            [autoscaler('max(karpenter_queue_length{name="peek"} or up{name="node"})'), producer("peak"), deployment()],
            ["auto spec.metrics[0].prometheus.query: MetricsProducer `peek` is not in these files"],
            id="a producer that is not there",
        ),
        pytest.param(
            [group("a", "web"), group("b", "web"), group("c", "other"), group("d", "web", "Simulated")],
            [also("a", "`b`"), also("b", "`a`")],
            id="two objects for one node group",
        ),
        pytest.param(
            [group("a", "web"), group("b", arn("eu-central-1")), group("c", arn("us-east-1"))],
            [also("a", "`b`, `c`"), also("b", "`a`"), also("c", "`a`")],
            id="a name that may be that of either",
        ),
    ],
)
def test_objects_together(values: list[dict[str, Any]], expected: list[str]) -> None:
    assert found(*values) == expected


def test_a_target_in_another_namespace_is_another_target() -> None:
    elsewhere = deployment()
    elsewhere["metadata"]["namespace"] = "other"
    assert found(cron("c", rule("a", "0 9 * * *", 3)), elsewhere) == [
        "c spec.scaleTargetRef.name: Deployment `web` is not in these files"
    ]


def test_rivals_in_other_namespaces_are_told_with_theirs() -> None:
    elsewhere = group("b", "web")
    elsewhere["metadata"]["namespace"] = "other"
    assert found(group("a", "web"), elsewhere) == [
        also("a", "`b` in namespace other"),
        also("b", "`a` in namespace default"),
    ]


def test_a_calendar_with_errors_is_as_good_as_none() -> None:
    calendar = manifest("springtide.dev/v1alpha1", "Calendar", "holidays", {"dates": ["2026-13-01"]})
    values = [cron("c", rule("a", "0 9 * * *", 3, calendars=CALENDARS)), deployment(), calendar]
    loaded = [item for item in load("---\n".join(dump(v) for v in values), CONTEXT) if isinstance(item, LoadedObject)]
    assert [problem.message for problem in check_together(loaded, CONTEXT)[0]] == [
        "Calendar `holidays` cannot be evaluated"
    ]


def behavior(name: str, replicas: int, hours: tuple[int, int], mode: str | None = None) -> dict[str, Any]:
    calendars = {} if mode is None else {"calendars": [{"name": "holidays", "mode": mode}]}
    start, end = ({"hours": hour} for hour in hours)
    return {"name": name, "replicas": replicas, "start": start, "end": end, **calendars}


@pytest.mark.parametrize(
    ("mode", "date", "meeting"),
    [
        pytest.param("Exclude", "2026-06-01", "Fri 2026-05-29", id="on all days but one"),
        pytest.param("Only", "2026-06-01", "Mon 2026-06-01", id="on one day"),
        pytest.param("Only", "2020-01-01", None, id="on no day"),
    ],
)
def test_behaviours_are_compared_as_calendars_leave_them(mode: str, date: str, meeting: str | None) -> None:
    behaviors = [behavior("a", 4, (9, 17)), behavior("b", 5, (12, 18), mode)]
    schedule = manifest(KARPENTER, "MetricsProducer", "p", {"schedule": {"defaultReplicas": 1, "behaviors": behaviors}})
    calendar = manifest("springtide.dev/v1alpha1", "Calendar", "holidays", {"dates": [date]})

    told = [message for message in found(schedule, calendar) if "are active at the same time" in message]

    assert len(told) == (meeting is not None)
    assert all(f"first on {meeting} 12:00" in message for message in told), told
    assert not any("at the same time" in message for message in found(schedule)), "it is not known what is left"
