"""The Deployment controller: one ReplicaSet for each template, and rollouts from old ones to the newest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from springtide.cluster.controller import Controller, Permission, Result, Watch
from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import Patch
from springtide.quantity import whole_number
from springtide.simulator.behaviours import deployment_rollout as rollout
from springtide.simulator.behaviours.deployment_rollout import (
    DESIRED,
    MOST,
    ReplicaSetSizes,
    RolloutBounds,
    gives_up_at,
    size,
    status_count,
    status_of,
)
from springtide.simulator.behaviours.ownership import claim, create_once, owner_reference, template_hash, write_status
from springtide.simulator.behaviours.pod_status import created_at, is_terminating
from springtide.simulator.behaviours.resources import DEPLOYMENTS, REPLICA_SETS, owned, to_controller

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_OWN_ANNOTATIONS = (REVISION, DESIRED, MOST, "kubectl.kubernetes.io/last-applied-configuration")


@dataclass(frozen=True, slots=True)
class DeploymentPlan:
    """The ReplicaSets to create, resize and delete, and the status."""

    create: Object | None
    resize: ReplicaSetSizes
    delete: tuple[Object, ...]
    revision: int
    """Of the newest template."""
    status: dict[str, Any]


def decide(deployment: Object, replica_sets: Sequence[Object], now: int) -> DeploymentPlan:
    """Return the next step of a rollout."""
    limits = rollout.bounds(deployment)
    ordered = sorted(replica_sets, key=lambda item: (created_at(item), item["metadata"]["name"]))
    new = _newest(deployment, ordered)
    olds = [item for item in ordered if item is not new]
    # Ordered from the oldest to the newest.
    status = status_of(deployment, limits, new, [*olds, *([new] if new is not None else [])], now)
    revision = _revision(new, olds)
    if is_terminating(deployment):
        return DeploymentPlan(None, [], (), revision, status)
    if deployment["spec"].get("paused") or rollout.was_scaled(limits, ordered):
        return DeploymentPlan(None, rollout.scaled_sizes(limits, new, olds), (), revision, status)
    if new is None:
        return _begin(deployment, limits, olds, revision, status)
    resize = rollout.next_sizes(limits, new, olds)
    done = not resize and not any(map(size, olds)) and status_count(new, "availableReplicas") == limits.wanted
    return DeploymentPlan(None, resize, _expired_replica_sets(deployment, olds) if done else (), revision, status)


def _begin(
    deployment: Object, limits: RolloutBounds, olds: Sequence[Object], revision: int, status: dict[str, Any]
) -> DeploymentPlan:
    """Create the ReplicaSet of a new template; with Recreate only after all old pods are gone."""
    if limits.recreate:
        shrink = [(old, 0) for old in olds if size(old)]
        if shrink or any(status_count(old, "replicas") or status_count(old, "terminatingReplicas") for old in olds):
            return DeploymentPlan(None, shrink, (), revision, status)
    return DeploymentPlan(_replica_set(deployment, limits, olds, revision), [], (), revision, status)


def _newest(deployment: Object, ordered: Sequence[Object]) -> Object | None:
    """Return the ReplicaSet of the current template."""
    template = _bare(deployment["spec"]["template"])
    return next((item for item in ordered if _bare(item["spec"]["template"]) == template), None)


def _bare(template: Object) -> Object:
    metadata = template.get("metadata") or {}
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _revision_of(item: Object) -> int:
    text = (item["metadata"].get("annotations") or {}).get(REVISION, "")
    return whole_number(text) or 0


def _revision(new: Object | None, olds: Sequence[Object]) -> int:
    """Return the revision of the current template: the highest, also after a rollback."""
    newest_old = max(map(_revision_of, olds), default=0)
    return max(newest_old + 1, _revision_of(new) if new is not None else 0)


def _expired_replica_sets(deployment: Object, olds: Sequence[Object]) -> tuple[Object, ...]:
    """List the ReplicaSets beyond revisionHistoryLimit, oldest revision first."""
    limit = deployment["spec"].get("revisionHistoryLimit", 10)
    idle = [old for old in olds if not is_terminating(old)]
    idle.sort(key=lambda item: (_revision_of(item), created_at(item), item["metadata"]["name"]))
    return tuple(
        old for old in idle[: max(0, len(idle) - int(limit))] if not status_count(old, "replicas") and not size(old)
    )


def _replica_set(deployment: Object, limits: RolloutBounds, olds: Sequence[Object], revision: int) -> Object:
    template, metadata = deployment["spec"]["template"], deployment["metadata"]
    mark = template_hash(template, int((deployment.get("status") or {}).get("collisionCount") or 0))
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH: mark}
    selector = deployment["spec"]["selector"]
    passed_on = {
        name: value for name, value in (metadata.get("annotations") or {}).items() if name not in _OWN_ANNOTATIONS
    }
    return {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "metadata": {
            "name": f"{metadata['name']}-{mark}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": {**passed_on, REVISION: str(revision), **_counts(limits)},
            "ownerReferences": [owner_reference(deployment, DEPLOYMENTS)],
        },
        "spec": {
            "replicas": rollout.first_size(limits, olds),
            "minReadySeconds": deployment["spec"].get("minReadySeconds", 0),
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH: mark}},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }


def _progress_message(status: Object, limits: RolloutBounds) -> str:
    """Describe the progress of a rollout."""
    progress = next((one for one in status.get("conditions") or () if one["type"] == "Progressing"), None)
    if progress is not None and progress["status"] == "False":
        return str(progress["message"])
    updated, available = status.get("updatedReplicas") or 0, status.get("availableReplicas") or 0
    return f"{updated} of {limits.wanted} pods are of the newest revision, {available} are available"


def _counts(limits: RolloutBounds) -> dict[str, str]:
    return {DESIRED: str(limits.wanted), MOST: str(limits.most)}


class Deployments(Controller):
    """The Deployment controller."""

    name = "deployment"
    watches = (Watch(owned(DEPLOYMENTS)), Watch(owned(REPLICA_SETS), to_controller("Deployment")))
    permissions = (
        Permission(DEPLOYMENTS, ("get", "list", "watch", "patch")),
        Permission(DEPLOYMENTS, ("patch",), "status"),
        Permission(REPLICA_SETS, ("get", "list", "watch", "create", "patch", "delete")),
    )
    workers = 4

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Take one step of the rollout, and write the status."""
        item = self.context.store(self.watches[0].cached).get(key)
        if item is None:
            return None
        replica_sets = await claim(
            self.context, DEPLOYMENTS, item, of=owned(REPLICA_SETS), selector=item["spec"].get("selector")
        )
        plan = decide(item, replica_sets, now)
        await self._act(item, plan)
        item = await self._number(item, _newest(item, replica_sets), plan.revision)
        await write_status(
            self.context, DEPLOYMENTS, item, plan.status, because=_progress_message(plan.status, rollout.bounds(item))
        )
        at = gives_up_at(item, plan.status)
        return None if at is None else Result(requeue_at=max(at, now + 1))

    async def _act(self, item: Object, plan: DeploymentPlan) -> None:
        name, limits = item["metadata"]["name"], rollout.bounds(item)
        if plan.create is not None:
            because = f"Deployment {name} has a new template, its revision {plan.revision}"
            await create_once(self.context, REPLICA_SETS, plan.create, because=because)
        for replica_set, wanted in plan.resize:
            await self._resize(replica_set, wanted, limits, f"Deployment {name} wants {limits.wanted} pods")
        for replica_set in plan.delete:
            because = f"Deployment {name} keeps {item['spec'].get('revisionHistoryLimit', 10)} old revisions"
            await self.context.client.delete(REPLICA_SETS, of=replica_set, because=because)

    async def _resize(self, replica_set: Object, wanted: int, limits: RolloutBounds, because: str) -> None:
        noted = replica_set["metadata"].get("annotations") or {}
        counts = _counts(limits)
        if size(replica_set) != wanted or any(noted.get(name) != count for name, count in counts.items()):
            change = {"metadata": {"annotations": counts}, "spec": {"replicas": wanted}}
            reason = f"{because}: {wanted} instead of {size(replica_set)} of this revision"
            await self.context.client.patch(REPLICA_SETS, Patch.merge(change), of=replica_set, because=reason)

    async def _number(self, item: Object, new: Object | None, revision: int) -> Object:
        """Write the revision annotation on the Deployment, and on a ReplicaSet that is used again."""
        if new is None:
            return item
        change = Patch.merge({"metadata": {"annotations": {REVISION: str(revision)}}})
        because = f"the template is revision {revision}"
        if _revision_of(new) != revision:
            await self.context.client.patch(REPLICA_SETS, change, of=new, because=because, exact=False)
        if _revision_of(item) != revision:
            # Through the status subresource, as Kubernetes does: otherwise the annotation increments the generation.
            return await self.context.client.patch(DEPLOYMENTS, change, of=item, because=because, subresource="status")
        return item
