"""Limit ranges: what a namespace fills into containers that leave their resources open, and what it lets nobody exceed.

All of it is about new objects. What is filled in is noted in an annotation, for people who wonder where it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from springtide.apis.core.pods import PodSpec
from springtide.apis.core.requests import pod_requests
from springtide.cluster.resources import Object
from springtide.quantity import Quantity
from springtide.simulator.api.quota import limits_as_requests

ANNOTATION = "kubernetes.io/limit-ranger"

Amounts = Mapping[str, Quantity]


def filled(pod: Object, limits: Object) -> Object:
    """Give a pod whose containers have the default resources of a limit range; itself where they need none."""
    requests: dict[str, str] = {}
    caps: dict[str, str] = {}
    for rule in _rules(limits, "Container"):
        requests |= rule.get("defaultRequest") or {}
        caps |= rule.get("default") or {}
    noted: list[str] = []
    spec = pod["spec"]
    parts = {
        field: [_filled_container(each, called, requests, caps, noted) for each in spec[field]]
        for field, called in (("containers", "container"), ("initContainers", "init container"))
        if spec.get(field)
    }
    if not noted:
        return pod
    metadata = pod["metadata"]
    annotations = {**metadata.get("annotations", {}), ANNOTATION: f"LimitRanger plugin set: {'; '.join(noted)}"}
    return {**pod, "metadata": {**metadata, "annotations": annotations}, "spec": spec | parts}


def exceeded(kind: str, item: Object, limits: Object) -> str:
    """Tell what a pod or a claim has too little or too much of; empty where it keeps within a limit range."""
    found = list(dict.fromkeys(_claim_problems(item, limits) if kind != "Pod" else _pod_problems(item, limits)))
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]" if found else ""


def _rules(limits: Object, kind: str) -> Iterator[Object]:
    yield from (rule for rule in (limits.get("spec") or {}).get("limits") or () if rule.get("type") == kind)


def _filled_container(
    container: Object, called: str, requests: dict[str, str], caps: dict[str, str], noted: list[str]
) -> Object:
    resources = dict(container.get("resources") or {})
    for part, told, defaults in (("requests", "request", requests), ("limits", "limit", caps)):
        present = resources.get(part) or {}
        missing = {name: amount for name, amount in defaults.items() if name not in present}
        if missing:
            resources[part] = {**present, **missing}
            noted.append(f"{', '.join(sorted(missing))} {told} for {called} {container['name']}")
    return {**container, "resources": resources}


def _claim_problems(claim: Object, limits: Object) -> Iterator[str]:
    requests = _amounts((claim.get("spec") or {}).get("resources"), "requests")
    for rule in _rules(limits, "PersistentVolumeClaim"):
        yield from _each(rule, "min", partial(_least, requests=requests, limits={}))
        yield from _each(rule, "max", partial(_most_requested, requests=requests))


def _pod_problems(pod: Object, limits: Object) -> Iterator[str]:
    spec = pod["spec"]
    for rule in (limits.get("spec") or {}).get("limits") or ():
        if rule.get("type") == "Container":
            for container in (*spec["containers"], *(spec.get("initContainers") or ())):
                resources = container.get("resources")
                yield from _within(rule, _amounts(resources, "requests"), _amounts(resources, "limits"))
        elif rule.get("type") == "Pod":
            yield from _within(rule, _sums(spec), _sums(limits_as_requests(spec)))


def _within(rule: Object, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for constraint, problem in (("min", _least), ("max", _most), ("maxLimitRequestRatio", _ratio)):
        yield from _each(rule, constraint, partial(problem, requests=requests, limits=limits))


def _each(rule: Object, constraint: str, problem: Callable[[str, str, Quantity], str]) -> Iterator[str]:
    """Find the problems with one constraint, resource by resource."""
    for name, bound in sorted(_amounts(rule, constraint).items()):
        if told := problem(name, rule["type"], bound):
            yield told


def _least(name: str, kind: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    told = f"minimum {name} usage per {kind} is {bound}"
    if name not in requests:
        return f"{told}.  No request is specified"
    if requests[name] < bound:
        return f"{told}, but request is {requests[name]}"
    return f"{told}, but limit is {limits[name]}" if name in limits and limits[name] < bound else ""


def _most(name: str, kind: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    told = f"maximum {name} usage per {kind} is {bound}"
    if name not in limits:
        return f"{told}.  No limit is specified"
    if limits[name] > bound:
        return f"{told}, but limit is {limits[name]}"
    return f"{told}, but request is {requests[name]}" if name in requests and requests[name] > bound else ""


def _most_requested(name: str, kind: str, bound: Quantity, requests: Amounts) -> str:
    told = f"maximum {name} usage per {kind} is {bound}"
    if name not in requests:
        return f"{told}.  No request is specified"
    return f"{told}, but request is {requests[name]}" if requests[name] > bound else ""


def _ratio(name: str, kind: str, bound: Quantity, requests: Amounts, limits: Amounts) -> str:
    told = f"{name} max limit to request ratio per {kind} is {bound}"
    if name not in requests or not requests[name].nano:
        return f"{told}, but no request is specified or request is 0"
    if name not in limits or not limits[name].nano:
        return f"{told}, but no limit is specified or limit is 0"
    ratio = limits[name].nano / requests[name].nano
    return f"{told}, but provided ratio is {ratio:.6f}" if ratio > bound.nano / 10**9 else ""


def _amounts(holder: Any, part: str) -> dict[str, Quantity]:
    return {name: Quantity.parse(amount) for name, amount in ((holder or {}).get(part) or {}).items()}


def _sums(spec: Object) -> dict[str, Quantity]:
    """Add up the requests of a pod; what running it costs beside them is no part of what is limited."""
    bare = {name: value for name, value in spec.items() if name != "overhead"}
    return pod_requests(msgspec.convert(bare, PodSpec))
