"""Which kinds a cluster knows: how a reference is found in the API, whether it can be scaled, what a status may hold.

Built-in kinds are known beforehand; all others have a CustomResourceDefinition, and whoever asks here watches those
(`DEFINITIONS`). Kinds of extension API servers are not found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from springtide.cluster.controller import Cached, Permission
from springtide.cluster.resources import Object, Resource, Selection
from springtide.cluster.store import Store

CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
PERMISSIONS = (Permission(CUSTOM_RESOURCE_DEFINITIONS, ("get", "list", "watch")),)

_OUR_GROUPS = frozenset(
    ("autoscaling.karpenter.sh", "autoscaling.karmada.io", "autoscaling.x-k8s.io", "karpenter.sh", "springtide.dev")
)
"""Groups of whose kinds we write a status; the schemas of others are not kept, they are large."""


@dataclass(frozen=True, slots=True)
class KindInfo:
    """A kind in one version that is served."""

    resource: Resource
    scalable: bool
    """Whether objects of it have a `scale`."""
    status: Mapping[str, Any] | None = None
    """The schema of the status, of kinds that are ours."""


def _kinds_of(definition: Object) -> tuple[KindInfo, ...]:
    """Keep of a definition what is asked for; the schemas are what is large in it."""
    spec = definition["spec"]
    names = spec["names"]
    return tuple(
        KindInfo(
            Resource(spec["group"], each["name"], names["plural"], names["kind"], spec.get("scope") == "Namespaced"),
            scalable="scale" in (each.get("subresources") or {}),
            status=_status_schema(each) if spec["group"] in _OUR_GROUPS else None,
        )
        for each in spec["versions"]
        if each.get("served")
    )


def _status_schema(version: Object) -> Mapping[str, Any]:
    root = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    found: Mapping[str, Any] = (root.get("properties") or {}).get("status") or {}
    return found


def _names(kinds: tuple[KindInfo, ...]) -> list[tuple[str, str]]:
    return [(kind.resource.api_version, kind.resource.kind) for kind in kinds]


_BY_NAME = "apiVersion and kind"
DEFINITIONS = Cached(Selection(CUSTOM_RESOURCE_DEFINITIONS), record=_kinds_of, indexes={_BY_NAME: _names})
"""To be watched by whoever asks for a kind."""

_BUILT_IN = {
    (kind.resource.api_version, kind.resource.kind): kind
    for kind in (
        KindInfo(Resource("apps", "v1", "deployments", "Deployment"), scalable=True),
        KindInfo(Resource("apps", "v1", "replicasets", "ReplicaSet"), scalable=True),
        KindInfo(Resource("apps", "v1", "statefulsets", "StatefulSet"), scalable=True),
        KindInfo(Resource("apps", "v1", "daemonsets", "DaemonSet"), scalable=False),
        KindInfo(Resource("", "v1", "replicationcontrollers", "ReplicationController"), scalable=True),
        KindInfo(Resource("batch", "v1", "jobs", "Job"), scalable=False),
        KindInfo(Resource("batch", "v1", "cronjobs", "CronJob"), scalable=False),
        KindInfo(Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"), scalable=False),
        KindInfo(Resource("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler"), scalable=False),
    )
}


class KindRegistry:
    """The kinds of a cluster, as its definitions show them now."""

    def __init__(self, definitions: Store[tuple[KindInfo, ...]]) -> None:
        self._definitions = definitions

    def find(self, api_version: str, kind: str) -> KindInfo | None:
        """Find the kind that a reference means; None where the cluster has no such kind."""
        known = _BUILT_IN.get((api_version, kind))
        if known is not None:
            return known
        wanted = (api_version, kind)
        for kinds in self._definitions.by(_BY_NAME, wanted):
            return kinds[_names(kinds).index(wanted)]
        return None

    def declared(self, resource: Resource, status: Mapping[str, Any]) -> dict[str, Any]:
        """Give what the cluster's schema of a kind of ours has a place for; with ours everything, with stock less."""
        found = self.find(resource.api_version, resource.kind)
        if found is None or found.status is None:
            return dict(status)
        kept: dict[str, Any] = declared_part(found.status, status)
        return kept


def declared_part(schema: Mapping[str, Any], value: Any) -> Any:
    """Leave out of a value what a structural schema has no place for."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        properties = schema.get("properties")
        if properties is None or schema.get("x-kubernetes-preserve-unknown-fields"):
            further = schema.get("additionalProperties")
            if not isinstance(further, Mapping):
                return dict(value)
            return {name: declared_part(further, each) for name, each in value.items()}
        return {name: declared_part(properties[name], each) for name, each in value.items() if name in properties}
    if isinstance(value, list | tuple):
        return [declared_part(schema.get("items") or {}, each) for each in value]
    return value
