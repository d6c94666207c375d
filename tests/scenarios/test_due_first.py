"""After a start all objects are reconciled once; what has become due meanwhile comes first."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controllers.cron_federated_hpa.harness import DEPLOYMENT, cron, deployment, rule

from springtide.assembly.services import simulated_services
from springtide.cluster.controller import Controller, Result
from springtide.cluster.resources import Key, Object
from springtide.controllers.cron_federated_hpa import CronFederatedHPAController
from springtide.controllers.metrics_producer import MetricsProducerController
from springtide.metrics.series import SeriesStore
from springtide.simulator.scenario import Scenario, crash, create

COUNT = 60
DUE = {7, 29, 30, 31, 59}
NEW = {60, 61}


def object_cron(number: int, minute: int) -> Object:
    target = {**DEPLOYMENT, "name": f"shop-{number}"}
    return cron(rule("r", f"{minute} 9 * * *", 7), target=target, name=f"cron-{number:02}")


def producer(number: int, minute: int) -> Object:
    window = {"name": "w", "replicas": 3, "start": {"hours": 9, "minutes": minute}, "end": {"hours": 17}}
    return {
        "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
        "kind": "MetricsProducer",
        "metadata": {"name": f"producer-{number:02}", "namespace": "default"},
        "spec": {"schedule": {"defaultReplicas": 1, "behaviors": [window]}},
    }


@pytest.mark.parametrize(
    ("controller", "make"),
    [
        pytest.param(CronFederatedHPAController, object_cron, id="cron-rules"),
        pytest.param(MetricsProducerController, producer, id="schedules"),
    ],
)
def test_objects_that_became_due_are_reconciled_first(
    controller: type[Controller], make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then new objects, whose status does not tell whether they are due, and the others last."""
    order: list[tuple[int, str]] = []
    reconcile = controller.reconcile

    async def noted(self: Controller, key: Key, now: int) -> Result | None:
        order.append((now, key.name))
        return await reconcile(self, key, now)

    monkeypatch.setattr(controller, "reconcile", noted)
    everything = [make(number, 5 if number in DUE else 30) for number in range(COUNT)]
    outcome = (
        Scenario("due first", start="2026-06-05T08:00:00Z")
        .given(*everything, *(deployment(f"shop-{number}") for number in range(COUNT)))
        .running(controller, services=lambda run: simulated_services(SeriesStore(), run.clock))
        .at("1h", crash("springtide-0", downtime=600))
        .at("1h1m", create(*(make(number, 40) for number in sorted(NEW))))
        .run("1h15m")
    )

    restarted = outcome.world.clock.start + 3600 + 600
    first_look = list(dict.fromkeys(int(name[-2:]) for at, name in order if at >= restarted))
    assert set(first_look[: len(DUE)]) == DUE
    assert set(first_look[len(DUE) : len(DUE) + len(NEW)]) == NEW
    assert len(first_look) == COUNT + len(NEW)
