"""What an autoscaler scales: finds it by its reference and reads its scale, or says why it cannot be scaled."""

from __future__ import annotations

import re
from dataclasses import dataclass

from springtide.apis.meta.types import ScaleTargetReference
from springtide.cluster.context import ControllerContext
from springtide.cluster.errors import ApiError, Forbidden, MethodNotAllowed, NotFound
from springtide.cluster.kinds import DEFINITIONS, KindRegistry
from springtide.cluster.resources import Key, Object, Resource
from springtide.controllers.horizontal_autoscaler.recommendation import ObservedScale

_NO_REPLICAS_FIELD = re.compile("replicas field .* does not exist")
"""How servers say that a custom object has no number of replicas; live ones call it a failure of their own."""


class TargetNotScalable(Exception):
    """A target that cannot be scaled; the message is for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        """Why, in one CamelCase word."""


@dataclass(frozen=True, slots=True)
class ScaleTarget:
    """Something that can be scaled."""

    resource: Resource
    read: Object
    """Its `scale` as the server has it."""
    scale: ObservedScale

    @property
    def uid(self) -> str:
        """Its identity: another one of the same name is another target."""
        return str(self.read["metadata"].get("uid", ""))

    @property
    def words(self) -> str:
        """Its kind and name, for sentences."""
        return f"{self.resource.kind} {self.read['metadata']['name']}"


async def find_target(context: ControllerContext, reference: ScaleTargetReference, namespace: str) -> ScaleTarget:
    """Read the scale that a reference means; `Unscalable` where there is none for us."""
    version = reference.api_version or "v1"
    kind = KindRegistry(context.store(DEFINITIONS)).find(version, reference.kind)
    if kind is None:
        message = f"the cluster has no kind {reference.kind} in {version} that can be scaled: mend `scaleTargetRef`"
        raise TargetNotScalable("UnknownKind", message)
    if not kind.resource.namespaced:
        # Nobody who may write in one namespace may thereby change what belongs to all.
        message = f"{reference.kind} objects are in no namespace, and an object of one cannot scale them"
        raise TargetNotScalable("NotScalable", message)
    if not kind.scalable:
        raise TargetNotScalable("NotScalable", f"a {reference.kind} of {version} has no scale subresource")
    what = f"{reference.kind} {reference.name}"
    try:
        read = await context.client.get(kind.resource, Key(namespace, reference.name), subresource="scale")
    except ApiError as failure:
        problem = _not_scalable(kind.resource, what, failure)
        if problem is None:
            raise
        raise problem from failure
    # What is zero is left out.
    asked = (read.get("spec") or {}).get("replicas") or 0
    present = (read.get("status") or {}).get("replicas") or 0
    return ScaleTarget(kind.resource, read, ObservedScale(int(asked), int(present)))


def _not_scalable(resource: Resource, what: str, failure: ApiError) -> TargetNotScalable | None:
    """Say why a scale cannot be read; None where that may pass by itself."""
    if _NO_REPLICAS_FIELD.search(failure.message):
        words = f"{what} does not say how many replicas it shall have ({failure.message})"
        advice = "set that once, and leave it out of manifests that are applied again"
        return TargetNotScalable("NoReplicas", f"{words}: {advice}")
    if isinstance(failure, Forbidden):
        return TargetNotScalable("Forbidden", missing_right(resource, failure))
    if isinstance(failure, NotFound | MethodNotAllowed):
        return TargetNotScalable("NotFound", f"the scale of {what} cannot be read: {failure.message}")
    return None


def missing_right(resource: Resource, failure: ApiError) -> str:
    """Say which right is missing, and where it is given."""
    group = resource.group or "core"
    return f"{failure.message}: rights on */scale are given by group in the chart, list {group} there"
