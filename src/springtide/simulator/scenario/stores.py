"""Stores that tell of their steps, so that invariants can judge them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from springtide.cluster.controller import Cached
from springtide.cluster.port import Change, Event
from springtide.cluster.resources import Key, key_of
from springtide.cluster.store import Store


class WatchedStore(Store[Any]):
    """A store that calls somebody after each of its steps: with a key, or None where any number may have changed."""

    def __init__(self, cached: Cached, stepped: Callable[[tuple[Store[Any], Key | None]], None]) -> None:
        super().__init__(cached.record, cached.indexes)
        self._stepped = stepped

    def apply(self, event: Event) -> None:
        """Take one event of a watch."""
        super().apply(event)
        self._stepped((self, None if event.change is Change.BOOKMARK else key_of(event.object)))

    def replace_records(self, records: Mapping[Key, Any], version: int) -> None:
        """Hold exactly these records."""
        super().replace_records(records, version)
        self._stepped((self, None))
