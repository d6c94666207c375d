"""How a controller reads and writes a cluster.

A `Client` is the transport for one controller. Every write of the controller

* has its own field manager, and a reason in plain words;
* has a precondition: a change names the object that it was computed from, and takes effect only if the server still has
  that version of it (`exact=False`: the same uid). Creates have deterministic names instead, so that the second of two
  is refused. So a late write is refused or changes nothing, server-side apply included: an apply without a version
  would let a former leader overwrite its successor, whose field manager is the same;
* needs a permit (leader election, the pause of everything) immediately before it leaves;
* is withheld in observe mode: it is logged and counted, and the caller gets the object that would have been sent;
* is noted by the `WriteBarrier`, so that the next reconcile sees it.

Reads here go to the API server. Controllers read their caches; this is for objects that they do not cache.

Read your writes: without the barrier a controller that created three nodes, and reconciles on a cache that does not
show them, creates three more. Before a reconcile the worker waits until the caches have reached the resourceVersions of
the controller's writes. If a write returned no version (deletions, evictions, lost answers), the server is asked for
the object, and the caches must show that state or a newer one. A controller of independent objects
(`Controller.independent`) waits only for its writes to the same object.

A cache with a selector learns about other objects of the resource only by bookmarks, a minute apart: do not write
objects that you do not watch.
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
    """Whether a controller writes.

    A process in which all controllers observe takes part in a leader election of its own, so that several observers
    record each event once, and never keep an acting process from leading.
    """

    OBSERVE = "observe"
    """It decides, logs, counts and records events; other writes are withheld."""
    ACT = "act"


@dataclass(slots=True, eq=False)
class _Pending:
    """The writes that one store must show."""

    selection: Selection
    store: Store[Any]
    version: int = 0
    by_key: dict[Key, int] = field(default_factory=dict)
    """The resourceVersion of the last write to each object that the store may not show yet."""
    unknown: dict[Key, object] = field(default_factory=dict)
    """Objects whose state after a write is unknown, each with a token of that write."""


class WriteBarrier:
    """The last writes of one controller, and the stores that must show them."""

    def __init__(self, transport: Transport, stores: Iterable[tuple[Selection, Store[Any]]]) -> None:
        self._transport = transport
        self._pending = [_Pending(selection, store) for selection, store in stores]
        self._listeners: list[Callable[[Resource, Key, int], None]] = []

    def listen(self, listener: Callable[[Resource, Key, int], None]) -> None:
        """Call a function with the resourceVersion of every write to an object."""
        self._listeners.append(listener)

    def note_write(self, resource: Resource, key: Key, version: int) -> None:
        """Note the resourceVersion that a write to an object made."""
        for listener in self._listeners:
            listener(resource, key, version)
        for pending in self._stores_with(resource, key):
            pending.version = max(pending.version, version)
            if version > pending.store.version:
                pending.by_key[key] = max(pending.by_key.get(key, 0), version)

    def note_unknown(self, resource: Resource, key: Key) -> None:
        """Note that a write to an object took effect, or may have, at an unknown resourceVersion."""
        for pending in self._stores_with(resource, key):
            pending.unknown[key] = object()

    async def wait_for_writes(self, *resources: Resource) -> None:
        """Wait until the stores (of these resources, else all) show every write so far."""
        for pending in self._pending:
            if not resources or pending.selection.resource in resources:
                while pending.unknown:
                    await self._resolve(pending, next(iter(pending.unknown)))
                await pending.store.wait_for_version(pending.version)

    async def wait_for_object(self, key: Key) -> None:
        """Wait until the stores show every write to one object so far."""
        for pending in self._pending:
            while key in pending.unknown:
                await self._resolve(pending, key)
            await pending.store.wait_for_version(pending.by_key.get(key, 0))
            if pending.by_key.get(key, 0) <= pending.store.version:
                pending.by_key.pop(key, None)

    async def _resolve(self, pending: _Pending, key: Key) -> None:
        """Ask the server for an object, and wait until the store shows its answer."""
        write = pending.unknown[key]
        only_it = Selection(pending.selection.resource, key.namespace, fields=f"metadata.name={key.name}")
        page = await self._transport.list(only_it)
        if page.items:
            pending.version = max(pending.version, version_of(page.items[0]))
            pending.by_key[key] = max(pending.by_key.get(key, 0), version_of(page.items[0]))
        else:
            await pending.store.wait_until_gone(key, int(page.version))
        # Only now, since other workers of the controller must wait as well; and not if it was written again meanwhile.
        if pending.unknown.get(key) is write:
            del pending.unknown[key]

    def _stores_with(self, resource: Resource, key: Key) -> Iterator[_Pending]:
        for pending in self._pending:
            if pending.selection.resource == resource and pending.selection.namespace in ("", key.namespace):
                yield pending


_PAGE = 500


@dataclass(slots=True)
class WriteCounts:
    """How many writes a controller has sent, or withheld in observe mode."""

    sent: int = 0
    held_back: int = 0


class Client:
    """The cluster as one controller may use it."""

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
        """Create an object; its name must follow from its purpose, so that a second create is refused."""
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
        doing: str = "",
    ) -> Object:
        """Patch the object `of`, from which the patch was computed; `Conflict` if it has changed meanwhile.

        `doing` describes the change to users in observe mode; without it they read `patch KIND NAME`.
        """
        origin = ObjectVersion.of(of)
        precondition = self._precondition(origin, exact=exact)
        return await self._send(
            "patch",
            resource,
            origin.key,
            because,
            origin.changed_by(patch),
            lambda write: self._transport.patch(
                resource, origin.key, patch, write, subresource=subresource, precondition=precondition
            ),
            doing,
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
        """Apply the status of an object if it differs, and tell whether there was anything to write.

        `fields` are all status fields of this controller (None: must be absent), `conditions` all its conditions. An
        apply removes only fields of its own manager; a field of another manager that must be absent is removed by a
        second patch.
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
        before = (of.get("spec") or {}).get("replicas")
        since = "" if before is None else f"from {before} "
        doing = f"scale {resource.kind} {ObjectVersion.of(of).key} {since}to {replicas}"
        return await self.patch(resource, patch, of=of, because=because, subresource="scale", doing=doing)

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
        """Delete an object if it is still the one that was read."""
        origin = ObjectVersion.of(of)
        precondition = self._precondition(origin, exact=exact)

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
        """Evict a pod; `TooManyRequests` if its disruption budgets do not allow it.

        The precondition is only the uid: the server checks the budgets, and the status of a pod changes all the time.
        """
        origin = ObjectVersion.of(of)
        options: Object = {"preconditions": {"uid": self._precondition(origin, exact=False).uid}}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": origin.key.name, "namespace": origin.key.namespace},
            "deleteOptions": options,
        }
        await self._create_subresource("evict", origin.key, "eviction", body, because)

    async def bind(self, node: str, *, of: Any, because: str) -> None:
        """Bind a pod to a node; `Conflict` if it is bound already, or is not the one that was read."""
        origin = ObjectVersion.of(of)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": origin.key.name,
                "namespace": origin.key.namespace,
                "uid": self._precondition(origin, exact=False).uid,
            },
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._create_subresource("bind", origin.key, "binding", body, because)

    def withholds(self, what: str, *, because: str) -> bool:
        """Return whether a write must be withheld because the mode is observe; then it is logged and counted.

        Call it before a write to anything but the cluster (a cloud API), and `permit` after it.
        """
        if self.mode is not Mode.OBSERVE:
            return False
        self.traffic.held_back += 1
        self._log.info("would %s: %s", what, because)
        return True

    def permit(self) -> None:
        """Permit a write to anything but the cluster, immediately before it leaves; raises `NotSent`.

        It may be called from any thread.
        """
        self._permit()

    def _precondition(self, origin: ObjectVersion, *, exact: bool) -> Precondition:
        """Return the precondition of a write; in observe mode objects that were not really created have no uid."""
        return UNCONDITIONAL if self.mode is Mode.OBSERVE else origin.precondition(exact=exact)

    async def _create_subresource(self, verb: str, key: Key, subresource: str, body: Object, because: str) -> None:
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
        doing: str = "",
    ) -> Object:
        """Send one write, or withhold it, and note its resourceVersion; an empty answer has none."""
        if self.withholds(doing or f"{verb} {resource.kind} {key}", because=because):
            return sent
        try:
            answer = await send(Write(self.manager, because, permit=self._permit))
        except BaseException as failure:
            # A write that is cancelled under way is as uncertain as one whose answer was lost.
            if not isinstance(failure, ClusterError) or failure.uncertain:
                self._barrier.note_unknown(resource, key)
            raise
        self.traffic.sent += 1
        version = version_of(answer) if answer else 0
        if version:
            self._barrier.note_write(resource, key, version)
        else:
            self._barrier.note_unknown(resource, key)
        return answer
