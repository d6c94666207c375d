"""Leader election: which process holds the lease, until when, and which may take it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest
from tests.cluster.memory_cluster import LEASES, START, USER, Line, MemoryCluster, do_nothing

from springtide.cluster.errors import NotLeader, RequestTimeout, ServerError
from springtide.cluster.leader_election import LeaderElector, LeaseTiming, NoElection
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.transport import Patch
from springtide.simulator.virtual_time import VirtualClock, run

KEY = Key("springtide-system", "springtide")


class Candidates:
    """Processes that are candidates for the same lease."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.world = MemoryCluster(clock)

    def process(self, identity: str) -> tuple[LeaderElector, Line]:
        """Make a process, with its own connection to the server."""
        line = self.world.line()
        return LeaderElector(line, self.clock, identity=identity, random=Random(identity)), line

    def spec(self) -> Object:
        """Return what the Lease says."""
        spec: Object = self.world.server.get(LEASES, KEY)["spec"]
        return spec

    def write(self, **spec: object) -> None:
        """Write the Lease as another process would."""
        self.world.server.patch(LEASES, KEY, Patch.merge({"spec": spec}), USER)


def play(story: Callable[[Candidates], Awaitable[None]]) -> None:
    """Play a story in virtual time."""

    async def main(clock: VirtualClock) -> None:
        async with asyncio.timeout(10_000):
            await story(Candidates(clock))

    run(main, start=START)


def refused(elector: LeaderElector) -> bool:
    """Return whether a write would be withheld."""
    try:
        elector.permit()
    except NotLeader:
        return True
    return False


def failing(error: Exception, *verbs: str) -> Callable[[str, Resource, Key], Awaitable[None]]:
    async def fail(verb: str, resource: Resource, key: Key) -> None:
        if not verbs or verb in verbs:
            raise error

    return fail


def test_the_first_candidate_creates_the_lease_and_leads() -> None:
    """Without transitions; the times are those of the clock."""

    async def story(candidates: Candidates) -> None:
        elector, _ = candidates.process("a")
        assert refused(elector)
        await elector.acquire()

        assert not refused(elector)
        assert candidates.spec() == {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "leaseTransitions": 0,
            "acquireTime": "2026-01-05T00:00:00.000000Z",
            "renewTime": "2026-01-05T00:00:00.000000Z",
        }

    play(story)


def test_a_second_candidate_waits_while_the_first_renews() -> None:
    """An hour later only the renewal time has changed."""

    async def story(candidates: Candidates) -> None:
        first, _ = candidates.process("a")
        second, _ = candidates.process("b")
        await first.acquire()
        holding = asyncio.ensure_future(first.hold())
        waiting = asyncio.ensure_future(second.acquire())
        await candidates.clock.sleep(3601)

        assert (first.leading, waiting.done(), holding.done()) == (True, False, False)
        assert candidates.spec()["acquireTime"] == "2026-01-05T00:00:00.000000Z"
        assert candidates.spec()["renewTime"] == "2026-01-05T01:00:00.000000Z"
        holding.cancel()
        waiting.cancel()

    play(story)


def test_a_candidate_takes_over_when_the_lease_has_expired_by_its_own_clock() -> None:
    """Not before fifteen seconds after it last saw a renewal, and then at its next attempt."""

    async def story(candidates: Candidates) -> None:
        first, _ = candidates.process("a")
        second, _ = candidates.process("b")
        await first.acquire()
        await second.acquire()

        assert 15 <= candidates.clock.monotonic() <= 15 + 2 * 2.2
        assert candidates.spec()["holderIdentity"] == "b"
        assert candidates.spec()["leaseTransitions"] == 1
        assert refused(first)
        assert not refused(second)

    play(story)


def test_times_in_the_lease_are_ignored() -> None:
    """A holder whose clock is years ahead or behind makes no difference."""

    async def story(candidates: Candidates) -> None:
        first, _ = candidates.process("a")
        second, _ = candidates.process("b")
        await first.acquire()
        candidates.write(renewTime="2099-01-01T00:00:00.000000Z")
        await second.acquire()
        assert 15 <= candidates.clock.monotonic() <= 20

        third, _ = candidates.process("c")
        candidates.write(renewTime="1999-01-01T00:00:00.000000Z")
        began = candidates.clock.monotonic()
        await third.acquire()
        assert candidates.clock.monotonic() - began >= 15

    play(story)


def test_a_leader_stops_ten_seconds_after_its_last_confirmed_renewal_was_sent() -> None:
    """Five seconds before another process may take over."""

    async def story(candidates: Candidates) -> None:
        elector, line = candidates.process("a")
        await elector.acquire()
        await candidates.clock.sleep(3)
        line.before = failing(ServerError("out of order"))
        await elector.hold()

        assert candidates.clock.monotonic() == 10
        assert refused(elector)

    play(story)


def test_a_renewal_of_unknown_outcome_does_not_extend_the_deadline() -> None:
    """It may not have happened."""

    async def story(candidates: Candidates) -> None:
        elector, line = candidates.process("a")
        await elector.acquire()
        line.after = failing(RequestTimeout("no answer"), "patch")
        await elector.hold()

        assert candidates.clock.monotonic() == 10
        # It took effect on the server all the same.
        assert candidates.spec()["renewTime"] > "2026-01-05T00:00:07"

    play(story)


def test_after_an_unknown_outcome_the_lease_is_read_and_renewed() -> None:
    """The version may have changed by the own renewal, which is no reason to stop."""

    async def story(candidates: Candidates) -> None:
        elector, line = candidates.process("a")
        await elector.acquire()
        holding = asyncio.ensure_future(elector.hold())
        line.after = failing(RequestTimeout("no answer"), "patch")
        await candidates.clock.sleep(5)
        line.after = do_nothing
        await candidates.clock.sleep(60)

        assert elector.leading
        assert candidates.spec()["leaseTransitions"] == 0
        holding.cancel()

    play(story)


def test_the_deadline_counts_from_when_a_renewal_was_sent() -> None:
    """A late answer does not extend the lease."""

    async def story(candidates: Candidates) -> None:
        elector, line = candidates.process("a")

        async def dawdle(verb: str, resource: Resource, key: Key) -> None:
            if verb != "get":
                await candidates.clock.sleep(4)

        line.after = dawdle
        await elector.acquire()

        assert candidates.clock.monotonic() == 4
        assert elector.deadline == 10

    play(story)


def test_the_term_ends_at_the_deadline_during_a_renewal() -> None:
    """Although the request is still under way."""

    async def story(candidates: Candidates) -> None:
        elector, line = candidates.process("a")
        await elector.acquire()

        async def hang(verb: str, resource: Resource, key: Key) -> None:
            await candidates.clock.sleep(1000)

        line.before = hang
        await elector.hold()

        assert candidates.clock.monotonic() == 10

    play(story)


def test_a_process_that_was_suspended_sends_nothing_afterwards() -> None:
    """The permit reads the clock itself."""

    async def story(candidates: Candidates) -> None:
        first, _ = candidates.process("a")
        second, _ = candidates.process("b")
        seen: list[bool] = []

        async def program() -> None:
            await first.acquire()
            holding = asyncio.ensure_future(first.hold())
            for _ in range(20):
                seen.append(refused(first))
                await candidates.clock.sleep(1)
            assert holding.done()

        loop = asyncio.get_running_loop()
        owner = object()
        task = loop.create_owned_task(owner, program())  # type: ignore[attr-defined]
        await candidates.clock.sleep(5.5)
        loop.freeze(owner)  # type: ignore[attr-defined]
        await second.acquire()
        loop.thaw(owner)  # type: ignore[attr-defined]
        await task

        assert seen[:6] == [False] * 6
        assert seen[6:]
        assert all(seen[6:])
        assert candidates.spec()["holderIdentity"] == "b"

    play(story)


def test_a_write_of_the_lease_by_others_does_not_end_the_term() -> None:
    """After a conflict the Lease is read again; if the holder is unchanged, the term goes on."""

    async def story(candidates: Candidates) -> None:
        elector, _ = candidates.process("a")
        await elector.acquire()
        holding = asyncio.ensure_future(elector.hold())
        for _ in range(20):
            await candidates.clock.sleep(1.3)
            candidates.world.server.patch(
                LEASES, KEY, Patch.merge({"metadata": {"annotations": {"at": str(candidates.clock.monotonic())}}}), USER
            )

        assert elector.leading
        holding.cancel()

    play(story)


@pytest.mark.parametrize("holder", ["b", ""])
def test_a_leader_stops_at_once_when_another_holds_the_lease(holder: str) -> None:
    """At its next renewal, without waiting for the deadline; it does not take the lease back."""

    async def story(candidates: Candidates) -> None:
        elector, _ = candidates.process("a")
        await elector.acquire()
        candidates.write(holderIdentity=holder)
        await elector.hold()

        assert candidates.clock.monotonic() == 2
        assert refused(elector)
        assert candidates.spec()["holderIdentity"] == holder

    play(story)


def test_a_deleted_lease_is_lost() -> None:
    """Another process may have created and held it meanwhile; a new term creates a new one."""

    async def story(candidates: Candidates) -> None:
        elector, _ = candidates.process("a")
        await elector.acquire()
        candidates.world.server.delete(LEASES, KEY, USER)
        await elector.hold()
        assert refused(elector)

        await elector.acquire()
        assert candidates.spec()["holderIdentity"] == "a"

    play(story)


def test_a_leader_that_reads_its_lease_again_does_not_create_a_deleted_one() -> None:
    """After a failed renewal it reads before it writes; also then a deleted Lease is lost."""

    async def story(candidates: Candidates) -> None:
        elector, line = candidates.process("a")
        await elector.acquire()
        line.before = failing(ServerError("out of order"), "patch")
        holding = asyncio.ensure_future(elector.hold())
        await candidates.clock.sleep(3)
        candidates.world.server.delete(LEASES, KEY, USER)
        line.before = do_nothing
        await candidates.clock.sleep(3)
        assert (holding.done(), refused(elector)) == (True, True)
        assert candidates.world.server.list(Selection(LEASES)).items == []

    play(story)


def test_a_term_that_is_over_stays_over() -> None:
    """Writes that began in an earlier term are withheld in a later one of the same process."""

    async def story(candidates: Candidates) -> None:
        elector, line = candidates.process("a")
        earlier = await elector.acquire()
        line.before = failing(ServerError("out of order"))
        await elector.hold()
        line.before = do_nothing
        later = await elector.acquire()

        later.permit()
        with pytest.raises(NotLeader, match="a does not hold the lease any more"):
            earlier.permit()
        assert candidates.spec()["leaseTransitions"] == 0

    play(story)


def test_a_released_lease_is_free_at_once() -> None:
    """The next leader need not wait until it expires, and the former one sends nothing more."""

    async def story(candidates: Candidates) -> None:
        first, _ = candidates.process("a")
        second, _ = candidates.process("b")
        await first.acquire()
        await first.release()

        assert refused(first)
        assert (candidates.spec()["holderIdentity"], candidates.spec()["leaseDurationSeconds"]) == ("", 1)
        await second.acquire()
        assert candidates.clock.monotonic() == 0
        assert candidates.spec()["leaseTransitions"] == 1

    play(story)


def test_a_lease_of_another_process_is_not_released() -> None:
    """Neither after it expired, nor when another process has taken it unnoticed."""

    async def story(candidates: Candidates) -> None:
        first, _ = candidates.process("a")
        await first.acquire()
        await candidates.clock.sleep(11)
        await first.release()
        assert candidates.spec()["holderIdentity"] == "a"

        second, _ = candidates.process("b")
        await second.acquire()
        candidates.write(holderIdentity="c")
        await second.release()
        assert candidates.spec()["holderIdentity"] == "c"

    play(story)


def test_of_many_candidates_at_once_one_leads() -> None:
    """Creating and acquiring have preconditions: the server accepts one."""

    async def story(candidates: Candidates) -> None:
        processes = [candidates.process(str(number))[0] for number in range(5)]
        tasks = [asyncio.ensure_future(process.acquire()) for process in processes]
        for _ in range(60):
            await candidates.clock.sleep(0.5)
            assert sum(process.leading for process in processes) <= 1
        assert sum(task.done() for task in tasks) >= 2
        for task in tasks:
            task.cancel()

    play(story)


@pytest.mark.parametrize("reachable", [True, False], ids=["it notices", "it cannot be reached"])
def test_a_deleted_lease_is_not_free_at_once_for_candidates_that_saw_it_held(reachable: bool) -> None:
    """The holder may not have noticed; two processes never lead at once."""

    async def story(candidates: Candidates) -> None:
        first, line = candidates.process("a")
        second, _ = candidates.process("b")
        await first.acquire()
        holding = asyncio.ensure_future(first.hold())
        waiting = asyncio.ensure_future(second.acquire())
        await candidates.clock.sleep(20)
        candidates.world.server.delete(LEASES, KEY, USER)
        if not reachable:
            line.before = failing(RequestTimeout("no answer"))
        for _ in range(300):
            assert not (first.leading and second.leading)
            await candidates.clock.sleep(0.1)

        assert (first.leading, holding.done(), waiting.done()) == (False, True, True)
        assert candidates.spec()["holderIdentity"] == "b"

    play(story)


def test_a_leader_notices_at_its_next_renewal_that_its_lease_was_deleted() -> None:
    """It does not wait for the one after."""

    async def story(candidates: Candidates) -> None:
        elector, _ = candidates.process("a")
        await elector.acquire()
        candidates.world.server.delete(LEASES, KEY, USER)
        await elector.hold()
        assert candidates.clock.monotonic() == 2

    play(story)


@pytest.mark.parametrize("when", ["before", "after"])
def test_one_unanswered_renewal_does_not_end_the_term(when: str) -> None:
    """It is cancelled in time for another one, which reads first: the lost one may have taken effect."""

    async def story(candidates: Candidates) -> None:
        elector, line = candidates.process("a")
        await elector.acquire()
        holding = asyncio.ensure_future(elector.hold())
        hung: list[str] = []

        async def hang(verb: str, resource: Resource, key: Key) -> None:
            if not hung:
                hung.append(verb)
                await candidates.clock.sleep(1000)
            # Later ones are slow: there is no time for a pause.
            await candidates.clock.sleep(0.6)

        setattr(line, when, hang)
        await candidates.clock.sleep(60)
        assert hung == ["patch"]
        assert elector.leading
        assert not holding.done()
        holding.cancel()

    play(story)


def test_releasing_the_lease_has_a_timeout() -> None:
    """A server that does not answer must not keep a process from stopping."""

    async def story(candidates: Candidates) -> None:
        elector, line = candidates.process("a")
        await elector.acquire()

        async def hang(verb: str, resource: Resource, key: Key) -> None:
            await candidates.clock.sleep(1000)

        line.before = hang
        await elector.release()
        assert candidates.clock.monotonic() == 5
        assert refused(elector)

    play(story)


def test_a_lease_that_was_acquired_unnoticed_is_released() -> None:
    """An attempt that was cancelled under way may have succeeded."""

    async def story(candidates: Candidates) -> None:
        elector, line = candidates.process("a")

        async def dawdle(verb: str, resource: Resource, key: Key) -> None:
            if verb == "create":
                await candidates.clock.sleep(3)

        line.after = dawdle
        acquiring = asyncio.ensure_future(elector.acquire())
        await candidates.clock.sleep(1)
        acquiring.cancel()
        await asyncio.wait((acquiring,))
        assert candidates.spec()["holderIdentity"] == "a"
        await elector.release()
        assert candidates.spec()["holderIdentity"] == ""

    play(story)


def test_whoever_gives_up_before_it_got_the_lease_leaves_it_to_its_holder() -> None:
    """It is read first, and it is another's."""

    async def story(candidates: Candidates) -> None:
        first, _ = candidates.process("a")
        second, _ = candidates.process("b")
        await first.acquire()
        acquiring = asyncio.ensure_future(second.acquire())
        await candidates.clock.sleep(1)
        acquiring.cancel()
        await asyncio.wait((acquiring,))
        await second.release()
        assert candidates.spec()["holderIdentity"] == "a"

    play(story)


def test_how_long_a_lease_lasts_is_what_its_holder_says() -> None:
    """Processes of another version may have other times."""

    async def story(candidates: Candidates) -> None:
        first, _ = candidates.process("a")
        second, _ = candidates.process("b")
        await first.acquire()
        candidates.write(leaseDurationSeconds=60)
        await second.acquire()
        assert 60 <= candidates.clock.monotonic() <= 60 + 2 * 2.2

    play(story)


@pytest.mark.parametrize(
    "timing",
    [
        pytest.param({"duration": 10}, id="the lease expires at the deadline"),
        pytest.param({"deadline": 4.0}, id="no time for two attempts"),
        pytest.param({"retry": 0.0}, id="attempts without a pause"),
        pytest.param({"jitter": -0.5}, id="negative jitter"),
    ],
)
def test_times_must_make_sense(timing: dict[str, float]) -> None:
    """Else two processes could lead at once, or none for long."""
    with pytest.raises(ValueError, match=r"expected duration > deadline > retry \* \(1 \+ jitter\)"):
        LeaseTiming(**timing)  # type: ignore[arg-type]


def test_a_process_without_rivals_sends_nothing_when_it_has_ended() -> None:
    """There is no lease that could run out: its term ends when it says so."""

    async def story(candidates: Candidates) -> None:
        election = NoElection(candidates.clock)
        term = await election.acquire()
        term.permit()
        await election.release()
        with pytest.raises(NotLeader):
            term.permit()

    play(story)
