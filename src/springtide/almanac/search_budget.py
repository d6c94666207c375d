"""How much work a search may take.

A timeline is made of others, which may come and go for ever without any effect on it, and each of them may be made of
others in turn. So all that search on behalf of one question count their steps together, and all of them stop when they
are used up. Steps and not seconds: a question has the same answer on every machine.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

#: The steps that may lead up to one change of a timeline: some tenths of a second.
DEFAULT_SEARCH_STEPS = 500_000


class SearchBudget:
    """The steps that a search has left."""

    __slots__ = ("left",)

    def __init__(self, most: int) -> None:
        self.left = most

    @property
    def exhausted(self) -> bool:
        """Whether the search was cut short: what it has not found may be there."""
        return self.left < 0


class _Current(threading.local):
    effort: SearchBudget | None = None


_current = _Current()


class SearchScope:
    """Searches with the steps of whoever asks, or with `QUIET_LIMIT` of its own where nobody has set a bound."""

    __slots__ = ("_outermost",)

    def __enter__(self) -> SearchBudget:
        effort = _current.effort
        self._outermost = effort is None
        if effort is None:
            effort = _current.effort = SearchBudget(DEFAULT_SEARCH_STEPS)
        return effort

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._outermost:
            _current.effort = None


@contextmanager
def limit_search(steps: int) -> Iterator[SearchBudget]:
    """Bound all searches within, together; a bound within a bound is a part of it."""
    outer = _current.effort
    most = steps if outer is None else min(steps, outer.left)
    effort = _current.effort = SearchBudget(most)
    try:
        yield effort
    finally:
        _current.effort = outer
        if outer is not None:
            outer.left -= most - effort.left


def exceeds_budget(steps: int = 1) -> bool:
    """Count steps, and tell whether they were too many."""
    effort = _current.effort
    if effort is None:
        return False
    effort.left -= steps
    return effort.left < 0
