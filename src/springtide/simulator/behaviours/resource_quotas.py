"""The quota controller: the status of ResourceQuotas.

The status is informational: at admission the API server computes usage from the objects that exist at that moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from springtide.apis.meta.times import parse_instant
from springtide.apiserver.quota import ResourceUsage, quota_covers, total_usage, usage
from springtide.cluster.controller import Controller, Permission, Result, Watch
from springtide.cluster.resources import PODS, Key, Object, Resource
from springtide.quantity import Quantity
from springtide.simulator.behaviours import pod_status as state
from springtide.simulator.behaviours.ownership import write_status
from springtide.simulator.behaviours.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    IN_NAMESPACE,
    JOBS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    grouped,
    replacing,
    to_namespace,
)

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
_ALL_QUOTAS = grouped(QUOTAS)
_COUNTED = tuple(
    grouped(resource)
    for resource in (
        PODS,
        Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
        Resource("", "v1", "services", "Service"),
        Resource("", "v1", "configmaps", "ConfigMap"),
        Resource("", "v1", "secrets", "Secret"),
        REPLICATION_CONTROLLERS,
        DAEMON_SETS,
        DEPLOYMENTS,
        REPLICA_SETS,
        STATEFUL_SETS,
        JOBS,
        Resource("batch", "v1", "cronjobs", "CronJob"),
    )
)
"""The kinds whose usage is shown; quotas on other kinds are enforced, and shown as unused."""
_NOTHING = Quantity.parse(0)


def decide(quota: Object, objects: Mapping[Resource, Sequence[Object]], now: int) -> dict[str, Any]:
    """Compute the status of a quota from the objects of its namespace."""
    hard: dict[str, Any] = quota["spec"].get("hard") or {}
    used: ResourceUsage = total_usage(
        usage(resource, item, now)
        for resource, items in objects.items()
        for item in items
        if quota_covers(quota, resource, item)
    )
    status = quota.get("status") or {}
    return {
        "hard": replacing(status.get("hard"), hard),
        "used": replacing(status.get("used"), {name: str(used.get(name, _NOTHING)) for name in hard}),
    }


def release_of(pods: Sequence[Object], now: int) -> int | None:
    """Return when the next pod stops counting without being deleted, because its node may be lost."""
    ends = [
        parse_instant(pod["metadata"]["deletionTimestamp"])
        + int(pod["metadata"].get("deletionGracePeriodSeconds", 0))
        + 1
        for pod in pods
        if state.is_terminating(pod) and not state.is_finished(pod)
    ]
    return min((end for end in ends if end > now), default=None)


class ResourceQuotas(Controller):
    """The quota controller; one key covers all quotas of a namespace."""

    name = "resourcequota"
    watches = (Watch(_ALL_QUOTAS, to_namespace), *(Watch(cached, to_namespace) for cached in _COUNTED))
    permissions = (
        Permission(QUOTAS, ("get", "list", "watch")),
        Permission(QUOTAS, ("patch",), "status"),
        *(Permission(cached.selection.resource, ("get", "list", "watch")) for cached in _COUNTED),
    )

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Update the status of all quotas of a namespace."""
        quotas = self.context.store(_ALL_QUOTAS).by(IN_NAMESPACE, key.namespace)
        if not quotas:
            return None
        objects: dict[Resource, Sequence[Object]] = {
            cached.selection.resource: self.context.store(cached).by(IN_NAMESPACE, key.namespace) for cached in _COUNTED
        }
        objects[QUOTAS] = quotas
        for quota in quotas:
            status = decide(quota, objects, now)
            await write_status(self.context, QUOTAS, quota, status, because="what the namespace uses has changed")
        release = release_of(objects[PODS], now)
        return None if release is None else Result(requeue_at=release)
