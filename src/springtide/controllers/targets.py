"""The target that a `scaleTargetRef` names: its kind in the cluster, and its scale, for every kind that scales.

A target that cannot be scaled raises `TargetNotScalable`, whose message says what a user should change. Errors of the
API server that may pass are raised as they are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from springtide.cluster.client import Client
from springtide.cluster.errors import ApiError, Forbidden, MethodNotAllowed, NotFound
from springtide.cluster.kinds import KindInfo, KindRegistry
from springtide.cluster.resources import Key, Object, Resource
from springtide.controllers.decision import ObservedScale

_NO_REPLICAS_FIELD = re.compile("replicas field .* does not exist")
"""How API servers say that a custom object has no number of replicas; live ones call it an internal error."""


class TargetNotScalable(Exception):
    """A target that cannot be scaled; the message is for users."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        """Why, in one CamelCase word."""


@dataclass(frozen=True, slots=True)
class TargetScale:
    """A target, and its scale as the API server returned it."""

    resource: Resource
    object: Object
    """The Scale object; writes use its resourceVersion as a precondition."""
    scale: ObservedScale

    @property
    def uid(self) -> str:
        """The UID of the target: another object of the same name is another target."""
        return str(self.object["metadata"].get("uid", ""))

    @property
    def label(self) -> str:
        """Kind and name, for messages."""
        return f"{self.resource.kind} {self.object['metadata']['name']}"


def find_target_kind(registry: KindRegistry, api_version: str | None, kind: str, *, needs_scale: bool) -> KindInfo:
    """Find the kind that a reference names."""
    version = api_version or "v1"
    found = registry.find(version, kind)
    if found is None:
        message = (
            f"the cluster has no kind {kind} in {version} that can be scaled: install it, or correct `scaleTargetRef`"
        )
        raise TargetNotScalable("UnknownKind", message)
    if not found.resource.namespaced:
        # Otherwise a user who may write in one namespace could scale what belongs to the whole cluster.
        message = f"{kind} objects are in no namespace, and an object of one cannot scale them"
        raise TargetNotScalable("NotScalable", message)
    if needs_scale and not found.scalable:
        message = f"{kind} of {version} has no scale subresource: name a kind that has one"
        raise TargetNotScalable("NotScalable", message)
    return found


async def read_scale(client: Client, resource: Resource, key: Key) -> TargetScale:
    """Read the scale of a target."""
    found = await client.get(resource, key, subresource="scale")
    # Zero is left out of the JSON.
    asked = (found.get("spec") or {}).get("replicas") or 0
    present = (found.get("status") or {}).get("replicas") or 0
    return TargetScale(resource, found, ObservedScale(int(asked), int(present)))


async def find_target(
    client: Client, registry: KindRegistry, api_version: str | None, kind: str, key: Key
) -> TargetScale:
    """Find a target, and read its scale."""
    resource = find_target_kind(registry, api_version, kind, needs_scale=True).resource
    try:
        return await read_scale(client, resource, key)
    except ApiError as failure:
        problem = _not_scalable(resource, f"{kind} {key.name}", failure)
        if problem is None:
            raise
        raise problem from failure


def _not_scalable(resource: Resource, label: str, failure: ApiError) -> TargetNotScalable | None:
    """Say why a scale cannot be read; None where the failure may pass."""
    if _NO_REPLICAS_FIELD.search(failure.message):
        problem = f"{label} does not say how many replicas it shall have ({failure.message})"
        advice = "set that once, and leave it out of manifests that are applied again"
        return TargetNotScalable("NoReplicas", f"{problem}: {advice}")
    if isinstance(failure, Forbidden):
        return TargetNotScalable("Forbidden", missing_right(resource, failure))
    if isinstance(failure, NotFound | MethodNotAllowed):
        return TargetNotScalable("NotFound", f"the scale of {label} cannot be read: {failure.message}")
    return None


def missing_right(resource: Resource, failure: ApiError) -> str:
    """Say which right is missing, and where an administrator grants it."""
    group = resource.group or "core"
    return f"{failure.message}: rights on */scale are given by group in the chart, list {group} there"
