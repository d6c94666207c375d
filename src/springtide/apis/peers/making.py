"""The objects that conversions make: schedules with the autoscaler that follows them, and cron rules."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from springtide.apis.peers.conversion import Notes, Tree, part

_LONGEST_RULE_NAME = 32
_KARPENTER = "autoscaling.karpenter.sh/v1alpha1"
_KARMADA = "autoscaling.karmada.io/v1alpha1"
SERIES = "karpenter_scheduled_capacity"


def named(value: Tree, notes: Notes) -> str:
    """Read the name of an object, which the new ones are called after."""
    name = part(value, "metadata").get("name")
    if not isinstance(name, str) or not name:
        notes.error(("metadata",), "the object has no name for the new objects to be called after", "add `name`")
        return ""
    return name


def producer(metadata: Tree, zone: str, default: int, behaviors: Sequence[Tree]) -> Tree:
    """Make a MetricsProducer with a schedule."""
    return {
        "apiVersion": _KARPENTER,
        "kind": "MetricsProducer",
        "metadata": metadata,
        "spec": {"schedule": {"timezone": zone, "defaultReplicas": default, "behaviors": list(behaviors)}},
    }


def autoscaler(metadata: Tree, target: Tree, bounds: tuple[int, int], producers: Sequence[str]) -> Tree:
    """Make a HorizontalAutoscaler that gives a target the highest of what schedules ask for."""
    return {
        "apiVersion": _KARPENTER,
        "kind": "HorizontalAutoscaler",
        "metadata": metadata,
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": bounds[0],
            "maxReplicas": bounds[1],
            "metrics": [
                {
                    "prometheus": {
                        "query": _query(name, metadata.get("namespace")),
                        "target": {"type": "AverageValue", "value": 1},
                    }
                }
                for name in producers
            ],
        },
    }


def cron_object(metadata: Tree, target: Tree, rules: Sequence[Tree]) -> Tree:
    """Make a CronFederatedHPA."""
    return {
        "apiVersion": _KARMADA,
        "kind": "CronFederatedHPA",
        "metadata": metadata,
        "spec": {"scaleTargetRef": target, "rules": list(rules)},
    }


def metadata_of(value: Tree, name: str) -> Tree:
    """Give a new object the namespace and labels of the one that it is made from."""
    given = part(value, "metadata")
    kept: dict[str, Any] = {"name": name}
    for key in ("namespace", "labels"):
        if given.get(key):
            kept[key] = given[key]
    return kept


def free_name(wanted: str, taken: Collection[str], longest: int = _LONGEST_RULE_NAME) -> str:
    """Shorten a name where it is too long, and number it where it is taken."""
    name, number = wanted[:longest], 2
    while name in taken:
        ending = f"-{number}"
        name, number = wanted[: longest - len(ending)] + ending, number + 1
    return name


def renamed(made: Sequence[Tree], position: int, name: str) -> tuple[Tree, ...]:
    """Give one of the objects that are made together another name, also where the others refer to it."""
    item = made[position]
    old, namespace = item["metadata"]["name"], item["metadata"].get("namespace")
    swapped = [*made]
    swapped[position] = {**item, "metadata": {**item["metadata"], "name": name}}
    if item["kind"] == "MetricsProducer":
        return tuple(_replaced(one, _query(old, namespace), _query(name, namespace)) for one in swapped)
    if item["kind"] == "Calendar":
        return tuple(_with_calendar(one, old, name) for one in swapped)
    return tuple(swapped)


def _replaced(value: Any, old: str, new: str) -> Any:
    """Put a text in the place of another one, wherever it is the whole of a value."""
    match value:
        case dict():
            return {key: _replaced(item, old, new) for key, item in value.items()}
        case list():
            return [_replaced(item, old, new) for item in value]
    return new if value == old else value


def _with_calendar(value: Tree, old: str, new: str) -> Tree:
    rules = part(value, "spec").get("rules")
    if not isinstance(rules, list):
        return value
    named_anew = [
        {**rule, "calendars": _replaced(rule["calendars"], old, new)} if "calendars" in rule else rule for rule in rules
    ]
    return {**value, "spec": {**value["spec"], "rules": named_anew}}


def zone_suffix(zone: str) -> str:
    """Write the name of a zone as a part of an object's name: Europe/Berlin is `europe-berlin`."""
    return re.sub(r"[^a-z0-9]+", "-", zone.lower()).strip("-")


def _query(name: str, namespace: Any) -> str:
    matchers = [f'name="{name}"'] + ([f'namespace="{namespace}"'] if isinstance(namespace, str) else [])
    return f"{SERIES}{{{','.join(matchers)}}}"
