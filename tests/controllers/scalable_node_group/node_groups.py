"""Harness for ScalableNodeGroup tests: objects, a fake cloud outside the cluster, and processes that can reach it."""

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
    """Build a ScalableNodeGroup."""
    spec: Object = {"type": type_, "id": id_}
    return {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "ScalableNodeGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec if replicas is None else spec | {"replicas": replicas},
    }


def grant(name: str, namespace: str, *groups: str) -> Object:
    """Build a Grant of node groups."""
    return {
        "apiVersion": "springtide.dev/v1alpha1",
        "kind": "Grant",
        "metadata": {"name": name},
        "spec": {"namespaces": [namespace], "nodeGroups": list(groups)},
    }


@dataclass(slots=True)
class FakePool:
    """A node group of the fake cloud."""

    wanted: int = 0
    ready: int | None = None
    """Number of ready nodes; None means all wanted nodes."""
    busy: str = ""


@dataclass(slots=True)
class FakeCloud:
    """The provider's side: pools, the resize requests that it received, and the errors of the next calls."""

    pools: dict[str, FakePool] = field(default_factory=lambda: {"pool": FakePool()})
    resizes: list[tuple[str, int]] = field(default_factory=list)
    observations: int = 0
    observe_errors: list[ProviderError] = field(default_factory=list)
    resize_errors: list[ProviderError] = field(default_factory=list)


class FakeProvider(Provider):
    """Provider of the fake cloud; it is outside the cluster and needs a permit of the leadership term, as AWS does."""

    types = (TYPE,)

    def __init__(self, cloud: FakeCloud) -> None:
        self._cloud = cloud

    def group(self, type_: str, id_: str, client: Client) -> NodeGroup:
        return _FakeNodeGroup(self._cloud, id_, client)


class _FakeNodeGroup(NodeGroup):
    def __init__(self, cloud: FakeCloud, id_: str, client: Client) -> None:
        self._cloud = cloud
        self._id = id_
        self._client = client

    async def observe(self) -> GroupState:
        self._cloud.observations += 1
        if self._cloud.observe_errors:
            raise self._cloud.observe_errors.pop(0)
        pool = self._find_pool()
        ready = pool.wanted if pool.ready is None else pool.ready
        return GroupState(ready, pool.wanted, stable=not pool.busy and ready == pool.wanted, message=pool.busy)

    async def resize(self, replicas: int, *, because: str) -> None:
        pool = self._find_pool()
        if self._client.withholds(f"resize {self._id}", because=because):
            return
        self._client.permit()
        if self._cloud.resize_errors:
            raise self._cloud.resize_errors.pop(0)
        self._cloud.resizes.append((self._id, replicas))
        pool.wanted = replicas

    def _find_pool(self) -> FakePool:
        if self._id not in self._cloud.pools:
            raise ProviderError("GroupNotFound", f"there is no {self._id}", retryable=False)
        return self._cloud.pools[self._id]


def services_for(cloud: FakeCloud, grants: GrantPolicy = EVERYTHING) -> Callable[[ProcessRun], Services]:
    """Return a function that gives each process the fake cloud and simulated groups as services."""
    return lambda incarnation: Services(Providers([FakeProvider(cloud), SimulatedProvider()]), grants)


def status_of(outcome: Outcome, name: str = "workers", namespace: str = "default") -> dict[str, Any]:
    """Return the status of a group, with conditions as `type: (status, reason)`."""
    status = dict(outcome.object("ScalableNodeGroup", name, namespace=namespace).get("status") or {})
    conditions = status.pop("conditions", ())
    return status | {entry["type"]: (entry["status"], entry["reason"]) for entry in conditions}


def message_of(outcome: Outcome, condition: str, name: str = "workers", namespace: str = "default") -> str:
    """Return the message of a condition."""
    conditions = outcome.object("ScalableNodeGroup", name, namespace=namespace)["status"]["conditions"]
    return str(next(entry["message"] for entry in conditions if entry["type"] == condition))


def events_of(outcome: Outcome) -> list[tuple[str, str, str, int]]:
    """List events: type, reason, message, count."""
    return [(one["type"], one["reason"], one["message"], one["count"]) for one in outcome.objects("Event")]
