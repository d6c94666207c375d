"""List and watch: paging, resource versions, selectors and watch subscriptions.

A watch without selectors, in the storage version, receives the event objects that the storage creates; events are built
per watch only for selectors and for other versions.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from springtide.apiserver.errors import EXPIRED_CONTINUE, EXPIRED_LIST, too_large_resource_version
from springtide.apiserver.selectors import all_hold, parse_fields, parse_labels
from springtide.apiserver.storage import Collection, Storage, StoredChange, at_version
from springtide.cluster.errors import BadRequest, Gone
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.transport import INITIAL_EVENTS_END, ListPage, WatchEvent, WatchEventType

ObjectFilter: TypeAlias = Callable[[Object], bool]
EventFilter: TypeAlias = Callable[[StoredChange], WatchEvent | None]

_ANY_VERSION = ("", "0")
_ONE_NAME = re.compile(r"metadata\.name==?([^\\,=!]+)")

Serve = Callable[[Object], Object]


class WatchSubscription:
    """An open watch: a queue of events for one reader, which closes it with `end`."""

    __slots__ = ("_collection", "_resource", "_to_event", "_waiter", "ended", "events", "version")

    def __init__(
        self, collection: Collection, resource: Resource, *, version: int, to_event: EventFilter | None
    ) -> None:
        self.events: deque[WatchEvent] = deque()
        self.version = version
        """The version up to which all events have been queued."""
        self.ended = False
        """No further events will be queued."""
        self._collection = collection
        self._resource = resource
        self._to_event = to_event
        self._waiter: asyncio.Future[None] | None = None
        collection.subscriptions.append(self)

    def deliver(self, change: StoredChange) -> None:
        """Queue the event for a change, if the watch selects the object."""
        event = change.event if self._to_event is None else self._to_event(change)
        if event is not None:
            self.version = change.revision
            self.events.append(event)
            if self._waiter is not None:
                self._wake()

    def begin(self, items: Iterable[Object], *, end: bool) -> None:
        """Queue an ADDED event for each existing object, and on request the bookmark that ends initial events."""
        self.events.extend(WatchEvent(WatchEventType.ADDED, item) for item in items)
        if end:
            self._bookmark({"annotations": {INITIAL_EVENTS_END: "true"}})

    def bookmark(self, version: int) -> None:
        """Queue a bookmark, if the version is newer than the last event."""
        if version > self.version and not self.ended:
            self.version = version
            self._bookmark({})
            self._wake()

    def end(self) -> None:
        """Close the watch; queued events can still be read."""
        if not self.ended:
            self.ended = True
            self._collection.subscriptions.remove(self)
            self._wake()

    async def wait(self) -> None:
        """Wait until there are events, or the watch is closed."""
        if not self.events and not self.ended:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def _bookmark(self, metadata: Object) -> None:
        resource = self._resource
        metadata = {"resourceVersion": str(self.version), "creationTimestamp": None, **metadata}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        self.events.append(WatchEvent(WatchEventType.BOOKMARK, body))

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def event_filter(
    namespace: str, matches: ObjectFilter | None, serve: Callable[[Object], Object] | None
) -> EventFilter | None:
    """Return the function that maps a change to an event of this watch; None where all events are passed unchanged."""
    if not namespace and matches is None and serve is None:
        return None

    def to_event(change: StoredChange) -> WatchEvent | None:
        if namespace and change.key.namespace != namespace:
            return None
        event = change.event
        if matches is not None:
            selected = _selected_event(change, matches)
            if selected is None:
                return None
            event = selected
        if serve is None:
            return event
        served = serve(event.object)
        return event if served is event.object else WatchEvent(event.change, served)

    return to_event


def _selected_event(change: StoredChange, matches: ObjectFilter) -> WatchEvent | None:
    """Return the event for a watch with selectors: an object that stops matching is DELETED for it."""
    before = change.old is not None and matches(change.old)
    after = change.new is not None and matches(change.new)
    if before and after:
        return change.event
    if after:
        return change.event if change.old is None else WatchEvent(WatchEventType.ADDED, change.new)
    if before and change.old is not None:
        return (
            change.event
            if change.new is None
            else WatchEvent(WatchEventType.DELETED, at_version(change.old, change.revision))
        )
    return None


def selection_filter(selection: Selection, selectable: tuple[str, ...]) -> ObjectFilter | None:
    """Return the predicate of label and field selectors; None without selectors."""
    if not selection.labels and not selection.fields:
        return None
    labels = parse_labels(selection.labels)
    fields = all_hold(parse_fields(selection.fields, selection.resource, selectable))
    return lambda item: labels.matches(item["metadata"].get("labels")) and fields(item)


def list_page(
    storage: Storage,
    collection: Collection,
    selection: Selection,
    matches: ObjectFilter | None,
    serve: Serve | None,
    *,
    limit: int,
    continue_: str,
    version: str,
    exact: bool,
) -> ListPage:
    """List the objects of one version; all pages show the same version."""
    if continue_ and version not in _ANY_VERSION:
        raise BadRequest("specifying resource version is not allowed when using continue")
    start = _read_token(continue_) if continue_ else _Token(_list_revision(storage, version, exact))
    items: list[Object] = []
    last: Key | None = None
    skipped = 0
    try:
        for key, item in _candidates(storage, collection, selection, start):
            if matches is not None and not matches(item):
                continue
            if limit and len(items) == limit:
                skipped += 1
                # The remaining items are counted once, on the first page; not at all with selectors.
                if matches is not None or start.left is not None:
                    break
                continue
            items.append(item if serve is None else serve(item))
            last = key
    except Gone as gone:
        raise Gone(EXPIRED_CONTINUE if continue_ else EXPIRED_LIST) from gone
    if not skipped or last is None:
        return ListPage(items, str(start.revision))
    left = None if matches is not None else skipped if start.left is None else start.left - len(items)
    return ListPage(items, str(start.revision), _Token(start.revision, last, left).text(), left)


class ListSnapshot:
    """The objects of a selection at one version, read in slices between which writes may happen."""

    def __init__(
        self,
        storage: Storage,
        collection: Collection,
        selection: Selection,
        matches: ObjectFilter | None,
        serve: Serve | None,
        *,
        version: str,
    ) -> None:
        self.revision = _list_revision(storage, version, exact=False)
        self._storage = storage
        self._collection = collection
        self._selection = selection
        self._matches = matches
        self._serve = serve

    def slices(self, size: int) -> Iterator[list[Object]]:
        """Yield the objects in order, so many at a time; `Gone` if the version is compacted in the meantime."""
        after: Key | None = None
        while True:
            start = _Token(self.revision, after)
            batch = list(islice(_candidates(self._storage, self._collection, self._selection, start), size))
            if not batch:
                return
            after = batch[-1][0]
            matches, serve = self._matches, self._serve
            items = [item for _, item in batch if matches is None or matches(item)]
            yield items if serve is None else [serve(item) for item in items]


def _candidates(
    storage: Storage, collection: Collection, selection: Selection, start: _Token
) -> Iterable[tuple[Key, Object]]:
    """Return the objects that a selection can match, in order; a single name is looked up directly."""
    one = _ONE_NAME.fullmatch(selection.fields)
    if one is None or (selection.resource.namespaced and not selection.namespace):
        return storage.listed(collection, start.revision, namespace=selection.namespace, after=start.after)
    key = Key(selection.namespace, one[1])
    item = storage.at(collection, key, start.revision)
    return () if item is None or (start.after is not None and key <= start.after) else ((key, item),)


def open_watch(
    storage: Storage,
    collection: Collection,
    selection: Selection,
    matches: ObjectFilter | None,
    serve: Serve | None,
    *,
    version: str,
    initial_events: bool,
) -> WatchSubscription:
    """Open a watch from a version, or with the objects that exist now."""
    revision = parse_version(version)
    if revision > storage.revision:
        raise too_large_resource_version(revision, storage.revision)
    to_event = event_filter(selection.namespace, matches, serve)
    if not initial_events and version not in _ANY_VERSION:
        storage.check(revision)
        opened = WatchSubscription(collection, selection.resource, version=revision, to_event=to_event)
        for change in collection.since(revision):
            opened.deliver(change)
        return opened
    opened = WatchSubscription(collection, selection.resource, version=storage.revision, to_event=to_event)
    listed = storage.listed(collection, storage.revision, namespace=selection.namespace)
    items = (item for _, item in listed if matches is None or matches(item))
    opened.begin(items if serve is None else map(serve, items), end=initial_events)
    return opened


def parse_version(text: str) -> int:
    """Parse a resourceVersion."""
    digits = text.isascii() and text.isdigit()
    # Python refuses to parse thousands of digits, and 64 bits have at most twenty.
    version = int(text.lstrip("0")[:21] or 0) if digits or not text else None
    if version is None or version >= 2**64:
        shown = json.dumps(text)
        problem = "value out of range" if digits else "invalid syntax"
        why = f"Invalid value: {shown}: strconv.ParseUint: parsing {shown}: {problem}"
        raise BadRequest(f"invalid resource version: resourceVersion: {why}")
    return version


def _list_revision(storage: Storage, version: str, exact: bool) -> int:
    """Return the revision that a list shows: the newest, unless an exact version is requested."""
    asked = parse_version(version)
    if exact and version in _ANY_VERSION:
        raise BadRequest(f'invalid resource version "{version}": an exact list needs a version')
    if asked > storage.revision:
        raise too_large_resource_version(asked, storage.revision)
    return asked if exact else storage.revision


@dataclass(frozen=True, slots=True)
class _Token:
    """A continue token: the version, the last key, and the number of remaining objects, if known."""

    revision: int
    after: Key | None = None
    left: int | None = None

    def text(self) -> str:
        """Encode the token."""
        content = {"rv": self.revision, "after": self.after, "left": self.left}
        return base64.urlsafe_b64encode(json.dumps(content, separators=(",", ":")).encode()).decode()


def _read_token(text: str) -> _Token:
    try:
        content = json.loads(base64.urlsafe_b64decode(text.encode()))
        namespace, name = content["after"]
        left = content["left"]
        return _Token(int(content["rv"]), Key(str(namespace), str(name)), None if left is None else int(left))
    except (binascii.Error, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise BadRequest(f"invalid continue token: continue key is not valid: {error}") from error
