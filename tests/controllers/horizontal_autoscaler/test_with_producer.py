"""From a schedule to pods with the real parts: MetricsProducer, series, query, HorizontalAutoscaler, Deployment."""

from __future__ import annotations

import pytest
from tests.apis.scheduled.objects import DAYTIME, NIGHT, WEEKEND
from tests.controllers.horizontal_autoscaler.harness import autoscaler, conditions, deployment, metric, node, scaled

from springtide.apis.scheduled.producer import QueueSpec
from springtide.cluster.clock import Clock
from springtide.cluster.context import Services
from springtide.cluster.resources import Object
from springtide.controllers.grant.state import GrantPolicy
from springtide.controllers.horizontal_autoscaler import HorizontalAutoscalerController
from springtide.controllers.metrics_producer import MetricsProducerController
from springtide.metrics.queues import QueueLength, QueueReader
from springtide.metrics.reading.queries import QueryReader
from springtide.metrics.series import SeriesStore
from springtide.simulator.behaviours import NODES, SCHEDULING, WORKLOADS
from springtide.simulator.processes import ProcessRun
from springtide.simulator.scenario import Scenario, crash, delete

QUERY = 'karpenter_scheduled_capacity{name="scheduling"}'
PRODUCER: Object = {
    "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
    "kind": "MetricsProducer",
    "metadata": {"name": "scheduling", "namespace": "shop"},
    "spec": {
        "schedule": {
            "timezone": "America/Los_Angeles",
            "defaultReplicas": 2,
            "behaviors": [WEEKEND, DAYTIME, NIGHT],
        }
    },
}


def services(incarnation: ProcessRun) -> Services:
    """Return a series store and a query reader."""
    book = SeriesStore()
    return Services(book, QueryReader(book), GrantPolicy(everything=True))


def _scenario(start: str, replicas: int, query: str = QUERY) -> Scenario:
    return (
        Scenario("a shop with opening hours", start=start)
        .given(node(), deployment(replicas), PRODUCER, autoscaler(metric(query), least=1, most=10))
        .behaving(*NODES, *SCHEDULING, *WORKLOADS)
        .running(MetricsProducerController, HorizontalAutoscalerController, services=services)
    )


@pytest.mark.parametrize(
    ("start", "replicas", "expected"),
    [
        # 08:30 on a Monday in Los Angeles; the day begins at nine, and scale up is immediate.
        pytest.param("2026-06-08T15:30:00Z", 1, [(1800, 3)], id="the-day-begins"),
        # 16:30 on a Friday; the weekend begins at five, and pods are deleted five minutes later.
        pytest.param("2026-06-05T23:30:00Z", 3, [(2100, 1)], id="the-weekend-begins"),
        # 16:30 on a Monday; the night begins at five.
        pytest.param("2026-06-08T23:30:00Z", 3, [(2100, 2)], id="the-night-begins"),
    ],
)
def test_pods_follow_the_schedule(start: str, replicas: int, expected: list[tuple[int, int]]) -> None:
    outcome = _scenario(start, replicas).run("1h")

    assert scaled(outcome) == expected
    size = expected[-1][1]
    running = [pod for pod in outcome.objects("Pod") if pod["status"].get("phase") == "Running"]
    assert len([pod for pod in running if pod["metadata"]["namespace"] == "shop"]) == size
    status = outcome.object("HorizontalAutoscaler", "web", namespace="shop")["status"]
    assert (status["currentReplicas"], status["desiredReplicas"]) == (size, size)
    assert conditions(outcome)["Ready"]["status"] == "True"


def test_change_during_downtime_is_applied_after_the_restart() -> None:
    outcome = _scenario("2026-06-08T15:30:00Z", 1).at("29m", crash("springtide-0", downtime=300)).run("1h")

    assert scaled(outcome) == [(1740 + 300, 3)]


def test_deleted_producer_leaves_the_replicas_unchanged() -> None:
    """Its series is removed, and a missing metric does not scale down."""
    scenario = _scenario("2026-06-08T16:30:00Z", 3).at("5m", delete("MetricsProducer", "scheduling", namespace="shop"))
    outcome = scenario.run("1h")

    assert scaled(outcome) == []
    active = conditions(outcome)["Active"]
    assert (active["status"], active["reason"]) == ("False", "NoSample")


class SlowQueue(QueueReader):
    """A queue of constant length that answers slowly."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def target(self, queue: QueueSpec) -> None:
        return None

    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:
        await self._clock.sleep(5)
        return QueueLength(8)


def test_restart_does_not_scale_by_an_incomplete_query() -> None:
    """The schedule is known at once and asks for less than the queue, which has not answered yet."""
    queue = PRODUCER | {
        "metadata": {"name": "jobs", "namespace": "shop"},
        "spec": {"queue": {"type": "AWSSQSQueue", "id": "arn:aws:sqs:eu-central-1:123456789012:jobs"}},
    }
    hasty = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    query = f'max(karpenter_queue_length{{name="jobs"}} or {QUERY})'

    def slow_services(incarnation: ProcessRun) -> Services:
        book = SeriesStore()
        return Services(book, QueryReader(book), GrantPolicy(everything=True), SlowQueue(incarnation.clock))

    outcome = (
        Scenario("a shop with a queue", start="2026-06-08T16:30:00Z")
        .given(node(), deployment(1), PRODUCER, queue)
        .given(autoscaler(metric(query), most=10, behavior=hasty))
        .behaving(*NODES, *SCHEDULING, *WORKLOADS)
        .running(MetricsProducerController, HorizontalAutoscalerController, services=slow_services)
        .at("10m", crash("springtide-0", downtime=30))
        .run("20m")
    )

    assert scaled(outcome) == [(5, 8)]
    assert conditions(outcome)["Ready"]["status"] == "True"


def test_max_of_two_arguments_is_rejected_with_the_legal_form() -> None:
    """`max` of two arguments reads like arithmetic, and is not PromQL."""
    query = 'max(karpenter_queue_length{name="jobs"},karpenter_scheduled_capacity{name="scheduling"})'
    outcome = _scenario("2026-06-08T16:30:00Z", 3, query).run("1m")

    active = conditions(outcome)["Active"]
    assert (active["status"], active["reason"]) == ("False", "NotPromQL")
    assert 'max(karpenter_queue_length{name="jobs"} or karpenter_scheduled_capacity' in active["message"]
