"""What a MetricsProducer is called in the API."""

from __future__ import annotations

from springtide.cluster.resources import Resource

METRICS_PRODUCERS = Resource("autoscaling.karpenter.sh", "v1alpha1", "metricsproducers", "MetricsProducer")
