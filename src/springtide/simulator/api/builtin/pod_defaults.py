"""What a pod gets when it is made: requests where only limits are given, tolerations, its class of service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from springtide.cluster.resources import Object
from springtide.quantity import AmountError, Quantity

_COMPUTE = ("cpu", "memory")
_TROUBLES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PATIENCE_SECONDS = 300
"""How long a pod stays on a node that is in trouble, unless it says otherwise."""


def complete_pod(value: Object) -> None:
    """Fill in what depends on several fields; templates of pods do not get any of it."""
    spec = value.get("spec")
    if not isinstance(spec, dict):
        return
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    grace = spec.get("terminationGracePeriodSeconds")
    if type(grace) is int and grace < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for container in _containers(spec):
        _request_limits(container)
        if spec.get("hostNetwork") is True:
            _open_on_host(container)
    _tolerate_troubles(spec)
    status = value.get("status")
    if isinstance(status, dict) and not status.get("qosClass"):
        status["qosClass"] = service_class(spec)


def _containers(spec: Object) -> Iterator[Object]:
    for name in ("containers", "initContainers"):
        containers = spec.get(name)
        if isinstance(containers, list):
            yield from (container for container in containers if isinstance(container, dict))


def _request_limits(container: Object) -> None:
    resources = container.get("resources")
    limits = resources.get("limits") if isinstance(resources, dict) else None
    if not isinstance(resources, dict) or not isinstance(limits, dict):
        return
    requests = resources.get("requests") or {}
    if isinstance(requests, dict) and any(name not in requests for name in limits):
        resources["requests"] = requests | {name: limits[name] for name in limits if name not in requests}


def _open_on_host(container: Object) -> None:
    ports = container.get("ports")
    for port in ports if isinstance(ports, list) else ():
        if isinstance(port, dict) and not port.get("hostPort") and "containerPort" in port:
            port["hostPort"] = port["containerPort"]


def _tolerate_troubles(spec: Object) -> None:
    tolerations = spec.get("tolerations") or []
    if not isinstance(tolerations, list):
        return
    missing = [trouble for trouble in _TROUBLES if not any(_covers(each, trouble) for each in tolerations)]
    if missing:
        spec["tolerations"] = tolerations + [
            {"key": trouble, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _PATIENCE_SECONDS}
            for trouble in missing
        ]


def _covers(toleration: Any, trouble: str) -> bool:
    return (
        isinstance(toleration, dict)
        and toleration.get("key", "") in ("", trouble)
        and toleration.get("effect", "") in ("", "NoExecute")
    )


def service_class(spec: Object) -> str:
    """Tell what a pod can count on when its node runs short: Guaranteed, Burstable or BestEffort."""
    own = spec.get("resources")
    everyone = [own] if isinstance(own, dict) else [container.get("resources") for container in _containers(spec)]
    requests = dict.fromkeys(_COMPUTE, 0)
    limits = dict.fromkeys(_COMPUTE, 0)
    all_limited = True
    for resources in everyone:
        asked, capped = _amounts(resources, "requests"), _amounts(resources, "limits")
        all_limited = all_limited and all(capped[name] for name in _COMPUTE)
        for name in _COMPUTE:
            requests[name] += asked[name]
            limits[name] += capped[name]
    if not any(requests.values()) and not any(limits.values()):
        return "BestEffort"
    return "Guaranteed" if all_limited and requests == limits else "Burstable"


def _amounts(resources: Any, name: str) -> dict[str, int]:
    """Read the compute amounts as billionths; what is none counts as nothing."""
    listed = resources.get(name) if isinstance(resources, dict) else None
    found = dict.fromkeys(_COMPUTE, 0)
    for resource in _COMPUTE:
        try:
            found[resource] = max(0, Quantity.parse(listed[resource]).nano)  # type: ignore[index]
        except (AmountError, KeyError, TypeError):
            continue
    return found
