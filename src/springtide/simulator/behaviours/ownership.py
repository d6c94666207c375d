"""What workload controllers share: ownership, names of children, deletion order, template revisions, status writes.

Names of children are deterministic. A create that is repeated because its answer was lost, or that a former leader
sends late, has the same name, and the API server refuses the second one.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Cached
from springtide.cluster.errors import AlreadyExists, NotFound
from springtide.cluster.resources import PODS, Key, Object, Resource, key_of
from springtide.cluster.transport import Patch
from springtide.simulator.behaviours import pod_status as state
from springtide.simulator.behaviours.pod_status import is_terminating
from springtide.simulator.behaviours.resources import (
    ALL_PODS,
    CONTROLLED,
    CONTROLLER_REVISIONS,
    UNCONTROLLED,
    controller_of,
    selects,
)


def scaled_count(value: Any, total: int, *, up: bool) -> int:
    """Resolve a count or a percentage of `total`, rounded up or down."""
    text = str(value)
    if not text.endswith("%"):
        return int(text)
    parts = int(text[:-1].lstrip("0")[:10] or "0") * total  # Python refuses to parse thousands of digits
    return -(-parts // 100) if up else parts // 100


# The alphabet of Kubernetes: without vowels and ambiguous digits, so that no suffix spells a word.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX = 5
_LONGEST = 63


def child_name(owner: Any, number: int, purpose: str = "") -> str:
    """Return the name of the numbered child of an owner, for one purpose."""
    metadata = owner["metadata"]
    suffix = letters(f"{metadata['uid']}/{purpose}/{number}", _SUFFIX)
    return f"{metadata['name'][: _LONGEST - _SUFFIX - 1]}-{suffix}"


def free_names(owner: Any, taken: Callable[[str], bool], purpose: str = "") -> Iterator[str]:
    """Yield names for children that are not taken; the name of a deleted child may return."""
    number = 0
    while True:
        name = child_name(owner, number, purpose)
        if not taken(name):
            yield name
        number += 1


def template_hash(template: Any, salt: int = 0) -> str:
    """Return the short hash of a pod template."""
    return letters(json.dumps([template, salt], sort_keys=True, separators=(",", ":")), 10)


def letters(text: str, length: int) -> str:
    """Hash a text to a few letters."""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest())
    spelt = []
    for _ in range(length):
        number, letter = divmod(number, len(_LETTERS))
        spelt.append(_LETTERS[letter])
    return "".join(spelt)


def owner_reference(owner: Object, resource: Resource) -> Object:
    """Return the owner reference to a controller."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from(template: Object, owner: Object, resource: Resource, name: str) -> Object:
    """Create a pod body from a template, owned by its controller."""
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


def children_of(context: ControllerContext, cached: Cached, kind: str, key: Key) -> list[Object]:
    """List the objects whose controller has this kind and name, even if it no longer exists."""
    return context.store(cached).by(CONTROLLED, (kind, key.namespace, key.name))


async def claim(
    context: ControllerContext, resource: Resource, owner: Object, *, of: Cached, selector: Object | None
) -> list[Object]:
    """List the children of an owner; adopt orphans that it selects, release children that it does not select.

    `resource` is that of the owner. Orphans are adopted when the owner is reconciled; they enqueue no key.
    """
    children = []
    for child in children_of(context, of, resource.kind, key_of(owner)):
        if _uid_of_controller(child) != owner["metadata"]["uid"]:
            continue
        if is_terminating(child) or selects(selector, _labels(child)):
            children.append(child)
        else:
            await _release(context, of, child, owner)
    if is_terminating(owner):
        return children
    adopted = [
        await _adopt(context, resource, of, orphan, owner)
        for orphan in context.store(of).by(UNCONTROLLED, owner["metadata"]["namespace"])
        if not is_terminating(orphan) and selects(selector, _labels(orphan))
    ]
    # Children are in the order of their keys; adopted ones are sorted in.
    return sorted([*children, *adopted], key=key_of) if adopted else children


async def _adopt(context: ControllerContext, resource: Resource, of: Cached, child: Object, owner: Object) -> Object:
    references = [*(child["metadata"].get("ownerReferences") or ()), owner_reference(owner, resource)]
    return await context.client.patch(
        of.selection.resource,
        Patch.merge({"metadata": {"ownerReferences": references}}),
        of=child,
        because=f"{resource.kind} {owner['metadata']['name']} selects it, and it has no controller",
    )


async def _release(context: ControllerContext, of: Cached, child: Object, owner: Object) -> None:
    uid = owner["metadata"]["uid"]
    kept = [entry for entry in child["metadata"]["ownerReferences"] if entry["uid"] != uid]
    await context.client.patch(
        of.selection.resource,
        Patch.merge({"metadata": {"ownerReferences": kept or None}}),
        of=child,
        because=f"{owner['kind']} {owner['metadata']['name']} no longer selects it",
    )


def _uid_of_controller(item: Object) -> str | None:
    owner = controller_of(item)
    return None if owner is None else owner["uid"]


def _labels(item: Object) -> Mapping[str, str]:
    return item["metadata"].get("labels") or {}


async def create_once(context: ControllerContext, resource: Resource, body: Object, *, because: str) -> None:
    """Create an object; it may exist already, if the answer to an earlier attempt was lost."""
    try:
        await context.client.create(resource, body, because=because)
    except AlreadyExists:
        context.log.info("%s %s exists already", resource.kind, key_of(body))


async def delete_pod(
    context: ControllerContext, pod: Object, *, because: str, grace_seconds: int | None = None
) -> None:
    """Delete a pod regardless of its status; a pod that is gone is no error."""
    try:
        await context.client.delete(PODS, of=pod, because=because, exact=False, grace_seconds=grace_seconds)
    except NotFound:
        context.log.info("pod %s is gone already", key_of(pod))


async def write_status(
    context: ControllerContext, resource: Resource, item: Object, wanted: Mapping[str, Any], *, because: str
) -> None:
    """Write the fields of a status that differ; None removes a field."""
    present = item.get("status") or {}
    changed = {
        name: _replacing(present.get(name), value) for name, value in wanted.items() if present.get(name) != value
    }
    if changed:
        await context.client.patch(
            resource, Patch.merge({"status": changed}), of=item, because=because, subresource="status"
        )


def _replacing(present: Any, wanted: Any) -> Any:
    """Return a merge patch that replaces a value instead of merging into it."""
    if not isinstance(present, dict) or not isinstance(wanted, dict):
        return wanted
    return {**dict.fromkeys(present), **{name: _replacing(present.get(name), value) for name, value in wanted.items()}}


def pod_exists(context: ControllerContext, namespace: str, name: str) -> bool:
    """Whether a pod with this name exists."""
    return Key(namespace, name) in context.store(ALL_PODS)


DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_NANOSECONDS = 10**9


def surplus_pods(pods: Sequence[Object], wanted: int, now: int) -> list[Object]:
    """Return the active pods beyond the wanted number, in deletion order."""
    return by_deletion_order(pods, now)[: len(pods) - wanted] if len(pods) > wanted else []


def by_deletion_order(pods: Sequence[Object], now: int) -> list[Object]:
    """Sort the active pods of one controller by deletion order, as the ReplicaSet controller does.

    First unbound, pending, unready pods, then by deletion cost, pods on the same node, age and restarts. Ages are
    compared by magnitude; among pods of similar age the uid decides.
    """
    neighbours = Counter(pod["spec"].get("nodeName") for pod in pods if state.is_active(pod))

    def sort_key(pod: Object) -> tuple[object, ...]:
        node = pod["spec"].get("nodeName")
        since = state.ready_since(pod)
        return (
            bool(node),
            _PHASES.get(state.phase(pod), 2),
            since is not None,
            _cost(pod),
            -neighbours[node] if node else 0,
            _magnitude(now - since) if since is not None else 0,
            -state.restarts(pod),
            _magnitude(now - state.created_at(pod)),
            pod["metadata"]["uid"],
        )

    return sorted(pods, key=sort_key)


def _cost(pod: Object) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def _magnitude(seconds: int) -> int:
    """Return the integer binary logarithm of an age in nanoseconds, as Kubernetes does; -1 for none."""
    return (max(seconds, 0) * _NANOSECONDS).bit_length() - 1


LABEL = "controller-revision-hash"


@dataclass(frozen=True, slots=True)
class TemplateRevision:
    """A pod template and the name of its revision."""

    name: str
    template: Object


def revision_name(owner: Object) -> str:
    """Return the name of the current template revision."""
    return f"{owner['metadata']['name']}-{template_hash(owner['spec']['template'])}"


def newest(owner: Object) -> TemplateRevision:
    """Return the current template."""
    return TemplateRevision(revision_name(owner), owner["spec"]["template"])


def revision_of(revision: Object) -> TemplateRevision:
    """Read a template from a ControllerRevision."""
    return TemplateRevision(revision["metadata"]["name"], revision["data"]["spec"]["template"])


def as_object(owner: Object, resource: Resource, revision: TemplateRevision, existing: Sequence[Object]) -> Object:
    """Return the ControllerRevision of a template."""
    return {
        "apiVersion": CONTROLLER_REVISIONS.api_version,
        "kind": CONTROLLER_REVISIONS.kind,
        "metadata": {
            "name": revision.name,
            "namespace": owner["metadata"]["namespace"],
            "labels": {
                **((revision.template.get("metadata") or {}).get("labels") or {}),
                LABEL: revision.name,
            },
            "ownerReferences": [owner_reference(owner, resource)],
        },
        "data": {"spec": {"template": revision.template}},
        "revision": 1 + max((int(one.get("revision", 0)) for one in existing), default=0),
    }


def expired_revisions(existing: Sequence[Object], live: tuple[str, ...], limit: int) -> list[Object]:
    """List the unused revisions beyond the history limit, oldest first."""
    idle = [one for one in existing if one["metadata"]["name"] not in live]
    idle.sort(key=lambda one: (int(one.get("revision", 0)), one["metadata"]["name"]))
    return idle[: max(0, len(idle) - limit)]
