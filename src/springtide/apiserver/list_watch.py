"""What a watch is to the server: a queue of events, and one waiter.

A watch of everything gets the very event objects that the store made; only watches with a selector or of another
version of the kind have events made for them.

Lists and watches: which objects are meant, at which version, and where a page ends.
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


class WatchSubscription:
    """One open watch; whoever opened it takes from `events`, and closes it."""

    __slots__ = ("_collection", "_resource", "_telling", "_waiter", "ended", "events", "version")

    def __init__(
        self, collection: Collection, resource: Resource, *, version: int, telling: EventFilter | None
    ) -> None:
        self.events: deque[WatchEvent] = deque()
        self.version = version
        """The version up to which everything has been told."""
        self.ended = False
        """Nothing more will come than what is in `events`."""
        self._collection = collection
        self._resource = resource
        self._telling = telling
        self._waiter: asyncio.Future[None] | None = None
        collection.subscriptions.append(self)

    def deliver(self, change: StoredChange) -> None:
        """Tell a change, if it is any business of this watch."""
        event = change.event if self._telling is None else self._telling(change)
        if event is not None:
            self.version = change.revision
            self.events.append(event)
            if self._waiter is not None:
                self._wake()

    def begin(self, items: Iterable[Object], *, end: bool) -> None:
        """Tell the objects that exist already, and, if asked, that these were all."""
        self.events.extend(WatchEvent(WatchEventType.ADDED, item) for item in items)
        if end:
            self._bookmark({"annotations": {INITIAL_EVENTS_END: "true"}})

    def bookmark(self, version: int) -> None:
        """Tell that nothing else has happened up to a version."""
        if version > self.version and not self.ended:
            self.version = version
            self._bookmark({})
            self._wake()

    def end(self) -> None:
        """Let the watch end after what it has been told."""
        if not self.ended:
            self.ended = True
            self._collection.subscriptions.remove(self)
            self._wake()

    async def arrived(self) -> None:
        """Wait until there are events, or the watch has ended."""
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
    """Make the way in which a watch tells changes; None where it tells all of them as they are."""
    if not namespace and matches is None and serve is None:
        return None

    def tell(change: StoredChange) -> WatchEvent | None:
        if namespace and change.key.namespace != namespace:
            return None
        event = change.event
        if matches is not None:
            told = _selected(change, matches)
            if told is None:
                return None
            event = told
        if serve is None:
            return event
        served = serve(event.object)
        return event if served is event.object else WatchEvent(event.change, served)

    return tell


def _selected(change: StoredChange, matches: ObjectFilter) -> WatchEvent | None:
    """Tell a change to somebody who sees only what matches: what stops matching is gone for them."""
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


_ANY_VERSION = ("", "0")
_ONE_NAME = re.compile(r"metadata\.name==?([^\\,=!]+)")

Serve = Callable[[Object], Object]


def selection_filter(selection: Selection, selectable: tuple[str, ...]) -> ObjectFilter | None:
    """Make the test of a selection's selectors; None where it has none."""
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
    """List objects as they were at one version; further pages show the same version."""
    if continue_ and version not in _ANY_VERSION:
        raise BadRequest("specifying resource version is not allowed when using continue")
    start = _read_token(continue_) if continue_ else _Token(_list_revision(storage, version, exact))
    items: list[Object] = []
    last: Key | None = None
    beyond = 0
    try:
        for key, item in _candidates(storage, collection, selection, start):
            if matches is not None and not matches(item):
                continue
            if limit and len(items) == limit:
                beyond += 1
                # How many are left is counted once, on the first page; a selection is not counted at all.
                if matches is not None or start.left is not None:
                    break
                continue
            items.append(item if serve is None else serve(item))
            last = key
    except Gone as gone:
        raise Gone(EXPIRED_CONTINUE if continue_ else EXPIRED_LIST) from gone
    if not beyond or last is None:
        return ListPage(items, str(start.revision))
    left = None if matches is not None else beyond if start.left is None else start.left - len(items)
    return ListPage(items, str(start.revision), _Token(start.revision, last, left).text(), left)


class ListSnapshot:
    """The objects of a selection as they are at one version, taken in slices between which others may write."""

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
        """Give the objects in order, looking at so many at a time; `Gone` where the version is compacted meanwhile."""
        after: Key | None = None
        while True:
            start = _Token(self.revision, after)
            looked_at = list(islice(_candidates(self._storage, self._collection, self._selection, start), size))
            if not looked_at:
                return
            after = looked_at[-1][0]
            matches, serve = self._matches, self._serve
            items = [item for _, item in looked_at if matches is None or matches(item)]
            yield items if serve is None else [serve(item) for item in items]


def _candidates(
    storage: Storage, collection: Collection, selection: Selection, start: _Token
) -> Iterable[tuple[Key, Object]]:
    """Give the objects that a selection can be about, in order; one that is named is not searched for."""
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
    """Open a watch: with the past since a version, or with what exists now."""
    revision = parse_version(version)
    if revision > storage.revision:
        raise too_large_resource_version(revision, storage.revision)
    tell = event_filter(selection.namespace, matches, serve)
    if not initial_events and version not in _ANY_VERSION:
        storage.check(revision)
        opened = WatchSubscription(collection, selection.resource, version=revision, telling=tell)
        for change in collection.since(revision):
            opened.deliver(change)
        return opened
    opened = WatchSubscription(collection, selection.resource, version=storage.revision, telling=tell)
    listed = storage.listed(collection, storage.revision, namespace=selection.namespace)
    items = (item for _, item in listed if matches is None or matches(item))
    opened.begin(items if serve is None else map(serve, items), end=initial_events)
    return opened


def parse_version(text: str) -> int:
    """Read a resourceVersion."""
    if text and not (text.isascii() and text.isdigit()):
        shown = json.dumps(text)
        why = f"Invalid value: {shown}: strconv.ParseUint: parsing {shown}: invalid syntax"
        raise BadRequest(f"invalid resource version: resourceVersion: {why}")
    return int(text or 0)


def _list_revision(storage: Storage, version: str, exact: bool) -> int:
    """Tell which version a list shows: the newest, unless another one is asked for exactly."""
    asked = parse_version(version)
    if exact and version in _ANY_VERSION:
        raise BadRequest(f'invalid resource version "{version}": an exact list needs one')
    if asked > storage.revision:
        raise too_large_resource_version(asked, storage.revision)
    return asked if exact else storage.revision


@dataclass(frozen=True, slots=True)
class _Token:
    """Where a list goes on: in which version, after which key, and with how many objects, if that is known."""

    revision: int
    after: Key | None = None
    left: int | None = None

    def text(self) -> str:
        """Write the token as pages carry it."""
        content = {"rv": self.revision, "after": self.after, "left": self.left}
        return base64.urlsafe_b64encode(json.dumps(content, separators=(",", ":")).encode()).decode()


def _read_token(text: str) -> _Token:
    try:
        content = json.loads(base64.urlsafe_b64decode(text.encode()))
        namespace, name = content["after"]
        left = content["left"]
        return _Token(int(content["rv"]), Key(str(namespace), str(name)), None if left is None else int(left))
    except (binascii.Error, ValueError, KeyError, TypeError, OverflowError) as error:
        raise BadRequest(f"invalid continue token: continue key is not valid: {error}") from error
