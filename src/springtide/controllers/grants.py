"""Whom a controller may reach on behalf of an object: what Grants allow, or everything in a cluster of one's own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from springtide.apis.springtide.grants import Grant, GrantedResource, GrantSpec, is_granted, missing_grant_message
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Cached, Permission
from springtide.cluster.resources import Object, Resource, Selection
from springtide.controllers.validated import validated

GRANTS = Resource("springtide.dev", "v1alpha1", "grants", "Grant", namespaced=False)
PERMISSIONS = (Permission(GRANTS, ("get", "list", "watch")),)


@dataclass(frozen=True, slots=True)
class GrantPolicy:
    """A service of the process: whether everything is allowed that no Grant speaks of."""

    everything: bool = False
    """True only in embedded and simulated clusters, where whoever writes objects owns the process."""


@dataclass(frozen=True, slots=True)
class _GrantRecord:
    spec: GrantSpec | None
    """None: the object has errors, and allows nothing."""


def _record(grant: Object) -> _GrantRecord:
    # As its own controller judges it: what the status says must be what is enforced. No error depends on the present.
    sound = validated(grant, Grant, now=0, default_zone="UTC").sound
    return _GrantRecord(sound.spec if sound is not None else None)


ALL_GRANTS = Cached(Selection(GRANTS), record=_record)
"""To be watched by whoever asks here; a change of a grant concerns every object that needs one."""


def grant_refusal(context: ControllerContext, namespace: str, reach: GrantedResource, target: str) -> str | None:
    """Give the words of a refusal, or None where objects of a namespace may reach a target."""
    if context.services.get(GrantPolicy).everything or is_granted(_specs(context), namespace, reach, target):
        return None
    return missing_grant_message(namespace, reach, target)


def _specs(context: ControllerContext) -> Iterable[GrantSpec]:
    for granted in context.store(ALL_GRANTS).values():
        if granted.spec is not None:
            yield granted.spec
