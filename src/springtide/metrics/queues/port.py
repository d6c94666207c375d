"""The port through which queues are read: a queue in, its length out, or words for why it is not known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from springtide.apis.scheduled.producer import QueueSpec
from springtide.apis.springtide.grants import GrantedResource

LONGEST = 2**63 - 1
"""What a status has room for."""


class QueueError(Exception):
    """A queue whose length is not known; the message is for people, and says what to do about it."""

    def __init__(self, reason: str, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.reason = reason
        """Why, in one CamelCase word, for conditions."""
        self.retryable = retryable
        """Whether it may well succeed a moment later; else somebody has to change something."""


@dataclass(frozen=True, slots=True)
class QueueLength:
    """What is known of a queue."""

    length: int
    """How many messages wait."""
    oldest_age: int | None = None
    """For how many seconds the oldest has waited; None where nobody tells."""


@dataclass(frozen=True, slots=True)
class QueueTarget:
    """What reading a queue reaches through our credentials, and what a Grant must therefore allow."""

    reach: GrantedResource
    name: str


class QueueReader(ABC):
    """Reads queues."""

    @abstractmethod
    def target(self, queue: QueueSpec) -> QueueTarget | None:
        """Tell what would be reached to read a queue; None where nothing outside of this process is.

        Raises `QueueError` where that cannot be told.
        """

    @abstractmethod
    async def read(self, queue: QueueSpec, *, namespace: str) -> QueueLength:
        """Ask for the length of a queue, for an object in a namespace; raises `QueueError`, and nothing else."""


def whole_messages(number: int | Fraction, source: str) -> int:
    """Take a number for a count of messages: a part of one counts as one. `source` is who has given it, in words."""
    if number < 0:
        msg = f"{source} gives a number below 0, expected how many messages wait"
        raise QueueError("NotACount", msg, retryable=False)
    if number > LONGEST:
        msg = f"{source} gives more messages than can be counted, expected at most {LONGEST}"
        raise QueueError("NotACount", msg, retryable=False)
    return ceil(number)
