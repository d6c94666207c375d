"""Books of series, written in a line or two."""

from __future__ import annotations

from collections.abc import Mapping

from springtide.cluster.resources import Key
from springtide.metrics.series import SeriesStore, SeriesValue

QUEUE = "karpenter_queue_length"
SCHEDULED = "karpenter_scheduled_capacity"
RESERVED = "karpenter_reserved_capacity_cpu_reserved"
CAPACITY = "karpenter_reserved_capacity_cpu_capacity"


def book_of(readings: Mapping[str, Mapping[str, SeriesValue]]) -> SeriesStore:
    """Make an open book of values by metric, by `namespace/name`."""
    book = SeriesStore()
    for place, values in readings.items():
        namespace, name = place.split("/")
        book.put(Key(namespace, name), values, fresh_until=None)
    book.mark_synced()
    return book
