"""Authorization by SubjectAccessReviews: cached for some seconds, and refused while none is possible."""

from __future__ import annotations

import pytest
from tests.metrics.external.fake_cluster import FakeCluster

from springtide.cluster.errors import ConnectionLost, Forbidden, ServerError
from springtide.metrics.external.app import AccessReviewer, RequestAttributes
from springtide.metrics.external.request_header import Caller
from springtide.simulator.virtual_time import VirtualClock, run

ADMIN = Caller("admin", "u-1", ("system:masters",), (("scopes", ("r", "w")),))
VALUES = RequestAttributes("/p", "default", "external.metrics.k8s.io", "v1beta1", "karpenter_scheduled_capacity")
START = 1_767_571_200


def access(cluster: FakeCluster, clock: VirtualClock) -> AccessReviewer:
    return AccessReviewer(cluster.transport, clock)


def test_the_attributes_of_reviews() -> None:
    cluster = FakeCluster()

    async def scenario(clock: VirtualClock) -> None:
        asking = access(cluster, clock)
        await asking.check(ADMIN, VALUES)
        await asking.check(Caller("a"), RequestAttributes("/apis"))

    run(scenario, start=START)

    assert cluster.reviews == [
        {
            "user": "admin",
            "uid": "u-1",
            "groups": ["system:masters"],
            "extra": {"scopes": ["r", "w"]},
            "resourceAttributes": {
                "namespace": "default",
                "verb": "list",
                "group": "external.metrics.k8s.io",
                "version": "v1beta1",
                "resource": "karpenter_scheduled_capacity",
            },
        },
        {"user": "a", "groups": [], "extra": {}, "nonResourceAttributes": {"path": "/apis", "verb": "get"}},
    ]


@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "refused"])
def test_results_are_cached_for_ten_seconds(allowed: bool) -> None:
    cluster = FakeCluster()
    cluster.verdict = lambda spec: {"allowed": allowed}

    async def ask(asking: AccessReviewer) -> bool:
        try:
            await asking.check(ADMIN, VALUES)
        except Forbidden:
            return False
        return True

    async def scenario(clock: VirtualClock) -> None:
        asking = access(cluster, clock)
        assert [await ask(asking) for _ in range(3)] == [allowed] * 3
        assert len(cluster.reviews) == 1
        await clock.sleep(9)
        await ask(asking)
        assert len(cluster.reviews) == 1
        cluster.verdict = lambda spec: {"allowed": not allowed}
        await clock.sleep(1)
        assert await ask(asking) is not allowed
        assert len(cluster.reviews) == 2

    run(scenario, start=START)


@pytest.mark.parametrize(
    "status",
    [{}, {"allowed": False}, {"allowed": "true"}, {"allowed": True, "denied": True}],
    ids=["no-word", "no", "not-quite-yes", "yes-and-no"],
)
def test_only_allowed_true_allows(status: dict[str, object]) -> None:
    cluster = FakeCluster()
    cluster.verdict = lambda spec: {**status, "reason": "because"}

    async def scenario(clock: VirtualClock) -> None:
        with pytest.raises(
            Forbidden, match=r'User "admin" cannot list resource .* in the namespace "default": because'
        ):
            await access(cluster, clock).check(ADMIN, VALUES)

    run(scenario, start=START)


def test_a_failed_review_refuses_and_is_not_cached() -> None:
    cluster = FakeCluster()
    cluster.failing = ConnectionLost("connection refused")

    async def scenario(clock: VirtualClock) -> None:
        asking = access(cluster, clock)
        with pytest.raises(ServerError, match="connection refused") as refused:
            await asking.check(ADMIN, VALUES)
        assert refused.value.code == 503
        cluster.failing = None
        await asking.check(ADMIN, VALUES)

    run(scenario, start=START)


def test_the_size_of_the_cache_is_limited() -> None:
    cluster = FakeCluster()

    async def scenario(clock: VirtualClock) -> None:
        asking = access(cluster, clock)
        for number in range(1100):
            await asking.check(Caller(f"user-{number}"), VALUES)
        await asking.check(Caller("user-1099"), VALUES)
        assert len(cluster.reviews) == 1100
        await asking.check(Caller("user-0"), VALUES)
        assert len(cluster.reviews) == 1101

    run(scenario, start=START)
