"""Staging: the objects of manifests in the order in which a new cluster accepts them, and applying them there.

Folders of manifests have custom objects before their CRDs, namespaces after their contents, dumps of a live cluster,
and kinds that an embedded or simulated cluster does not serve. `kubectl apply` of such a folder succeeds at the second
or third attempt; staging makes one attempt enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from springtide.apis.canonical import canonical
from springtide.apis.crds import Flavour, all_crds
from springtide.apiserver import builtin
from springtide.assembly.manifests import CheckedManifests
from springtide.cluster.errors import AlreadyExists, ApiError
from springtide.cluster.resources import NODES, Key, Resource
from springtide.cluster.transport import Patch, Transport, Write
from springtide.simulator.behaviours.settings import BOOT_SECONDS

_FIRST = (
    "CustomResourceDefinition",
    "Namespace",
    "PriorityClass",
    "StorageClass",
    "LimitRange",
    "ResourceQuota",
    "Grant",
    "Calendar",
)
"""Kinds that others depend on, in the order in which they are needed."""
_LAST = ("FederatedHPA", "HorizontalPodAutoscaler", "HorizontalAutoscaler", "CronFederatedHPA")
"""Kinds that scale others: before their target exists, they report errors."""
_SERVER_FIELDS = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""Fields of the metadata that only an API server sets."""
_DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class StagedObject:
    """An object in canonical form, and the place it was read from."""

    file: str
    line: int
    value: dict[str, Any]

    @property
    def kind(self) -> tuple[str, str]:
        """The `apiVersion` and kind."""
        return str(self.value.get("apiVersion", "")), str(self.value.get("kind", ""))

    @property
    def label(self) -> str:
        """The kind and the name."""
        return f"{self.value.get('kind')} {self.value['metadata'].get('name', '')}".strip()


@dataclass(frozen=True, slots=True)
class StagedManifests:
    """The objects to apply, in order, and those of kinds that the cluster does not serve."""

    objects: tuple[StagedObject, ...]
    unknown: tuple[StagedObject, ...]


def stage(manifests: CheckedManifests, default_zone: str = "UTC") -> StagedManifests:
    """Put objects in order, in canonical form; of two with the same name the last one is used.

    `default_zone` is the zone of times without an offset in objects that name none.
    """
    named: dict[tuple[str, ...], StagedObject] = {}
    for number, staged in enumerate(_staged_objects(manifests, default_zone)):
        metadata = staged.value["metadata"]
        name = metadata.get("name") or f"generated {number}"
        group = staged.kind[0].rpartition("/")[0]
        named[group, staged.kind[1], metadata.get("namespace") or _DEFAULT_NAMESPACE, name] = staged
    installed = {definition["metadata"]["name"] for definition in all_crds(Flavour.EXTENDED)}
    wanted = [staged for staged in named.values() if not _is_installed(staged, installed)]
    served = _served_kinds(wanted)
    objects = sorted((staged for staged in wanted if staged.kind in served), key=_apply_order)
    return StagedManifests(tuple(objects), tuple(staged for staged in wanted if staged.kind not in served))


def _staged_objects(manifests: CheckedManifests, default_zone: str) -> Iterator[StagedObject]:
    for parsed in manifests.parsed:
        value = canonical(parsed.value, default_zone).value if isinstance(parsed.value, dict) else None
        if value is not None and isinstance(value.get("metadata"), dict):
            yield StagedObject(parsed.file, parsed.line, _without_server_fields(value))


def _without_server_fields(value: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: part for name, part in value["metadata"].items() if name not in _SERVER_FIELDS}
    return {**value, "metadata": metadata}


def _is_installed(staged: StagedObject, installed: set[str]) -> bool:
    return staged.kind[1] == "CustomResourceDefinition" and staged.value["metadata"].get("name") in installed


def _served_kinds(staged: Iterable[StagedObject]) -> set[tuple[str, str]]:
    """List the kinds that the cluster serves: built-in ones, ours, and those that the manifests define."""
    served = {(kind.resource.api_version, kind.resource.kind) for kind in builtin.kinds()}
    defined = [one.value for one in staged if one.kind[1] == "CustomResourceDefinition"]
    for definition in (*all_crds(Flavour.EXTENDED), *defined):
        spec = definition.get("spec") or {}
        for version in spec.get("versions") or ():
            if version.get("served"):
                served.add((f"{spec.get('group')}/{version.get('name')}", (spec.get("names") or {}).get("kind", "")))
    return served


def _apply_order(staged: StagedObject) -> int:
    kind = staged.kind[1]
    if kind in _FIRST:
        return _FIRST.index(kind)
    return len(_FIRST) + (1 + _LAST.index(kind) if kind in _LAST else 0)


_NODE_CAPACITY = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "200Gi", "pods": "110"}
_NODE_ZONES = ("zone-a", "zone-b", "zone-c")
_BOOT_SECONDS = "3"


async def create_nodes(transport: Transport, count: int, *, manager: str) -> None:
    """Create the simulated nodes `node-1` to `node-COUNT`, except those that exist."""
    for number in range(1, count + 1):
        node = {
            "apiVersion": NODES.api_version,
            "kind": NODES.kind,
            "metadata": {
                "name": f"node-{number}",
                "labels": {"topology.kubernetes.io/zone": _NODE_ZONES[(number - 1) % len(_NODE_ZONES)]},
                "annotations": {BOOT_SECONDS: _BOOT_SECONDS},
            },
            "status": {"capacity": _NODE_CAPACITY},
        }
        with suppress(AlreadyExists):
            await transport.create(NODES, node, Write(manager, "--nodes asks for it"))


_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


@dataclass(slots=True)
class AppliedManifests:
    """The objects that the API server accepted, and those that it refused."""

    objects: list[StagedObject] = field(default_factory=list)
    refused: list[tuple[StagedObject, ApiError]] = field(default_factory=list)


async def apply(
    transport: Transport,
    objects: Iterable[StagedObject],
    resource_of: Callable[[str, str], Resource],
    *,
    manager: str,
) -> AppliedManifests:
    """Apply objects in their order by server-side apply; a missing namespace is created, a refusal stops no other.

    `resource_of` gives the resource of a kind and an `apiVersion`; it is called for each object in turn, so that a CRD
    and objects of its kind can be applied together.
    """
    applied = AppliedManifests()
    write = Write(manager, "the manifest says so")
    namespaces: set[str] = set()
    for staged in objects:
        api_version, kind = staged.kind
        try:
            resource = resource_of(kind, api_version)
            metadata = staged.value["metadata"]
            namespace = (metadata.get("namespace") or _DEFAULT_NAMESPACE) if resource.namespaced else ""
            if namespace and namespace not in namespaces:
                await _ensure_namespace(transport, namespace, write)
                namespaces.add(namespace)
            if name := metadata.get("name"):
                await transport.patch(resource, Key(namespace, name), Patch.apply(staged.value, force=True), write)
            else:
                await transport.create(resource, staged.value, write, namespace=namespace)
        except ApiError as refusal:
            applied.refused.append((staged, refusal))
        else:
            applied.objects.append(staged)
    return applied


async def _ensure_namespace(transport: Transport, name: str, write: Write) -> None:
    with suppress(AlreadyExists):
        await transport.create(_NAMESPACES, {"metadata": {"name": name}}, write)
