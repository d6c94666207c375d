"""Where a query is answered: in process where that is possible, else by Prometheus where there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from springtide.metrics.reading.compiling import NOT_A_NUMBER, NOT_PROMQL, compiled
from springtide.metrics.reading.formulas import Formula, selectors
from springtide.metrics.reading.inprocess import answer
from springtide.metrics.reading.port import MetricReader, OwnSeries, Unreadable
from springtide.metrics.series import SeriesBook

_REMEMBERED = 4096
"""Queries of which it is remembered how they are answered; to find it out anew takes far less than a millisecond."""


class Source(Enum):
    """Who answers queries."""

    AUTO = "auto"
    """This process, if a query is about our own metrics only and can be answered here; else Prometheus."""
    IN_PROCESS = "in-process"
    """This process only."""
    PROMETHEUS = "prometheus"
    """Prometheus only, also for our own metrics."""


@dataclass(frozen=True, slots=True)
class _InProcess:
    """A query that is answered here."""

    formula: Formula


@dataclass(frozen=True, slots=True)
class _Asking:
    """A query that is sent to a server."""

    server: MetricReader
    doubts: str
    """Why it may be no PromQL at all, if it may."""


@dataclass(frozen=True, slots=True)
class _Refused:
    """A query that nobody answers."""

    reason: str
    message: str


_Plan: TypeAlias = _InProcess | _Asking | _Refused


class Reading(MetricReader):
    """The reader of a process."""

    def __init__(
        self,
        book: SeriesBook,
        prometheus: MetricReader | None = None,
        *,
        source: Source = Source.AUTO,
        now: Callable[[], int] | None = None,
    ) -> None:
        """Read from a book, or from Prometheus; without a clock, nothing in the book is ever too old."""
        if source is Source.PROMETHEUS and prometheus is None:
            raise ValueError("only Prometheus is to answer queries, but nobody says where it is: give --prometheus-url")
        self._book = book
        self._prometheus = prometheus
        self._source = source
        self._now = now
        self._planned = lru_cache(maxsize=_REMEMBERED)(self._plan)

    async def read(self, query: str, *, namespace: str) -> Fraction:
        """Answer a query where it is to be answered."""
        match self._planned(query):
            case _InProcess(formula):
                now = self._now() if self._now is not None else None
                return answer(formula, self._book, namespace=namespace, now=now)
            case _Asking(server, doubts):
                return await _asked(server, query, namespace, doubts)
            case _Refused(reason, message):
                raise Unreadable(reason, message, lasting=True)

    def sources(self, query: str) -> tuple[OwnSeries, ...] | None:
        """Name the series of our own that are all a query reads, if it is answered in process."""
        plan = self._planned(query)
        if isinstance(plan, _InProcess):
            return tuple(dict.fromkeys(OwnSeries(one.metric, one.name) for one in selectors(plan.formula)))
        return None

    def address(self, query: str) -> str | None:
        """Give the URL of Prometheus, if that is where a query goes."""
        plan = self._planned(query)
        return plan.server.address(query) if isinstance(plan, _Asking) else None

    def _plan(self, query: str) -> _Plan:
        if self._source is Source.PROMETHEUS and self._prometheus is not None:
            return _Asking(self._prometheus, doubts="")
        try:
            return _InProcess(compiled(query))
        except Unreadable as refusal:
            # What is no number here is none there; but what PromQL is, the server knows best.
            if self._source is Source.AUTO and self._prometheus is not None and refusal.reason != NOT_A_NUMBER:
                return _Asking(self._prometheus, doubts=str(refusal) if refusal.reason == NOT_PROMQL else "")
            return _Refused(refusal.reason, str(refusal))


async def _asked(server: MetricReader, query: str, namespace: str, doubts: str) -> Fraction:
    try:
        return await server.read(query, namespace=namespace)
    except Unreadable as failure:
        if failure.reason == NOT_PROMQL and doubts:
            # The server says that it is wrong; our own words may say what would be right.
            raise Unreadable(failure.reason, f"{failure} ({doubts})", lasting=failure.lasting) from failure
        raise
