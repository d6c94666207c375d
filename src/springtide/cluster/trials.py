"""Trials of large objects: what a controller would compute of one is computed in a child process first.

Validating and compiling an object of usual size takes milliseconds. One of the megabytes that an API server accepts can
take seconds, and the event loop of every process that caches the kind would be held by it: again after every restart,
in both replicas. So a cache that declares a `trial` makes no record of a large object until the trial has passed within
a limit of CPU time; meanwhile the former record stays. An object whose trial does not pass is set aside: it counts as
absent, and its controller says so in the condition `Ready`. All other objects are reconciled as ever.

The message of the condition names the version of Springtide and a digest of what was tried. Where it is found again,
as after a restart, the object is set aside without another trial. It is tried again when its spec, labels or
annotations change, and by another version of Springtide.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from springtide import __version__
from springtide.cluster.clock import Clock
from springtide.cluster.compute import Compute, ComputeInterrupted, ComputeLimitExceeded
from springtide.cluster.conditions import Condition, ConditionStatus
from springtide.cluster.controller import Cached
from springtide.cluster.resources import Key, Object, Resource, key_of
from springtide.cluster.store import ObjectHeldBack, Store

SMALL_BYTES = 32 * 1024
"""The largest object, as JSON and without its status, that needs no trial: it takes some tens of milliseconds."""
MOST_CPU = 1.0
"""Seconds of CPU time that a trial may take: less than what probes and leases wait for the event loop."""
REASON = "TooCostly"
_OWN_PREFIX = "springtide.dev/"
_EXTENSIONS = "springtide.dev/extensions"
_MOST_KNOWN = 10_000
"""How many results of large objects are kept."""
_MODELLED_BYTES_PER_SECOND = 5_000_000
_MODELLED_COST_OF_FAILURE = MOST_CPU
_ATTEMPTS = 3
"""How often a trial is begun that is interrupted, as by another process of a busy machine."""
_SECONDS_BETWEEN_ATTEMPTS = 2

log = logging.getLogger(__name__)


class _Subject(NamedTuple):
    """An object that is tried."""

    resource: Resource
    key: Key


class _PendingTrial(NamedTuple):
    cached: Cached
    item: Object
    digest: str
    size: int


class Trials:
    """The trials of one process: one after the other, and in turn for each namespace that has large objects.

    Objects of cluster-scoped kinds, which only administrators write, come first: others refer to them.
    """

    def __init__(self, compute: Compute, clock: Clock, *, default_zone: str) -> None:
        self._compute = compute
        self._clock = clock
        self._default_zone = default_zone
        self._stores: dict[Resource, list[Store[Any]]] = {}
        self._passed: OrderedDict[_Subject, str] = OrderedDict()
        self._failed: OrderedDict[_Subject, tuple[str, str]] = OrderedDict()
        """Digest and message of what was set aside."""
        self._pending: OrderedDict[str, OrderedDict[_Subject, _PendingTrial]] = OrderedDict()
        """By namespace; the first one is next."""
        self._task: asyncio.Task[None] | None = None
        self._decided: list[asyncio.Future[None]] = []
        """Done when the next trial has ended."""

    def gated(self, cached: Cached) -> Cached:
        """Let a cache with a trial hold back large objects until they have passed it."""
        if cached.trial is None:
            return cached

        def record(item: Any) -> Any:
            self._admit(cached, item)
            return cached.record(item)

        return replace(cached, record=record)

    def bind(self, stores: Mapping[Cached, Store[Any]]) -> None:
        """Set the stores of the process, which make their records when a trial has ended."""
        for cached, store in stores.items():
            if cached.trial is not None:
                self._stores.setdefault(cached.selection.resource, []).append(store)

    async def wait_decided(self, cached: Cached) -> None:
        """Wait until all objects of a cluster-scoped kind have been tried.

        Without it, objects that refer to a large one would be reconciled after a start as if it were missing. Users of
        namespaces could delay the start by large objects, so that their kinds are not waited for.
        """
        resource = cached.selection.resource
        while not resource.namespaced and any(one.resource == resource for one in self._pending.get("", ())):
            decided: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._decided.append(decided)
            await decided

    def stop(self) -> None:
        """End the trial that is under way; nothing is decided by it."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _admit(self, cached: Cached, item: Object) -> None:
        """Return if a record of an object may be made now; raises `ObjectHeldBack`."""
        subject = _Subject(cached.selection.resource, key_of(item))
        written = written_part(item)
        packed = msgspec.json.encode(written)
        if len(packed) <= SMALL_BYTES:
            self._drop(subject)
            return
        digest = blake2b(packed, digest_size=6).hexdigest()
        if self._passed.get(subject) == digest:
            return
        known = self._failed.get(subject)
        if known is None or known[0] != digest:
            shown = _failure_in_status(item, digest)
            known = None if shown is None else (digest, shown)
        if known is not None:
            self._drop(subject)
            _keep(self._failed, subject, known)
            raise ObjectHeldBack(known[1], _outline(item), set_aside=True)
        self._passed.pop(subject, None)
        self._failed.pop(subject, None)
        queue = self._pending.setdefault(subject.key.namespace, OrderedDict())
        # An edited object keeps its place in the queue, and one of which only the status changed its trial.
        if subject not in queue or queue[subject].digest != digest:
            queue[subject] = _PendingTrial(cached, _without_traces(item), digest, len(packed))
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())
        raise ObjectHeldBack(f"it has {len(packed)} bytes, and is tried before it is used", item, set_aside=False)

    def _drop(self, subject: _Subject) -> None:
        """Forget what was found of other contents of an object."""
        self._passed.pop(subject, None)
        self._failed.pop(subject, None)
        queue = self._pending.get(subject.key.namespace)
        if queue is not None and subject in queue:
            del queue[subject]
            if not queue:
                del self._pending[subject.key.namespace]

    async def _run(self) -> None:
        while self._pending:
            namespace = "" if "" in self._pending else next(iter(self._pending))
            queue = self._pending[namespace]
            subject, pending = next(iter(queue.items()))
            self._pending.move_to_end(namespace)
            failure = await self._try(pending)
            if self._pending.get(namespace, queue).get(subject) is not pending:
                continue  # edited meanwhile
            self._drop(subject)
            if failure is None:
                _keep(self._passed, subject, pending.digest)
            else:
                log.warning("%s %s: %s", subject.resource.kind, subject.key, failure)
                _keep(self._failed, subject, (pending.digest, failure))
            for store in self._stores.get(subject.resource, ()):
                store.reread(subject.key)
            for decided in self._decided:
                if not decided.done():
                    decided.set_result(None)
            self._decided.clear()
        self._task = None

    async def _try(self, pending: _PendingTrial) -> str | None:
        """Try an object; return why it is set aside, or None if it passes."""
        trial = pending.cached.trial
        assert trial is not None  # noqa: S101 - only caches with a trial are gated
        cost = min(pending.size / _MODELLED_BYTES_PER_SECOND, _MODELLED_COST_OF_FAILURE)
        now = self._clock.now()
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await self._compute.run_limited(
                    run_trial, trial, pending.item, now, self._default_zone, cost=cost, cpu=MOST_CPU
                )
            except (ComputeInterrupted, OSError) as failure:  # an OSError where no process could be started
                if attempt == _ATTEMPTS:
                    # Without the mark: what may be no fault of the object does not outlast this process.
                    return failure_message(pending.item, str(failure), pending.size)
                await self._clock.sleep(_SECONDS_BETWEEN_ATTEMPTS)
            except ComputeLimitExceeded as limit:
                return failure_message(pending.item, str(limit), pending.size, pending.digest)
            else:
                break
        return None


def run_trial(trial: Callable[[Object, int, str], object], item: Object, now: int, default_zone: str) -> None:
    """Run a trial in a child process, which does not send back what was computed.

    An object of which nothing can be computed passes: its reconcile fails likewise, and reports it.
    """
    try:
        trial(item, now, default_zone)
    except MemoryError:
        raise
    except Exception:
        log.debug("the trial of %s failed", key_of(item), exc_info=True)


def too_costly(message: str) -> Condition:
    """Make the condition of an object that is set aside."""
    return Condition("Ready", ConditionStatus.FALSE, REASON, message)


def failure_message(item: Object, limit: str, size: int, digest: str | None = None) -> str:
    """Say why an object is set aside, what would help, and what was tried, if that need not be tried again."""
    place, part = _largest_part(written_part(item))
    return (
        f"set aside, nothing is done about it: when it was validated, {limit}; it has {_kilobytes(size)}, of which"
        f" {place} has {_kilobytes(part)}: shorten that, or divide it among several objects"
        f"{'' if digest is None else ' ' + _mark(digest)}"
    )


def written_part(item: Object) -> Object:
    """Return what users write of an object: spec, labels and annotations, without what controllers annotate."""
    metadata = item.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    by_users = {
        name: text for name, text in annotations.items() if name == _EXTENSIONS or not name.startswith(_OWN_PREFIX)
    }
    return {"metadata": {"labels": metadata.get("labels"), "annotations": by_users}, "spec": item.get("spec")}


def _largest_part(written: Object) -> tuple[str, int]:
    """Return the path of the deepest part that makes up most of an object, and its size; not into lists."""
    path: list[str] = []
    part: Any = written
    size = len(msgspec.json.encode(part))
    while isinstance(part, dict) and part:
        sizes = {name: len(msgspec.json.encode(each)) for name, each in part.items()}
        name = max(sizes, key=lambda name: (sizes[name], name))
        if path and 2 * sizes[name] < size:
            break
        path.append(name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…")
        part, size = part[name], sizes[name]
    return (f"`{'.'.join(path)}`" if path else "the object"), size


_LONGEST_NAME = 100


def _kilobytes(size: int) -> str:
    return f"{size / 1000:,.0f} kB"


def _mark(digest: str) -> str:
    return f"(springtide {__version__}, content {digest})"


def _failure_in_status(item: Object, digest: str) -> str | None:
    """Return the message with which these contents were set aside before by this version."""
    status = item.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    for entry in conditions or ():
        message = entry.get("message")
        if entry.get("reason") == REASON and isinstance(message, str) and message.endswith(_mark(digest)):
            return message
    return None


def _outline(item: Object) -> Object:
    """Return the parts of an object that the write of its status needs."""
    names = ("name", "namespace", "uid", "resourceVersion", "generation", "deletionTimestamp")
    metadata = {name: value for name in names if (value := item["metadata"].get(name)) is not None}
    return {"metadata": metadata, "status": item.get("status") or {}}


def _without_traces(item: Object) -> Object:
    """Leave out the status and the managed fields, which a trial does not need."""
    metadata = {name: value for name, value in item["metadata"].items() if name != "managedFields"}
    parts = {name: part for name, part in item.items() if name != "status"}
    return {**parts, "metadata": metadata}


def _keep(results: OrderedDict[_Subject, Any], subject: _Subject, result: Any) -> None:
    results[subject] = result
    results.move_to_end(subject)
    if len(results) > _MOST_KNOWN:
        results.popitem(last=False)
