"""The interface of metric readers: a query has one exact number as its result, or an error with its reason."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import NamedTuple


class QueryError(Exception):
    """A query has no result; the message is for users, and says what to do."""

    def __init__(self, reason: str, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        """The reason for conditions, a CamelCase word."""
        self.permanent = permanent
        """Whether a retry is useless until a user changes the query or the settings."""


class OwnSeries(NamedTuple):
    """Series of MetricsProducers that a query reads."""

    metric: str
    name: str | None
    """The name of the MetricsProducer; None: all of the namespace."""


class MetricReader(ABC):
    """Evaluates queries."""

    @abstractmethod
    async def read(self, query: str, *, namespace: str) -> Fraction:
        """Return the one sample of a query for an object in a namespace; raises `QueryError`."""

    @abstractmethod
    def sources(self, query: str) -> tuple[OwnSeries, ...] | None:
        """Return the series that a query reads, if all of them are in the `SeriesStore`, whose changes can be watched.

        None: the query reads other metrics, too, and must be polled.
        """

    @abstractmethod
    def address(self, query: str) -> str | None:
        """Return the URL of the server that would evaluate a query; None: it is evaluated in this process."""
