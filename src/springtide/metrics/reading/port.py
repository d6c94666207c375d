"""The port through which metrics are read: a query in, one exact number out, or words for why there is none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import NamedTuple


class QueryError(Exception):
    """A query that has no answer; the message is for people, and says what to do about it."""

    def __init__(self, reason: str, message: str, *, lasting: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        """Why, in one CamelCase word, for conditions."""
        self.lasting = lasting
        """Whether asking again is of no use before somebody changes the query or the settings."""


class OwnSeries(NamedTuple):
    """Series of our own that a query reads."""

    metric: str
    name: str | None
    """The name of the object whose series it is; None: of any object of the namespace."""


class MetricReader(ABC):
    """Answers queries."""

    @abstractmethod
    async def read(self, query: str, *, namespace: str) -> Fraction:
        """Give the one sample that a query of an object in this namespace has; raises `Unreadable`."""

    @abstractmethod
    def sources(self, query: str) -> tuple[OwnSeries, ...] | None:
        """Name the series of our own that are all a query reads, of whose changes the `SeriesBook` tells.

        None where it reads anything else: then nobody tells, and it must be asked again and again.
        """

    @abstractmethod
    def address(self, query: str) -> str | None:
        """Give the URL of the server that a query would be sent to; None where it is answered in this process."""
