"""Jobs, from their first pod to their end."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.simulator.behaviours.cluster import Cluster, names, node, play, template

from springtide.apis.meta.times import parse_instant
from springtide.apiserver.server import CommittedWrite
from springtide.cluster.resources import NODES, PODS, Object
from springtide.cluster.transport import Propagation
from springtide.simulator.behaviours.job_decisions import completed_indexes, written_indexes
from springtide.simulator.behaviours.resources import JOBS
from springtide.simulator.behaviours.settings import EXIT_CODE, RUN_SECONDS


def job(name: str = "work", *, policy: str = "Never", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    made = template(name, restartPolicy=policy, annotations=annotations or {})
    return {"metadata": {"name": name}, "spec": {"template": made, **spec}}


def ends(item: Object) -> list[tuple[str, str]]:
    return [(one["type"], one["reason"]) for one in item["status"].get("conditions") or () if one["status"] == "True"]


COMPLETE = [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]


def failed(reason: str) -> list[tuple[str, str]]:
    return [("FailureTarget", reason), ("Failed", reason)]


async def begin(cluster: Cluster, body: Object, seconds: int, *, nodes: int = 2) -> Object:
    for number in range(nodes):
        cluster.create(NODES, node(f"node-{number}"))
    await cluster.passes(60)
    cluster.create(JOBS, body)
    await cluster.passes(seconds)
    return cluster.get(JOBS, body["metadata"]["name"])


def test_a_job_runs_so_many_at_a_time_until_enough_have_succeeded() -> None:
    most = []

    async def story(cluster: Cluster) -> None:
        cluster.server.observers.append(
            lambda _: most.append(sum(pod["status"]["phase"] != "Succeeded" for pod in cluster.all(PODS)))
        )
        done = await begin(cluster, job(completions=5, parallelism=2), 300)
        assert ends(done) == COMPLETE
        status = done["status"]
        assert (status["succeeded"], status.get("failed"), status.get("active")) == (5, None, None)
        assert status["uncountedTerminatedPods"] == {}
        assert {tuple(pod["metadata"].get("finalizers") or ()) for pod in cluster.all(PODS)} == {()}

    play(story)
    assert max(most) == 2


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(job(completions=3, parallelism=3), COMPLETE, id="complete"),
        pytest.param(job(annotations={EXIT_CODE: "1"}, backoffLimit=0), failed("BackoffLimitExceeded"), id="failed"),
        pytest.param(
            job(annotations={RUN_SECONDS: "1000"}, activeDeadlineSeconds=50), failed("DeadlineExceeded"), id="late"
        ),
    ],
)
def test_a_job_has_an_interim_condition_before_it_ends(body: Object, expected: list[tuple[str, str]]) -> None:
    """Only when every pod is counted, and none is left to go, does the Job say that it is over."""
    reported: list[list[tuple[str, str]]] = []
    left: list[tuple[Object, int]] = []

    async def story(cluster: Cluster) -> None:
        def observe(written: CommittedWrite) -> None:
            if written.resource == JOBS and written.new is not None and ends(written.new) not in reported:
                reported.append(ends(written.new))
                if ends(written.new) == expected:
                    going = sum("deletionTimestamp" in pod["metadata"] for pod in cluster.all(PODS))
                    left.append((written.new["status"]["uncountedTerminatedPods"], going))

        cluster.server.observers.append(observe)
        await begin(cluster, body, 200)

    play(story)
    assert reported == [[], expected[:1], expected]
    assert left == [({}, 0)]


def test_a_job_without_completions_ends_when_one_pod_has_succeeded_and_none_runs() -> None:
    async def story(cluster: Cluster) -> None:
        body = job(parallelism=3)
        done = await begin(cluster, body, 120)
        assert ends(done) == COMPLETE
        assert done["status"]["succeeded"] == 3

    play(story)


def test_a_job_gives_up_after_its_retries_with_growing_pauses() -> None:
    async def story(cluster: Cluster) -> None:
        failing = {EXIT_CODE: "3", RUN_SECONDS: "5"}
        body = job(annotations=failing, backoffLimit=2)
        done = await begin(cluster, body, 600)
        assert ends(done) == failed("BackoffLimitExceeded")
        assert done["status"]["failed"] == 3
        pods = sorted(cluster.all(PODS), key=lambda pod: pod["metadata"]["creationTimestamp"])
        codes = [pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for pod in pods]
        assert codes == [3, 3, 3]
        created = [parse_instant(pod["metadata"]["creationTimestamp"]) for pod in pods]
        # 2 s to start, 5 s to run, then 10 s and 20 s of waiting.
        assert [after - before for before, after in pairwise(created)] == [17, 27]

    play(story)


def test_restarts_in_place_count_as_retries() -> None:
    async def story(cluster: Cluster) -> None:
        body = job(policy="OnFailure", annotations={EXIT_CODE: "1", RUN_SECONDS: "5"}, backoffLimit=2)
        done = await begin(cluster, body, 300)
        assert ends(done) == failed("BackoffLimitExceeded")
        assert cluster.running() == []

    play(story)


def test_a_suspended_job_has_no_pods_and_goes_on_when_it_is_resumed() -> None:
    async def story(cluster: Cluster) -> None:
        waiting = await begin(cluster, job(suspend=True), 60)
        assert ends(waiting) == [("Suspended", "JobSuspended")]
        assert cluster.all(PODS) == []
        assert "startTime" not in waiting["status"]
        cluster.patch(JOBS, "work", {"spec": {"suspend": False}})
        await cluster.passes(20)
        assert len(cluster.running()) == 1
        cluster.patch(JOBS, "work", {"spec": {"suspend": True}})
        await cluster.passes(60)
        assert cluster.all(PODS) == []
        assert "failed" not in cluster.get(JOBS, "work")["status"]
        cluster.patch(JOBS, "work", {"spec": {"suspend": False}})
        await cluster.passes(120)
        assert ends(cluster.get(JOBS, "work")) == COMPLETE

    play(story)


def test_a_finished_job_is_deleted_with_its_pods_after_its_ttl() -> None:
    async def story(cluster: Cluster) -> None:
        await begin(cluster, job(ttlSecondsAfterFinished=100), 120)
        assert cluster.exists(JOBS, "work")
        await cluster.passes(100)
        assert not cluster.exists(JOBS, "work")
        assert cluster.all(PODS) == []

    play(story)


def test_a_job_that_takes_too_long_fails() -> None:
    async def story(cluster: Cluster) -> None:
        body = job(annotations={RUN_SECONDS: "1000"}, activeDeadlineSeconds=100)
        assert ends(await begin(cluster, body, 99)) == []
        await cluster.passes(60)
        assert ends(cluster.get(JOBS, "work")) == failed("DeadlineExceeded")
        assert cluster.all(PODS) == []

    play(story)


def test_every_index_is_completed_once() -> None:
    async def story(cluster: Cluster) -> None:
        body = job(completionMode="Indexed", completions=5, parallelism=3)
        done = await begin(cluster, body, 300)
        assert done["status"]["completedIndexes"] == "0-4"
        indexes = [
            pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in cluster.all(PODS)
        ]
        assert sorted(indexes) == ["0", "1", "2", "3", "4"]

    play(story)


def test_succeeded_pods_stay_counted_when_their_node_is_deleted() -> None:
    async def story(cluster: Cluster) -> None:
        await begin(cluster, job(completions=3, parallelism=1), 70, nodes=1)
        assert cluster.get(JOBS, "work")["status"]["succeeded"] == 1
        cluster.delete(NODES, "node-0")
        cluster.create(NODES, node("node-1"))
        await cluster.passes(300)
        done = cluster.get(JOBS, "work")
        assert ends(done) == COMPLETE
        assert done["status"]["succeeded"] == 3

    play(story)


def test_pods_lose_the_finalizer_when_their_job_is_deleted() -> None:
    async def story(cluster: Cluster) -> None:
        await begin(cluster, job(annotations={RUN_SECONDS: "1000"}), 20)
        assert len(names(cluster.all(PODS))) == 1
        cluster.delete(JOBS, "work", Propagation.BACKGROUND)
        await cluster.passes(60)
        assert cluster.all(PODS) == []

    play(story)


def test_orphaned_pods_lose_the_job_finalizer() -> None:
    async def story(cluster: Cluster) -> None:
        await begin(cluster, job(annotations={RUN_SECONDS: "1000"}), 20)
        cluster.delete(JOBS, "work", Propagation.ORPHAN)
        await cluster.passes(60)
        (left,) = cluster.all(PODS)
        assert "ownerReferences" not in left["metadata"]
        assert "finalizers" not in left["metadata"]

    play(story)


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        pytest.param([], "", id="none"),
        pytest.param([4], "4", id="one"),
        pytest.param([0, 1], "0,1", id="two in a row"),
        pytest.param([0, 1, 2, 5, 7, 8, 9], "0-2,5,7-9", id="runs and single ones"),
    ],
)
def test_indexes_are_written_and_read(indexes: list[int], text: str) -> None:
    assert written_indexes(indexes) == text
    assert completed_indexes(text) == indexes
