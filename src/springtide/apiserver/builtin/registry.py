"""The built-in kinds as the API server serves them: schema, defaulting and validation joined."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from springtide.apiserver.builtin.defaulting import Defaulter, defaulters
from springtide.apiserver.builtin.rules.table import RULES
from springtide.apiserver.builtin.schema import KindData, TypeNode, TypeTrees, load_builtin_data
from springtide.apiserver.builtin.validation import KindRules, validate_fields
from springtide.apiserver.kinds import ScalePaths, ServedKind
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object, Resource

_WITHOUT_GENERATION = (
    "APIService",
    "CSINode",
    "ConfigMap",
    "ControllerRevision",
    "Event",
    "HorizontalPodAutoscaler",
    "Lease",
    "LimitRange",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "ResourceQuota",
    "Secret",
    "Service",
    "ServiceAccount",
    "StorageClass",
    "VolumeAttachment",
)
"""Kinds whose objects have no `metadata.generation`."""

_SCALE = {
    "Deployment": ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector"),
    "ReplicaSet": ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector"),
    "ReplicationController": ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector"),
    "StatefulSet": ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector"),
}
"""The paths of the scale subresource. The selector is the one of the spec, which is a plain map for replication
controllers."""

_NOT_ABOUT_TYPES = ("FieldValueRequired", "FieldValueNotSupported")
"""Reasons of causes that do not mean a wrong type."""

_STORED_VERSION = {"HorizontalPodAutoscaler": "v2"}


@cache
def kinds() -> tuple[ServedKind, ...]:
    """Return all built-in kinds, ordered by group, plural and version."""
    data = load_builtin_data()
    forest = TypeTrees(data.types)
    apply_defaults = defaulters(data.types)
    return tuple(_served(kind, forest.type(kind.type), apply_defaults(kind.type)) for kind in data.kinds)


def kubernetes_version() -> str:
    """Return the version of Kubernetes that the kinds were taken from."""
    return load_builtin_data().kubernetes


def _served(kind: KindData, structure: TypeNode, apply_defaults: Defaulter) -> ServedKind:
    return ServedKind(
        resource=Resource(kind.group, kind.version, kind.plural, kind.kind, kind.namespaced),
        structure=structure,
        singular=kind.singular,
        list_kind=f"{kind.kind}List",
        short_names=kind.short_names,
        categories=kind.categories,
        verbs=kind.verbs,
        subresources=kind.subresources,
        scale=_SCALE.get(kind.kind),
        generation=kind.kind not in _WITHOUT_GENERATION,
        apply_defaults=apply_defaults,
        validate=_validator(structure, RULES.get(kind.kind, KindRules())),
        stored_version=_STORED_VERSION.get(kind.kind, ""),
    )


def _validator(structure: TypeNode, rules: KindRules) -> Callable[[Object, Object | None], tuple[StatusCause, ...]]:
    """Return the validation of a kind: declared types first, then the rules, which may rely on the types."""

    def validate(value: Object, old: Object | None) -> tuple[StatusCause, ...]:
        found = validate_fields(value, old, structure)
        if any(cause.reason not in _NOT_ABOUT_TYPES for cause in found):
            return found
        if rules.main and (old is None or "spec" not in value or value["spec"] != old.get("spec")):
            causes = tuple(cause for rule in rules.main for cause in rule(value, old))
            # If a rule reports a missing field, its cause replaces the general one.
            missing = {cause.field for cause in causes if cause.reason == "FieldValueRequired"} if found else ()
            found = tuple(cause for cause in found if cause.field not in missing) + causes
        if rules.status and old is not None and value.get("status") != old.get("status"):
            found += tuple(cause for rule in rules.status for cause in rule(value, old))
        return found

    return validate
