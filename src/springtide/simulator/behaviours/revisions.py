"""Revisions of a template that are kept as objects: how a StatefulSet makes pods of a template it has no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from springtide.cluster.resources import Object, Resource
from springtide.simulator.behaviours.kinds import CONTROLLER_REVISIONS
from springtide.simulator.behaviours.naming import template_hash
from springtide.simulator.behaviours.owning import owner_reference

LABEL = "controller-revision-hash"


@dataclass(frozen=True, slots=True)
class Revision:
    """A template and its name."""

    name: str
    template: Object


def revision_name(owner: Object) -> str:
    """Name the template that an owner has now."""
    return f"{owner['metadata']['name']}-{template_hash(owner['spec']['template'])}"


def newest(owner: Object) -> Revision:
    """Give the template that an owner has now."""
    return Revision(revision_name(owner), owner["spec"]["template"])


def kept(revision: Object) -> Revision:
    """Read a template that was kept."""
    return Revision(revision["metadata"]["name"], revision["data"]["spec"]["template"])


def as_object(owner: Object, resource: Resource, revision: Revision, existing: Sequence[Object]) -> Object:
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


def outlived(existing: Sequence[Object], live: tuple[str, ...], limit: int) -> list[Object]:
    """List the revisions beyond the history that is kept, the oldest first; those in use do not count."""
    idle = [one for one in existing if one["metadata"]["name"] not in live]
    idle.sort(key=lambda one: (int(one.get("revision", 0)), one["metadata"]["name"]))
    return idle[: max(0, len(idle) - limit)]
