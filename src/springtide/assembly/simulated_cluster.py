"""Simulated clusters with our controllers: the only place where the simulator and the controllers meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from springtide.apiserver.conversion import convert
from springtide.apiserver.server import ApiServer
from springtide.assembly.services import simulated_services
from springtide.cluster.context import Services
from springtide.cluster.controller import Controller
from springtide.controllers import CONTROLLERS
from springtide.metrics.external import SeriesMetrics
from springtide.metrics.series import SeriesStore
from springtide.simulator import behaviours
from springtide.simulator.bootstrap import install
from springtide.simulator.faults import Severity
from springtide.simulator.processes import ProcessRun
from springtide.simulator.scenario import Scenario
from springtide.simulator.trace import TraceEntry

_PASSIVE_KINDS = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "ControllerRevision",
        "CustomResourceDefinition",
        "Event",
        "Lease",
        "LimitRange",
        "MutatingWebhookConfiguration",
        "Namespace",
        "NetworkPolicy",
        "PersistentVolume",
        "PodTemplate",
        "PriorityClass",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "ServiceAccount",
        "StorageClass",
        "ValidatingWebhookConfiguration",
    }
)
"""Kinds that no controller acts on, in a real cluster either."""


def simulated_scenario(
    objects: Iterable[dict[str, Any]],
    *,
    start: str,
    faults: str,
    default_zone: str,
    listener: Callable[[TraceEntry], None],
) -> Scenario:
    """Create a scenario of these objects in a cluster with all behaviours of Kubernetes and all our controllers."""
    severity = Severity(faults)
    stores: list[SeriesStore] = []

    def services(incarnation: ProcessRun) -> Services:
        series = SeriesStore()
        stores.append(series)
        return simulated_services(series, incarnation.clock)

    return (
        Scenario("simulate", start=start)
        .given(*objects)
        .behaving(*behaviours.measuring(SeriesMetrics(stores)))
        .running(
            *CONTROLLERS,
            replicas=1 if severity is Severity.NONE else 2,
            default_zone=default_zone,
            services=services,
        )
        .under(severity)
        .traced_to(listener)
    )


def kinds_by_name() -> dict[str, str]:
    """Return the kinds that a simulated cluster serves, by the names that kubectl knows, in lower case."""
    server = ApiServer(now=lambda: 0, random=Random(0), converter=convert)  # noqa: S311 - no secret
    install(server)
    return {
        name.lower(): served.resource.kind
        for served in server.catalogue.stored()
        for name in (*served.short_names, served.resource.plural, served.resource.kind)
    }


def kinds_without_controller(kinds: Iterable[str]) -> list[str]:
    """List the kinds that should have a controller and have none here; each once, in order."""
    all_controllers: tuple[type[Controller], ...] = (*CONTROLLERS, *behaviours.ALL)
    acted_on = {watch.cached.selection.resource.kind for controller in all_controllers for watch in controller.watches}
    return [kind for kind in dict.fromkeys(kinds) if kind not in _PASSIVE_KINDS and kind not in acted_on]
