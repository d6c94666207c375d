"""A book of series where simulated autoscalers read: what the aggregated API is on a live cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from springtide.cluster.errors import ServerError
from springtide.metrics.external.documents import Selects, milli, series
from springtide.metrics.series import SeriesBook


class SeriesMetrics:
    """External metrics from the books of all processes, of which the leader's is open; nothing else is measured."""

    def __init__(self, books: Sequence[SeriesBook]) -> None:
        self._books = books

    def of_pods(self, metric: str, namespace: str, pods: Sequence[str], container: str, now: int) -> Mapping[str, int]:  # noqa: ARG002
        """Read nothing."""
        return {}

    def of_object(self, metric: str, namespace: str, kind: str, name: str, now: int) -> int | None:  # noqa: ARG002
        """Read nothing."""
        return None

    def external(self, metric: str, namespace: str, selects: Selects, now: int) -> int | None:
        """Add up, in thousandths, the series of a namespace that are meant; none where there are none to rely on."""
        try:
            values = [
                value
                for book in self._books
                if book.is_open
                for _, value, _ in series(book, metric, namespace, selects, now)
            ]
        except ServerError:
            return None
        return sum(map(milli, values)) if values else None
