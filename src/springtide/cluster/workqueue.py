"""The work queue of a controller, with the semantics of client-go.

A key is in the queue once, however often it is added. One worker at a time has it: if it is added while it is being
processed, it is queued again when that is done. Keys are handed out by their urgency, and among equals in the order in
which they were added.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from springtide.cluster.clock import Backoff, Clock, RateLimit, TokenBucket
from springtide.cluster.controller import Urgency

K = TypeVar("K", bound=Hashable)

_FEW = 16


class DelayedKeys(Generic[K]):
    """Adds each key to the queue at the earliest of its due times; equal times in the order in which they were set.

    One heap and at most one sleeping task serve any number of keys.
    """

    def __init__(
        self,
        now: Callable[[], float],
        sleep_until: Callable[[float], Awaitable[None]],
        enqueue: Callable[[K], None],
    ) -> None:
        self._now = now
        self._sleep_until = sleep_until
        self._enqueue = enqueue
        self._count = 0
        self._earliest: dict[K, tuple[float, int, K]] = {}
        self._heap: list[tuple[float, int, K]] = []
        """Also holds entries that an earlier one has replaced: removing them at once would need a search."""
        self._sleeper: asyncio.Task[None] | None = None
        self._until = math.inf

    def __len__(self) -> int:
        return len(self._earliest)

    def add(self, key: K, when: float) -> None:
        """Enqueue a key at a time, unless an earlier time is set."""
        held = self._earliest.get(key)
        if held is not None and held[0] <= when:
            return
        self._count += 1
        entry = (when, self._count, key)
        self._earliest[key] = entry
        heapq.heappush(self._heap, entry)
        if len(self._heap) > 2 * len(self._earliest) + _FEW:
            self._heap = list(self._earliest.values())
            heapq.heapify(self._heap)
        if when < self._until:
            self._restart(when)

    def clear(self) -> None:
        """Drop all keys."""
        self._earliest.clear()
        self._heap.clear()
        self._until = math.inf
        if self._sleeper is not None:
            self._sleeper.cancel()
            self._sleeper = None

    def _restart(self, until: float) -> None:
        if self._sleeper is not None:
            self._sleeper.cancel()
        self._until = until
        self._sleeper = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while self._heap:
            self._until = self._heap[0][0]
            await self._sleep_until(self._until)
            # The sleep is over, so the key is due: a clock that rounds must not lead to a second sleep of no length.
            self._enqueue_due(max(self._now(), self._until))
        self._until = math.inf
        self._sleeper = None

    def _enqueue_due(self, now: float) -> None:
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            key = entry[2]
            if self._earliest.get(key) is entry:
                del self._earliest[key]
                self._enqueue(key)


_RETRIES = Backoff()
_RETRY_RATE = RateLimit()


class QueueShutDown(Exception):
    """The queue is shut down, and no keys are left."""


class WorkQueue(Generic[K]):
    """Keys to work on.

    A worker takes a key with `get`, processes it, and always returns it with `done`; before that it calls `forget`
    after a success, and `add_failed` to retry with backoff.
    """

    def __init__(self, clock: Clock, *, backoff: Backoff = _RETRIES, rate: RateLimit = _RETRY_RATE) -> None:
        self._clock = clock
        self._backoff = backoff
        self._bucket = TokenBucket(rate)
        self._queues: tuple[OrderedDict[K, None], ...] = tuple(OrderedDict() for _ in Urgency)
        """The keys that workers can take, by urgency."""
        self._wanted: dict[K, Urgency] = {}
        """Keys that are queued, or will be when their worker is done."""
        self._processing: set[K] = set()
        self._failures: dict[K, int] = {}
        # Two heaps, because the clock may be set: durations must ignore that, instants must follow it.
        self._after: DelayedKeys[K] = DelayedKeys(clock.monotonic, self._sleep_until, self.add)
        self._at: DelayedKeys[K] = DelayedKeys(clock.now, self._sleep_until_instant, self.add)
        self._idle: deque[asyncio.Future[None]] = deque()
        self._stopped = False

    def __len__(self) -> int:
        """Count the keys that workers can take now."""
        return sum(map(len, self._queues))

    @property
    def delayed(self) -> int:
        """Count the keys that wait for their due time."""
        return len(self._after) + len(self._at)

    def add(self, key: K, urgency: Urgency = Urgency.DUE) -> None:
        """Queue a key; delays of the same key stay, and queue it again. One that is queued can only become more urgent.

        Keys that become due or change while thousands are queued, as at a start, thereby need not wait for all of them.
        """
        known = self._wanted.get(key)
        if self._stopped or (known is not None and known <= urgency):
            return
        self._wanted[key] = urgency
        if key in self._processing:
            return
        if known is None:
            self._offer(key)
        else:
            del self._queues[known][key]
            self._queues[urgency][key] = None

    def add_after(self, key: K, seconds: float) -> None:
        """Queue a key after a duration; of several durations, the one that ends first counts."""
        if seconds <= 0:
            self.add(key)
        elif not self._stopped:
            self._after.add(key, self._clock.monotonic() + seconds)

    def add_at(self, key: K, instant: int) -> None:
        """Queue a key when the clock shows an instant, also if it is set meanwhile; the earliest counts."""
        if instant <= self._clock.now():
            self.add(key)
        elif not self._stopped:
            self._at.add(key, instant)

    def add_failed(self, key: K) -> None:
        """Requeue a key after a failure, with backoff per key and a rate limit for all keys."""
        failures = self._failures[key] = self.failures(key) + 1
        seconds = max(self._backoff.after(failures), self._bucket.reserve(self._clock.monotonic()))
        self.add_after(key, seconds)

    def forget(self, key: K) -> None:
        """Reset the backoff of a key."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Count the consecutive failures of a key."""
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """Wait for the next key and take it. Raises `QueueShutDown` when no more will come."""
        while not len(self):
            if self._stopped and not self._wanted:
                raise QueueShutDown
            await self._wait()
        key, _ = next(queue for queue in self._queues if queue).popitem(last=False)
        del self._wanted[key]
        self._processing.add(key)
        return key

    def done(self, key: K) -> None:
        """Return a key; if it was added meanwhile, it is queued now."""
        if key not in self._processing:
            msg = f"key {key!r} is returned, but no worker has it"
            raise ValueError(msg)
        self._processing.discard(key)
        if key in self._wanted:
            self._offer(key)
        elif self._stopped and not self._wanted:
            self._wake_all()

    def shut_down(self, *, drain: bool) -> None:
        """Accept no more keys. With `drain`, queued keys are still handed out; delayed keys are dropped."""
        self._stopped = True
        self._after.clear()
        self._at.clear()
        if not drain:
            for queue in self._queues:
                queue.clear()
            self._wanted.clear()
        if not self._wanted:
            self._wake_all()

    def _offer(self, key: K) -> None:
        self._queues[self._wanted[key]][key] = None
        self._wake_one()

    async def _wait(self) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(woken)
        try:
            await woken
        except asyncio.CancelledError:
            if woken.done() and not woken.cancelled():
                # The key that this worker was woken for is still queued: wake another worker.
                self._wake_one()
            raise

    def _wake_one(self) -> None:
        while self._idle:
            woken = self._idle.popleft()
            if not woken.done():
                woken.set_result(None)
                return

    def _wake_all(self) -> None:
        while self._idle:
            self._wake_one()

    def _sleep_until(self, when: float) -> Awaitable[None]:
        return self._clock.sleep(when - self._clock.monotonic())

    def _sleep_until_instant(self, when: float) -> Awaitable[None]:
        return self._clock.sleep_until(int(when))
