"""The ScalableNodeGroup controller: observes node groups at providers, and asks for more or fewer nodes.

It polls providers every minute, and more often while a group has not stabilized. A change of the object, of a Grant or
of another object for the same group is acted on at once; the controller's own status writes cause no call.
"""

from __future__ import annotations

from dataclasses import dataclass

from springtide.cluster import kinds
from springtide.cluster.client import Mode
from springtide.cluster.conditions import ConditionStatus
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Controller, Permission, Result, Watch
from springtide.cluster.events import normal
from springtide.cluster.kinds import KindRegistry
from springtide.cluster.resources import Key, Object
from springtide.controllers.decision import Decision, warning_for
from springtide.controllers.grant import state as grants
from springtide.controllers.grant.state import Grants
from springtide.controllers.scalable_node_group.decide import GroupRequest, ResizeGroup, decide
from springtide.controllers.scalable_node_group.requests import ALL_NODE_GROUPS, SCALABLE_NODE_GROUPS, GroupRequests
from springtide.providers import ProviderError, Providers, cluster_api
from springtide.providers.aws import eks


@dataclass(frozen=True, slots=True)
class _LastRun:
    """The last call of the provider for an object."""

    request: GroupRequest
    idle_until: float
    """On the monotonic clock; before it, only another request is a reason to call again."""
    failures: int


class ScalableNodeGroupController(Controller):
    """Keeps groups of nodes at the replicas of their objects."""

    name = "scalable-node-group"
    watches = (Watch(ALL_NODE_GROUPS),)
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
        self._registry = context.state(KindRegistry)
        self._requests = GroupRequests(context)
        self._last_runs: dict[Key, _LastRun] = {}

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Observe the group of one object, resize it where `replicas` differs, and write the status."""
        item = self.context.store(ALL_NODE_GROUPS).get(key)
        if item is None or item["metadata"].get("deletionTimestamp"):
            self._last_runs.pop(key, None)
            return None
        request = self._requests.of(item, now)
        last = self._last_runs.get(key)
        present = self.context.clock.monotonic()
        if last is not None and last.request == request and present < last.idle_until:
            return Result(requeue_after=last.idle_until - present)
        failures = last.failures if last is not None and last.request == request else 0
        decision, selector, failures = await self._observe_and_resize(item, request, failures, now)
        await self._write(item, decision, selector, now)
        if decision.requeue_at is None:
            self._last_runs.pop(key, None)
            return None
        # Remembered only now: if the status could not be written, the next try calls the provider again.
        pause = decision.requeue_at - now
        self._last_runs[key] = _LastRun(request, self.context.clock.monotonic() + pause, failures)
        return Result(requeue_after=pause)

    async def _observe_and_resize(
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
                await group.resize(action.nodes, because=f"the ScalableNodeGroup {name} goes {action.step}")
            except ProviderError as failure:
                failures += 1
                decision = decide(request, state, now=now, failures=failures, resize_failure=failure)
                return decision, selector, failures
            self._record_resize(item, action)
        return decision, selector, 0

    def _record_resize(self, item: Object, action: ResizeGroup) -> None:
        if self.context.client.mode is Mode.OBSERVE:
            event = normal("WouldScale", f"would scale the group {action.step}")
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
