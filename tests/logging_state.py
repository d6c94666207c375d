"""Logging belongs to the process: whoever configures it in a test puts it back."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def logging_kept() -> Iterator[None]:
    """Leave the logging of the process as it was before the block."""
    root, ours = logging.getLogger(), logging.getLogger("springtide")
    before = [(logger, logger.handlers[:], logger.level, logger.propagate) for logger in (root, ours)]
    ours.propagate = True
    try:
        yield
    finally:
        logging.captureWarnings(False)
        for logger, handlers, level, propagate in before:
            logger.handlers[:] = handlers
            logger.setLevel(level)
            logger.propagate = propagate
