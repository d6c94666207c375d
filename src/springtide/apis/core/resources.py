"""Resource requests: checks of names and amounts, and the effective requests of a whole pod.

Kubernetes knows a few resources by plain names; all others have the domain of their provider in front. An unknown plain
name is therefore always a mistake, and one that the API server only rejects when a pod is created, long after it
accepted the template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Protocol

from springtide.apis.kinds import Quantity, ValidationContext, View, doc
from springtide.apis.problems import Problem, error
from springtide.apis.schema import nearest
from springtide.quantity import Quantity as Amount

_PLAIN = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES = "hugepages-"
_POD_LEVEL = ("cpu", "memory")
"""What can be requested for a whole pod, huge pages apart."""
_ABBREVIATIONS = {
    "mem": "memory",
    "ram": "memory",
    "cores": "cpu",
    "vcpu": "cpu",
    "storage": "ephemeral-storage",
    "disk": "ephemeral-storage",
    "gpu": "nvidia.com/gpu",
    "gpus": "nvidia.com/gpu",
}


def is_qualified(name: str) -> bool:
    """Return whether a resource is named with the domain of its provider, as in `nvidia.com/gpu`."""
    return "/" in name


def is_known(name: str) -> bool:
    """Return whether a pod can request a resource of this name."""
    return is_qualified(name) or name in _PLAIN or (name.startswith(_HUGE_PAGES) and name != _HUGE_PAGES)


def is_huge_page(name: str) -> bool:
    """Return whether a resource is huge pages of some size."""
    return name.startswith(_HUGE_PAGES)


def meant_resource(name: str) -> str | None:
    """Find the resource that a misspelt or abbreviated name means."""
    folded = name.lower()
    return _ABBREVIATIONS.get(folded) or nearest(name, (*_PLAIN, f"{_HUGE_PAGES}2Mi", f"{_HUGE_PAGES}1Gi"))


def amounts(quantities: Mapping[str, str | int | float] | None) -> dict[str, Amount]:
    """Parse the quantities of a list of resources."""
    return {name: Amount.parse(quantity) for name, quantity in (quantities or {}).items()}


def name_problems(names: Mapping[str, Any] | None) -> Iterator[Problem]:
    """Find names of resources that no pod can request; paths are relative to the list of resources."""
    for name in names or {}:
        if is_known(name):
            continue
        guess = meant_resource(name)
        hint = f"did you mean `{guess}`?" if guess else "name it with its domain, such as `example.com/widget`"
        known = ", ".join(_PLAIN)
        yield error(
            (name,), f"`{name}` is not a resource: without a domain only {known} and {_HUGE_PAGES}SIZE are", hint
        )


def amount_problems(quantities: Mapping[str, str | int | float] | None) -> Iterator[Problem]:
    """Find amounts that no pod can request; paths are relative to the list of resources."""
    for name, amount in amounts(quantities).items():
        if amount.sign < 0:
            yield error((name,), f"`{name}` must not be negative, is {amount}")
        elif is_qualified(name) and amount.milli % 1000:
            yield error((name,), f"`{name}` comes in whole units only, is {amount}", f"write {amount.units}")


class ResourceClaimReference(View, kw_only=True):
    """A resource claim of the pod that a container uses."""

    name: Annotated[str, doc("Name of an entry in the pod's `resourceClaims`.")]
    request: Annotated[str | None, doc("The request of the claim that is used; all of them if not set.")] = None


class Resources(View, kw_only=True):
    """Requests and limits of a container or a pod."""

    requests: Annotated[
        dict[str, Quantity] | None,
        doc("What is reserved on the node; the limit if not set."),
    ] = None
    limits: Annotated[dict[str, Quantity] | None, doc("What may be used at most.")] = None
    claims: Annotated[tuple[ResourceClaimReference, ...] | None, doc("Claims of devices that are used.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find names and amounts that the API server rejects, and requests that do not fit the limits."""
        for key, quantities in (("requests", self.requests), ("limits", self.limits)):
            for problem in (*name_problems(quantities), *amount_problems(quantities)):
                yield problem.under(key)
        limits = amounts(self.limits)
        for name, request in amounts(self.requests).items():
            limit = limits.get(name)
            if limit is not None and request > limit:
                yield error(("requests", name), f"`{name}` requests {request}, more than its limit of {limit}")
            elif is_known(name) and (is_qualified(name) or is_huge_page(name)) and request != limit:
                yield error(
                    ("requests", name),
                    f"`{name}` cannot be shared: its limit must be the request of {request}",
                    f"set `limits` for `{name}` to {request}",
                )


class ResourceRequirements(Protocol):
    """Requests and limits, of a manifest or of a pod that runs."""

    @property
    def requests(self) -> Mapping[str, str | int | float] | None:
        """What is set aside."""

    @property
    def limits(self) -> Mapping[str, str | int | float] | None:
        """What may be used at most."""


class RequestingContainer(Protocol):
    """A container, as far as its requests are concerned."""

    @property
    def resources(self) -> ResourceRequirements | None:
        """Its requests and limits."""

    @property
    def sidecar(self) -> bool:
        """Whether an init container keeps running beside the others."""


class RequestingPod(Protocol):
    """The spec of a pod, as far as its requests are concerned."""

    @property
    def containers(self) -> Sequence[RequestingContainer]:
        """The containers that run side by side."""

    @property
    def init_containers(self) -> Sequence[RequestingContainer] | None:
        """Containers that run before, and sidecars."""

    @property
    def resources(self) -> ResourceRequirements | None:
        """What all containers together request."""

    @property
    def overhead(self) -> Mapping[str, str | int | float] | None:
        """What running the pod itself costs."""


def requests_of(container: RequestingContainer) -> dict[str, Amount]:
    """Return the requests of a container as the API server defaults them: a limit without a request is a request."""
    resources = container.resources
    return {} if resources is None else {**amounts(resources.limits), **amounts(resources.requests)}


def pod_requests(
    spec: RequestingPod,
    container_requests: Callable[[RequestingContainer], Mapping[str, Amount]] = requests_of,
    pod_level: Callable[[str, Amount], Amount] = lambda _, amount: amount,
) -> dict[str, Amount]:
    """Return the effective requests of a pod: the highest sum of containers that run at the same time.

    Sidecars run beside all containers that start after them, ordinary init containers one at a time before the
    containers. Requests of the pod as a whole replace the sum of its containers. Names are sorted.

    While a pod is resized, `container_requests` gives the requests of a container, and `pod_level` replaces an amount
    that is requested for the whole pod.
    """
    needed = _container_requests(spec, container_requests)
    for name, amount in pod_level_requests(spec).items():
        needed[name] = pod_level(name, amount)
    total = _added(needed, amounts(spec.overhead))
    return {name: total[name] for name in sorted(total)}


def pod_level_requests(spec: RequestingPod) -> dict[str, Amount]:
    """Return what is requested for the pod as a whole, as the API server defaults it.

    Where the pod has limits, it requests what its containers do together, and its limit of what no container requests.
    Huge pages cannot be overcommitted: their limit is the request in any case.
    """
    if spec.resources is None:
        return {}
    requests, limits = amounts(spec.resources.requests), amounts(spec.resources.limits)
    containers = _container_requests(spec, requests_of) if limits else {}
    filled = {**limits, **{name: amount for name, amount in containers.items() if not is_huge_page(name)}, **requests}
    return {name: amount for name, amount in filled.items() if name in _POD_LEVEL or is_huge_page(name)}


def _container_requests(
    spec: RequestingPod, requests: Callable[[RequestingContainer], Mapping[str, Amount]]
) -> dict[str, Amount]:
    sidecars: dict[str, Amount] = {}
    peak: dict[str, Amount] = {}
    for container in spec.init_containers or ():
        if container.sidecar:
            sidecars = _added(sidecars, requests(container))
            peak = largest(peak, sidecars)
        else:
            peak = largest(peak, _added(sidecars, requests(container)))
    together = sidecars
    for container in spec.containers:
        together = _added(together, requests(container))
    return largest(peak, together)


def _added(one: Mapping[str, Amount], other: Mapping[str, Amount]) -> dict[str, Amount]:
    total = dict(one)
    for name, amount in other.items():
        total[name] = total[name] + amount if name in total else amount
    return total


def largest(one: Mapping[str, Amount], other: Mapping[str, Amount]) -> dict[str, Amount]:
    """Return the larger amount of each resource."""
    merged = dict(one)
    for name, amount in other.items():
        merged[name] = max(merged[name], amount) if name in merged else amount
    return merged
