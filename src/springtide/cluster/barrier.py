"""Read your writes: no decision on a cache that does not show yet what the same controller did before.

Without it a controller that created three nodes and looks too early creates three more. Every write leaves its
resourceVersion here; before the next reconcile the worker waits until the stores of that resource have come as far.
Where a write leaves no version (deletions, evictions, and writes whose answer was lost) the server is asked what has
become of the object, and the stores must show that, or something newer.

A controller that looks after each object by itself waits only for what it did to that object (`Controller.by_itself`):
when thousands change at one instant, none waits for the others.

A store that holds only a part of a resource hears of objects that it leaves out by bookmarks alone, a minute apart: do
not write what you do not watch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from springtide.cluster.port import Transport
from springtide.cluster.resources import Key, Resource, Selection, version_of
from springtide.cluster.store import Store


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


class Barrier:
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
