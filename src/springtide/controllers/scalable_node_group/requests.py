"""What each ScalableNodeGroup asks of its group, and whether it may: its spec, its Grant, and the owner of the group.

A request may change although its object does not. So objects are enqueued when a Grant changes, and when an older
object for the same group comes, goes or changes its spec.
"""

from __future__ import annotations

from collections.abc import Iterator

from springtide.apis.scheduled.node_group import ScalableNodeGroup
from springtide.apis.springtide.grants import GrantedResource
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Cached
from springtide.cluster.resources import Object, Resource, Selection, key_of
from springtide.cluster.store import Delta
from springtide.controllers.grant.state import Grants
from springtide.controllers.scalable_node_group.decide import GroupRequest
from springtide.controllers.scalable_node_group.ownership import (
    BY_GROUP,
    group_index,
    id_of,
    owner_of_group,
    younger_objects,
)
from springtide.controllers.validated import Validated, try_validation, validated

SCALABLE_NODE_GROUPS = Resource("autoscaling.karpenter.sh", "v1alpha1", "scalablenodegroups", "ScalableNodeGroup")

ALL_NODE_GROUPS = Cached(Selection(SCALABLE_NODE_GROUPS), indexes={BY_GROUP: group_index}, trial=try_validation)


class GroupRequests:
    """The requests of all ScalableNodeGroups; enqueues the objects whose request may have changed."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._store = context.store(ALL_NODE_GROUPS)
        self._grants = context.state(Grants)
        # Without a replay: the initial list enqueues every object anyway.
        context.on_release(self._store.listen(self._enqueue_younger))
        context.subscribe(Grants, self._enqueue_all)

    def of(self, item: Object, now: int) -> GroupRequest:
        """Return what an object asks of its group."""
        verdict = self._validated(item, now)
        refusal = self._refusal(item, verdict.sound.spec.id) if verdict.sound is not None else ""
        may = verdict.sound is not None and not refusal
        return GroupRequest(
            uid=item["metadata"]["uid"],
            spec=verdict.sound.spec if verdict.sound is not None else None,
            errors=verdict.error_message,
            refusal=refusal,
            owner=owner_of_group(item, self._others(item), lambda other: self._may_scale(other, now)) if may else None,
        )

    def _may_scale(self, item: Object, now: int) -> bool:
        # The Grant is checked first: there may be any number of objects without one, and validation is slow.
        deleting = bool(item["metadata"].get("deletionTimestamp"))
        return self._is_granted(item) and not deleting and self._validated(item, now).sound is not None

    def _is_granted(self, item: Object) -> bool:
        id_ = id_of(item)
        return id_ is not None and not self._refusal(item, id_)

    def _validated(self, item: Object, now: int) -> Validated[ScalableNodeGroup]:
        return validated(item, ScalableNodeGroup, now=now, default_zone=self._context.default_zone)

    def _refusal(self, item: Object, id_: str) -> str:
        return self._grants.refusal(item["metadata"]["namespace"], GrantedResource.NODE_GROUP, id_) or ""

    def _others(self, item: Object) -> Iterator[Object]:
        """Return the objects whose ids may name the group of one."""
        for value in group_index(item):
            yield from self._store.by(BY_GROUP, value)

    def _enqueue_younger(self, delta: Delta[Object]) -> None:
        """Enqueue the younger objects of a group when an older one comes, goes or changes its spec."""
        if delta.old is not None and delta.new is not None and _owner_fields(delta.old) == _owner_fields(delta.new):
            return
        for item in (delta.old, delta.new):
            # An object without a Grant owns no group; a change of a Grant enqueues all objects.
            if item is not None and self._is_granted(item):
                for other in younger_objects(item, self._others(item)):
                    self._context.enqueue(key_of(other))

    def _enqueue_all(self, _: None) -> None:
        for key in self._store.keys():  # noqa: SIM118 - a store is no dictionary
            self._context.enqueue(key)


def _owner_fields(item: Object) -> tuple[object, ...]:
    """Return the fields that decide which object owns a group."""
    metadata = item["metadata"]
    return metadata.get("uid"), metadata.get("deletionTimestamp"), metadata.get("annotations"), item.get("spec")
