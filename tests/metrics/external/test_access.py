"""Who may ask: the cluster's word, remembered for some seconds, and nothing where it gives none."""

from __future__ import annotations

import pytest
from tests.metrics.external.fake_cluster import Shelf

from springtide.cluster.errors import ConnectionLost, Forbidden, ServerError
from springtide.metrics.external.app import AccessReviewer, RequestAttributes
from springtide.metrics.external.request_header import Caller
from springtide.simulator.virtual_time import VirtualClock, run

ADMIN = Caller("admin", "u-1", ("system:masters",), (("scopes", ("r", "w")),))
VALUES = RequestAttributes("/p", "default", "external.metrics.k8s.io", "v1beta1", "karpenter_scheduled_capacity")
START = 1_767_571_200


def access(shelf: Shelf, clock: VirtualClock) -> AccessReviewer:
    return AccessReviewer(shelf.transport, clock)


def test_the_cluster_is_asked_in_its_own_terms() -> None:
    shelf = Shelf()

    async def story(clock: VirtualClock) -> None:
        asking = access(shelf, clock)
        await asking.check(ADMIN, VALUES)
        await asking.check(Caller("a"), RequestAttributes("/apis"))

    run(story, start=START)

    assert shelf.reviews == [
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
def test_its_word_is_remembered_for_ten_seconds(allowed: bool) -> None:
    shelf = Shelf()
    shelf.verdict = lambda spec: {"allowed": allowed}

    async def ask(asking: AccessReviewer) -> bool:
        try:
            await asking.check(ADMIN, VALUES)
        except Forbidden:
            return False
        return True

    async def story(clock: VirtualClock) -> None:
        asking = access(shelf, clock)
        assert [await ask(asking) for _ in range(3)] == [allowed] * 3
        assert len(shelf.reviews) == 1
        await clock.sleep(9)
        await ask(asking)
        assert len(shelf.reviews) == 1
        shelf.verdict = lambda spec: {"allowed": not allowed}
        await clock.sleep(1)
        assert await ask(asking) is not allowed
        assert len(shelf.reviews) == 2

    run(story, start=START)


@pytest.mark.parametrize(
    "status",
    [{}, {"allowed": False}, {"allowed": "true"}, {"allowed": True, "denied": True}],
    ids=["no-word", "no", "not-quite-yes", "yes-and-no"],
)
def test_only_a_plain_yes_is_one(status: dict[str, object]) -> None:
    shelf = Shelf()
    shelf.verdict = lambda spec: {**status, "reason": "because"}

    async def story(clock: VirtualClock) -> None:
        with pytest.raises(
            Forbidden, match=r'User "admin" cannot list resource .* in the namespace "default": because'
        ):
            await access(shelf, clock).check(ADMIN, VALUES)

    run(story, start=START)


def test_without_an_answer_nobody_may_and_it_is_asked_again() -> None:
    shelf = Shelf()
    shelf.failing = ConnectionLost("nobody is there")

    async def story(clock: VirtualClock) -> None:
        asking = access(shelf, clock)
        with pytest.raises(ServerError, match="nobody is there") as refused:
            await asking.check(ADMIN, VALUES)
        assert refused.value.code == 503
        shelf.failing = None
        await asking.check(ADMIN, VALUES)

    run(story, start=START)


def test_what_is_remembered_does_not_grow_without_end() -> None:
    shelf = Shelf()

    async def story(clock: VirtualClock) -> None:
        asking = access(shelf, clock)
        for number in range(1100):
            await asking.check(Caller(f"user-{number}"), VALUES)
        await asking.check(Caller("user-1099"), VALUES)
        assert len(shelf.reviews) == 1100
        await asking.check(Caller("user-0"), VALUES)
        assert len(shelf.reviews) == 1101

    run(story, start=START)
