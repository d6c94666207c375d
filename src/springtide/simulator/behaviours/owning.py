"""What all workload controllers share: whose a pod is, how it is made from a template, and how status is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from springtide.cluster.controller import Cached
from springtide.cluster.errors import AlreadyExists, NotFound
from springtide.cluster.port import Patch
from springtide.cluster.resources import Key, Object, Resource, key_of
from springtide.cluster.tools import Tools
from springtide.simulator.behaviours.kinds import ALL_PODS, CONTROLLED, PODS, UNCONTROLLED, controller_of
from springtide.simulator.behaviours.pods import is_terminating
from springtide.simulator.behaviours.requirements import selects


def owner_reference(owner: Object, resource: Resource) -> Object:
    """Write the reference by which a child names its controller."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from(template: Object, owner: Object, resource: Resource, name: str) -> Object:
    """Make a pod of a controller from its template."""
    metadata = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": owner["metadata"]["namespace"],
            "labels": dict(metadata.get("labels") or {}),
            "annotations": dict(metadata.get("annotations") or {}),
            "finalizers": list(metadata.get("finalizers") or ()),
            "ownerReferences": [owner_reference(owner, resource)],
        },
        "spec": template["spec"],
    }


def children_of(tools: Tools, cached: Cached, kind: str, key: Key) -> list[Object]:
    """List what has a controller of this kind and name, whether that is still there or not."""
    return tools.store(cached).by(CONTROLLED, (kind, key.namespace, key.name))


async def claim(
    tools: Tools, resource: Resource, owner: Object, *, of: Cached, selector: Object | None
) -> list[Object]:
    """List the children of an owner: adopt orphans that it selects, let go of children that it does not select.

    `resource` is the owner's. Orphans are looked for whenever the owner is reconciled; one by itself wakes nobody.
    """
    children = []
    for child in children_of(tools, of, resource.kind, key_of(owner)):
        if _uid_of_controller(child) != owner["metadata"]["uid"]:
            continue
        if is_terminating(child) or selects(selector, _labels(child)):
            children.append(child)
        else:
            await _release(tools, of, child, owner)
    if is_terminating(owner):
        return children
    adopted = [
        await _adopt(tools, resource, of, orphan, owner)
        for orphan in tools.store(of).by(UNCONTROLLED, owner["metadata"]["namespace"])
        if not is_terminating(orphan) and selects(selector, _labels(orphan))
    ]
    # Children come in the order of their keys; without new ones it stands.
    return sorted([*children, *adopted], key=key_of) if adopted else children


async def _adopt(tools: Tools, resource: Resource, of: Cached, child: Object, owner: Object) -> Object:
    references = [*(child["metadata"].get("ownerReferences") or ()), owner_reference(owner, resource)]
    return await tools.client.patch(
        of.selection.resource,
        Patch.merge({"metadata": {"ownerReferences": references}}),
        of=child,
        because=f"{resource.kind} {owner['metadata']['name']} selects it, and it has no controller",
    )


async def _release(tools: Tools, of: Cached, child: Object, owner: Object) -> None:
    uid = owner["metadata"]["uid"]
    kept = [entry for entry in child["metadata"]["ownerReferences"] if entry["uid"] != uid]
    await tools.client.patch(
        of.selection.resource,
        Patch.merge({"metadata": {"ownerReferences": kept or None}}),
        of=child,
        because=f"{owner['kind']} {owner['metadata']['name']} does not select it any more",
    )


def _uid_of_controller(item: Object) -> str | None:
    owner = controller_of(item)
    return None if owner is None else owner["uid"]


def _labels(item: Object) -> Mapping[str, str]:
    return item["metadata"].get("labels") or {}


async def create_once(tools: Tools, resource: Resource, body: Object, *, because: str) -> None:
    """Create an object that may be there already, from an attempt whose answer was lost."""
    try:
        await tools.client.create(resource, body, because=because)
    except AlreadyExists:
        tools.log.info("%s %s is there already", resource.kind, key_of(body))


async def delete_pod(tools: Tools, pod: Object, *, because: str, grace_seconds: int | None = None) -> None:
    """Ask a pod to go, whatever its status has become; a pod that went by itself is as good."""
    try:
        await tools.client.delete(PODS, of=pod, because=because, exact=False, grace_seconds=grace_seconds)
    except NotFound:
        tools.log.info("pod %s is gone already", key_of(pod))


async def write_status(
    tools: Tools, resource: Resource, item: Object, wanted: Mapping[str, Any], *, because: str
) -> None:
    """Bring fields of a status to what they should be; None: must not be there. What is right is not written."""
    present = item.get("status") or {}
    changed = {
        name: _replacing(present.get(name), value) for name, value in wanted.items() if present.get(name) != value
    }
    if changed:
        await tools.client.patch(
            resource, Patch.merge({"status": changed}), of=item, because=because, subresource="status"
        )


def _replacing(present: Any, wanted: Any) -> Any:
    """Write a value so that a merge patch puts it in the place of another, and not on top of it."""
    if not isinstance(present, dict) or not isinstance(wanted, dict):
        return wanted
    return {**dict.fromkeys(present), **{name: _replacing(present.get(name), value) for name, value in wanted.items()}}


def pod_exists(tools: Tools, namespace: str, name: str) -> bool:
    """Tell whether a name is taken by any pod, in whatever state."""
    return Key(namespace, name) in tools.store(ALL_PODS)
