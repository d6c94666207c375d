"""What a process exports about itself: metrics for Prometheus, and whether it is alive and ready."""

from springtide.metrics.checks import Check, Finding, caches_are_filled, holds
from springtide.metrics.endpoints import operations
from springtide.metrics.exported import Metrics

__all__ = ["Check", "Finding", "Metrics", "caches_are_filled", "holds", "operations"]
