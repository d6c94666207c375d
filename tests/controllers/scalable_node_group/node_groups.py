"""Node groups for tests: objects, a cloud outside the cluster that does as it is told, and processes that reach it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from springtide.cluster.client import Client
from springtide.cluster.context import Services
from springtide.cluster.resources import Object
from springtide.controllers.grant.state import GrantPolicy
from springtide.providers import GroupState, NodeGroup, Provider, ProviderError, Providers
from springtide.providers.simulated import SimulatedProvider
from springtide.simulator.processes import ProcessRun
from springtide.simulator.scenario import Outcome

EVERYTHING = GrantPolicy(everything=True)
TYPE = "AWSEC2AutoScalingGroup"


def node_group(
    name: str = "workers",
    replicas: int | None = None,
    *,
    type_: str = TYPE,
    id_: str = "pool",
    namespace: str = "default",
) -> Object:
    """A ScalableNodeGroup."""
    spec: Object = {"type": type_, "id": id_}
    return {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "ScalableNodeGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec if replicas is None else spec | {"replicas": replicas},
    }


def grant(name: str, namespace: str, *groups: str) -> Object:
    """A Grant of node groups."""
    return {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Grant",
        "metadata": {"name": name},
        "spec": {"namespaces": [namespace], "nodeGroups": list(groups)},
    }


@dataclass(slots=True)
class Pool:
    """A group in the cloud."""

    wanted: int = 0
    ready: int | None = None
    """None: all that are wanted."""
    busy: str = ""


@dataclass(slots=True)
class Cloud:
    """A provider's side: pools, what was asked of them, and how the next calls fail."""

    pools: dict[str, Pool] = field(default_factory=lambda: {"pool": Pool()})
    orders: list[tuple[str, int]] = field(default_factory=list)
    looks: int = 0
    failing_looks: list[ProviderError] = field(default_factory=list)
    failing_orders: list[ProviderError] = field(default_factory=list)


class CloudProvider(Provider):
    """Reaches the cloud as AWS is reached: outside the cluster, with a permit."""

    types = (TYPE,)

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def group(self, type_: str, id_: str, client: Client) -> NodeGroup:
        return _CloudGroup(self._cloud, id_, client)


class _CloudGroup(NodeGroup):
    def __init__(self, cloud: Cloud, id_: str, client: Client) -> None:
        self._cloud = cloud
        self._id = id_
        self._client = client

    async def observe(self) -> GroupState:
        self._cloud.looks += 1
        if self._cloud.failing_looks:
            raise self._cloud.failing_looks.pop(0)
        pool = self._pool()
        ready = pool.wanted if pool.ready is None else pool.ready
        return GroupState(ready, pool.wanted, stable=not pool.busy and ready == pool.wanted, message=pool.busy)

    async def resize(self, replicas: int, *, because: str) -> None:
        pool = self._pool()
        if self._client.withholds(f"resize {self._id}", because=because):
            return
        self._client.permit()
        if self._cloud.failing_orders:
            raise self._cloud.failing_orders.pop(0)
        self._cloud.orders.append((self._id, replicas))
        pool.wanted = replicas

    def _pool(self) -> Pool:
        if self._id not in self._cloud.pools:
            raise ProviderError("GroupNotFound", f"there is no {self._id}", retryable=False)
        return self._cloud.pools[self._id]


def offering(cloud: Cloud, trust: GrantPolicy = EVERYTHING) -> Callable[[ProcessRun], Services]:
    """Return each process the cloud, and simulated groups."""
    return lambda incarnation: Services(Providers([CloudProvider(cloud), SimulatedProvider()]), trust)


def status_of(outcome: Outcome, name: str = "workers", namespace: str = "default") -> dict[str, Any]:
    """Return the status of a group, with conditions as `type: (status, reason)`."""
    status = dict(outcome.object("ScalableNodeGroup", name, namespace=namespace).get("status") or {})
    conditions = status.pop("conditions", ())
    return status | {entry["type"]: (entry["status"], entry["reason"]) for entry in conditions}


def message_of(outcome: Outcome, condition: str, name: str = "workers", namespace: str = "default") -> str:
    """Return the words of a condition."""
    conditions = outcome.object("ScalableNodeGroup", name, namespace=namespace)["status"]["conditions"]
    return str(next(entry["message"] for entry in conditions if entry["type"] == condition))


def events_of(outcome: Outcome) -> list[tuple[str, str, str, int]]:
    """List events: type, reason, words, how often."""
    return [(one["type"], one["reason"], one["message"], one["count"]) for one in outcome.objects("Event")]
