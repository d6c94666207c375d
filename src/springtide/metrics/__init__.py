"""Metrics: what a process exports, where autoscalers read metrics, and the external metrics API."""

from springtide.metrics.collectors import ProcessMetrics
from springtide.metrics.endpoints import (
    HealthCheck,
    HealthResult,
    caches_synced,
    fact_check,
    operations_app,
    serve_health,
)

__all__ = [
    "HealthCheck",
    "HealthResult",
    "ProcessMetrics",
    "caches_synced",
    "fact_check",
    "operations_app",
    "serve_health",
]
