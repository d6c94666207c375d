"""Bugs that a runtime survives: it logs them with their stack, and goes on. A scenario must not.

A controller that raises on every reconcile stops nobody else, and tries again for ever: in production that is right, in
a test it would pass. What a cluster answers is logged without a stack, so a stack always means a bug.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType

_LOGGER = logging.getLogger("springtide")


class Stacks(logging.Handler):
    """While it is entered, tells somebody of every failure that is logged with a stack, but for those it tolerates."""

    def __init__(self, failed: Callable[[BaseException], None], tolerated: tuple[type[BaseException], ...]) -> None:
        super().__init__()
        self._failed = failed
        self._tolerated = tolerated

    def __enter__(self) -> Stacks:
        _LOGGER.addHandler(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _LOGGER.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Look at one record of the log."""
        failure = record.exc_info[1] if record.exc_info else None
        if failure is not None and not isinstance(failure, self._tolerated):
            self._failed(failure)
