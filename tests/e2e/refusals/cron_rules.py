"""Mistakes in CronFederatedHPAs."""

from __future__ import annotations

from typing import Any

from tests.e2e.refusals.rows import DEPLOYMENT, KARMADA, TARGET, Refused, but, written

from springtide.cluster.resources import Object

FEDERATED = {"apiVersion": KARMADA, "kind": "FederatedHPA", "name": "shop"}
HPA = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "shop"}
SCALED_OBJECT = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "shop"}
RULE = "spec.rules[0]"


def cron(rule: dict[str, Any] | None = None, *more: dict[str, Any], target: dict[str, Any] | None = None) -> Object:
    """Write a CronFederatedHPA whose first rule is right but for some fields; None takes a field away."""
    right = {"name": "up", "schedule": "30 8 * * *", "targetReplicas": 3}
    rules = [but(right, rule or {}), *more]
    return written("CronFederatedHPA", KARMADA, {"scaleTargetRef": target or DEPLOYMENT, "rules": rules})


def bounds(target: dict[str, Any], **rule: Any) -> Object:
    """Write a CronFederatedHPA of an autoscaler, whose rules move bounds."""
    return cron({"targetReplicas": None, **rule}, target=target)


ROWS = (
    Refused("M03", cron(target={**FEDERATED, "kind": "Test"}), f"{TARGET}.kind", "write `kind: FederatedHPA`"),
    Refused("M04-no-kind", cron(target=but(DEPLOYMENT, {"kind": None})), f"{TARGET}.kind", "Required value", True),
    Refused("M04-no-name", cron(target=but(DEPLOYMENT, {"name": None})), f"{TARGET}.name", "Required value", True),
    Refused("M04-empty-kind", cron(target={**DEPLOYMENT, "kind": ""}), f"{TARGET}.kind", "at least 1 char", True),
    Refused("M04-empty-name", cron(target={**DEPLOYMENT, "name": ""}), f"{TARGET}.name", "at least 1 char", True),
    Refused("not-a-path-segment", cron(target={**DEPLOYMENT, "name": "a/b"}), f"{TARGET}.name", "neither `/` nor `%`"),
    Refused("X4", cron(target={**DEPLOYMENT, "apiVersion": "app/v1"}), f"{TARGET}.apiVersion", "apiVersion: apps/v1"),
    Refused("no-version", cron(target=but(DEPLOYMENT, {"apiVersion": None})), f"{TARGET}.apiVersion", "apps/v1"),
    Refused(
        "no-rules",
        written("CronFederatedHPA", KARMADA, {"scaleTargetRef": DEPLOYMENT}),
        "spec.rules",
        "Required value",
        True,
    ),
    Refused(
        "same-name",
        cron({}, {"name": "up", "schedule": "0 9 * * *", "targetReplicas": 1}),
        "spec.rules[1]",
        "Duplicate value",
        True,
    ),
    Refused("no-name", cron({"name": None}), f"{RULE}.name", "Required value", True),
    Refused("empty-name", cron({"name": ""}), f"{RULE}.name", "at least 1 char", True),
    Refused("long-name", cron({"name": "x" * 33}), f"{RULE}.name", "32", True),
    Refused("M06", cron({"schedule": "0 0 13 *"}), f"{RULE}.schedule", "fill up with stars: 0 0 13 * *"),
    Refused("empty-schedule", cron({"schedule": ""}), f"{RULE}.schedule", "at least 1 char", True),
    Refused("eighth-weekday", cron({"schedule": "0 0 * * 8"}), f"{RULE}.schedule", "choose a value from 0 to 6"),
    Refused("never", cron({"schedule": "0 0 30 2 *"}), f"{RULE}.schedule", "never fires: no day 30 in feb"),
    Refused("last-friday", cron({"schedule": "1 1 * * 5L"}), f"{RULE}.schedule", "use a Calendar"),
    Refused("every", cron({"schedule": "@every 5m"}), f"{RULE}.schedule", "write a step, such as */15 * * * *"),
    Refused(
        "zone-in-schedule",
        cron({"schedule": "CRON_TZ=UTC 0 0 * * *"}),
        f"{RULE}.schedule",
        "write 0 0 * * * here and UTC in timeZone",
    ),
    Refused("no-time", cron({"schedule": None}), RULE, "Set either schedule,", True),
    Refused("two-times", cron({"at": "2100-01-01T00:00:00Z"}), RULE, "Set either schedule,", True),
    Refused("no-instant", cron({"schedule": None, "at": "tomorrow"}), f"{RULE}.at", "must be of type date-time", True),
    Refused("M07", cron({"timeZone": "A/B"}), f"{RULE}.timeZone", "expected an IANA name"),
    Refused("no-replicas", cron({"targetReplicas": None}), RULE, "Set targetReplicas for a workload", True),
    Refused(
        "bounds-of-a-workload",
        bounds(DEPLOYMENT, targetMinReplicas=1),
        f"{RULE}.targetReplicas",
        "write `targetReplicas`, or let `scaleTargetRef` name an autoscaler",
    ),
    Refused("negative", cron({"targetReplicas": -1}), f"{RULE}.targetReplicas", "greater than or equal to 0", True),
    Refused("M09", bounds(FEDERATED), RULE, "Set targetReplicas for a workload", True),
    Refused(
        "M09-replicas",
        bounds(FEDERATED, targetReplicas=3),
        f"{RULE}.targetMaxReplicas",
        "write `targetMinReplicas`, `targetMaxReplicas`, or both",
    ),
    Refused(
        "M10-min-below-zero",
        bounds(FEDERATED, targetMinReplicas=-1),
        f"{RULE}.targetMinReplicas",
        "greater than or equal to 0",
        True,
    ),
    Refused(
        "M10-min-zero",
        bounds(FEDERATED, targetMinReplicas=0),
        f"{RULE}.targetMinReplicas",
        "must be at least 1, is 0 (write 1;",
    ),
    Refused(
        "M10-max-below-zero",
        bounds(FEDERATED, targetMaxReplicas=-1),
        f"{RULE}.targetMaxReplicas",
        "greater than or equal to 1",
        True,
    ),
    Refused(
        "M10-max-zero",
        bounds(FEDERATED, targetMaxReplicas=0),
        f"{RULE}.targetMaxReplicas",
        "greater than or equal to 1",
        True,
    ),
    Refused(
        "M10-crossed",
        bounds(FEDERATED, targetMinReplicas=3, targetMaxReplicas=1),
        f"{RULE}.targetMinReplicas",
        "raise `targetMaxReplicas` to",
    ),
    Refused(
        "hpa-replicas",
        cron(target=HPA),
        f"{RULE}.targetReplicas",
        "write `targetMinReplicas`, `targetMaxReplicas`, or both",
    ),
    Refused(
        "hpa-min-zero", bounds(HPA, targetMinReplicas=0), f"{RULE}.targetMinReplicas", "write 1; only a ScaledObject"
    ),
    Refused(
        "hpa-crossed",
        bounds(HPA, targetMinReplicas=3, targetMaxReplicas=1),
        f"{RULE}.targetMinReplicas",
        "raise `targetMaxReplicas` to",
    ),
    Refused(
        "scaled-object-replicas",
        cron(target=SCALED_OBJECT),
        f"{RULE}.targetReplicas",
        "write `targetMinReplicas`, `targetMaxReplicas`, or both",
    ),
    Refused(
        "scaled-object-min-below-zero",
        bounds(SCALED_OBJECT, targetMinReplicas=-1),
        f"{RULE}.targetMinReplicas",
        "greater than or equal to 0",
        True,
    ),
    Refused(
        "delay-as-long-as-the-gap", cron({"maxDelaySeconds": 86_400}), f"{RULE}.maxDelaySeconds", "write 86399 or less"
    ),
    Refused("no-delay", cron({"maxDelaySeconds": 0}), f"{RULE}.maxDelaySeconds", "greater than or equal to 1", True),
    Refused(
        "no-successes-kept",
        cron({"successfulHistoryLimit": 0}),
        f"{RULE}.successfulHistoryLimit",
        "greater than or equal to 1",
        True,
    ),
    Refused(
        "too-many-successes",
        cron({"successfulHistoryLimit": 33}),
        f"{RULE}.successfulHistoryLimit",
        "less than or equal to 32",
        True,
    ),
    Refused(
        "failures-below-zero",
        cron({"failedHistoryLimit": -1}),
        f"{RULE}.failedHistoryLimit",
        "greater than or equal to 0",
        True,
    ),
    Refused(
        "too-many-failures",
        cron({"failedHistoryLimit": 33}),
        f"{RULE}.failedHistoryLimit",
        "less than or equal to 32",
        True,
    ),
    Refused(
        "calendar-mode",
        cron({"calendars": [{"name": "holidays", "mode": "Skip"}]}),
        f"{RULE}.calendars[0].mode",
        'supported values: "Exclude", "Only"',
        True,
    ),
)
