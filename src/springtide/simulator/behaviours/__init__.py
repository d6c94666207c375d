"""What Kubernetes itself does in a simulated cluster: kubelets, scheduler, workload controllers, autoscaler.

They are controllers on the same runtime and port as ours, and so they run beside a real control plane too: leave out
the groups whose work it does.
"""

from __future__ import annotations

from collections.abc import Sequence

from springtide.cluster.controller import Controller
from springtide.simulator.behaviours.autoscaling import HorizontalPodAutoscalers, Metrics
from springtide.simulator.behaviours.daemon_sets import DaemonSets
from springtide.simulator.behaviours.deployments import Deployments
from springtide.simulator.behaviours.disruption_budgets import DisruptionBudgets
from springtide.simulator.behaviours.jobs import Jobs
from springtide.simulator.behaviours.kubelet import Kubelets, is_lost, node_found_patch, node_lost_patch
from springtide.simulator.behaviours.node_lifecycle import NodeLifecycle, PodGarbage, TaintEviction
from springtide.simulator.behaviours.replica_sets import ReplicaSets, ReplicationControllers
from springtide.simulator.behaviours.resource_quotas import ResourceQuotas
from springtide.simulator.behaviours.scheduler import Scheduler
from springtide.simulator.behaviours.settings import DEFAULT, BehaviourSettings, Delay
from springtide.simulator.behaviours.stateful_sets import StatefulSets

__all__ = [
    "ALL",
    "DEFAULT",
    "NODES",
    "POLICIES",
    "SCHEDULING",
    "WORKLOADS",
    "BehaviourSettings",
    "Delay",
    "configured",
    "is_lost",
    "measuring",
    "node_found_patch",
    "node_lost_patch",
]


NODES: tuple[type[Controller], ...] = (Kubelets, NodeLifecycle, TaintEviction, PodGarbage)
"""Kubelets, and the controllers that handle lost nodes."""
SCHEDULING: tuple[type[Controller], ...] = (Scheduler,)
"""The scheduler."""
WORKLOADS: tuple[type[Controller], ...] = (
    Deployments,
    ReplicaSets,
    ReplicationControllers,
    StatefulSets,
    DaemonSets,
    Jobs,
)
"""Workload controllers, which create pods."""
POLICIES: tuple[type[Controller], ...] = (DisruptionBudgets, ResourceQuotas, HorizontalPodAutoscalers)
"""The status of disruption budgets and quotas, and the HorizontalPodAutoscaler."""
ALL: tuple[type[Controller], ...] = (*NODES, *SCHEDULING, *WORKLOADS, *POLICIES)


def configured(
    settings: BehaviourSettings, behaviours: Sequence[type[Controller]] = ALL
) -> tuple[type[Controller], ...]:
    """Return the behaviours with other settings."""
    return tuple(type(one.__name__, (one,), {"settings": settings}) for one in behaviours)


def measuring(metrics: Metrics, behaviours: Sequence[type[Controller]] = ALL) -> tuple[type[Controller], ...]:
    """Return the behaviours, with autoscalers that read these metrics."""
    return tuple(
        type(one.__name__, (one,), {"metrics": metrics}) if one is HorizontalPodAutoscalers else one
        for one in behaviours
    )
