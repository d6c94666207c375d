"""Which objects are ours: ownership is per object, not per kind.

Springtide shares its kinds with other projects. A NodePool whose nodes Karpenter makes, a request of somebody else's
class or a buffer with somebody else's strategy is read, shown and explained, but never written and never refused.
The rule stands here once, in Python for controllers and webhooks and in CEL for the `matchConditions` that keep the
API server from calling a webhook about objects of others; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from springtide.apis.registry import KINDS
from springtide.apis.xk8s.buffers import ACTIVE_CAPACITY
from springtide.apis.xk8s.classes import CHECK_CAPACITY, CLASSES, FORMER_NAMES, PROCESSOR_INSTANCE, engine_of

OUR_GROUP = "springtide.dev"


@dataclass(frozen=True, slots=True)
class Ownership:
    """The rule for the objects of one kind."""

    ours: Callable[[Mapping[str, Any]], bool]
    expression: str
    """The same in CEL, of `object`; `true` and `false` where no object makes a difference."""


def owned(item: Mapping[str, Any]) -> bool:
    """Tell whether an object is ours to write and to refuse; total, whatever the object looks like."""
    api_version, kind = item.get("apiVersion"), item.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return False
    return ownership_of(api_version.rpartition("/")[0], kind).ours(item)


def ownership_of(group: str, kind: str) -> Ownership:
    """Give the rule for a kind; kinds that we do not know are somebody else's."""
    return _OWNERSHIPS.get((group, kind), _NEVER)


def _at(item: Any, *path: str) -> Any:
    for step in path:
        item = item.get(step) if isinstance(item, Mapping) else None
    return item


def _text(item: Any, *path: str) -> str:
    found = _at(item, *path)
    return found if isinstance(found, str) else ""


def _by_node_class(*path: str) -> Ownership:
    """Nodes are ours where our node classes make them; v1beta1 writes the group with a version."""

    def ours(item: Mapping[str, Any]) -> bool:
        reference = _at(item, *path)
        group = _text(reference, "group")
        return group == OUR_GROUP or (not group and _text(reference, "apiVersion").startswith(f"{OUR_GROUP}/"))

    reference = f"object.?{'.?'.join(path)}"
    group = f"{reference}.?group.orValue('')"
    version = f"{reference}.?apiVersion.orValue('')"
    return Ownership(ours, f"{group} == '{OUR_GROUP}' || ({group} == '' && {version}.startsWith('{OUR_GROUP}/'))")


def _our_request(item: Mapping[str, Any]) -> bool:
    engine = engine_of(_text(item, "spec", "provisioningClassName"))
    # A request that names an instance is for an autoscaler that was started under that name.
    return engine is not None and not (
        engine == CHECK_CAPACITY and _text(item, "spec", "parameters", PROCESSOR_INSTANCE)
    )


def _our_strategy(item: Mapping[str, Any]) -> bool:
    return _text(item, "spec", "provisioningStrategy") in ("", ACTIVE_CAPACITY)


def _listed(*names: str) -> str:
    return f"[{', '.join(repr(name) for name in names)}]"


_CLASS_NAMES = (*CLASSES, *FORMER_NAMES)
_CHECKING = tuple(name for name in _CLASS_NAMES if engine_of(name) == CHECK_CAPACITY)
_REQUESTED = "object.?spec.?provisioningClassName.orValue('')"
_ALWAYS = Ownership(lambda item: True, "true")  # noqa: ARG005
_NEVER = Ownership(lambda item: False, "false")  # noqa: ARG005

_SHARED: dict[tuple[str, str], Ownership] = {
    ("karpenter.sh", "NodePool"): _by_node_class("spec", "template", "spec", "nodeClassRef"),
    ("karpenter.sh", "NodeClaim"): _by_node_class("spec", "nodeClassRef"),
    ("autoscaling.x-k8s.io", "ProvisioningRequest"): Ownership(
        _our_request,
        f"{_REQUESTED} in {_listed(*_CLASS_NAMES)} && (!({_REQUESTED} in {_listed(*_CHECKING)})"
        f" || object.?spec.?parameters.?{PROCESSOR_INSTANCE}.orValue('') == '')",
    ),
    ("autoscaling.x-k8s.io", "ProvisioningClass"): Ownership(
        lambda item: engine_of(_text(item, "metadata", "name")) is not None,
        f"object.metadata.?name.orValue('') in {_listed(*_CLASS_NAMES)}",
    ),
    ("autoscaling.x-k8s.io", "CapacityBuffer"): Ownership(
        _our_strategy, f"object.?spec.?provisioningStrategy.orValue('') in {_listed('', ACTIVE_CAPACITY)}"
    ),
    # It is read as the target of our rules; scaling by it is Karmada's.
    ("autoscaling.karmada.io", "FederatedHPA"): _NEVER,
}

_OWNERSHIPS: dict[tuple[str, str], Ownership] = {
    **{(kind.group, kind.kind): _ALWAYS for kind in KINDS if not kind.builtin},
    **_SHARED,
}
