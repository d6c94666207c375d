"""What has been applied, and does not stand in the status yet.

A status cannot always be written: somebody is faster, or the server refuses. The firing is due again then, by all that
the object says. To apply it once more could undo what somebody did since, and to call it missed would be untrue. It is
kept in memory: who dies in between applies it again, as nothing tells that it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from springtide.cluster.resources import Key
from springtide.controllers.cron.history import Success


class Unrecorded:
    """The firings of all objects that have been applied and are still to be recorded."""

    def __init__(self) -> None:
        self._successes: dict[Key, dict[str, list[Success]]] = {}

    def add(self, key: Key, rule: str, success: Success) -> None:
        """Keep a firing until it is recorded."""
        self._successes.setdefault(key, {}).setdefault(rule, []).append(success)

    def times(self, key: Key) -> Mapping[str, frozenset[int]]:
        """Give the times of the firings of an object, by rule."""
        return {
            rule: frozenset(success.at for success in found) for rule, found in self._successes.get(key, {}).items()
        }

    def of(self, key: Key) -> Iterator[tuple[str, Success]]:
        """Yield the firings of an object, each with its rule."""
        for rule, found in self._successes.get(key, {}).items():
            for success in found:
                yield rule, success

    def settle(self, key: Key) -> None:
        """Forget the firings of an object: they are recorded, or it is gone."""
        self._successes.pop(key, None)
