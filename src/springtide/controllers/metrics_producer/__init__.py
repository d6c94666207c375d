"""MetricsProducers: metrics that follow a schedule, a queue or the nodes that there are."""

from springtide.controllers.metrics_producer.controller import MetricsProducerController
from springtide.controllers.metrics_producer.records import METRICS_PRODUCERS

__all__ = ["METRICS_PRODUCERS", "MetricsProducerController"]
