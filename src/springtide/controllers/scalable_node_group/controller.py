"""The ScalableNodeGroup controller: asks providers for nodes, and shows what has become of it.

What it knows of a provider it learns by asking, every minute, and more often while something is under way. A change of
the object, of grants or of a rival is looked at at once; its own writes are not, so that no provider is asked for
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from springtide.apis.scheduled.node_group import ScalableNodeGroup, ScalableNodeGroupSpec
from springtide.apis.springtide.grants import GrantedResource
from springtide.cluster import kinds
from springtide.cluster.client import Mode
from springtide.cluster.conditions import ConditionStatus
from springtide.cluster.context import ControllerContext
from springtide.cluster.controller import Cached, Controller, Permission, Result, Watch, cache_only
from springtide.cluster.events import normal, warning
from springtide.cluster.kinds import DEFINITIONS, KindRegistry
from springtide.cluster.resources import Key, Object, Resource, Selection, key_of
from springtide.cluster.store import Delta
from springtide.controllers import grants as trust
from springtide.controllers.grants import ALL_GRANTS, grant_refusal
from springtide.controllers.scalable_node_group.conflicts import (
    BY_GROUP,
    group_index,
    id_of,
    owner_of_group,
    younger_objects,
)
from springtide.controllers.scalable_node_group.decide import (
    GroupRequest,
    NodeGroupDecision,
    decide_failed,
    decide_not_asked,
    decide_observed,
    replicas_to_request,
)
from springtide.controllers.validated import Validated, validated
from springtide.providers import GroupState, NodeGroup, ProviderError, Providers, cluster_api
from springtide.providers.aws import eks
from springtide.providers.port import nodes_text

SCALABLE_NODE_GROUPS = Resource("autoscaling.karpenter.sh", "v1alpha1", "scalablenodegroups", "ScalableNodeGroup")

_GROUPS = Cached(Selection(SCALABLE_NODE_GROUPS), indexes={BY_GROUP: group_index})


@dataclass(frozen=True, slots=True)
class _LastVisit:
    """When the provider of an object was last asked, on what standing, and how that went."""

    standing: GroupRequest
    rests_until: float
    """By the monotonic clock; before it, only another standing is a reason to ask again."""
    failures: int


class ScalableNodeGroupController(Controller):
    """Keeps groups of nodes as large as their objects say."""

    name = "scalable-node-group"
    watches = (Watch(_GROUPS), Watch(ALL_GRANTS, cache_only, optional=True), Watch(DEFINITIONS, cache_only))
    permissions = (
        Permission(SCALABLE_NODE_GROUPS, ("get", "list", "watch")),
        Permission(SCALABLE_NODE_GROUPS, ("patch",), subresource="status"),
        *trust.PERMISSIONS,
        *kinds.PERMISSIONS,
        *cluster_api.PERMISSIONS,
        *eks.PERMISSIONS,
    )
    workers = 8
    """Providers take their time."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._providers = context.services.get(Providers)
        self._visits: dict[Key, _LastVisit] = {}
        # Not told of those that are there already: in the beginning all are looked at.
        context.on_release(context.store(_GROUPS).listen(self._wake_rivals))
        context.follow(ALL_GRANTS, self._wake_everybody)

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Look at the group of one object, ask for more or fewer nodes where that is its wish, and show it."""
        item = self.context.store(_GROUPS).get(key)
        if item is None or item["metadata"].get("deletionTimestamp"):
            self._visits.pop(key, None)
            return None
        standing = self._standing(item, now)
        before = self._visits.get(key)
        present = self.context.clock.monotonic()
        if before is not None and before.standing == standing and present < before.rests_until:
            return Result(requeue_after=before.rests_until - present)
        failures = before.failures if before is not None and before.standing == standing else 0
        report, selector, failures = await self._visit(item, standing, failures)
        await self._show(item, report, selector, now)
        if report.again is None:
            self._visits.pop(key, None)
            return None
        # Only now: where the status could not be written, all is done again.
        self._visits[key] = _LastVisit(standing, self.context.clock.monotonic() + report.again, failures)
        return Result(requeue_after=report.again)

    def _standing(self, item: Object, now: int) -> GroupRequest:
        verdict = self._judged(item, now)
        refusal = self._refusal(item, verdict.sound.spec.id) if verdict.sound is not None else ""
        may = verdict.sound is not None and not refusal
        return GroupRequest(
            uid=item["metadata"]["uid"],
            spec=verdict.sound.spec if verdict.sound is not None else None,
            errors=verdict.words,
            refusal=refusal,
            ruler=owner_of_group(item, self.context.store(_GROUPS), lambda other: self._may_scale(other, now))
            if may
            else None,
        )

    def _may_scale(self, item: Object, now: int) -> bool:
        # Grants come first: of objects that none covers there may be any number, and to judge one takes long.
        going = bool(item["metadata"].get("deletionTimestamp"))
        return self._is_granted(item) and not going and self._judged(item, now).sound is not None

    def _is_granted(self, item: Object) -> bool:
        id_ = id_of(item)
        return id_ is not None and not self._refusal(item, id_)

    def _judged(self, item: Object, now: int) -> Validated[ScalableNodeGroup]:
        return validated(item, ScalableNodeGroup, now=now, default_zone=self.context.default_zone)

    def _refusal(self, item: Object, id_: str) -> str:
        return grant_refusal(self.context, item["metadata"]["namespace"], GrantedResource.NODE_GROUP, id_) or ""

    async def _visit(
        self, item: Object, standing: GroupRequest, failures: int
    ) -> tuple[NodeGroupDecision, str | None, int]:
        """Ask the provider what there is, and for what there should be; count the failures in a row."""
        spec = standing.spec
        if spec is None or not standing.may_ask:
            return decide_not_asked(standing), None, 0
        selector: str | None = None
        state: GroupState | None = None
        try:
            group = self._group(spec)
            selector = group.selector or None
            state = await group.observe()
            ordered = replicas_to_request(standing, state)
            if ordered is not None:
                await self._order(group, item, state, ordered)
        except ProviderError as failure:
            return decide_failed(standing, failure, state, failures + 1), selector, failures + 1
        return decide_observed(standing, state, ordered), selector, 0

    def _group(self, spec: ScalableNodeGroupSpec) -> NodeGroup:
        return self._providers.of(spec.type).group(spec.type, spec.id, self.context.client)

    async def _order(self, group: NodeGroup, item: Object, state: GroupState, ordered: int) -> None:
        change = f"{nodes_text(ordered)} instead of {state.wanted}"
        name = item["metadata"]["name"]
        await group.resize(ordered, because=f"the ScalableNodeGroup {name} is to have {change}")
        if self.context.client.mode is Mode.OBSERVE:
            notice = normal("WouldScale", f"would have asked the provider for {change}")
        else:
            notice = normal("Scaled", f"asked the provider for {change}")
        self.context.events.record(SCALABLE_NODE_GROUPS, item, notice)

    async def _show(self, item: Object, report: NodeGroupDecision, selector: str | None, now: int) -> None:
        """Write the status, and tell people of what is wrong when it begins to be."""
        status = item.get("status") or {}
        fields = {
            "replicas": report.replicas if report.replicas is not None or report.gone else status.get("replicas"),
            "selector": selector,
        }
        changed = await self.context.client.apply_status(
            SCALABLE_NODE_GROUPS,
            KindRegistry(self.context.store(DEFINITIONS)).declared(SCALABLE_NODE_GROUPS, fields),
            report.conditions,
            of=item,
            now=now,
            because=report.able.message,
            observes_generation=False,
        )
        if changed and report.able.status is ConditionStatus.FALSE:
            self.context.events.record(SCALABLE_NODE_GROUPS, item, warning(report.able.reason, report.able.message))

    def _wake_rivals(self, delta: Delta[Object]) -> None:
        """Let those look again who make way, or made way, for an object that comes, goes or wants something else."""
        if delta.old is not None and delta.new is not None and _owner_fields(delta.old) == _owner_fields(delta.new):
            return
        store = self.context.store(_GROUPS)
        for item in (delta.old, delta.new):
            # Who has no grant stands in nobody's way; of a change of grants all are told.
            if item is not None and self._is_granted(item):
                for other in younger_objects(item, store):
                    self.context.enqueue(key_of(other))

    def _wake_everybody(self, delta: Delta[object]) -> None:  # noqa: ARG002 - any change of a grant may concern anybody
        for key in self.context.store(_GROUPS).keys():  # noqa: SIM118 - a store is no dictionary
            self.context.enqueue(key)


def _owner_fields(item: Object) -> tuple[object, ...]:
    """Give what decides whether an object stands in the way of others: not what it shows."""
    metadata = item["metadata"]
    return metadata.get("uid"), metadata.get("deletionTimestamp"), metadata.get("annotations"), item.get("spec")
