"""Scaling on time as a whole, with everything that can go wrong: from a schedule to the replicas of a Deployment.

All controllers run as they do in production, in two processes of which one leads; requests fail before and after they
took effect, watches repeat themselves, and processes crash at any await. While faults last, anything may be late. Once
they have ended, everything must be what the schedule says, to the replica.
"""

from __future__ import annotations

from springtide.almanac import Timeline, load_zone
from springtide.apis.meta.times import parse_instant
from springtide.apis.scheduled.producer import MetricsProducer, ScheduleSpec
from springtide.apis.scheduled.schedule import compile_schedule
from springtide.apiserver.server import CommittedWrite
from springtide.assembly.services import simulated_services
from springtide.cluster.context import Services
from springtide.cluster.resources import Key, Object
from springtide.controllers import CONTROLLERS
from springtide.controllers.validated import validated
from springtide.metrics.series import SeriesStore
from springtide.simulator.behaviours import WORKLOADS
from springtide.simulator.faults import Severity
from springtide.simulator.processes import ProcessRun
from springtide.simulator.scenario import (
    Invariant,
    InvariantViolated,
    NoLostUpdates,
    OnlyTheLeaderWrites,
    Scenario,
    SharedObjectsAreNotMutated,
    StoresFollowTheServer,
)
from springtide.simulator.world import World

START = "2026-03-29T00:40:00Z"
LENGTH = "40m"
SETTLING = "10m"
LEAST, MOST = 1, 20
CAPACITY = "karpenter_scheduled_capacity"

PRODUCER: Object = {
    "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
    "kind": "MetricsProducer",
    "metadata": {"name": "night", "namespace": "default"},
    "spec": {
        "schedule": {
            "timezone": "Europe/Berlin",
            "defaultReplicas": 2,
            "behaviors": [
                # 02:30 does not exist on this night: it begins at 03:00 summer time, 01:00 UTC.
                {
                    "name": "gap",
                    "priority": 1,
                    "replicas": 9,
                    "start": {"hours": 2, "minutes": 30},
                    "end": {"hours": 3, "minutes": 5},
                },
                {
                    "name": "quarter",
                    "replicas": 5,
                    "start": {"hours": "1,3", "minutes": "45"},
                    "end": {"hours": "1,3", "minutes": 50},
                },
                {
                    "name": "once",
                    "priority": 2,
                    "replicas": 12,
                    "from": "2026-03-29T01:08:00Z",
                    "until": "2026-03-29T01:11:00Z",
                },
                {
                    "name": "late",
                    "replicas": 7,
                    "start": {"hours": 3, "minutes": 9},
                    "end": {"hours": 3, "minutes": 40},
                },
            ],
        }
    },
}
AUTOSCALER: Object = {
    "apiVersion": "autoscaling.karpenter.sh/v1alpha1",
    "kind": "HorizontalAutoscaler",
    "metadata": {"name": "night", "namespace": "default"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": LEAST,
        "maxReplicas": MOST,
        "metrics": [
            {"prometheus": {"query": f'{CAPACITY}{{name="night"}}', "target": {"type": "AverageValue", "value": 1}}}
        ],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    },
}
DEPLOYMENT: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web"}]},
        },
    },
}


def timeline() -> Timeline[int]:
    """Compile the schedule, as a preview does."""
    view = validated(PRODUCER, MetricsProducer, now=parse_instant(START), default_zone="UTC").sound
    assert view is not None
    schedule = view.spec.schedule
    assert isinstance(schedule, ScheduleSpec)
    return compile_schedule(schedule, load_zone("Europe/Berlin"), {})


class TheScheduleIsFollowed(Invariant):
    """Only values of the schedule are ever set, and in the end all objects have its value."""

    def __init__(self, books: list[SeriesStore]) -> None:
        self._books = books
        self._timeline = timeline()
        self._asked = {self._timeline.at(parse_instant(START))}

    def wrote(self, world: World, written: CommittedWrite) -> None:
        """Look at every size that the autoscaler sets."""
        now = world.clock.now()
        self._asked |= {value for _, value in self._timeline.changes(parse_instant(START), now)}
        if written.write.manager == "springtide-horizontal-autoscaler" and written.resource.kind == "Deployment":
            size = (written.new or {})["spec"]["replicas"]
            if size not in self._asked:
                raise InvariantViolated(f"{size} replicas were set, which the schedule does not contain by then")

    def end(self, world: World) -> None:
        """Compare everything with the schedule."""
        wanted = self._timeline.at(world.clock.now())
        producer = world.object("MetricsProducer", "night")["status"]["scheduledCapacity"]
        found = {
            "the status": producer["currentValue"],
            "the Deployment": world.object("Deployment", "web")["spec"]["replicas"],
            "the autoscaler": world.object("HorizontalAutoscaler", "night")["status"]["desiredReplicas"],
            "the series": [reading.values[CAPACITY] for book in self._books for _, reading in book.items()],
        }
        expected = {"the status": wanted, "the Deployment": wanted, "the autoscaler": wanted, "the series": [wanted]}
        if found != expected:
            raise InvariantViolated(f"in the end the schedule asks for {wanted}, and there is {found}")


def scaling_under_faults(severity: Severity = Severity.HEAVY) -> Scenario:
    """Return the story of a night with a gap in it."""
    books: list[SeriesStore] = []

    def services(incarnation: ProcessRun) -> Services:
        # What a process knew dies with it: the book of an incarnation that is gone says nothing any more.
        book = SeriesStore()
        books.append(book)
        return simulated_services(book, incarnation.clock)

    def judge() -> Invariant:
        books.clear()
        return TheScheduleIsFollowed(books)

    lease = Key("springtide-system", "springtide")
    return (
        Scenario("scaling on time", start=START)
        .given(PRODUCER, AUTOSCALER, DEPLOYMENT)
        .behaving(*WORKLOADS)
        .running(*CONTROLLERS, replicas=2, services=services)
        .under(severity)
        .always(
            judge,
            NoLostUpdates,
            SharedObjectsAreNotMutated,
            StoresFollowTheServer,
            lambda: OnlyTheLeaderWrites(lease, "springtide-metrics-producer"),
            lambda: OnlyTheLeaderWrites(lease, "springtide-horizontal-autoscaler"),
        )
        .settling(SETTLING)
    )
