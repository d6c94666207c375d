"""Puts the objects of manifests into a running cluster, as `kubectl apply --server-side` does: as often as need be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from springtide.cli.staging import Placed
from springtide.cluster.errors import AlreadyExists, ApiError
from springtide.cluster.port import Patch, Transport, Write
from springtide.cluster.resources import Key, Resource

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_DEFAULT_NAMESPACE = "default"


@dataclass(slots=True)
class Applied:
    """What became of the objects."""

    objects: list[Placed] = field(default_factory=list)
    refused: list[tuple[Placed, ApiError]] = field(default_factory=list)


async def apply(
    transport: Transport,
    objects: Iterable[Placed],
    resource_of: Callable[[str, str], Resource],
    *,
    manager: str,
) -> Applied:
    """Apply objects in their order, each in a namespace that is made where there is none; one refusal stops no other.

    `resource_of` finds what a kind of an `apiVersion` is called in the API; it is asked when it is needed, so that
    kinds can be among the objects that define them.
    """
    applied = Applied()
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
