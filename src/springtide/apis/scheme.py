"""The scheme: all kinds that Springtide reads, conversion between their versions, and which objects it owns.

Springtide shares its kinds with other projects, so ownership is decided per object, not per kind. A NodePool whose
nodes Karpenter creates, a request of another project's class or a buffer with another project's strategy is read, shown
and explained, but never written and never rejected. The ownership rules exist in Python, for controllers and webhooks,
and in CEL, for the `matchConditions` that keep the API server from calling a webhook for objects of other projects; a
test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from springtide.apis import core, karmada, karpenter, scheduled, springtide, xk8s
from springtide.apis.karpenter.conversion import V1, V1_FIELDS, V1BETA1, V1BETA1_FIELDS, to_v1, to_v1beta1
from springtide.apis.kinds import Kind, KindVersion, NormalizedTree
from springtide.apis.schema import nearest
from springtide.apis.xk8s.buffers import ACTIVE_CAPACITY
from springtide.apis.xk8s.provisioning import CHECK_CAPACITY, CLASSES, FORMER_NAMES, PROCESSOR_INSTANCE, engine_of

KINDS: tuple[Kind, ...] = (
    *scheduled.KINDS,
    *karmada.KINDS,
    *xk8s.KINDS,
    *karpenter.KINDS,
    *springtide.KINDS,
    *core.KINDS,
)

REPAIRS: dict[str, Callable[[dict[str, Any]], NormalizedTree]] = {
    kind.group: package.fixes for package in (scheduled, karmada, xk8s, karpenter, springtide) for kind in package.KINDS
}
"""The repair function of each API group, for mistakes with only one possible meaning."""

_BY_TYPE = {(kind.api_version(version), kind.kind): (kind, version) for kind in KINDS for version in kind.versions}


def find_kind(api_version: str, kind: str) -> tuple[Kind, KindVersion] | None:
    """Find a kind and its version by `apiVersion` and `kind`."""
    return _BY_TYPE.get((api_version, kind))


def api_versions_of(kind: str) -> list[str]:
    """List the groups and versions that a kind exists in, the preferred one first."""
    return [
        candidate.api_version(version)
        for candidate in KINDS
        if candidate.kind == kind
        for version in sorted(candidate.versions, key=lambda version: not version.storage)
    ]


_KINDS_OF_OTHERS: dict[str, tuple[str, ...]] = {
    "Grant": ("crossplane.io", "mariadb.com", "services.k8s.aws", "upbound.io"),
    "NodeClass": ("eks.amazonaws.com",),
    "NodePool": (
        "cattle.io",
        "crossplane.io",
        "gke.io",
        "hypershift.openshift.io",
        "openyurt.io",
        "run.ai",
        "upbound.io",
    ),
    "ProvisioningRequest": ("clcm.openshift.io", "oran.org"),
}
"""Domains of API groups of other projects that have a kind of the same name."""


def is_of_another_project(group: str, kind: str) -> bool:
    """Return whether a kind that has the name of one of ours is known to be another project's."""
    return any(group == domain or group.endswith(f".{domain}") for domain in _KINDS_OF_OTHERS.get(kind, ()))


def is_builtin(kind: str) -> bool:
    """Return whether all kinds of this name are defined by Kubernetes or other projects."""
    return all(candidate.builtin for candidate in KINDS if candidate.kind == kind)


def nearest_kind(kind: str) -> str | None:
    """Find the kind that a misspelt name means."""
    return nearest(kind, dict.fromkeys(candidate.kind for candidate in KINDS))


_CONVERTERS: dict[tuple[str, str], Callable[[dict[str, Any]], dict[str, Any]]] = {
    (V1BETA1, V1): to_v1,
    (V1, V1BETA1): to_v1beta1,
}
"""Conversions that change more than the `apiVersion`."""
_ROUND_TRIP_ANNOTATIONS = (V1_FIELDS, V1BETA1_FIELDS)

CONVERTED_GROUPS = tuple(dict.fromkeys(source.rpartition("/")[0] for source, _ in _CONVERTERS))
"""The groups whose kinds need our conversion webhook."""


class ConversionError(ValueError):
    """There is no conversion from one version to the other."""


def convert(item: dict[str, Any], api_version: str) -> dict[str, Any]:
    """Convert an object to another version of its kind; the given object is not changed."""
    source, kind = item.get("apiVersion"), item.get("kind")
    if not isinstance(source, str) or not isinstance(kind, str):
        raise ConversionError("an object needs `apiVersion` and `kind`")
    if source == api_version:
        return item
    if source.rpartition("/")[0] != api_version.rpartition("/")[0] or not (
        find_kind(source, kind) and find_kind(api_version, kind)
    ):
        raise ConversionError(f"there is no conversion of a {kind} from {source} to {api_version}")
    converter = _CONVERTERS.get((source, api_version))
    return {
        **(item if converter is None else _keep_metadata(item, converter(item))),
        "apiVersion": api_version,
        "kind": kind,
    }


def _keep_metadata(item: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """Undo every change that a conversion makes to the metadata, except to the round-trip annotations.

    Users can write these annotations, and the API server rejects a conversion that changes an object's identity: one
    bad annotation would make every list of its kind fail.
    """
    metadata, converted = item.get("metadata"), made.get("metadata")
    if not isinstance(metadata, dict):
        return made
    before = metadata.get("annotations")
    after = converted.get("annotations") if isinstance(converted, dict) else None
    if not isinstance(before, dict | None) or not isinstance(after, dict | None):
        return {**made, "metadata": metadata}
    kept = {name: text for name, text in (before or {}).items() if name not in _ROUND_TRIP_ANNOTATIONS}
    noted = {name: after[name] for name in _ROUND_TRIP_ANNOTATIONS if after and isinstance(after.get(name), str)}
    others = {name: part for name, part in metadata.items() if name != "annotations"}
    annotated = {"annotations": {**kept, **noted}} if kept or noted or after == {} else {}
    return {**made, "metadata": {**others, **annotated}}


OUR_GROUP = "springtide.dev"


@dataclass(frozen=True, slots=True)
class Ownership:
    """The ownership rule of one kind."""

    ours: Callable[[Mapping[str, Any]], bool]
    expression: str
    """The same rule in CEL, of `object`; `true` or `false` where all objects have the same owner."""


def owned(item: Mapping[str, Any]) -> bool:
    """Return whether Springtide may write or reject an object; never raises, whatever the object looks like."""
    api_version, kind = item.get("apiVersion"), item.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return False
    return ownership_of(api_version.rpartition("/")[0], kind).ours(item)


def ownership_of(group: str, kind: str) -> Ownership:
    """Return the rule of a kind; unknown kinds belong to other projects."""
    return _OWNERSHIPS.get((group, kind), _NEVER)


def _at(item: Any, *path: str) -> Any:
    for step in path:
        item = item.get(step) if isinstance(item, Mapping) else None
    return item


def _string_at(item: Any, *path: str) -> str:
    found = _at(item, *path)
    return found if isinstance(found, str) else ""


def _by_node_class(*path: str) -> Ownership:
    """Own the object if its node class is of our group; v1beta1 writes the group with a version."""

    def ours(item: Mapping[str, Any]) -> bool:
        reference = _at(item, *path)
        group = _string_at(reference, "group")
        return group == OUR_GROUP or (not group and _string_at(reference, "apiVersion").startswith(f"{OUR_GROUP}/"))

    reference = f"object.?{'.?'.join(path)}"
    group = f"{reference}.?group.orValue('')"
    version = f"{reference}.?apiVersion.orValue('')"
    return Ownership(ours, f"{group} == '{OUR_GROUP}' || ({group} == '' && {version}.startsWith('{OUR_GROUP}/'))")


def _is_our_request(item: Mapping[str, Any]) -> bool:
    engine = engine_of(_string_at(item, "spec", "provisioningClassName"))
    # A request that names a processor instance is for the autoscaler that was started under that name.
    return engine is not None and not (
        engine == CHECK_CAPACITY and _string_at(item, "spec", "parameters", PROCESSOR_INSTANCE)
    )


def _is_our_buffer(item: Mapping[str, Any]) -> bool:
    return _string_at(item, "spec", "provisioningStrategy") in ("", ACTIVE_CAPACITY)


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
        _is_our_request,
        f"{_REQUESTED} in {_listed(*_CLASS_NAMES)} && (!({_REQUESTED} in {_listed(*_CHECKING)})"
        f" || object.?spec.?parameters.?{PROCESSOR_INSTANCE}.orValue('') == '')",
    ),
    ("autoscaling.x-k8s.io", "ProvisioningClass"): Ownership(
        lambda item: engine_of(_string_at(item, "metadata", "name")) is not None,
        f"object.metadata.?name.orValue('') in {_listed(*_CLASS_NAMES)}",
    ),
    ("autoscaling.x-k8s.io", "CapacityBuffer"): Ownership(
        _is_our_buffer, f"object.?spec.?provisioningStrategy.orValue('') in {_listed('', ACTIVE_CAPACITY)}"
    ),
    # Springtide moves its bounds; Karmada scales by it.
    ("autoscaling.karmada.io", "FederatedHPA"): _NEVER,
}

_OWNERSHIPS: dict[tuple[str, str], Ownership] = {
    **{(kind.group, kind.kind): _ALWAYS for kind in KINDS if not kind.builtin},
    **_SHARED,
}


WITHOUT_CONTROLLER = frozenset(
    {
        ("autoscaling.x-k8s.io", "CapacityBuffer"),
        ("autoscaling.x-k8s.io", "ProvisioningClass"),
        ("autoscaling.x-k8s.io", "ProvisioningRequest"),
        ("karpenter.sh", "NodeClaim"),
        ("karpenter.sh", "NodePool"),
        ("springtide.dev", "NodeClass"),
    }
)
"""Group and kind of the objects that Springtide would own, and on which none of its controllers acts yet.

Validating a manifest must not import the controllers; a test compares this with what they watch.
"""


def missing_effect(item: Mapping[str, Any]) -> str:
    """Say what an object would not do although it is valid and ours; empty for all others."""
    api_version, kind = _string_at(item, "apiVersion"), _string_at(item, "kind")
    if (api_version.rpartition("/")[0], kind) in WITHOUT_CONTROLLER and owned(item):
        return no_controller(kind)
    if kind == "MetricsProducer" and _at(item, "spec", "pendingCapacity") is not None and owned(item):
        return "no controller computes `pendingCapacity` yet: such a MetricsProducer exports no metric"
    return ""


def no_controller(kind: str) -> str:
    """Say that no controller acts on a kind."""
    return f"no controller acts on {kind} yet: such objects are only validated and stored"
