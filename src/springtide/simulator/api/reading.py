"""Lists and watches: which objects are meant, at which version, and where a page ends."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from springtide.cluster.errors import BadRequest, Gone
from springtide.cluster.port import Page
from springtide.cluster.resources import Key, Object, Selection
from springtide.simulator.api.answers import EXPIRED_CONTINUE, EXPIRED_LIST, too_large_version
from springtide.simulator.api.fields import holds_all, parse_fields
from springtide.simulator.api.selectors import parse_labels
from springtide.simulator.api.storage import Collection, Storage
from springtide.simulator.api.subscriptions import Matches, Subscription, telling

_ANY_VERSION = ("", "0")
_ONE_NAME = re.compile(r"metadata\.name==?([^\\,=!]+)")

Serve = Callable[[Object], Object]


def matcher(selection: Selection, selectable: tuple[str, ...]) -> Matches | None:
    """Make the test of a selection's selectors; None where it has none."""
    if not selection.labels and not selection.fields:
        return None
    labels = parse_labels(selection.labels)
    fields = holds_all(parse_fields(selection.fields, selection.resource, selectable))
    return lambda item: labels.matches(item["metadata"].get("labels")) and fields(item)


def page(
    storage: Storage,
    collection: Collection,
    selection: Selection,
    matches: Matches | None,
    serve: Serve | None,
    *,
    limit: int,
    continue_: str,
    version: str,
    exact: bool,
) -> Page:
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
        return Page(items, str(start.revision))
    left = None if matches is not None else beyond if start.left is None else start.left - len(items)
    return Page(items, str(start.revision), _Token(start.revision, last, left).text(), left)


class Snapshot:
    """The objects of a selection as they are at one version, taken in slices between which others may write."""

    def __init__(
        self,
        storage: Storage,
        collection: Collection,
        selection: Selection,
        matches: Matches | None,
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


def subscription(
    storage: Storage,
    collection: Collection,
    selection: Selection,
    matches: Matches | None,
    serve: Serve | None,
    *,
    version: str,
    initial_events: bool,
) -> Subscription:
    """Open a watch: with the past since a version, or with what exists now."""
    revision = parse_version(version)
    if revision > storage.revision:
        raise too_large_version(revision, storage.revision)
    tell = telling(selection.namespace, matches, serve)
    if not initial_events and version not in _ANY_VERSION:
        storage.check(revision)
        opened = Subscription(collection, selection.resource, version=revision, telling=tell)
        for change in collection.since(revision):
            opened.deliver(change)
        return opened
    opened = Subscription(collection, selection.resource, version=storage.revision, telling=tell)
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
        raise too_large_version(asked, storage.revision)
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
