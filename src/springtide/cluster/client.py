"""Whether a controller acts, or only tells what it would do.

A process all of whose controllers observe takes part in an election of its own: its Lease is that of the acting ones
with `-observe` at the end of its name. So several observers do not tell everything several times, and none of them
ever keeps a process out that acts. Besides events that Lease is all that is written.

Read your writes: no decision on a cache that does not show yet what the same controller did before.

Without it a controller that created three nodes and looks too early creates three more. Every write leaves its
resourceVersion here; before the next reconcile the worker waits until the stores of that resource have come as far.
Where a write leaves no version (deletions, evictions, and writes whose answer was lost) the server is asked what has
become of the object, and the stores must show that, or something newer.

A controller that looks after each object by itself waits only for what it did to that object (`Controller.by_itself`):
when thousands change at one instant, none waits for the others.

A store that holds only a part of a resource hears of objects that it leaves out by bookmarks alone, a minute apart: do
not write what you do not watch.

What a controller holds to read and write a cluster.

A `Client` is the cluster port as one controller may use it. Whatever the controller writes

* goes under its own field manager, with a reason in words;
* is conditional: a change names the object that it was computed from, and takes effect only if the server still has
  that version of it (`exact=False`: that object, whatever its version). Creates have deterministic names instead, so
  that the second of two is refused. So a late write is refused or changes nothing, server-side apply included: an
  apply without a version would let an ex-leader overwrite its successor, whose field manager is the same;
* passes the permit (leadership, the big pause) immediately before it leaves;
* is held back in observe mode: it is logged and counted, and the caller gets what would have been sent;
* is remembered by the barrier, so that the next decision sees it.

Reading here asks the server itself. Controllers read their stores; this is for what they do not keep.
"""

from __future__ import annotations

import builtins
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from springtide.cluster.conditions import Condition, ConditionList, status_patch
from springtide.cluster.errors import ClusterError
from springtide.cluster.resources import PODS, Key, Object, Resource, Selection, version_of
from springtide.cluster.store import Store
from springtide.cluster.transport import (
    UNCONDITIONAL,
    ObjectVersion,
    Patch,
    Precondition,
    Propagation,
    Transport,
    Write,
)


class Mode(StrEnum):
    """What becomes of the writes that a controller decides on."""

    OBSERVE = "observe"
    """It decides, logs, counts and emits events; nothing else is written to what it looks after."""
    ACT = "act"


@dataclass(slots=True, eq=False)
class _Mark:
    """How far a store must have come."""

    selection: Selection
    store: Store[Any]
    version: int = 0
    by_key: dict[Key, int] = field(default_factory=dict)
    """The last write of each object that the store may not show yet."""
    unknown: dict[Key, object] = field(default_factory=dict)
    """Objects of which nobody told what has become of them, each with a token of the write that it is about."""


class WriteBarrier:
    """The last writes of one controller, and the stores that must show them."""

    def __init__(self, transport: Transport, stores: Iterable[tuple[Selection, Store[Any]]]) -> None:
        self._transport = transport
        self._marks = [_Mark(selection, store) for selection, store in stores]

    def wrote(self, resource: Resource, key: Key, version: int) -> None:
        """Note that a write of an object made this version."""
        for mark in self._concerned(resource, key):
            mark.version = max(mark.version, version)
            if version > mark.store.version:
                mark.by_key[key] = max(mark.by_key.get(key, 0), version)

    def unsure(self, resource: Resource, key: Key) -> None:
        """Note that a write of an object took effect, or may have, at a version that nobody told."""
        for mark in self._concerned(resource, key):
            mark.unknown[key] = object()

    async def caught_up(self, *resources: Resource) -> None:
        """Wait until the stores (of these resources, else all) show everything that was written so far."""
        for mark in self._marks:
            if not resources or mark.selection.resource in resources:
                while mark.unknown:
                    await self._clear_up(mark, next(iter(mark.unknown)))
                await mark.store.reached(mark.version)

    async def shows(self, key: Key) -> None:
        """Wait until the stores show what was written of one object so far, whatever was written of others."""
        for mark in self._marks:
            while key in mark.unknown:
                await self._clear_up(mark, key)
            await mark.store.reached(mark.by_key.get(key, 0))
            if mark.by_key.get(key, 0) <= mark.store.version:
                mark.by_key.pop(key, None)

    async def _clear_up(self, mark: _Mark, key: Key) -> None:
        """Ask what has become of an object, and see that the store shows it."""
        write = mark.unknown[key]
        just_it = Selection(mark.selection.resource, key.namespace, fields=f"metadata.name={key.name}")
        page = await self._transport.list(just_it)
        if page.items:
            mark.version = max(mark.version, version_of(page.items[0]))
            mark.by_key[key] = max(mark.by_key.get(key, 0), version_of(page.items[0]))
        else:
            await mark.store.lost(key, int(page.version))
        # Not before: others of the controller must wait as well. Nor where it was written again meanwhile.
        if mark.unknown.get(key) is write:
            del mark.unknown[key]

    def _concerned(self, resource: Resource, key: Key) -> Iterator[_Mark]:
        for mark in self._marks:
            if mark.selection.resource == resource and mark.selection.namespace in ("", key.namespace):
                yield mark


_PAGE = 500


@dataclass(slots=True)
class WriteCounts:
    """How many writes a controller has made, or would have made."""

    sent: int = 0
    held_back: int = 0


class Client:
    """The cluster, as one controller may use it."""

    def __init__(
        self,
        transport: Transport,
        *,
        manager: str,
        barrier: WriteBarrier,
        permit: Callable[[], None],
        mode: Mode = Mode.ACT,
        log: logging.Logger,
        traffic: WriteCounts | None = None,
    ) -> None:
        self.manager = manager
        self.mode = mode
        self.traffic = traffic or WriteCounts()
        self._transport = transport
        self._barrier = barrier
        self._permit = permit
        self._log = log

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Object:
        """Read one object, or its `scale`, from the server."""
        return await self._transport.get(resource, key, subresource=subresource)

    async def list(self, selection: Selection) -> builtins.list[Any]:
        """Read all objects of a selection from the server, as of one version."""
        page = await self._transport.list(selection, limit=_PAGE)
        items = [*page.items]
        while page.continue_:
            page = await self._transport.list(selection, limit=_PAGE, continue_=page.continue_)
            items += page.items
        return items

    async def create(self, resource: Resource, body: Object, *, because: str) -> Object:
        """Create an object under the name that it says; the name must follow from what it is for."""
        metadata = body["metadata"]
        key = Key(metadata.get("namespace", ""), metadata["name"])
        return await self._send(
            "create",
            resource,
            key,
            because,
            body,
            lambda write: self._transport.create(resource, body, write, namespace=key.namespace),
        )

    async def patch(
        self,
        resource: Resource,
        patch: Patch,
        *,
        of: Any,
        because: str,
        subresource: str = "",
        exact: bool = True,
    ) -> Object:
        """Change the object `of`, from which the patch was computed; `Conflict` where it has changed meanwhile."""
        origin = ObjectVersion.of(of)
        precondition = self._demand(origin, exact=exact)
        return await self._send(
            "patch",
            resource,
            origin.key,
            because,
            origin.changed_by(patch),
            lambda write: self._transport.patch(
                resource, origin.key, patch, write, subresource=subresource, precondition=precondition
            ),
        )

    async def apply_status(
        self,
        resource: Resource,
        fields: Mapping[str, Any],
        conditions: Sequence[Condition],
        *,
        of: Object,
        now: int,
        because: str,
        listed: ConditionList = ConditionList.MAP,
        observes_generation: bool = True,
    ) -> bool:
        """Bring the status of an object to what it should be, and tell whether there was anything to write.

        `fields` are all status fields of this controller (None: must not be there), `conditions` all its conditions. An
        apply takes only what is our own away; where another has written a field that must not be there, a second patch
        removes it, or the two would differ for ever.
        """
        patch = status_patch(
            resource, of, fields, conditions, now=now, listed=listed, observes_generation=observes_generation
        )
        if patch is None:
            return False
        shown = await self.patch(resource, patch, of=of, because=because, subresource="status")
        status = shown.get("status") or {}
        foreign = {name: None for name, value in fields.items() if value is None and status.get(name) is not None}
        if foreign:
            removal = Patch.merge({"status": foreign})
            await self.patch(resource, removal, of=shown, because=because, subresource="status")
        return True

    async def scale(self, resource: Resource, replicas: int, *, of: Object, because: str) -> Object:
        """Set the number of replicas; `of` is the object itself, or its `scale` as `get` reads it."""
        patch = Patch.merge({"spec": {"replicas": replicas}})
        return await self.patch(resource, patch, of=of, because=because, subresource="scale")

    async def delete(
        self,
        resource: Resource,
        *,
        of: Any,
        because: str,
        exact: bool = True,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        """Ask an object to go, as long as it is the one that was read."""
        origin = ObjectVersion.of(of)
        precondition = self._demand(origin, exact=exact)

        async def send(write: Write) -> Object:
            await self._transport.delete(
                resource,
                origin.key,
                write,
                precondition=precondition,
                propagation=propagation,
                grace_seconds=grace_seconds,
            )
            return {}

        await self._send("delete", resource, origin.key, because, {}, send)

    async def evict(self, *, of: Any, because: str, grace_seconds: int | None = None) -> None:
        """Ask a pod to go if its disruption budgets allow it; `TooManyRequests` where they do not.

        Only the uid is demanded: the server judges the budgets itself, and the status of a pod changes all the time.
        """
        origin = ObjectVersion.of(of)
        options: Object = {"preconditions": {"uid": self._demand(origin, exact=False).uid}}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": origin.key.name, "namespace": origin.key.namespace},
            "deleteOptions": options,
        }
        await self._create_below("evict", origin.key, "eviction", body, because)

    async def bind(self, node: str, *, of: Any, because: str) -> None:
        """Put a pod on a node; `Conflict` where the pod is on one already, or is not the one that was read."""
        origin = ObjectVersion.of(of)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": origin.key.name,
                "namespace": origin.key.namespace,
                "uid": self._demand(origin, exact=False).uid,
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._create_below("bind", origin.key, "binding", body, because)

    def withholds(self, what: str, *, because: str) -> bool:
        """Tell whether a write is left undone because we only observe; then it is logged and counted.

        Whoever writes to somebody else than the cluster asks this first, and then `permit`.
        """
        if self.mode is not Mode.OBSERVE:
            return False
        self.traffic.held_back += 1
        self._log.info("would %s: %s", what, because)
        return True

    def permit(self) -> None:
        """Let a write to somebody else than the cluster pass, immediately before it leaves; raises `NotSent`.

        Safe to be called from any thread.
        """
        self._permit()

    def _demand(self, origin: ObjectVersion, *, exact: bool) -> Precondition:
        """Demand the object that was read; what was "created" while observing has no identity, and needs none."""
        return UNCONDITIONAL if self.mode is Mode.OBSERVE else origin.precondition(exact=exact)

    async def _create_below(self, verb: str, key: Key, subresource: str, body: Object, because: str) -> None:
        async def send(write: Write) -> Object:
            await self._transport.create(
                PODS, body, write, namespace=key.namespace, name=key.name, subresource=subresource
            )
            return {}

        await self._send(verb, PODS, key, because, body, send)

    async def _send(
        self,
        verb: str,
        resource: Resource,
        key: Key,
        because: str,
        sent: Object,
        send: Callable[[Write], Awaitable[Object]],
    ) -> Object:
        """Let one write pass, or hold it back, and remember what it did; an empty answer tells no version."""
        if self.withholds(f"{verb} {resource.kind} {key}", because=because):
            return sent
        try:
            answer = await send(Write(self.manager, because, permit=self._permit))
        except BaseException as failure:
            # Cancelled under way is as uncertain as an answer that was lost.
            if not isinstance(failure, ClusterError) or failure.uncertain:
                self._barrier.unsure(resource, key)
            raise
        self.traffic.sent += 1
        version = version_of(answer) if answer else 0
        if version:
            self._barrier.wrote(resource, key, version)
        else:
            self._barrier.unsure(resource, key)
        return answer
