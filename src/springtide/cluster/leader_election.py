"""Leadership: of several processes of the same kind only one acts, by a Lease that it must renew.

The API server cannot tell a leader from one that merely believes to be it, so a leader has to stop by itself, in time:

    0 s            10 s              15 s
    ├──────────────┼─────────────────┤
    renewal sent   deadline:         the lease runs out:
                   we send nothing   others may take it

* The deadline counts from when the last renewal that was *confirmed* was *sent*. An answer may be late, and a renewal
  whose outcome is unknown may not have happened.
* Every write asks `permit` immediately before it leaves; past the deadline it is held back.
* When another's lease has run out is judged by our own monotonic clock, from when we first saw it as it is. Times that
  others write are for people: their clocks may be wrong.
* A Lease that somebody removes is no invitation: who saw it held waits, from when it is missing, as long as it would
  have lasted. (Who has never seen it cannot know, and makes one; the former holder notices with its next renewal.)
* Every write of the Lease is conditional on the version that was read. A conflict means that somebody else wrote: the
  Lease is read again, and nothing is assumed.

The gap of five seconds covers writes that are under way when the deadline comes, and clocks that run a little faster
than ours. Writes that take even longer are refused because they are conditional (see `springtide.cluster.origins`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from enum import Enum, auto
from random import Random
from typing import Any, Protocol

from springtide.apis.forecast import format_instant
from springtide.cluster.clock import Clock, first_of
from springtide.cluster.controller import Permission
from springtide.cluster.errors import ClusterError, Conflict, NotFound, NotLeader
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.transport import ObjectVersion, Patch, Transport, Write

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
NAME = "springtide"
"""The Lease of those who act."""
OBSERVE_SUFFIX = "-observe"
"""What is added to the name for those who only observe."""
PERMISSIONS = (
    Permission(LEASES, ("create",), own_namespace=True),
    Permission(LEASES, ("get", "patch"), names=(NAME, f"{NAME}{OBSERVE_SUFFIX}"), own_namespace=True),
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """How long a lease lasts, in seconds. The defaults are those of Kubernetes' own components."""

    duration: int = 15
    """After so long without a renewal others may take the lease: how long a crash goes unanswered."""
    deadline: float = 10.0
    """After so long without a confirmed renewal the leader stops; must leave time for writes that are under way."""
    retry: float = 2.0
    """Between two tries to get or to renew the lease."""
    jitter: float = 1.2
    """How many times `retry` luck may add to it while standing by, so that not all try at once."""

    def __post_init__(self) -> None:
        """Refuse times by which two processes could lead at once, or one could never renew."""
        if not self.duration > self.deadline > self.retry * (1 + self.jitter) or self.retry <= 0 or self.jitter < 0:
            msg = (
                f"a lease for {self.duration} s, with a deadline of {self.deadline} s and tries every {self.retry} s "
                f"(jitter {self.jitter}), makes no sense: expected duration > deadline > retry * (1 + jitter), "
                "retry > 0 and jitter >= 0"
            )
            raise ValueError(msg)

    @property
    def answer(self) -> float:
        """Seconds after which an attempt without an answer is given up, so that there is time for another one."""
        return self.deadline / 2


class LeadershipTerm:
    """One time of leading: it ends when the lease is lost, and never comes back."""

    def __init__(self, clock: Clock, holder: str, *, contested: bool = True) -> None:
        self._clock = clock
        self._holder = holder
        self.contested = contested
        """Whether others may have led before, and written what we must see before we act."""
        self.deadline = float("-inf")
        self.ended = False

    @property
    def lasting(self) -> bool:
        """Whether writes are let pass now."""
        return not self.ended and self._clock.monotonic() < self.deadline

    def permit(self) -> None:
        """Let a write pass while we lead; raises `NotLeader` when we may not be the leader any more."""
        if not self.lasting:
            msg = f"{self._holder} does not hold the lease any more"
            raise NotLeader(msg)


class Election(Protocol):
    """How a process becomes the one that acts, and ceases to be it."""

    def observe(self) -> None:
        """Stand for those who only observe, before anything else: they must not keep one out who acts."""
        ...

    async def acquire(self) -> LeadershipTerm:
        """Wait until this process is the one; a new term begins."""
        ...

    async def hold(self) -> None:
        """Stay the one for as long as possible; the term is over when this returns."""
        ...

    async def release(self) -> None:
        """Let another one be it, also where this process was about to become it."""
        ...


class NoElection:
    """For processes that have no rival: the only term begins at once and lasts."""

    def __init__(self, clock: Clock) -> None:
        self._term = LeadershipTerm(clock, "the only process", contested=False)
        self._term.deadline = float("inf")

    def observe(self) -> None:
        """Keep nobody out, as there is nobody."""

    async def acquire(self) -> LeadershipTerm:
        """Begin a term that has no deadline."""
        return self._term

    async def hold(self) -> None:
        """Hold for ever."""
        await asyncio.get_running_loop().create_future()

    async def release(self) -> None:
        """End the term: what has not stopped by now sends nothing any more."""
        self._term.ended = True


class _Outcome(Enum):
    HELD = auto()
    """Ours, confirmed."""
    TAKEN = auto()
    """Another's, or nobody's although it was ours."""
    FAILED = auto()
    """Nothing is known: try again."""
    UNANSWERED = auto()
    """As before, and time is short."""


class LeaderElector:
    """One process's part in the election. The identity must be one that no other process has or had."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        *,
        identity: str,
        random: Random,
        namespace: str = "springtide-system",
        name: str = NAME,
        timing: LeaseTiming | None = None,
    ) -> None:
        self.identity = identity
        self.key = Key(namespace, name)
        self.timing = timing or LeaseTiming()
        self._transport = transport
        self._clock = clock
        self._random = random
        self._term = LeadershipTerm(clock, identity)
        self._lease: Object | None = None
        """The Lease as our last confirmed write left it; None where it must be read before it is written."""
        self._seen: Object | None = None
        """The Lease as we last saw it, or as it was before it was removed."""
        self._missing = False
        self._seen_since = 0.0
        self._reaching = False
        """Whether an attempt to get the lease may have succeeded without our knowing."""

    @property
    def leading(self) -> bool:
        """Whether writes are let pass now."""
        return self._term.lasting

    @property
    def deadline(self) -> float:
        """When writes are let pass no more, by the monotonic clock, unless the lease is renewed by then."""
        return self._term.deadline

    def permit(self) -> None:
        """Let a write pass in the present term; raises `NotLeader`."""
        self._term.permit()

    def observe(self) -> None:
        """Take part in the election of those who only observe: it has a Lease of its own."""
        self.key = Key(self.key.namespace, f"{self.key.name}{OBSERVE_SUFFIX}")

    async def acquire(self) -> LeadershipTerm:
        """Wait until the lease is ours; a new term begins."""
        log.info("%s stands by for the lease %s", self.identity, self.key)
        term = LeadershipTerm(self._clock, self.identity)
        self._lease = None
        self._reaching = True
        while await self._answered(self._attempt(term, renewing=False)) is not _Outcome.HELD:
            await self._clock.sleep(self.timing.retry * (1 + self.timing.jitter * self._random.random()))
        self._reaching = False
        self._term = term
        log.info("%s leads: it holds the lease %s", self.identity, self.key)
        return term

    async def hold(self) -> None:
        """Renew the lease for as long as it can be; the present term is over when this returns."""
        term = self._term
        renewing = asyncio.ensure_future(self._renew(term))
        try:
            while not renewing.done() and (left := term.deadline - self._clock.monotonic()) > 0:
                alarm = asyncio.ensure_future(self._clock.sleep(left))
                try:
                    await asyncio.wait((renewing, alarm), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    alarm.cancel()
            term.ended = True
            log.warning("%s leads no more: the lease %s is lost or was not renewed in time", self.identity, self.key)
        finally:
            renewing.cancel()
            # Until it has let go: whoever gives the lease up next must not race with a renewal.
            await asyncio.wait((renewing,))
        if not renewing.cancelled():
            renewing.result()

    async def release(self) -> None:
        """Give the lease up, if we hold it, so that others need not wait until it runs out; soon, or not at all."""
        if not self.leading and not self._reaching:
            return
        self._term.ended = True
        self._reaching = False
        await self._answered(self._give_up())

    async def _give_up(self) -> _Outcome:
        try:
            lease = self._lease or await self._transport.get(LEASES, self.key)
            if _spec(lease).get("holderIdentity") == self.identity:
                await self._patch(
                    lease, {"holderIdentity": "", "leaseDurationSeconds": 1, **self._times("acquireTime")}
                )
                log.info("%s gave up the lease %s", self.identity, self.key)
        except ClusterError as failure:
            log.info("the lease %s could not be given up, and runs out by itself: %s", self.key, failure)
            return _Outcome.FAILED
        return _Outcome.TAKEN

    async def _renew(self, term: LeadershipTerm) -> None:
        """Renew again and again; returns when the lease is not ours any more."""
        outcome = _Outcome.HELD
        while outcome is not _Outcome.TAKEN:
            if outcome is not _Outcome.UNANSWERED:
                await self._clock.sleep(self.timing.retry)
            outcome = await self._answered(self._attempt(term, renewing=True))

    async def _answered(self, attempt: Coroutine[Any, Any, _Outcome]) -> _Outcome:
        """Make an attempt, and give it up where no answer comes: it must not cost the time for another one."""
        task = asyncio.ensure_future(attempt)
        try:
            await first_of(task, self._clock.sleep(self.timing.answer))
        finally:
            # Until it has let go: two attempts at a time would race with each other.
            task.cancel()
            await asyncio.wait((task,))
        if not task.cancelled():
            return task.result()
        log.warning("no answer about the lease %s within %g s", self.key, self.timing.answer)
        return _Outcome.UNANSWERED

    async def _attempt(self, term: LeadershipTerm, *, renewing: bool) -> _Outcome:
        """Get or renew the lease once."""
        known, self._lease = self._lease, None
        try:
            lease = known or await self._read()
            if lease is None:
                if renewing or (self._seen is not None and not self._is_free(self._seen, renewing=False)):
                    return _Outcome.TAKEN
                return await self._create(term)
            if not self._is_free(lease, renewing=renewing):
                return _Outcome.TAKEN
            return await self._take(term, lease)
        except Conflict as failure:
            # Somebody wrote since we read; if that was long ago, what is there now may still be ours.
            if known is not None:
                return await self._attempt(term, renewing=renewing)
            log.info("somebody else writes the lease %s as well: %s", self.key, failure)
        except ClusterError as failure:
            if renewing and isinstance(failure, NotFound):
                return _Outcome.TAKEN
            log.warning("the lease %s could not be read or written: %s", self.key, failure)
        return _Outcome.FAILED

    async def _read(self) -> Object | None:
        """Read the Lease, and note since when it is as it is, or is missing."""
        try:
            lease = await self._transport.get(LEASES, self.key)
        except NotFound:
            lease = None
        if lease is None:
            changed = not self._missing
        else:
            changed = self._missing or self._seen is None or ObjectVersion.of(lease) != ObjectVersion.of(self._seen)
            self._seen = lease
        if changed:
            self._seen_since = self._clock.monotonic()
        self._missing = lease is None
        return lease

    def _is_free(self, lease: Object, *, renewing: bool) -> bool:
        spec = _spec(lease)
        holder = spec.get("holderIdentity") or ""
        if holder == self.identity:
            return True
        if renewing:
            return False
        lasts = spec.get("leaseDurationSeconds") or self.timing.duration
        return not holder or self._clock.monotonic() >= self._seen_since + lasts

    async def _take(self, term: LeadershipTerm, lease: Object) -> _Outcome:
        before = _spec(lease)
        spec = {"holderIdentity": self.identity, "leaseDurationSeconds": self.timing.duration, **self._times()}
        if before.get("holderIdentity") != self.identity:
            spec |= {**self._times("acquireTime"), "leaseTransitions": before.get("leaseTransitions", 0) + 1}
        sent = self._clock.monotonic()
        return self._held(term, sent, await self._patch(lease, spec))

    async def _create(self, term: LeadershipTerm) -> _Outcome:
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self.key.name, "namespace": self.key.namespace},
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": self.timing.duration,
                "leaseTransitions": 0,
                **self._times("acquireTime"),
            },
        }
        sent = self._clock.monotonic()
        created = await self._transport.create(LEASES, body, self._write("takes"), namespace=self.key.namespace)
        return self._held(term, sent, created)

    def _held(self, term: LeadershipTerm, sent: float, lease: Object) -> _Outcome:
        self._lease = lease
        term.deadline = sent + self.timing.deadline
        return _Outcome.HELD

    async def _patch(self, lease: Object, spec: Object) -> Object:
        write = self._write("holds" if spec["holderIdentity"] else "gives up")
        precondition = ObjectVersion.of(lease).precondition()
        return await self._transport.patch(
            LEASES, self.key, Patch.merge({"spec": spec}), write, precondition=precondition
        )

    def _write(self, does: str) -> Write:
        # No permit: the lease is what permits are made from.
        return Write("springtide-lease", f"{self.identity} {does} the lease")

    def _times(self, *more: str) -> dict[str, Any]:
        """Write the present into the renewal time, and into others; for people, nobody decides by it."""
        now = format_instant(self._clock.now()).replace("Z", ".000000Z")
        return dict.fromkeys(("renewTime", *more), now)


def _spec(lease: Object) -> dict[str, Any]:
    return lease.get("spec") or {}
