"""The kinds that a cluster serves: the resource of a kind, whether it has a scale, and the schema of its status.

Built-in kinds are constants here; all others come from CustomResourceDefinitions. `KindRegistry` is shared state: a
controller names it in `states`. Kinds of aggregated API servers are not found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from springtide.cluster.controller import Cached, Permission
from springtide.cluster.resources import Object, Resource, Selection
from springtide.cluster.state import SharedState
from springtide.cluster.store import Delta, Store

CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
PERMISSIONS = (Permission(CUSTOM_RESOURCE_DEFINITIONS, ("get", "list", "watch")),)

_OUR_GROUPS = frozenset(
    ("autoscaling.karpenter.sh", "autoscaling.karmada.io", "autoscaling.x-k8s.io", "karpenter.sh", "springtide.dev")
)
"""Groups of the kinds whose status Springtide writes; schemas of other kinds are large, and not kept."""


@dataclass(frozen=True, slots=True)
class KindInfo:
    """A kind in one version that is served."""

    resource: Resource
    scalable: bool
    """Whether objects of it have a `scale`."""
    status: Mapping[str, Any] | None = None
    """The schema of the status, only for kinds of Springtide."""


def _kinds_of(definition: Object) -> tuple[KindInfo, ...]:
    """Keep the parts of a definition that are used; its schemas are large."""
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
"""The cache of all CustomResourceDefinitions."""

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


class KindRegistry(SharedState[Delta[tuple[KindInfo, ...]]]):
    """The kinds that a cluster serves now; a change of it is that of the kinds of one CustomResourceDefinition."""

    sources = (DEFINITIONS,)

    def __init__(self, definitions: Store[tuple[KindInfo, ...]] | None = None) -> None:
        """Read a given store; as shared state it is bound to the cache of the process."""
        if definitions is not None:
            self.bind({DEFINITIONS: definitions})

    def apply(self, cached: Cached, delta: Delta[tuple[KindInfo, ...]]) -> None:  # noqa: ARG002 - the only source
        """Return the readers; kinds are looked up in the cache itself."""
        self.publish(delta)

    def find(self, api_version: str, kind: str) -> KindInfo | None:
        """Find the kind of a reference; None if the cluster does not serve it."""
        known = _BUILT_IN.get((api_version, kind))
        if known is not None:
            return known
        wanted = (api_version, kind)
        definitions: list[tuple[KindInfo, ...]] = self.store(DEFINITIONS).by(_BY_NAME, wanted)
        return definitions[0][_names(definitions[0]).index(wanted)] if definitions else None

    def declared(self, resource: Resource, status: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a status that the CRD in the cluster declares; upstream's CRDs have fewer."""
        found = self.find(resource.api_version, resource.kind)
        if found is None or found.status is None:
            return dict(status)
        kept: dict[str, Any] = declared_part(found.status, status)
        return kept


def declared_part(schema: Mapping[str, Any], value: Any) -> Any:
    """Drop the fields of a value that a structural schema does not declare."""
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
