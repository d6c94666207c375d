"""The disruption controller: the status of PodDisruptionBudgets.

It follows the disruption controller of Kubernetes. `disruptionsAllowed` that evictions consumed is returned when the
pods are replaced, or after two minutes if they were not deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.apis.meta.times import parse_instant
from springtide.cluster.controller import Controller, Permission, Result, Watch, cache_only
from springtide.cluster.errors import MethodNotAllowed, NotFound
from springtide.cluster.events import normal, warning
from springtide.cluster.kinds import DEFINITIONS
from springtide.cluster.resources import PODS, Key, Object, Resource
from springtide.simulator.behaviours import pod_status as state
from springtide.simulator.behaviours.ownership import scaled_count, write_status
from springtide.simulator.behaviours.pod_status import with_conditions
from springtide.simulator.behaviours.resources import (
    DEPLOYMENTS,
    IN_NAMESPACE,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    controller_of,
    grouped,
    replacing,
    resource_of,
    selects,
    to_namespace,
)

BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")

DELETION_PATIENCE = 120
"""Seconds after which an evicted pod that still exists counts as healthy again."""

_ALL_BUDGETS = grouped(BUDGETS)
_PODS_BY_NAMESPACE = grouped(PODS)
_WORKLOADS = {
    resource.kind: grouped(resource) for resource in (DEPLOYMENTS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS)
}


class NoScale(Exception):
    """The expected number of pods cannot be determined."""


@dataclass(frozen=True, slots=True)
class BudgetState:
    """The status of a budget, and when it changes."""

    status: dict[str, Any]
    again: int | None = None
    """When the status changes without a change of a pod."""
    overdue: tuple[str, ...] = ()
    """Evicted pods that were not deleted in time."""


def decide(budget: Object, pods: Sequence[Object], scales: Mapping[str, int], now: int) -> BudgetState:
    """Compute the status of a budget from the pods that it selects and the scales of their controllers, by uid."""
    expected, wanted = _expectation(budget["spec"], pods, scales)
    evicted = (budget.get("status") or {}).get("disruptedPods") or {}
    pending, overdue = _still_pending(pods, evicted, now)
    healthy = sum(_counts_as_healthy(pod, pending, now) for pod in pods)
    allowed = max(0, healthy - wanted) if expected > 0 else 0
    status = {
        "currentHealthy": healthy,
        "desiredHealthy": wanted,
        "expectedPods": expected,
        "disruptionsAllowed": allowed,
        "disruptedPods": replacing(evicted, pending),
        "observedGeneration": budget["metadata"].get("generation"),
        "conditions": _conditions(
            budget, "SufficientPods" if allowed else "InsufficientPods", "", budget["metadata"].get("generation"), now
        ),
    }
    # A pod is listed until its deadline, and removed right after.
    again = min((parse_instant(at) for at in pending.values()), default=None)
    return BudgetState(status, None if again is None else again + DELETION_PATIENCE + 1, overdue)


def failed(budget: Object, why: str, now: int) -> BudgetState:
    """Return the status of a budget that cannot be computed: no disruption is allowed."""
    observed = (budget.get("status") or {}).get("observedGeneration", 0)
    return BudgetState(
        {"disruptionsAllowed": 0, "conditions": _conditions(budget, "SyncFailed", why, observed, now)},
    )


def _expectation(spec: Object, pods: Sequence[Object], scales: Mapping[str, int]) -> tuple[int, int]:
    """Return the expected number of pods, and how many must be healthy."""
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if most is not None:
        expected = _expected_scale(pods, scales)
        return expected, max(0, expected - scaled_count(most, expected, up=True))
    if isinstance(least, int):
        return len(pods), least
    if least is not None:
        expected = _expected_scale(pods, scales)
        return expected, scaled_count(least, expected, up=True)
    return 0, 0


def _expected_scale(pods: Sequence[Object], scales: Mapping[str, int]) -> int:
    """Sum the scales of the controllers of the pods, each once."""
    owners: dict[str, int] = {}
    for pod in pods:
        owner = controller_of(pod)
        if owner is None:
            continue
        if owner["uid"] not in scales:
            raise NoScale(f'found no controllers for pod "{pod["metadata"]["name"]}"')
        owners[owner["uid"]] = scales[owner["uid"]]
    return sum(owners.values())


def _still_pending(
    pods: Sequence[Object], evicted: Mapping[str, str], now: int
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return evicted pods that wait for deletion, and overdue ones."""
    pending, overdue = {}, []
    for pod in pods:
        name = pod["metadata"]["name"]
        if state.is_terminating(pod) or name not in evicted:
            continue
        if parse_instant(evicted[name]) + DELETION_PATIENCE < now:
            overdue.append(name)
        else:
            pending[name] = evicted[name]
    return pending, tuple(overdue)


def _counts_as_healthy(pod: Object, pending: Mapping[str, str], now: int) -> bool:
    evicted_at = pending.get(pod["metadata"]["name"])
    expected_to_go = evicted_at is not None and parse_instant(evicted_at) + DELETION_PATIENCE > now
    return not state.is_terminating(pod) and not expected_to_go and state.is_ready(pod)


def _conditions(budget: Object, reason: str, message: str, generation: int | None, now: int) -> list[Object]:
    allowed: Object = {
        "type": "DisruptionAllowed",
        "status": "True" if reason == "SufficientPods" else "False",
        "reason": reason,
        "message": message,
    }
    if generation is not None:
        allowed["observedGeneration"] = generation
    return with_conditions((budget.get("status") or {}).get("conditions"), [allowed], format_instant(now))


def _message(status: Object) -> str:
    healthy, desired, expected = (
        status.get(name) or 0 for name in ("currentHealthy", "desiredHealthy", "expectedPods")
    )
    return f"{healthy} of {expected} pods are healthy, and {desired} must be"


class DisruptionBudgets(Controller):
    """The disruption controller; one key covers all budgets of a namespace."""

    name = "disruption"
    watches = (
        Watch(_ALL_BUDGETS, to_namespace),
        Watch(_PODS_BY_NAMESPACE, to_namespace),
        *(Watch(cached, to_namespace) for cached in _WORKLOADS.values()),
        Watch(DEFINITIONS, cache_only),
    )
    permissions = (
        Permission(BUDGETS, ("get", "list", "watch")),
        Permission(BUDGETS, ("patch",), "status"),
        Permission(PODS, ("get", "list", "watch")),
        *(Permission(cached.selection.resource, ("get", "list", "watch")) for cached in _WORKLOADS.values()),
        Permission(DEFINITIONS.selection.resource, ("get", "list", "watch")),
    )

    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Update the status of all budgets of a namespace."""
        budgets = self.context.store(_ALL_BUDGETS).by(IN_NAMESPACE, key.namespace)
        if not budgets:
            return None
        all_pods = self.context.store(_PODS_BY_NAMESPACE).by(IN_NAMESPACE, key.namespace)
        due = []
        for budget in budgets:
            standing = await self._settle(budget, all_pods, now)
            if standing.again is not None:
                due.append(standing.again)
        return Result(requeue_at=min(due)) if due else None

    async def _settle(self, budget: Object, all_pods: Sequence[Object], now: int) -> BudgetState:
        selector = budget["spec"].get("selector")
        pods = [pod for pod in all_pods if selects(selector, pod["metadata"].get("labels") or {})]
        try:
            standing = decide(budget, pods, await self._scales(budget["spec"], pods), now)
        except NoScale as failure:
            standing = failed(budget, str(failure), now)
            notice = f"Failed to calculate the number of expected pods: {failure}"
            self.context.events.record(BUDGETS, budget, warning("CalculateExpectedPodCountFailed", notice))
        if not pods:
            self.context.events.record(BUDGETS, budget, normal("NoPods", "No matching pods found"))
        namespace = budget["metadata"]["namespace"]
        for name in standing.overdue:
            told = f"Pod was expected by PDB {namespace}/{budget['metadata']['name']} to be deleted but it wasn't"
            self.context.events.record(PODS, Key(namespace, name), warning("NotDeleted", told))
        await write_status(self.context, BUDGETS, budget, standing.status, because=_message(standing.status))
        return standing

    async def _scales(self, spec: Object, pods: Sequence[Object]) -> dict[str, int]:
        """Return the scale of each controller of the pods, by uid."""
        scales: dict[str, int] = {}
        if spec.get("maxUnavailable") is None and not isinstance(spec.get("minAvailable"), str):
            return scales
        for pod in pods:
            owner = controller_of(pod)
            if owner is not None and owner["uid"] not in scales:
                found = await self._scale_of(pod["metadata"]["namespace"], owner)
                if found is not None:
                    scales[owner["uid"]] = found
        return scales

    async def _scale_of(self, namespace: str, owner: Object) -> int | None:
        cached = _WORKLOADS.get(owner["kind"])
        if cached is None:
            return await self._foreign_scale(namespace, owner)
        workload = self.context.store(cached).get(Key(namespace, owner["name"]))
        if workload is None or workload["metadata"]["uid"] != owner["uid"]:
            return None
        above = controller_of(workload)
        if owner["kind"] == REPLICA_SETS.kind and above is not None and above["kind"] == DEPLOYMENTS.kind:
            return await self._scale_of(namespace, above)
        return int(workload["spec"].get("replicas", 1))

    async def _foreign_scale(self, namespace: str, owner: Object) -> int | None:
        """Read the scale subresource of a controller of another kind."""
        resource = resource_of(self.context, owner)
        if resource is None:
            raise NoScale(f'no matches for kind "{owner["kind"]}" in version "{owner["apiVersion"]}"')
        try:
            scale = await self.context.client.get(resource, Key(namespace, owner["name"]), subresource="scale")
        except (MethodNotAllowed, NotFound) as failure:
            raise NoScale(f"{resource} does not implement the scale subresource") from failure
        return int((scale.get("spec") or {}).get("replicas", 0))
