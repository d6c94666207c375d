"""Validation of resource names and quantities: requests, limits and quotas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from springtide.apiserver.builtin.validation import AT_LEAST_ZERO
from springtide.apiserver.field_errors import forbidden, invalid, required, unsupported
from springtide.apiserver.names import qualified_name_problem
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object
from springtide.quantity import AmountError, Quantity

NameValidator = Callable[[str, str], Iterator[StatusCause]]
"""Validates the name of a resource; the second argument is its path."""

HUGE_PAGES = "hugepages-"
_PAGES = (HUGE_PAGES, f"requests.{HUGE_PAGES}")
_COMPUTE = ("cpu", "memory")
_CONTAINER = (*_COMPUTE, "ephemeral-storage")
_COUNTED = (
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
)
"""Resources that count objects."""
_MEASURED = ("requests.cpu", "requests.memory", "requests.ephemeral-storage", "requests.storage")
_LIMITED = ("limits.cpu", "limits.memory", "limits.ephemeral-storage")
_QUOTA = (*_CONTAINER, *_MEASURED, *_LIMITED, *_COUNTED)
_STANDARD = (*_QUOTA, "storage")
_BILLION = 10**9


def container_resource(name: str, path: str) -> Iterator[StatusCause]:
    """Validate the name of a container resource."""
    yield from standard_resource(name, path)
    if "/" not in name:
        if name not in _CONTAINER and not name.startswith(HUGE_PAGES):
            yield invalid(path, name, "must be a standard resource for containers")
    elif not _is_native(name) and not is_extended(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def pod_resource(name: str, path: str) -> Iterator[StatusCause]:
    """Validate the name of a pod-level resource."""
    found = tuple(standard_resource(name, path))
    yield from found
    if not found and name not in _COMPUTE and not name.startswith(HUGE_PAGES):
        yield unsupported(path, name, "cpu", HUGE_PAGES, "memory")


def quota_resource(name: str, path: str) -> Iterator[StatusCause]:
    """Validate the name of a resource in a quota."""
    yield from standard_resource(name, path)
    if "/" not in name and name not in _QUOTA and not name.startswith(_PAGES):
        yield invalid(path, name, "must be a standard resource for quota")


def standard_resource(name: str, path: str) -> Iterator[StatusCause]:
    """Validate the name of any resource: a standard one, or one with a domain."""
    if problem := qualified_name_problem(name):
        yield invalid(path, name, problem)
    elif "/" not in name and name not in _STANDARD and not name.startswith(_PAGES):
        yield invalid(path, name, "must be a standard resource type or fully qualified")


def validate_quantities(listed: Object | None, path: str, named: NameValidator) -> Iterator[StatusCause]:
    """Validate a map of quantities: names, signs, and integers where fractions make no sense."""
    for name in sorted(listed or {}):
        yield from named(name, f"{path}[{name}]")
        yield from validate_quantity((listed or {})[name], name, f"{path}[{name}]")


def validate_quantity(value: Any, name: str, path: str) -> Iterator[StatusCause]:
    """Validate the quantity of a resource."""
    nano = nano_value(value)
    if nano < 0:
        yield invalid(path, value, AT_LEAST_ZERO)
    if nano % _BILLION and (name in _COUNTED or is_extended(name)):
        yield invalid(path, value, "must be an integer")


def validate_requirements(
    resources: Object | None, path: str, named: NameValidator = container_resource
) -> Iterator[StatusCause]:
    """Validate requests and limits: a request must not exceed its limit."""
    if not resources:
        return
    limits: Object = resources.get("limits") or {}
    requests: Object = resources.get("requests") or {}
    if named is container_resource and _is_usual(requests, limits):
        return
    requested = {**limits, **requests}
    for name in sorted(limits):
        here = f"{path}.limits[{name}]"
        yield from named(name, here)
        yield from validate_quantity(limits[name], name, here)
        yield from _pages(limits[name], name, here)
    for name in sorted(requests):
        here, value = f"{path}.requests[{name}]", requests[name]
        yield from named(name, here)
        yield from validate_quantity(value, name, here)
        yield from _within(value, limits.get(name), name, path)
        yield from _pages(value, name, here)
    if any(name.startswith(HUGE_PAGES) for name in requested) and not any(name in requested for name in _COMPUTE):
        yield forbidden(path, "HugePages require cpu or memory")


def _is_usual(requests: Object, limits: Object) -> bool:
    """Fast path: whether there are only CPU, memory and ephemeral storage, all valid."""
    for name, limit in limits.items():
        if name not in _CONTAINER or nano_value(limit) < 0:
            return False
    for name, value in requests.items():
        amount = nano_value(value)
        if name not in _CONTAINER or amount < 0 or (name in limits and amount > nano_value(limits[name])):
            return False
    return True


def _within(value: Any, limit: Any, name: str, path: str) -> Iterator[StatusCause]:
    flexible = _is_native(name) and not name.startswith(HUGE_PAGES)
    if limit is None:
        if not flexible:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
    elif nano_value(value) != nano_value(limit) and not flexible:
        yield invalid(f"{path}.requests", value, f"must be equal to {name} limit of {limit}")
    elif nano_value(value) > nano_value(limit):
        yield invalid(f"{path}.requests", value, f"must be less than or equal to {name} limit of {limit}")


def _pages(value: Any, name: str, path: str) -> Iterator[StatusCause]:
    if name.startswith(HUGE_PAGES):
        size = nano_value(name.removeprefix(HUGE_PAGES))
        if size <= 0 or nano_value(value) % size:
            yield invalid(path, value, f"{value} is not positive integer multiple of {name}")


@lru_cache(maxsize=4096)
def is_extended(name: str) -> bool:
    """Whether a resource is an extended one, whose quantities are integers."""
    return not _is_native(name) and not name.startswith("requests.") and not qualified_name_problem(f"requests.{name}")


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


@lru_cache(maxsize=4096, typed=True)
def nano_value(value: str | int | float) -> int:
    """Return a quantity in billionths. What is no quantity counts as zero; it is rejected elsewhere."""
    try:
        return Quantity.parse(value).nano
    except AmountError:
        return 0
