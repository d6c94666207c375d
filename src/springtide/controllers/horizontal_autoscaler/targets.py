"""What an autoscaler scales: finds it by its reference and reads its scale, or says why it cannot be scaled."""

from __future__ import annotations

from dataclasses import dataclass

from springtide.apis.meta.types import ScaleTargetReference
from springtide.cluster.errors import ApiError, Forbidden, MethodNotAllowed, NotFound
from springtide.cluster.kinds import DEFINITIONS, Kinds
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.tools import Tools
from springtide.controllers.horizontal_autoscaler.recommending import Scale


class Unscalable(Exception):
    """A target that cannot be scaled; the message is for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        """Why, in one CamelCase word."""


@dataclass(frozen=True, slots=True)
class Target:
    """Something that can be scaled."""

    resource: Resource
    read: Object
    """Its `scale` as the server has it."""
    scale: Scale

    @property
    def uid(self) -> str:
        """Its identity: another one of the same name is another target."""
        return str(self.read["metadata"].get("uid", ""))

    @property
    def words(self) -> str:
        """Its kind and name, for sentences."""
        return f"{self.resource.kind} {self.read['metadata']['name']}"


async def find_target(tools: Tools, reference: ScaleTargetReference, namespace: str) -> Target:
    """Read the scale that a reference means; `Unscalable` where there is none for us."""
    version = reference.api_version or "v1"
    kind = Kinds(tools.store(DEFINITIONS)).find(version, reference.kind)
    if kind is None:
        message = f"the cluster has no kind {reference.kind} in {version}: see `kubectl api-resources`"
        raise Unscalable("UnknownKind", message)
    if not kind.scalable:
        raise Unscalable("NotScalable", f"a {reference.kind} of {version} has no scale subresource")
    what = f"{reference.kind} {reference.name}"
    try:
        read = await tools.client.get(kind.resource, Key(namespace, reference.name), subresource="scale")
    except Forbidden as failure:
        raise Unscalable("Forbidden", refused(kind.resource, failure)) from failure
    except (NotFound, MethodNotAllowed) as failure:
        message = f"the scale of {what} cannot be read: {failure.message}"
        raise Unscalable("NotFound", message) from failure
    # What is zero is left out.
    asked = (read.get("spec") or {}).get("replicas") or 0
    present = (read.get("status") or {}).get("replicas") or 0
    return Target(kind.resource, read, Scale(int(asked), int(present)))


def refused(resource: Resource, failure: ApiError) -> str:
    """Say which right is missing, and where it is given."""
    group = resource.group or "core"
    return f"{failure.message}: rights on */scale are given by group in the chart, list {group} there"
