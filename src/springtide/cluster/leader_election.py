"""Leader election: of several replicas only one acts, as long as it renews a Lease.

The API server cannot tell a leader from a process that only assumes to be it, so a leader must stop by itself in time:

    0 s            10 s              15 s
    ├──────────────┼─────────────────┤
    renewal sent   deadline:         the lease expires:
                   writes stop       others may take it

* The deadline counts from when the last *confirmed* renewal was *sent*. An answer may be late, and a renewal whose
  outcome is unknown may not have happened.
* Every write calls `permit` immediately before it leaves; after the deadline it is withheld.
* A candidate decides by its own monotonic clock whether the lease of another process has expired, from when it first
  saw the Lease in its current version. It ignores the times in the Lease: the other clock may be wrong.
* A Lease that was deleted is not free at once: a candidate that saw it held waits, from when it is missing, for its
  duration. (A candidate that has never seen it creates one; the former holder notices at its next renewal.)
* Every write of the Lease has the version that was read as precondition. After a conflict the Lease is read again.

The gap of five seconds covers writes that are under way at the deadline, and differences between clocks. Writes that
take even longer are refused by their preconditions (see `springtide.cluster.transport`).
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
"""The name of the Lease of acting processes."""
OBSERVE_SUFFIX = "-observe"
"""The suffix of its name for processes in which all controllers observe."""
PERMISSIONS = (
    Permission(LEASES, ("create",), own_namespace=True),
    Permission(LEASES, ("get", "patch"), names=(NAME, f"{NAME}{OBSERVE_SUFFIX}"), own_namespace=True),
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """The durations of leader election, in seconds. The defaults are those of Kubernetes' own components."""

    duration: int = 15
    """Without a renewal for so long, others may take the lease: the time until a takeover after a crash."""
    deadline: float = 10.0
    """Without a confirmed renewal for so long, the leader stops; less than `duration`, for writes under way."""
    retry: float = 2.0
    """The time between two attempts to acquire or renew the lease."""
    jitter: float = 1.2
    """The part of `retry` that is added at random while standing by, so that replicas do not try together."""

    def __post_init__(self) -> None:
        """Refuse durations with which two processes could lead at once, or none could renew."""
        if not self.duration > self.deadline > self.retry * (1 + self.jitter) or self.retry <= 0 or self.jitter < 0:
            msg = (
                f"a lease for {self.duration} s, with a deadline of {self.deadline} s and tries every {self.retry} s "
                f"(jitter {self.jitter}), cannot work: expected duration > deadline > retry * (1 + jitter), "
                "retry > 0 and jitter >= 0"
            )
            raise ValueError(msg)

    @property
    def attempt_timeout(self) -> float:
        """Seconds after which an unanswered attempt is cancelled, so that there is time for another one."""
        return self.deadline / 2


class LeadershipTerm:
    """One leadership term; it ends when the lease is lost, and cannot be resumed."""

    def __init__(self, clock: Clock, holder: str, *, uncontested: bool = False) -> None:
        self._clock = clock
        self._holder = holder
        self.uncontested = uncontested
        """Whether no other process can have led before, so that caches need no freshness check."""
        self.deadline = float("-inf")
        self.ended = False

    @property
    def valid(self) -> bool:
        """Whether writes are permitted now."""
        return not self.ended and self._clock.monotonic() < self.deadline

    def permit(self) -> None:
        """Permit a write; raises `NotLeader` if this process may not be the leader any more."""
        if not self.valid:
            msg = f"{self._holder} does not hold the lease any more"
            raise NotLeader(msg)


class Election(Protocol):
    """How a process becomes the leader, and stops being it."""

    def observe(self) -> None:
        """Take part in the election of observing processes; to be called first."""
        ...

    async def acquire(self) -> LeadershipTerm:
        """Wait until this process leads; a new term begins."""
        ...

    async def hold(self) -> None:
        """Renew the lease as long as possible; the term is over when this returns."""
        ...

    async def release(self) -> None:
        """Release the lease, also if acquiring it may just have succeeded."""
        ...


class NoElection:
    """No leader election, for a single process: one term begins at once and does not end."""

    def __init__(self, clock: Clock) -> None:
        self._term = LeadershipTerm(clock, "the only process", uncontested=True)
        self._term.deadline = float("inf")

    def observe(self) -> None:
        """Do nothing: there is no election."""

    async def acquire(self) -> LeadershipTerm:
        """Begin a term that has no deadline."""
        return self._term

    async def hold(self) -> None:
        """Never return."""
        await asyncio.get_running_loop().create_future()

    async def release(self) -> None:
        """End the term: later writes are withheld."""
        self._term.ended = True


class _Outcome(Enum):
    HELD = auto()
    """This process holds the lease, confirmed by the server."""
    TAKEN = auto()
    """Another process holds it, or it was deleted."""
    FAILED = auto()
    """Unknown: try again."""
    UNANSWERED = auto()
    """Unknown after the timeout: try again at once."""


class LeaderElector:
    """Leader election by a Lease. The identity must be unique among all processes, past ones included."""

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
        """The Lease after the last confirmed write; None if it must be read before the next one."""
        self._seen: Object | None = None
        """The Lease as it was last read, also after it was deleted."""
        self._missing = False
        self._seen_since = 0.0
        self._may_hold = False
        """Whether an unconfirmed attempt to acquire the lease may have succeeded."""

    @property
    def leading(self) -> bool:
        """Whether writes are permitted now."""
        return self._term.valid

    @property
    def deadline(self) -> float:
        """When writes stop, by the monotonic clock, unless the lease is renewed by then."""
        return self._term.deadline

    def permit(self) -> None:
        """Permit a write in the current term; raises `NotLeader`."""
        self._term.permit()

    def observe(self) -> None:
        """Take part in the election of observing processes, which has a Lease of its own."""
        self.key = Key(self.key.namespace, f"{self.key.name}{OBSERVE_SUFFIX}")

    async def acquire(self) -> LeadershipTerm:
        """Wait until this process holds the lease; a new term begins."""
        log.info("%s is a candidate for the lease %s", self.identity, self.key)
        term = LeadershipTerm(self._clock, self.identity)
        self._lease = None
        self._may_hold = True
        while await self._with_timeout(self._attempt(term, renewing=False)) is not _Outcome.HELD:
            await self._clock.sleep(self.timing.retry * (1 + self.timing.jitter * self._random.random()))
        self._may_hold = False
        self._term = term
        log.info("%s is the leader: it holds the lease %s", self.identity, self.key)
        return term

    async def hold(self) -> None:
        """Renew the lease until it is lost; the current term is over when this returns."""
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
            reason = "is lost or was not renewed in time"
            log.warning("%s is not the leader any more: the lease %s %s", self.identity, self.key, reason)
        finally:
            renewing.cancel()
            # Wait for its end: a release of the lease must not race with a renewal.
            await asyncio.wait((renewing,))
        if not renewing.cancelled():
            renewing.result()

    async def release(self) -> None:
        """Release the lease if this process holds it, so that others need not wait until it expires."""
        if not self.leading and not self._may_hold:
            return
        self._term.ended = True
        self._may_hold = False
        await self._with_timeout(self._clear_holder())

    async def _clear_holder(self) -> _Outcome:
        try:
            lease = self._lease or await self._transport.get(LEASES, self.key)
            if _spec(lease).get("holderIdentity") == self.identity:
                await self._patch(
                    lease, {"holderIdentity": "", "leaseDurationSeconds": 1, **self._times("acquireTime")}
                )
                log.info("%s released the lease %s", self.identity, self.key)
        except ClusterError as failure:
            log.info("the lease %s could not be released, and will expire: %s", self.key, failure)
            return _Outcome.FAILED
        return _Outcome.TAKEN

    async def _renew(self, term: LeadershipTerm) -> None:
        """Renew periodically; returns when the lease is lost."""
        outcome = _Outcome.HELD
        while outcome is not _Outcome.TAKEN:
            if outcome is not _Outcome.UNANSWERED:
                await self._clock.sleep(self.timing.retry)
            outcome = await self._with_timeout(self._attempt(term, renewing=True))

    async def _with_timeout(self, attempt: Coroutine[Any, Any, _Outcome]) -> _Outcome:
        """Make an attempt, and cancel it after a timeout."""
        task = asyncio.ensure_future(attempt)
        try:
            await first_of(task, self._clock.sleep(self.timing.attempt_timeout))
        finally:
            # Wait for its end: two attempts at a time would race with each other.
            task.cancel()
            await asyncio.wait((task,))
        if not task.cancelled():
            return task.result()
        log.warning("no answer about the lease %s within %g s", self.key, self.timing.attempt_timeout)
        return _Outcome.UNANSWERED

    async def _attempt(self, term: LeadershipTerm, *, renewing: bool) -> _Outcome:
        """Try once to acquire or renew the lease."""
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
            # The Lease was written since it was read; if that was long ago, this process may still hold it.
            if known is not None:
                return await self._attempt(term, renewing=renewing)
            log.info("another process writes the lease %s as well: %s", self.key, failure)
        except ClusterError as failure:
            if renewing and isinstance(failure, NotFound):
                return _Outcome.TAKEN
            log.warning("the lease %s could not be read or written: %s", self.key, failure)
        return _Outcome.FAILED

    async def _read(self) -> Object | None:
        """Read the Lease, and note since when it is in this version, or missing."""
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
        created = await self._transport.create(LEASES, body, self._write("acquires"), namespace=self.key.namespace)
        return self._held(term, sent, created)

    def _held(self, term: LeadershipTerm, sent: float, lease: Object) -> _Outcome:
        self._lease = lease
        term.deadline = sent + self.timing.deadline
        return _Outcome.HELD

    async def _patch(self, lease: Object, spec: Object) -> Object:
        write = self._write("holds" if spec["holderIdentity"] else "releases")
        precondition = ObjectVersion.of(lease).precondition()
        return await self._transport.patch(
            LEASES, self.key, Patch.merge({"spec": spec}), write, precondition=precondition
        )

    def _write(self, does: str) -> Write:
        # Without a permit: permits depend on the lease.
        return Write("springtide-lease", f"{self.identity} {does} the lease")

    def _times(self, *more: str) -> dict[str, Any]:
        """Return the current time as the renewal time and as others; for information only."""
        now = format_instant(self._clock.now()).replace("Z", ".000000Z")
        return dict.fromkeys(("renewTime", *more), now)


def _spec(lease: Object) -> dict[str, Any]:
    return lease.get("spec") or {}
