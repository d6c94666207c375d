"""What a pod asks for as a whole: the amounts that limits, quotas and packing all count with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from springtide.apis.core.pods import Container, PodSpec
from springtide.apis.core.resources import Resources, amounts, is_huge_page
from springtide.quantity import Quantity

_POD_LEVEL = ("cpu", "memory")


def pod_requests(spec: PodSpec) -> dict[str, Quantity]:
    """Add up what a pod needs at its most demanding moment, resource by resource.

    Sidecars run beside everything that starts after them, ordinary init containers one at a time before the
    containers. What the pod as a whole asks for goes before the sum of its containers. Names come in a stable order.
    """
    needed = _container_requests(spec)
    if spec.resources is not None:
        needed |= _pod_level(spec.resources, needed)
    total = _added(needed, amounts(spec.overhead))
    return {name: total[name] for name in sorted(total)}


def _container_requests(spec: PodSpec) -> dict[str, Quantity]:
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in spec.init_containers or ():
        if container.sidecar:
            sidecars = _added(sidecars, _requests(container.resources))
            peak = _largest(peak, sidecars)
        else:
            peak = _largest(peak, _added(sidecars, _requests(container.resources)))
    return _largest(peak, _added(sidecars, _sum_of(spec.containers)))


def _pod_level(resources: Resources, containers: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Give what the pod's own resources decide: its requests, and its limits where nothing is requested at all."""
    requests, limits = amounts(resources.requests), amounts(resources.limits)
    unset = {name: limit for name, limit in limits.items() if name not in containers}
    return {name: amount for name, amount in {**unset, **requests}.items() if name in _POD_LEVEL or is_huge_page(name)}


def _requests(resources: Resources | None) -> dict[str, Quantity]:
    """Read requests as the API server completes them: a limit without a request is its own request."""
    if resources is None:
        return {}
    return {**amounts(resources.limits), **amounts(resources.requests)}


def _sum_of(containers: Iterable[Container]) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for container in containers:
        total = _added(total, _requests(container.resources))
    return total


def _added(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> dict[str, Quantity]:
    total = dict(one)
    for name, amount in other.items():
        total[name] = total[name] + amount if name in total else amount
    return total


def _largest(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> dict[str, Quantity]:
    largest = dict(one)
    for name, amount in other.items():
        largest[name] = max(largest[name], amount) if name in largest else amount
    return largest
