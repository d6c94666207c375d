"""The contract of providers: every one of them passes these tests, in good times and under faults."""

from __future__ import annotations

import pytest
from tests.providers.clusters import Bench, is_retryable, run

from springtide.cluster.client import Mode
from springtide.cluster.errors import ClusterError, NotLeader
from springtide.providers import GroupState, NodeGroup, ProviderError

WHY = "somebody wishes it"


class ProviderContract:
    """To be inherited by the tests of a provider, which give the fixture `bench`."""

    def test_a_group_at_rest(self, bench: Bench) -> None:
        """It has what it wants, and there is nothing to say about it."""
        bench.begin(2)

        assert GroupState(replicas=2, wanted=2, stable=True, message="") == run(bench.group().observe())

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            pytest.param(0, 3, id="H19-from-nothing"),
            pytest.param(5, 3, id="H19-down"),
            pytest.param(1, 5, id="up"),
            pytest.param(2, 0, id="to-nothing"),
        ],
    )
    def test_a_group_is_resized(self, bench: Bench, before: int, after: int) -> None:
        """It wants the new number at once, and has it when the machines have followed."""
        bench.begin(before)
        group = bench.group()

        run(group.resize(after, because=WHY))

        assert run(group.observe()).wanted == after
        bench.settle()
        assert GroupState(replicas=after, wanted=after, stable=True, message="") == run(group.observe())

    def test_what_is_wanted_already_is_not_ordered_again(self, bench: Bench) -> None:
        """H19: 3 to 3 is no call, also while the machines are under way."""
        bench.begin(1)
        group = bench.group()
        run(group.resize(3, because=WHY))
        ordered = bench.orders()

        run(group.resize(3, because=WHY))
        bench.settle()
        run(group.resize(3, because=WHY))

        assert bench.orders() == ordered

    def test_a_broken_node_is_not_ready_but_wanted(self, bench: Bench) -> None:
        """What is wanted stays, so that nobody asks for it again; the words say how many there are."""
        bench.begin(3)
        bench.break_one()

        state = run(bench.group().observe())

        assert (state.replicas, state.wanted, state.stable) == (2, 3, False)
        assert "2 of 3 nodes are ready" in state.message

    def test_a_group_that_is_not_stable_is_resized_all_the_same(self, bench: Bench) -> None:
        """H19: the wish counts, whatever the provider is busy with."""
        bench.begin(3)
        bench.break_one()

        run(bench.group().resize(4, because=WHY))

        assert run(bench.group().observe()).wanted == 4

    @pytest.mark.parametrize("for_good", [False, True], ids=["passing", "lasting"])
    def test_a_look_that_fails(self, bench: Bench, for_good: bool) -> None:
        """The error says whether to try again; the next look is right."""
        bench.begin(2)
        bench.refuse_reading(for_good=for_good)

        with pytest.raises((ProviderError, ClusterError)) as failed:
            run(bench.group().observe())

        assert is_retryable(failed.value) is not for_good
        assert run(bench.group().observe()).wanted == 2

    @pytest.mark.parametrize("for_good", [False, True], ids=["passing", "lasting"])
    def test_an_order_that_fails(self, bench: Bench, for_good: bool) -> None:
        """The error says whether to try again; the group is as it was, and the next try does it."""
        bench.begin(2)
        bench.refuse_resizing(for_good=for_good)
        group = bench.group()

        with pytest.raises((ProviderError, ClusterError)) as failed:
            run(group.resize(3, because=WHY))

        assert is_retryable(failed.value) is not for_good
        assert run(group.observe()).wanted == 2
        run(group.resize(3, because=WHY))
        assert run(group.observe()).wanted == 3

    def test_an_order_whose_answer_is_lost(self, bench: Bench) -> None:
        """Nobody knows whether it took effect; made again, it comes to the same number and not to more."""
        bench.begin(2)
        bench.lose_answer()
        group = bench.group()

        with pytest.raises((ProviderError, ClusterError)) as failed:
            run(group.resize(3, because=WHY))
        assert is_retryable(failed.value)

        run(group.resize(3, because=WHY))
        bench.settle()
        assert GroupState(replicas=3, wanted=3, stable=True, message="") == run(group.observe())

    def test_many_orders_in_a_row_with_failures(self, bench: Bench) -> None:
        """Whatever failed in between, the last wish is what it comes to."""
        bench.begin(1)
        group = bench.group()
        for number, wish in enumerate([3, 0, 4, 4, 2, 5]):
            (bench.lose_answer if number % 2 else lambda: bench.refuse_resizing(for_good=False))()
            _until_done(group, wish)
            if number % 3 == 0:
                bench.settle()
        bench.settle()

        assert GroupState(replicas=5, wanted=5, stable=True, message="") == run(group.observe())

    def test_nothing_is_ordered_while_we_only_observe(self, bench: Bench) -> None:
        """In observe mode an order is counted and not sent, also to those outside the cluster."""
        bench.begin(2)
        client = bench.client(Mode.OBSERVE)
        group = bench.provider.group(bench.type, bench.id, client)

        run(group.resize(3, because=WHY))

        assert bench.orders() == 0
        assert client.traffic.held_back > 0
        assert run(group.observe()).wanted == 2

    def test_nothing_is_ordered_by_those_who_do_not_lead(self, bench: Bench) -> None:
        """The permit is asked before an order leaves; looking needs none."""
        bench.begin(2)
        bench.leads = False

        with pytest.raises(NotLeader):
            run(bench.group().resize(3, because=WHY))

        assert bench.orders() == 0
        assert run(bench.group().observe()).wanted == 2

    def test_an_id_of_something_else(self, bench: Bench) -> None:
        """What is no id of a group of the type is refused before anybody is asked."""
        with pytest.raises(ProviderError) as failed:
            bench.provider.group(bench.type, "arn:aws:sqs:eu-west-1:123456789012:jobs", bench.client())

        assert (failed.value.code, failed.value.retryable) == ("InvalidId", False)

    def test_a_group_that_is_not_there(self, bench: Bench) -> None:
        """It is no use to try again, and the words say what to do."""
        bench.begin(1)
        group = bench.provider.group(bench.type, bench.missing_id, bench.client())

        with pytest.raises(ProviderError) as failed:
            run(group.observe())

        assert (failed.value.code, failed.value.retryable) == ("GroupNotFound", False)
        assert "spec.id" in str(failed.value)


def _until_done(group: NodeGroup, wish: int) -> None:
    """Ask until it is taken, as a controller does; failures that do not pass are raised."""
    for _ in range(5):
        try:
            return run(group.resize(wish, because=WHY))
        except (ProviderError, ClusterError) as failure:
            if not is_retryable(failure):
                raise
    pytest.fail("a passing failure did not pass")
