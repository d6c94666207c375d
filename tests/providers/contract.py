"""The contract of providers: every implementation passes these tests, with and without faults."""

from __future__ import annotations

import pytest
from tests.providers.clusters import ProviderEnvironment, is_retryable, run

from springtide.cluster.client import Mode
from springtide.cluster.errors import ClusterError, NotLeader
from springtide.providers import GroupState, NodeGroup, ProviderError

WHY = "a test requests it"


class ProviderContract:
    """Inherited by the tests of a provider, which have the fixture `env`."""

    def test_a_stable_group(self, env: ProviderEnvironment) -> None:
        """It has the desired number of nodes, and no message."""
        env.begin(2)

        assert GroupState(replicas=2, wanted=2, stable=True, message="") == run(env.group().observe())

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            pytest.param(0, 3, id="from-zero"),
            pytest.param(5, 3, id="down"),
            pytest.param(1, 5, id="up"),
            pytest.param(2, 0, id="to-zero"),
        ],
    )
    def test_a_group_is_resized(self, env: ProviderEnvironment, before: int, after: int) -> None:
        """The desired number changes at once, and the ready number when the machines have followed."""
        env.begin(before)
        group = env.group()

        run(group.resize(after, because=WHY))

        assert run(group.observe()).wanted == after
        env.settle()
        assert GroupState(replicas=after, wanted=after, stable=True, message="") == run(group.observe())

    def test_a_resize_to_the_desired_number_is_no_write(self, env: ProviderEnvironment) -> None:
        """3 to 3 is no call, not even while the machines are starting."""
        env.begin(1)
        group = env.group()
        run(group.resize(3, because=WHY))
        ordered = env.orders()

        run(group.resize(3, because=WHY))
        env.settle()
        run(group.resize(3, because=WHY))

        assert env.orders() == ordered

    def test_a_node_that_is_not_ready_stays_desired(self, env: ProviderEnvironment) -> None:
        """The desired number stays, so no further node is requested; the message has both numbers."""
        env.begin(3)
        env.break_one()

        state = run(env.group().observe())

        assert (state.replicas, state.wanted, state.stable) == (2, 3, False)
        assert "2 of 3 nodes are ready" in state.message

    def test_an_unstable_group_can_be_resized(self, env: ProviderEnvironment) -> None:
        """Whatever the provider is doing."""
        env.begin(3)
        env.break_one()

        run(env.group().resize(4, because=WHY))

        assert run(env.group().observe()).wanted == 4

    @pytest.mark.parametrize("for_good", [False, True], ids=["passing", "lasting"])
    def test_a_failed_observation(self, env: ProviderEnvironment, for_good: bool) -> None:
        """The error says whether it is retryable; the next observation succeeds."""
        env.begin(2)
        env.refuse_reading(for_good=for_good)

        with pytest.raises((ProviderError, ClusterError)) as failed:
            run(env.group().observe())

        assert is_retryable(failed.value) is not for_good
        assert run(env.group().observe()).wanted == 2

    @pytest.mark.parametrize("for_good", [False, True], ids=["passing", "lasting"])
    def test_a_failed_resize(self, env: ProviderEnvironment, for_good: bool) -> None:
        """The error says whether it is retryable; the group is unchanged, and the next attempt succeeds."""
        env.begin(2)
        env.refuse_resizing(for_good=for_good)
        group = env.group()

        with pytest.raises((ProviderError, ClusterError)) as failed:
            run(group.resize(3, because=WHY))

        assert is_retryable(failed.value) is not for_good
        assert run(group.observe()).wanted == 2
        run(group.resize(3, because=WHY))
        assert run(group.observe()).wanted == 3

    def test_a_resize_whose_response_is_lost(self, env: ProviderEnvironment) -> None:
        """Repeated, it leads to the same number and not to more."""
        env.begin(2)
        env.lose_answer()
        group = env.group()

        with pytest.raises((ProviderError, ClusterError)) as failed:
            run(group.resize(3, because=WHY))
        assert is_retryable(failed.value)

        run(group.resize(3, because=WHY))
        env.settle()
        assert GroupState(replicas=3, wanted=3, stable=True, message="") == run(group.observe())

    def test_many_resizes_with_failures(self, env: ProviderEnvironment) -> None:
        """Whatever failed in between, the last request wins."""
        env.begin(1)
        group = env.group()
        for number, wish in enumerate([3, 0, 4, 4, 2, 5]):
            (env.lose_answer if number % 2 else lambda: env.refuse_resizing(for_good=False))()
            _until_done(group, wish)
            if number % 3 == 0:
                env.settle()
        env.settle()

        assert GroupState(replicas=5, wanted=5, stable=True, message="") == run(group.observe())

    def test_observe_mode_sends_no_resize(self, env: ProviderEnvironment) -> None:
        """In observe mode a resize is counted and not sent, not even to providers outside the cluster."""
        env.begin(2)
        client = env.client(Mode.OBSERVE)
        group = env.provider.group(env.type, env.id, client)

        run(group.resize(3, because=WHY))

        assert env.orders() == 0
        assert client.traffic.held_back > 0
        assert run(group.observe()).wanted == 2

    def test_a_client_that_does_not_lead_sends_no_resize(self, env: ProviderEnvironment) -> None:
        """The permit is checked before a resize is sent; observing needs none."""
        env.begin(2)
        env.leads = False

        with pytest.raises(NotLeader):
            run(env.group().resize(3, because=WHY))

        assert env.orders() == 0
        assert run(env.group().observe()).wanted == 2

    def test_an_id_of_something_else(self, env: ProviderEnvironment) -> None:
        """An invalid id is refused without a request."""
        with pytest.raises(ProviderError) as failed:
            env.provider.group(env.type, "arn:aws:sqs:eu-west-1:123456789012:jobs", env.client())

        assert (failed.value.code, failed.value.retryable) == ("InvalidId", False)

    def test_a_missing_group(self, env: ProviderEnvironment) -> None:
        """The error is not retryable, and the message says what to do."""
        env.begin(1)
        group = env.provider.group(env.type, env.missing_id, env.client())

        with pytest.raises(ProviderError) as failed:
            run(group.observe())

        assert (failed.value.code, failed.value.retryable) == ("GroupNotFound", False)
        assert "spec.id" in str(failed.value)


def _until_done(group: NodeGroup, wish: int) -> None:
    """Resize with retries, as a controller does; errors that are not retryable are raised."""
    for _ in range(5):
        try:
            return run(group.resize(wish, because=WHY))
        except (ProviderError, ClusterError) as failure:
            if not is_retryable(failure):
                raise
    pytest.fail("a passing failure did not pass")
