"""The interface of queue readers: the length of a queue, or an error with its reason."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from springtide.apis.scheduled.producer import QueueSpec
from springtide.apis.springtide.grants import GrantedResource

LONGEST = 2**63 - 1
"""The largest number that a status can contain."""


class QueueError(Exception):
    """The length of a queue could not be read; the message is for users, and says what to do."""

    def __init__(self, reason: str, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.reason = reason
        """The reason for conditions, a CamelCase word."""
        self.retryable = retryable
        """Whether it may succeed later; otherwise a user has to change something."""


@dataclass(frozen=True, slots=True)
class QueueLength:
    """The result of reading a queue."""

    length: int
    """The number of waiting messages."""
    oldest_age: int | None = None
    """The age of the oldest message in seconds; None: unknown."""


@dataclass(frozen=True, slots=True)
class QueueTarget:
    """What is accessed with the credentials of the process to read a queue; a Grant must allow it."""

    reach: GrantedResource
    name: str


class QueueReader(ABC):
    """Reads queues."""

    @abstractmethod
    def target(self, queue: QueueSpec) -> QueueTarget | None:
        """Return what would be accessed to read a queue; None: nothing outside of this process.

        Raises `QueueError` if the reader is not configured.
        """

    @abstractmethod
    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:
        """Read the length of a queue for an object in a namespace; raises only `QueueError`."""


def whole_messages(number: int | Fraction, source: str) -> int:
    """Round a number up to a count of messages; `source` names its origin in error messages."""
    if number < 0:
        msg = f"{source} gives a number below 0, expected how many messages wait"
        raise QueueError("NotACount", msg, retryable=False)
    if number > LONGEST:
        msg = f"{source} gives more messages than can be counted, expected at most {LONGEST}"
        raise QueueError("NotACount", msg, retryable=False)
    return ceil(number)
