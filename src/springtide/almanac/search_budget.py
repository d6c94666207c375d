"""Search budgets: how many steps the searches behind one query may take.

A timeline is composed of others, whose changes may have no effect on its value however far a search goes. All searches
of one query therefore share one budget, and all stop when it is used up. The budget counts steps, not seconds, so that
a query has the same answer on every machine.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

#: The budget for finding one change of a timeline where the caller sets none: some tenths of a second.
DEFAULT_SEARCH_STEPS = 500_000


class SearchBudget:
    """The number of steps that a search may still take."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    @property
    def exhausted(self) -> bool:
        """Whether the search was cut short, so that its result may be incomplete."""
        return self.left < 0


class _Current(threading.local):
    budget: SearchBudget | None = None


_current = _Current()


class BudgetScope:
    """Uses the budget that the caller has set, or else a new one of `DEFAULT_SEARCH_STEPS`."""

    __slots__ = ("_outermost",)

    def __enter__(self) -> SearchBudget:
        budget = _current.budget
        self._outermost = budget is None
        if budget is None:
            budget = _current.budget = SearchBudget(DEFAULT_SEARCH_STEPS)
        return budget

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._outermost:
            _current.budget = None


@contextmanager
def limit_search(steps: int) -> Iterator[SearchBudget]:
    """Give all searches in the block one budget of `steps`; a nested budget is taken out of the outer one."""
    outer = _current.budget
    granted = steps if outer is None else min(steps, outer.left)
    budget = _current.budget = SearchBudget(granted)
    try:
        yield budget
    finally:
        _current.budget = outer
        if outer is not None:
            outer.left -= granted - budget.left


def exceeds_budget(steps: int = 1) -> bool:
    """Take steps out of the current budget, and tell whether it is exhausted; without a budget it never is."""
    budget = _current.budget
    if budget is None:
        return False
    budget.left -= steps
    return budget.left < 0
