"""Worlds with our controllers in them: only here do the simulator and the controllers meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from springtide.cli.offering import offered_in_simulation
from springtide.cluster.controller import Controller
from springtide.cluster.services import Services
from springtide.controllers import CONTROLLERS
from springtide.metrics.external import SeriesMetrics
from springtide.metrics.series import SeriesBook
from springtide.simulator import behaviours
from springtide.simulator.faults import Severity
from springtide.simulator.processes import Incarnation
from springtide.simulator.scenario import Scenario
from springtide.simulator.trace import Entry

_PASSIVE = frozenset(
    {
        "ConfigMap",
        "ControllerRevision",
        "CustomResourceDefinition",
        "Event",
        "Lease",
        "LimitRange",
        "MutatingWebhookConfiguration",
        "Namespace",
        "PersistentVolume",
        "PodTemplate",
        "PriorityClass",
        "Secret",
        "Service",
        "ServiceAccount",
        "StorageClass",
        "ValidatingWebhookConfiguration",
    }
)
"""Kinds that do nothing by themselves, in a real cluster as little as here."""


def simulated(
    objects: Iterable[dict[str, Any]],
    *,
    start: str,
    faults: str,
    default_zone: str,
    listener: Callable[[Entry], None],
) -> Scenario:
    """Tell the story of these objects in a cluster of their own, with everything that runs in one."""
    severity = Severity(faults)
    books: list[SeriesBook] = []

    def services(incarnation: Incarnation) -> Services:
        book = SeriesBook()
        books.append(book)
        return offered_in_simulation(book, incarnation.clock)

    return (
        Scenario("simulate", start=start)
        .given(*objects)
        .behaving(*behaviours.measuring(SeriesMetrics(books)))
        .running(
            *CONTROLLERS,
            replicas=1 if severity is Severity.NONE else 2,
            default_zone=default_zone,
            services=services,
        )
        .under(severity)
        .told_to(listener)
    )


def without_actor(kinds: Iterable[str]) -> list[str]:
    """Give those of some kinds on which something should act, and nothing here does; each once, in order."""
    everybody: tuple[type[Controller], ...] = (*CONTROLLERS, *behaviours.ALL)
    acted_on = {watch.cached.selection.resource.kind for controller in everybody for watch in controller.watches}
    return [kind for kind in dict.fromkeys(kinds) if kind not in _PASSIVE and kind not in acted_on]
