"""Resource quotas and limit ranges: usage, scopes, defaults and bounds.

Quota usage is computed from the objects that exist, never from the status of a quota, which a controller updates later.
Limit ranges apply to new objects only; the defaults that they set are recorded in an annotation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from springtide.apis.core.pods import PodSpec
from springtide.apis.core.resources import pod_requests
from springtide.apiserver import pods
from springtide.apiserver.builtin.derived_defaults import qos_class
from springtide.apiserver.values import instant
from springtide.cluster.resources import Object, Resource
from springtide.quantity import Quantity

ResourceUsage = dict[str, Quantity]

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
"""Requests of these also count under their own name."""
_REQUIRED_BY_QUOTA = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
"""A quota on one of these requires every container to specify it."""

LIMIT_RANGER_ANNOTATION = "kubernetes.io/limit-ranger"

ResourceAmounts = Mapping[str, Quantity]


def usage(resource: Resource, item: Object, now: int) -> ResourceUsage:
    """Return the usage of one object."""
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


def total_usage(usages: Iterable[ResourceUsage]) -> ResourceUsage:
    """Add usages up."""
    summed: ResourceUsage = {}
    for each in usages:
        for name, amount in each.items():
            summed[name] = summed[name] + amount if name in summed else amount
    return summed


def quota_covers(quota: Object, resource: Resource, item: Object) -> bool:
    """Return whether all scopes of a quota include an object."""
    spec = quota.get("spec") or {}
    scopes = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    scopes += (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    if not scopes:
        return True
    return resource.plural == "pods" and all(_in_scope(scope, item.get("spec") or {}) for scope in scopes)


def unspecified_resources(hard: Mapping[str, object], pod: Object) -> str:
    """Return the containers that do not specify what a quota limits; empty where all do."""
    text = []
    for name in _REQUIRED_BY_QUOTA:
        if name not in hard:
            continue
        part, _, plain = name.rpartition(".")
        unspecified = [
            container["name"]
            for container in pods.containers(pod.get("spec") or {})
            if plain not in ((container.get("resources") or {}).get(part or "requests") or {})
        ]
        if unspecified:
            text.append(f"{name} for: {','.join(sorted(unspecified))}")
    return "; ".join(sorted(text))


def exceeded_quota(hard: Mapping[str, str], used: ResourceUsage, requested: ResourceUsage) -> tuple[str, ...]:
    """Return the resources that would exceed a quota."""
    zero = Quantity.parse(0)
    return tuple(
        name
        for name in sorted(hard)
        if name in requested and requested[name] + used.get(name, zero) > Quantity.parse(hard[name])
    )


def with_charge(status: Object, requested: ResourceUsage) -> Object:
    """Return the status of a quota with the usage of a new object; resources that are not counted yet stay so."""
    used = status.get("used") or {}
    more = {name: str(Quantity.parse(used[name]) + requested[name]) for name in used if name in requested}
    return {**status, "used": {**used, **more}} if more else status


def _counts(pod: Object, now: int) -> bool:
    """Return whether a pod uses resources: not when finished, nor after its grace period."""
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return False
    metadata = pod["metadata"]
    if "deletionTimestamp" not in metadata:
        return True
    return now <= instant(metadata["deletionTimestamp"]) + int(metadata.get("deletionGracePeriodSeconds", 0))


def _pod_usage(pod: Object) -> ResourceUsage:
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
    """Return a pod spec whose requests are its limits, so that limits add up as requests do."""

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
            return qos_class(spec) == "BestEffort"
        case "NotBestEffort":
            return qos_class(spec) != "BestEffort"
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


def with_default_limits(pod: Object, limit_range: Object) -> Object:
    """Return a pod with the container defaults of a limit range; itself where it needs none."""
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    for rule in _rules(limit_range, "Container"):
        requests |= rule.get("defaultRequest") or {}
        limits |= rule.get("default") or {}
    notes: list[str] = []
    spec = pod["spec"]
    parts = {
        field: [_filled_container(each, label, requests, limits, notes) for each in spec[field]]
        for field, label in (("containers", "container"), ("initContainers", "init container"))
        if spec.get(field)
    }
    if not notes:
        return pod
    metadata = pod["metadata"]
    annotations = {
        **metadata.get("annotations", {}),
        LIMIT_RANGER_ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}",
    }
    return {**pod, "metadata": {**metadata, "annotations": annotations}, "spec": spec | parts}


def limit_range_problem(kind: str, item: Object, limit_range: Object) -> str:
    """Return how a pod or a claim violates a limit range; empty if it does not."""
    found = list(
        dict.fromkeys(_claim_problems(item, limit_range) if kind != "Pod" else _pod_problems(item, limit_range))
    )
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]" if found else ""


def _rules(limit_range: Object, kind: str) -> Iterator[Object]:
    yield from (rule for rule in (limit_range.get("spec") or {}).get("limits") or () if rule.get("type") == kind)


def _filled_container(
    container: Object, label: str, requests: dict[str, str], limits: dict[str, str], notes: list[str]
) -> Object:
    resources = dict(container.get("resources") or {})
    for part, text, defaults in (("requests", "request", requests), ("limits", "limit", limits)):
        present = resources.get(part) or {}
        missing = {name: amount for name, amount in defaults.items() if name not in present}
        if missing:
            resources[part] = {**present, **missing}
            notes.append(f"{', '.join(sorted(missing))} {text} for {label} {container['name']}")
    return {**container, "resources": resources}


def _claim_problems(claim: Object, limit_range: Object) -> Iterator[str]:
    requests = _amounts((claim.get("spec") or {}).get("resources"), "requests")
    for rule in _rules(limit_range, "PersistentVolumeClaim"):
        yield from _each(rule, "min", partial(_least, requests=requests, limits={}))
        yield from _each(rule, "max", partial(_most_requested, requests=requests))


def _pod_problems(pod: Object, limit_range: Object) -> Iterator[str]:
    spec = pod["spec"]
    for rule in (limit_range.get("spec") or {}).get("limits") or ():
        if rule.get("type") == "Container":
            for container in (*spec["containers"], *(spec.get("initContainers") or ())):
                resources = container.get("resources")
                yield from _within(rule, _amounts(resources, "requests"), _amounts(resources, "limits"))
        elif rule.get("type") == "Pod":
            yield from _within(rule, _sums(spec), _sums(limits_as_requests(spec)))


def _within(rule: Object, requests: ResourceAmounts, limits: ResourceAmounts) -> Iterator[str]:
    for constraint, problem in (("min", _least), ("max", _most), ("maxLimitRequestRatio", _ratio)):
        yield from _each(rule, constraint, partial(problem, requests=requests, limits=limits))


def _each(rule: Object, constraint: str, problem: Callable[[str, str, Quantity], str]) -> Iterator[str]:
    """Yield the violations of one constraint, by resource."""
    for name, bound in sorted(_amounts(rule, constraint).items()):
        if text := problem(name, rule["type"], bound):
            yield text


def _least(name: str, kind: str, bound: Quantity, requests: ResourceAmounts, limits: ResourceAmounts) -> str:
    text = f"minimum {name} usage per {kind} is {bound}"
    if name not in requests:
        return f"{text}.  No request is specified"
    if requests[name] < bound:
        return f"{text}, but request is {requests[name]}"
    return f"{text}, but limit is {limits[name]}" if name in limits and limits[name] < bound else ""


def _most(name: str, kind: str, bound: Quantity, requests: ResourceAmounts, limits: ResourceAmounts) -> str:
    text = f"maximum {name} usage per {kind} is {bound}"
    if name not in limits:
        return f"{text}.  No limit is specified"
    if limits[name] > bound:
        return f"{text}, but limit is {limits[name]}"
    return f"{text}, but request is {requests[name]}" if name in requests and requests[name] > bound else ""


def _most_requested(name: str, kind: str, bound: Quantity, requests: ResourceAmounts) -> str:
    text = f"maximum {name} usage per {kind} is {bound}"
    if name not in requests:
        return f"{text}.  No request is specified"
    return f"{text}, but request is {requests[name]}" if requests[name] > bound else ""


def _ratio(name: str, kind: str, bound: Quantity, requests: ResourceAmounts, limits: ResourceAmounts) -> str:
    text = f"{name} max limit to request ratio per {kind} is {bound}"
    if name not in requests or not requests[name].nano:
        return f"{text}, but no request is specified or request is 0"
    if name not in limits or not limits[name].nano:
        return f"{text}, but no limit is specified or limit is 0"
    ratio = limits[name].nano / requests[name].nano
    return f"{text}, but provided ratio is {ratio:.6f}" if ratio > bound.nano / 10**9 else ""


def _amounts(holder: Any, part: str) -> dict[str, Quantity]:
    return {name: Quantity.parse(amount) for name, amount in ((holder or {}).get(part) or {}).items()}


def _sums(spec: Object) -> dict[str, Quantity]:
    """Add up the requests of a pod, without its overhead."""
    bare = {name: value for name, value in spec.items() if name != "overhead"}
    return pod_requests(msgspec.convert(bare, PodSpec))
