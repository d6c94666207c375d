"""What objects count against a ResourceQuota, and which quotas count them.

Usage is computed from the objects that exist, never from the status of a quota: that is brought up to date by a
controller, some time later, and is for people to read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from springtide.apis.core.pods import PodSpec
from springtide.apis.core.requests import pod_requests
from springtide.cluster.resources import Object, Resource
from springtide.quantity import Quantity
from springtide.simulator.api import pods
from springtide.simulator.api.builtin.pod_defaults import service_class
from springtide.simulator.api.timestamps import instant

Usage = dict[str, Quantity]

_ONE = Quantity.parse(1)
_COUNTED_BY_PLURAL = (
    "configmaps",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
)
_BARE_NAMES = ("cpu", "memory", "ephemeral-storage")
"""Requests of these count under their own name too."""
_MUST_BE_GIVEN = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
"""A quota on one of these makes every container say how much of it it wants."""


def usage(resource: Resource, item: Object, now: int) -> Usage:
    """Tell what one object counts."""
    count = f"count/{resource}"
    match resource.group, resource.plural:
        case "", "pods":
            return {count: _ONE} | (_pod_usage(item) if _counts(item, now) else {})
        case "", "persistentvolumeclaims":
            requests = ((item.get("spec") or {}).get("resources") or {}).get("requests") or {}
            storage = {"requests.storage": Quantity.parse(requests["storage"])} if "storage" in requests else {}
            return {count: _ONE, resource.plural: _ONE} | storage
        case "", plural if plural in _COUNTED_BY_PLURAL:
            return {count: _ONE, plural: _ONE}
        case _:
            return {count: _ONE}


def total(usages: Iterable[Usage]) -> Usage:
    """Add usages up."""
    summed: Usage = {}
    for each in usages:
        for name, amount in each.items():
            summed[name] = summed[name] + amount if name in summed else amount
    return summed


def covers(quota: Object, resource: Resource, item: Object) -> bool:
    """Tell whether the scopes of a quota include an object; all of them have to."""
    spec = quota.get("spec") or {}
    scopes = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    scopes += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    if not scopes:
        return True
    return resource.plural == "pods" and all(_in_scope(scope, item.get("spec") or {}) for scope in scopes)


def missing(hard: Mapping[str, object], pod: Object) -> str:
    """Name the containers that do not say how much they want of what a quota limits; empty where all do."""
    told = []
    for name in _MUST_BE_GIVEN:
        if name not in hard:
            continue
        part, _, plain = name.rpartition(".")
        silent = [
            container["name"]
            for container in pods.containers(pod.get("spec") or {})
            if plain not in ((container.get("resources") or {}).get(part or "requests") or {})
        ]
        if silent:
            told.append(f"{name} for: {','.join(sorted(silent))}")
    return "; ".join(sorted(told))


def exceeded(hard: Mapping[str, str], used: Usage, requested: Usage) -> tuple[str, ...]:
    """Name what would go beyond a quota."""
    zero = Quantity.parse(0)
    return tuple(
        name
        for name in sorted(hard)
        if name in requested and requested[name] + used.get(name, zero) > Quantity.parse(hard[name])
    )


def charged(status: Object, requested: Usage) -> Object:
    """Give the status of a quota with what one more object uses; what nobody has counted yet stays uncounted."""
    used = status.get("used") or {}
    more = {name: str(Quantity.parse(used[name]) + requested[name]) for name in used if name in requested}
    return {**status, "used": {**used, **more}} if more else status


def _counts(pod: Object, now: int) -> bool:
    """Tell whether a pod still uses anything: not when it has finished, nor when it should long have gone."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return False
    metadata = pod["metadata"]
    if "deletionTimestamp" not in metadata:
        return True
    return now <= instant(metadata["deletionTimestamp"]) + int(metadata.get("deletionGracePeriodSeconds", 0))


def _pod_usage(pod: Object) -> Usage:
    spec: Object = pod.get("spec") or {}
    counted = {"pods": _ONE}
    for name, amount in pod_requests(msgspec.convert(spec, PodSpec)).items():
        if name in _BARE_NAMES:
            counted[name] = amount
        counted[f"requests.{name}"] = amount
    limits = pod_requests(msgspec.convert(limits_as_requests(spec), PodSpec))
    counted |= {f"limits.{name}": amount for name, amount in limits.items() if name in _BARE_NAMES}
    return counted


def limits_as_requests(spec: Object) -> Object:
    """Give a pod that requests just its limits: what it is limited to adds up in the same way."""

    def limited(holder: Object) -> Object:
        return {**holder, "resources": {"requests": (holder.get("resources") or {}).get("limits") or {}}}

    containers = {
        name: [limited(container) for container in spec[name]]
        for name in ("containers", "initContainers")
        if spec.get(name)
    }
    return (limited(spec) if spec.get("resources") else spec) | containers


def _in_scope(scope: Object, spec: Object) -> bool:
    match scope.get("scopeName"):
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return service_class(spec) == "BestEffort"
        case "NotBestEffort":
            return service_class(spec) != "BestEffort"
        case "PriorityClass":
            name = spec.get("priorityClassName") or ""
            values = scope.get("values") or ()
            match scope.get("operator"):
                case "In":
                    return name in values
                case "NotIn":
                    return name not in values
                case "DoesNotExist":
                    return not name
                case _:
                    return bool(name)
        case _:
            return False
