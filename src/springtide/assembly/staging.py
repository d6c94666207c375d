"""What of some manifests goes into a simulated cluster, and in which order.

People name the folders that they have: custom objects stand before their CRDs, namespaces after what is in them,
objects are dumps of a live cluster, and some kinds are nobody's business here. `kubectl apply` of such a folder works
at the second or third try; a simulation has one.

Puts the objects of manifests into a running cluster, as `kubectl apply --server-side` does: as often as need be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from springtide.apis.canonical import canonical_text
from springtide.apis.crds import Flavour, all_crds
from springtide.apis.yaml import Document, read
from springtide.apiserver import builtin
from springtide.assembly.manifests import ManifestSource
from springtide.cluster.errors import AlreadyExists, ApiError
from springtide.cluster.resources import Key, Resource
from springtide.cluster.transport import Patch, Transport, Write

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
"""Kinds that others lean on, in the order in which they are needed."""
_LAST = ("FederatedHPA", "HorizontalPodAutoscaler", "HorizontalAutoscaler", "CronFederatedHPA")
"""Kinds that act on others: whoever comes before what he scales complains."""
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


@dataclass(frozen=True, slots=True)
class StagedObject:
    """An object, and where it was written."""

    file: str
    line: int
    value: dict[str, Any]

    @property
    def kind(self) -> tuple[str, str]:
        """The `apiVersion` and kind."""
        return str(self.value.get("apiVersion", "")), str(self.value.get("kind", ""))

    @property
    def told(self) -> str:
        """What the object is, in words."""
        return f"{self.value.get('kind')} {self.value['metadata'].get('name', '')}".strip()


@dataclass(frozen=True, slots=True)
class StagedManifests:
    """What goes into the cluster, in order; and what does not."""

    objects: tuple[StagedObject, ...]
    unknown: tuple[StagedObject, ...]


def stage(sources: Iterable[ManifestSource]) -> StagedManifests:
    """Put the objects of manifests in order, as their canonical form; of two with one name the last one counts."""
    named: dict[tuple[str, ...], StagedObject] = {}
    for number, placed in enumerate(_staged_objects(sources)):
        metadata = placed.value["metadata"]
        name = metadata.get("name") or f"generated {number}"
        group = placed.kind[0].rpartition("/")[0]
        named[group, placed.kind[1], metadata.get("namespace") or "default", name] = placed
    ours = {definition["metadata"]["name"] for definition in all_crds(Flavour.EXTENDED)}
    wanted = [placed for placed in named.values() if not _is_installed(placed, ours)]
    known = _served(wanted)
    staged = sorted((placed for placed in wanted if placed.kind in known), key=_apply_order)
    return StagedManifests(tuple(staged), tuple(placed for placed in wanted if placed.kind not in known))


def _staged_objects(sources: Iterable[ManifestSource]) -> Iterator[StagedObject]:
    for source in sources:
        lines = [document.first_line for document in read(source.text) if isinstance(document, Document)]
        meant = [document for document in read(canonical_text(source.text).text) if isinstance(document, Document)]
        for position, document in enumerate(meant):
            # Mending moves lines, and may part documents that had run together.
            line = lines[position] if len(lines) == len(meant) else document.first_line
            for value in _members(document.value):
                if isinstance(value, dict) and isinstance(value.get("metadata"), dict):
                    yield StagedObject(source.name, line, _without_server_fields(value))


def _members(value: Any) -> Iterator[Any]:
    """Give the objects of a document: itself, or the members of a list, which need not say their kind."""
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str) or not kind.endswith("List") or not isinstance(value.get("items"), list):
        yield value
        return
    implied = {} if kind == "List" else {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
    for item in value["items"]:
        yield {**implied, **item} if isinstance(item, dict) else item


def _without_server_fields(value: dict[str, Any]) -> dict[str, Any]:
    """Take from an object what only the cluster that it was read from knows."""
    metadata = {name: part for name, part in value["metadata"].items() if name not in _SERVER_FIELDS}
    return {**value, "metadata": metadata}


def _is_installed(placed: StagedObject, ours: set[str]) -> bool:
    return placed.kind[1] == "CustomResourceDefinition" and placed.value["metadata"].get("name") in ours


def _served(placed: Iterable[StagedObject]) -> set[tuple[str, str]]:
    """Give the kinds that the cluster knows: built-in ones, ours, and those that the manifests define."""
    known = {(kind.resource.api_version, kind.resource.kind) for kind in builtin.kinds()}
    defined = [one.value for one in placed if one.kind[1] == "CustomResourceDefinition"]
    for definition in (*all_crds(Flavour.EXTENDED), *defined):
        spec = definition.get("spec") or {}
        for version in spec.get("versions") or ():
            if version.get("served"):
                known.add((f"{spec.get('group')}/{version.get('name')}", (spec.get("names") or {}).get("kind", "")))
    return known


def _apply_order(placed: StagedObject) -> int:
    kind = placed.kind[1]
    if kind in _FIRST:
        return _FIRST.index(kind)
    return len(_FIRST) + (1 + _LAST.index(kind) if kind in _LAST else 0)


NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_DEFAULT_NAMESPACE = "default"


@dataclass(slots=True)
class AppliedManifests:
    """What became of the objects."""

    objects: list[StagedObject] = field(default_factory=list)
    refused: list[tuple[StagedObject, ApiError]] = field(default_factory=list)


async def apply(
    transport: Transport,
    objects: Iterable[StagedObject],
    resource_of: Callable[[str, str], Resource],
    *,
    manager: str,
) -> AppliedManifests:
    """Apply objects in their order, each in a namespace that is made where there is none; one refusal stops no other.

    `resource_of` finds what a kind of an `apiVersion` is called in the API; it is asked when it is needed, so that
    kinds can be among the objects that define them.
    """
    applied = AppliedManifests()
    write = Write(manager, "the manifest says so")
    namespaces: set[str] = set()
    for placed in objects:
        api_version, kind = placed.kind
        try:
            resource = resource_of(kind, api_version)
            metadata = placed.value["metadata"]
            namespace = (metadata.get("namespace") or _DEFAULT_NAMESPACE) if resource.namespaced else ""
            if namespace and namespace not in namespaces:
                await _ensure_namespace(transport, namespace, write)
                namespaces.add(namespace)
            if name := metadata.get("name"):
                await transport.patch(resource, Key(namespace, name), Patch.apply(placed.value, force=True), write)
            else:
                await transport.create(resource, placed.value, write, namespace=namespace)
        except ApiError as answer:
            applied.refused.append((placed, answer))
        else:
            applied.objects.append(placed)
    return applied


async def _ensure_namespace(transport: Transport, name: str, write: Write) -> None:
    try:
        await transport.create(NAMESPACES, {"metadata": {"name": name}}, write)
    except AlreadyExists:
        return
