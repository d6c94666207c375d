"""Reads the metrics of an autoscaler, as far as its namespace may."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from fractions import Fraction

from springtide.apis.scheduled.autoscaler import PrometheusMetricSource
from springtide.apis.springtide.grants import Reach
from springtide.cluster.tools import Tools
from springtide.controllers.horizontal_autoscaler.recommending import Missing
from springtide.controllers.trust import forbidden
from springtide.metrics.reading.port import MetricReader, Unreadable


async def read_all(
    tools: Tools, reader: MetricReader, sources: Sequence[PrometheusMetricSource], namespace: str
) -> list[Fraction | Missing]:
    """Read all metrics side by side: one that is slow delays no other."""
    return await asyncio.gather(*(_read(tools, reader, source.query, namespace) for source in sources))


async def _read(tools: Tools, reader: MetricReader, query: str, namespace: str) -> Fraction | Missing:
    address = reader.address(query)
    refusal = forbidden(tools, namespace, Reach.URL, address) if address is not None else None
    if refusal is not None:
        return Missing("NotGranted", f"`{query}` is not read: {refusal}")
    try:
        return await reader.read(query, namespace=namespace)
    except Unreadable as failure:
        return Missing(failure.reason, f"`{query}` cannot be read: {failure}")
