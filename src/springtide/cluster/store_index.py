"""One way to look records up: by values that are computed from them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from springtide.cluster.resources import Key

R = TypeVar("R")

log = logging.getLogger(__name__)


class Index(Generic[R]):
    """The keys of all records under each of their values.

    A record whose values cannot be computed is found under none, and the others are not concerned.
    """

    def __init__(self, values: Callable[[R], Iterable[Hashable]]) -> None:
        self._values = values
        # Dicts that serve as ordered sets: smaller than sets, and nearly sorted already when they are asked.
        self._keys: dict[Hashable, dict[Key, None]] = {}

    def keys(self, value: Hashable) -> list[Key]:
        """List the keys under a value, in their order."""
        return sorted(self._keys.get(value, ()))

    def move(self, key: Key, old: R | None, new: R | None) -> None:
        """Put a key from where its old record belongs to where the new one does."""
        before, after = self._values_of(key, old), self._values_of(key, new)
        if before == after:
            return
        for value in before:
            under = self._keys.get(value)
            if under is not None:
                under.pop(key, None)
                if not under:
                    del self._keys[value]
        for value in after:
            self._keys.setdefault(value, {})[key] = None

    def _values_of(self, key: Key, record: R | None) -> tuple[Hashable, ...]:
        if record is None:
            return ()
        try:
            values = tuple(self._values(record))
            hash(values)
        except Exception:
            log.exception("an index fails on %s, which is not found by it", key)
            return ()
        return values
