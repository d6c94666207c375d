"""How often firings have been tried, and when they are tried again.

Tries are bounded: about eight within two minutes, none when the firing would be too late, and none when the next one
comes. The count is kept in memory, so a restart begins it anew; what was not recorded is due again in any case.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from springtide.cluster.resources import Key
from springtide.controllers.cron.plan import Execution
from springtide.controllers.cron.targets import Trouble

PAUSES = (1, 2, 4, 8, 16, 32, 60)
"""Seconds after each try that failed; after the last of them there is one more try."""


@dataclass(frozen=True, slots=True)
class Tries:
    """What became of a firing so far."""

    at: int
    """The firing."""
    count: int
    last: str
    """Why the last try failed."""
    again: int
    """When it is tried again."""

    @property
    def message(self) -> str:
        """Say that it is given up, as the history does."""
        return self.last if self.count == 1 else f"{self.last} (tried {self.count} times)"


class Attempts:
    """The firings that are being tried, of all objects."""

    def __init__(self) -> None:
        self._tries: dict[Key, dict[str, Tries]] = {}

    def of(self, key: Key, rule: str, at: int) -> Tries | None:
        """Tell what became of a firing so far; None where it was not tried yet."""
        tries = self._tries.get(key, {}).get(rule)
        return tries if tries is not None and tries.at == at else None

    def under_way(self, key: Key) -> Mapping[str, Tries]:
        """Give the firings of an object that are being tried, by rule."""
        return self._tries.get(key, {})

    def is_due(self, key: Key, execution: Execution, now: int) -> bool:
        """Tell whether it is time for the first or the next try of a firing."""
        tries = self.of(key, execution.rule, execution.at)
        return tries is None or tries.again <= now

    def failed(self, key: Key, execution: Execution, trouble: Trouble, now: int) -> Tries | None:
        """Count a try that failed; gives what was tried in all where that was the last one."""
        before = self.of(key, execution.rule, execution.at)
        count = 1 if before is None else before.count + 1
        pause = PAUSES[count - 1] if count <= len(PAUSES) else None
        again = 0 if pause is None else now + max(pause, math.ceil(trouble.retry_after or 0))
        tries = Tries(execution.at, count, trouble.words, again)
        too_late = execution.last_try is not None and again > execution.last_try
        if not trouble.passing or pause is None or too_late:
            return tries
        self._tries.setdefault(key, {})[execution.rule] = tries
        return None

    def succeeded(self, key: Key, rule: str) -> None:
        """Forget the tries of a firing that was applied in the end."""
        self._tries.get(key, {}).pop(rule, None)

    def next_try(self, key: Key) -> int | None:
        """Tell when one of the firings of an object is tried again."""
        return min((tries.again for tries in self._tries.get(key, {}).values()), default=None)

    def settle(self, key: Key, pending: frozenset[str]) -> None:
        """Forget all firings of an object but those of the rules that are still being tried."""
        left = {rule: tries for rule, tries in self._tries.get(key, {}).items() if rule in pending}
        if left:
            self._tries[key] = left
        else:
            self._tries.pop(key, None)
