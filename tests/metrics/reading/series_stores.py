"""Builds stores of series."""

from __future__ import annotations

from collections.abc import Mapping

from springtide.cluster.resources import Key
from springtide.metrics.series import SeriesStore, SeriesValue

QUEUE = "karpenter_queue_length"
SCHEDULED = "karpenter_scheduled_capacity"
RESERVED = "karpenter_reserved_capacity_cpu_reserved"
CAPACITY = "karpenter_reserved_capacity_cpu_capacity"


def store_of(readings: Mapping[str, Mapping[str, SeriesValue]]) -> SeriesStore:
    """Make a synced store of values by metric, by `namespace/name`."""
    store = SeriesStore()
    for place, values in readings.items():
        namespace, name = place.split("/")
        store.put(Key(namespace, name), values, fresh_until=None)
    store.mark_synced()
    return store
