"""Cross-object checks: missing references, duplicates, and targets with two autoscalers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from springtide.apis.kinds import ValidationContext
from springtide.apis.objects import LoadedObject, load
from springtide.apis.problems import format_path
from springtide.apis.references import IN_FILES, LookupScope, check_cross_object
from springtide.apis.yaml import dump

CONTEXT = ValidationContext(now=1_780_000_000)


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
HPA_V1_TARGET = target("HorizontalPodAutoscaler", "autoscaling/v1", "hpa")
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


def found(*values: dict[str, Any], where: LookupScope = IN_FILES) -> list[str]:
    """Return what is wrong with the objects together, as `name path: message`."""
    objects = load("---\n".join(dump(value) for value in values), CONTEXT)
    assert all(isinstance(item, LoadedObject) and item.sound for item in objects), [
        problem for item in objects if isinstance(item, LoadedObject) for problem in item.problems
    ]
    loaded = [item for item in objects if isinstance(item, LoadedObject)]
    return [
        f"{item.name} {format_path(problem.path)}: {problem.message}"
        for item, problems in zip(loaded, check_cross_object(loaded, CONTEXT, where), strict=True)
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
    """Return the problems of an object for the node group of another object."""
    return (
        f"{name} spec.id: this is also the node group of ScalableNodeGroup {others}:"
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
            ["web metadata.name: Deployment `web` is defined twice in these files: the last one applied wins"],
            id="twice",
        ),
        pytest.param(
            [cron("c", rule("a", "0 9 * * *", 3)), cron("d", rule("b", "0 9 * * 1", 5)), deployment()],
            [
                "d spec.rules[0]: rules `c/a` and `d/b` set replicas of one target to different values "
                "at Mon 2026-06-01 09:00 UTC: `d/b` wins, as the name of its object comes last"
            ],
            id="rules of two objects at the same minute",
        ),
        pytest.param(
            [cron("d", rule("b", "0 9 * * 1", 5)), cron("c", rule("a", "0 9 * * *", 3)), deployment()],
            [
                "d spec.rules[0]: rules `c/a` and `d/b` set replicas of one target to different values "
                "at Mon 2026-06-01 09:00 UTC: `d/b` wins, as the name of its object comes last"
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
                cron("c", {"name": "a", "schedule": "0 9 * * *", "targetMinReplicas": 9}, to=HPA_V1_TARGET),
                {
                    **hpa(),
                    "apiVersion": "autoscaling/v1",
                },
                deployment(),
            ],
            [
                "c spec.rules[0].targetMinReplicas: targetMinReplicas 9 is greater than the maximum of "
                "HorizontalPodAutoscaler `hpa`, 5"
            ],
            id="a minimum above the maximum of a target in its first version",
        ),
        pytest.param(
            [
                cron(
                    "c",
                    {"name": "day", "schedule": "0 9 * * *", "targetMinReplicas": 4},
                    {"name": "night", "schedule": "0 20 * * *", "targetMaxReplicas": 3},
                    to=HPA_TARGET,
                ),
                hpa(),
                deployment(),
            ],
            [
                "c spec.rules[1].targetMaxReplicas: rule `night` is refused, first at Fri 2026-05-29 20:00 UTC: "
                "targetMaxReplicas 3 is smaller than the minimum 4 that rule `day` has set"
            ],
            id="a maximum below the minimum of another rule",
        ),
        pytest.param(
            [
                cron(
                    "c",
                    {"name": "day", "schedule": "0 9 * * *", "targetMinReplicas": 4},
                    {"name": "more", "schedule": "0 9 * * *", "targetMaxReplicas": 5},
                    {"name": "night", "schedule": "0 20 * * *", "targetMaxReplicas": 3, "targetMinReplicas": 1},
                    to=HPA_TARGET,
                ),
                hpa(),
                deployment(),
            ],
            [],
            id="bounds of two rules that fire together",
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


def test_conflicts_in_other_namespaces_name_the_namespace() -> None:
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
    assert [problem.message for problem in check_cross_object(loaded, CONTEXT)[0]] == [
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


def new_year(**spec: Any) -> dict[str, Any]:
    return manifest("springtide.dev/v1alpha1", "Calendar", "holidays", spec or {"yearly": ["01-01"]})


@pytest.mark.parametrize(
    ("times", "mode", "told"),
    [
        pytest.param({"schedule": "0 8 1 1 *"}, "Exclude", "every time of its schedule", id="excluded every year"),
        pytest.param({"schedule": "0 8 2 1 *"}, "Only", "every time of its schedule", id="never one of the days"),
        pytest.param({"at": "2027-01-01T08:00:00Z"}, "Exclude", "2027-01-01T08:00:00Z", id="once, on an excluded day"),
        pytest.param({"schedule": "0 8 1 * *"}, "Exclude", None, id="excluded once a year"),
        pytest.param({"at": "2027-01-02T08:00:00Z"}, "Exclude", None, id="once, on another day"),
        pytest.param({"schedule": "0 8 1 1 *", "suspend": True}, "Exclude", None, id="suspended anyway"),
    ],
)
def test_rules_that_their_calendars_keep_from_firing(times: dict[str, Any], mode: str, told: str | None) -> None:
    one = {"name": "a", "targetReplicas": 3, "calendars": [{"name": "holidays", "mode": mode}], **times}

    messages = found(cron("c", one), deployment(), new_year())

    expected = f"c spec.rules[0].calendars: rule `a` never fires: its calendars exclude {told}"
    assert messages == ([] if told is None else [expected])


@pytest.mark.parametrize(
    ("day", "mode", "told"),
    [
        pytest.param(1, "Exclude", True, id="excluded every year"),
        pytest.param(2, "Only", True, id="never one of the days"),
        pytest.param(2, "Exclude", False, id="another day"),
    ],
)
def test_behaviours_that_their_calendars_keep_from_taking_effect(day: int, mode: str, told: bool) -> None:
    one = behavior("a", 4, (9, 17), mode)
    for part in ("start", "end"):
        one[part] |= {"months": "Jan", "days": day}
    schedule = manifest(KARPENTER, "MetricsProducer", "p", {"schedule": {"defaultReplicas": 1, "behaviors": [one]}})

    place, message = "p spec.schedule.behaviors[0].calendars", "behaviour `a` never takes effect"
    expected = f"{place}: {message}: its calendars exclude every time at which it would"
    assert found(schedule, new_year()) == ([expected] if told else [])


@pytest.mark.parametrize(
    ("mode", "date", "meeting"),
    [
        pytest.param("Exclude", "2026-05-29", "Sat 2026-05-30", id="on all days but one"),
        pytest.param("Only", "2026-06-01", "Mon 2026-06-01", id="on one day"),
    ],
)
def test_rules_are_compared_as_calendars_leave_them(mode: str, date: str, meeting: str) -> None:
    """Within one object and across two of them, where the calendar is known."""
    plain = rule("a", "0 9 * * *", 3)
    cut = rule("b", "0 9 * * *", 4, calendars=[{"name": "holidays", "mode": mode}])
    calendar = new_year(dates=[date])

    (within,) = found(cron("c", plain, cut), deployment(), calendar)
    (across,) = found(cron("c", plain), cron("d", cut), deployment(), calendar)

    assert f"rules `a` and `b` fire together and set replicas to 3 and 4, first on {meeting} 09:00" in within
    assert f"rules `c/a` and `d/b` set replicas of one target to different values at {meeting} 09:00" in across
    elsewhere = "Calendar `holidays` is not in these files"
    assert [elsewhere in message for message in found(cron("c", plain, cut), deployment())] == [True]


def test_where_everything_is_seen_a_missing_calendar_cuts_nothing() -> None:
    """So it is for the controllers, too."""
    behaviors = [behavior("a", 4, (9, 17)), behavior("b", 5, (12, 18), "Exclude")]
    schedule = manifest(KARPENTER, "MetricsProducer", "p", {"schedule": {"defaultReplicas": 1, "behaviors": behaviors}})

    told = found(schedule, where=replace(IN_FILES, complete=True))

    assert any("are active at the same time" in message for message in told), told


def test_rules_of_one_name_are_not_compared() -> None:
    """The names are ambiguous, and duplicates are an error already."""
    rules = [rule("a", "0 9 * * *", 2), rule("a", "0 9 * * *", 3), rule("b", "0 9 * * *", 4)]
    (loaded,) = load(dump(cron("c", *rules)), CONTEXT)

    assert isinstance(loaded, LoadedObject)
    assert not any("fire together" in problem.message for problem in loaded.problems)
