"""The ScalableNodeGroup controller: observes node groups at providers, and asks for more or fewer nodes.

It polls providers every minute, and more often while a group has not stabilized. A change of the object, of a Grant or
of another object for the same group is acted on at once; the controller's own status writes cause no call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from springtide.apis.scheduled.node_group import ScalableNodeGroup
from springtide.apis.springtide.grants import GrantedResource
from springtide.cluster import kinds
from springtide.cluster.client import Mode
from springtide.cluster.conditions import ConditionStatus
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Cached, Controller, Permission, Result, Watch
from springtide.cluster.events import normal
from springtide.cluster.kinds import KindRegistry
from springtide.cluster.resources import Key, Object, Resource, Selection, key_of
from springtide.cluster.store import Delta
from springtide.controllers.decision import Decision, warning_for
from springtide.controllers.grant import state as grants
from springtide.controllers.grant.state import Grants
from springtide.controllers.scalable_node_group.decide import GroupRequest, ResizeGroup, decide
from springtide.controllers.scalable_node_group.ownership import (
    BY_GROUP,
    group_index,
    id_of,
    owner_of_group,
    younger_objects,
)
from springtide.controllers.validated import Validated, validated
from springtide.providers import ProviderError, Providers, cluster_api
from springtide.providers.aws import eks

SCALABLE_NODE_GROUPS = Resource("autoscaling.karpenter.sh", "v1alpha1", "scalablenodegroups", "ScalableNodeGroup")

_GROUPS = Cached(Selection(SCALABLE_NODE_GROUPS), indexes={BY_GROUP: group_index})


@dataclass(frozen=True, slots=True)
class _LastVisit:
    """The last call of the provider for an object."""

    request: GroupRequest
    rests_until: float
    """On the monotonic clock; before it, only another request is a reason to call again."""
    failures: int


class ScalableNodeGroupController(Controller):
    """Keeps groups of nodes at the replicas of their objects."""

    name = "scalable-node-group"
    watches = (Watch(_GROUPS),)
    states = (KindRegistry, Grants)
    needs = (Providers,)
    permissions = (
        Permission(SCALABLE_NODE_GROUPS, ("get", "list", "watch")),
        Permission(SCALABLE_NODE_GROUPS, ("patch",), subresource="status"),
        *grants.PERMISSIONS,
        *kinds.PERMISSIONS,
        *cluster_api.PERMISSIONS,
        *eks.PERMISSIONS,
    )
    workers = 8
    """Calls of providers are slow."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._providers = context.dependency(Providers)
        self._grants = context.state(Grants)
        self._registry = context.state(KindRegistry)
        self._visits: dict[Key, _LastVisit] = {}
        # Without a replay: the initial list enqueues every object anyway.
        context.on_release(context.store(_GROUPS).listen(self._enqueue_younger))
        context.subscribe(Grants, self._enqueue_all)

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Observe the group of one object, resize it where `replicas` differs, and write the status."""
        item = self.context.store(_GROUPS).get(key)
        if item is None or item["metadata"].get("deletionTimestamp"):
            self._visits.pop(key, None)
            return None
        request = self._request(item, now)
        last = self._visits.get(key)
        present = self.context.clock.monotonic()
        if last is not None and last.request == request and present < last.rests_until:
            return Result(requeue_after=last.rests_until - present)
        failures = last.failures if last is not None and last.request == request else 0
        decision, selector, failures = await self._visit(item, request, failures, now)
        await self._write(item, decision, selector, now)
        if decision.requeue_at is None:
            self._visits.pop(key, None)
            return None
        # Remembered only now: if the status could not be written, the next try calls the provider again.
        pause = decision.requeue_at - now
        self._visits[key] = _LastVisit(request, self.context.clock.monotonic() + pause, failures)
        return Result(requeue_after=pause)

    def _request(self, item: Object, now: int) -> GroupRequest:
        verdict = self._validated(item, now)
        refusal = self._refusal(item, verdict.sound.spec.id) if verdict.sound is not None else ""
        may = verdict.sound is not None and not refusal
        return GroupRequest(
            uid=item["metadata"]["uid"],
            spec=verdict.sound.spec if verdict.sound is not None else None,
            errors=verdict.words,
            refusal=refusal,
            owner=owner_of_group(item, self._others(item), lambda other: self._may_scale(other, now)) if may else None,
        )

    async def _visit(
        self, item: Object, request: GroupRequest, failures: int, now: int
    ) -> tuple[Decision[ResizeGroup], str | None, int]:
        """Observe and resize a group; gives the selector of its nodes and the failures in a row as well."""
        last_replicas = (item.get("status") or {}).get("replicas")
        if request.spec is None or not request.may_observe:
            return decide(request, None, now=now, last_replicas=last_replicas), None, 0
        selector: str | None = None
        try:
            provider = self._providers.of(request.spec.type)
            group = provider.group(request.spec.type, request.spec.id, self.context.client)
            selector = group.selector or None
            state = await group.observe()
        except ProviderError as failure:
            failures += 1
            decision = decide(request, failure, now=now, failures=failures, last_replicas=last_replicas)
            return decision, selector, failures
        decision = decide(request, state, now=now)
        for action in decision.actions:
            try:
                name = item["metadata"]["name"]
                await group.resize(action.nodes, because=f"the ScalableNodeGroup {name} is to have {action}")
            except ProviderError as failure:
                failures += 1
                decision = decide(request, state, now=now, failures=failures, resize_failure=failure)
                return decision, selector, failures
            self._record_resize(item, action)
        return decision, selector, 0

    def _record_resize(self, item: Object, action: ResizeGroup) -> None:
        if self.context.client.mode is Mode.OBSERVE:
            event = normal("WouldScale", f"would have asked the provider for {action}")
        else:
            event = normal("Scaled", f"asked the provider for {action}")
        self.context.events.record(SCALABLE_NODE_GROUPS, item, event)

    async def _write(self, item: Object, decision: Decision[ResizeGroup], selector: str | None, now: int) -> None:
        """Write the status, and record an event when `AbleToScale` becomes False."""
        fields = {**decision.status, "selector": selector}
        changed = await self.context.client.apply_status(
            SCALABLE_NODE_GROUPS,
            self._registry.declared(SCALABLE_NODE_GROUPS, fields),
            decision.conditions,
            of=item,
            now=now,
            because=decision.reasons[0],
            observes_generation=False,
        )
        able = decision.condition("AbleToScale")
        if changed and able.status is ConditionStatus.FALSE:
            self.context.events.record(SCALABLE_NODE_GROUPS, item, warning_for(able))

    def _may_scale(self, item: Object, now: int) -> bool:
        # The Grant is checked first: there may be any number of objects without one, and validation is slow.
        deleting = bool(item["metadata"].get("deletionTimestamp"))
        return self._is_granted(item) and not deleting and self._validated(item, now).sound is not None

    def _is_granted(self, item: Object) -> bool:
        id_ = id_of(item)
        return id_ is not None and not self._refusal(item, id_)

    def _validated(self, item: Object, now: int) -> Validated[ScalableNodeGroup]:
        return validated(item, ScalableNodeGroup, now=now, default_zone=self.context.default_zone)

    def _refusal(self, item: Object, id_: str) -> str:
        return self._grants.refusal(item["metadata"]["namespace"], GrantedResource.NODE_GROUP, id_) or ""

    def _others(self, item: Object) -> Iterator[Object]:
        """Return the objects whose ids may name the group of one."""
        store = self.context.store(_GROUPS)
        for value in group_index(item):
            yield from store.by(BY_GROUP, value)

    def _enqueue_younger(self, delta: Delta[Object]) -> None:
        """Enqueue the younger objects of a group when an older one comes, goes or changes its spec."""
        if delta.old is not None and delta.new is not None and _owner_fields(delta.old) == _owner_fields(delta.new):
            return
        for item in (delta.old, delta.new):
            # An object without a Grant owns no group; a change of a Grant enqueues all objects.
            if item is not None and self._is_granted(item):
                for other in younger_objects(item, self._others(item)):
                    self.context.enqueue(key_of(other))

    def _enqueue_all(self, _: None) -> None:
        for key in self.context.store(_GROUPS).keys():  # noqa: SIM118 - a store is no dictionary
            self.context.enqueue(key)


def _owner_fields(item: Object) -> tuple[object, ...]:
    """Return the fields that decide which object owns a group."""
    metadata = item["metadata"]
    return metadata.get("uid"), metadata.get("deletionTimestamp"), metadata.get("annotations"), item.get("spec")
