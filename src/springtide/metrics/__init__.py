"""What a process exports about itself: metrics for Prometheus, and whether it is alive and ready."""

from springtide.metrics.collectors import ProcessMetrics
from springtide.metrics.endpoints import HealthCheck, HealthResult, caches_synced, fact_check, operations_app

__all__ = ["HealthCheck", "HealthResult", "ProcessMetrics", "caches_synced", "fact_check", "operations_app"]
