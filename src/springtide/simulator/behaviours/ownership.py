"""Counts that may be written as a percentage of something, in the two roundings that rollouts need.

Names of what controllers make: each follows from what it is for, so that making it twice makes it once.

A create whose answer was lost, or that a former leader sends late, bears the name that its repetition will bear, and
the server refuses the second of them.

What all workload controllers share: whose a pod is, how it is made from a template, and how status is written.

Which pods go first when there are too many: those whose going hurts least, in the order that ReplicaSets have.

Revisions of a template that are kept as objects: how a StatefulSet makes pods of a template it has no more.
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
from springtide.cluster.resources import Key, Object, Resource, key_of
from springtide.cluster.transport import Patch
from springtide.simulator.behaviours import pod_status as state
from springtide.simulator.behaviours.pod_status import is_terminating
from springtide.simulator.behaviours.resources import (
    ALL_PODS,
    CONTROLLED,
    CONTROLLER_REVISIONS,
    PODS,
    UNCONTROLLED,
    controller_of,
    selects,
)


def scaled_count(value: Any, total: int, *, up: bool) -> int:
    """Tell what a count or a percentage comes to when there are `total`."""
    text = str(value)
    if not text.endswith("%"):
        return int(text)
    parts = int(text[:-1]) * total
    return -(-parts // 100) if up else parts // 100


# Without vowels and look-alike digits no suffix spells a word: the letters that Kubernetes takes for the same reason.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX = 5
_LONGEST = 63


def child_name(owner: Any, number: int, purpose: str = "") -> str:
    """Name the child with a number of an owner, among those for one purpose."""
    metadata = owner["metadata"]
    suffix = letters(f"{metadata['uid']}/{purpose}/{number}", _SUFFIX)
    return f"{metadata['name'][: _LONGEST - _SUFFIX - 1]}-{suffix}"


def free_names(owner: Any, taken: Callable[[str], bool], purpose: str = "") -> Iterator[str]:
    """Name children of an owner, passing over names that are taken; a name may come again when its bearer is gone."""
    number = 0
    while True:
        name = child_name(owner, number, purpose)
        if not taken(name):
            yield name
        number += 1


def template_hash(template: Any, salt: int = 0) -> str:
    """Give the short text that tells pod templates apart."""
    return letters(json.dumps([template, salt], sort_keys=True, separators=(",", ":")), 10)


def letters(text: str, length: int) -> str:
    """Spell a text in a few letters, the same ones every time."""
    number = int.from_bytes(hashlib.sha256(text.encode()).digest())
    spelt = []
    for _ in range(length):
        number, letter = divmod(number, len(_LETTERS))
        spelt.append(_LETTERS[letter])
    return "".join(spelt)


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


def children_of(context: ControllerContext, cached: Cached, kind: str, key: Key) -> list[Object]:
    """List what has a controller of this kind and name, whether that is still there or not."""
    return context.store(cached).by(CONTROLLED, (kind, key.namespace, key.name))


async def claim(
    context: ControllerContext, resource: Resource, owner: Object, *, of: Cached, selector: Object | None
) -> list[Object]:
    """List the children of an owner: adopt orphans that it selects, let go of children that it does not select.

    `resource` is the owner's. Orphans are looked for whenever the owner is reconciled; one by itself wakes nobody.
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
    # Children come in the order of their keys; without new ones it stands.
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
        because=f"{owner['kind']} {owner['metadata']['name']} does not select it any more",
    )


def _uid_of_controller(item: Object) -> str | None:
    owner = controller_of(item)
    return None if owner is None else owner["uid"]


def _labels(item: Object) -> Mapping[str, str]:
    return item["metadata"].get("labels") or {}


async def create_once(context: ControllerContext, resource: Resource, body: Object, *, because: str) -> None:
    """Create an object that may be there already, from an attempt whose answer was lost."""
    try:
        await context.client.create(resource, body, because=because)
    except AlreadyExists:
        context.log.info("%s %s is there already", resource.kind, key_of(body))


async def delete_pod(
    context: ControllerContext, pod: Object, *, because: str, grace_seconds: int | None = None
) -> None:
    """Ask a pod to go, whatever its status has become; a pod that went by itself is as good."""
    try:
        await context.client.delete(PODS, of=pod, because=because, exact=False, grace_seconds=grace_seconds)
    except NotFound:
        context.log.info("pod %s is gone already", key_of(pod))


async def write_status(
    context: ControllerContext, resource: Resource, item: Object, wanted: Mapping[str, Any], *, because: str
) -> None:
    """Bring fields of a status to what they should be; None: must not be there. What is right is not written."""
    present = item.get("status") or {}
    changed = {
        name: _replacing(present.get(name), value) for name, value in wanted.items() if present.get(name) != value
    }
    if changed:
        await context.client.patch(
            resource, Patch.merge({"status": changed}), of=item, because=because, subresource="status"
        )


def _replacing(present: Any, wanted: Any) -> Any:
    """Write a value so that a merge patch puts it in the place of another, and not on top of it."""
    if not isinstance(present, dict) or not isinstance(wanted, dict):
        return wanted
    return {**dict.fromkeys(present), **{name: _replacing(present.get(name), value) for name, value in wanted.items()}}


def pod_exists(context: ControllerContext, namespace: str, name: str) -> bool:
    """Tell whether a name is taken by any pod, in whatever state."""
    return Key(namespace, name) in context.store(ALL_PODS)


DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_NANOSECONDS = 10**9


def surplus_pods(pods: Sequence[Object], wanted: int, now: int) -> list[Object]:
    """Choose the active pods of one controller that are too many."""
    return by_deletion_order(pods, now)[: len(pods) - wanted] if len(pods) > wanted else []


def by_deletion_order(pods: Sequence[Object], now: int) -> list[Object]:
    """Sort active pods of one controller: the first is the first to go.

    Unbound ones, pending ones, unready ones, cheap ones, ones that share their node with more others, young ones, ones
    that restarted more. Ages count by magnitude only, so that which of many pods of about one age goes is left to
    chance: to the uid.
    """
    neighbours = Counter(pod["spec"].get("nodeName") for pod in pods if state.is_active(pod))

    def worth(pod: Object) -> tuple[object, ...]:
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

    return sorted(pods, key=worth)


def _cost(pod: Object) -> int:
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0


def _magnitude(seconds: int) -> int:
    """Give the whole binary logarithm of an age, which Kubernetes takes of nanoseconds; -1 for none."""
    return (max(seconds, 0) * _NANOSECONDS).bit_length() - 1


LABEL = "controller-revision-hash"


@dataclass(frozen=True, slots=True)
class TemplateRevision:
    """A template and its name."""

    name: str
    template: Object


def revision_name(owner: Object) -> str:
    """Name the template that an owner has now."""
    return f"{owner['metadata']['name']}-{template_hash(owner['spec']['template'])}"


def newest(owner: Object) -> TemplateRevision:
    """Give the template that an owner has now."""
    return TemplateRevision(revision_name(owner), owner["spec"]["template"])


def revision_of(revision: Object) -> TemplateRevision:
    """Read a template that was kept."""
    return TemplateRevision(revision["metadata"]["name"], revision["data"]["spec"]["template"])


def as_object(owner: Object, resource: Resource, revision: TemplateRevision, existing: Sequence[Object]) -> Object:
    """Write a revision as the object in which it is kept."""
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
    """List the revisions beyond the history that is kept, the oldest first; those in use do not count."""
    idle = [one for one in existing if one["metadata"]["name"] not in live]
    idle.sort(key=lambda one: (int(one.get("revision", 0)), one["metadata"]["name"]))
    return idle[: max(0, len(idle) - limit)]
