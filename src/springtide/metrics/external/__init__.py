"""The series of MetricsProducers as `external.metrics.k8s.io/v1beta1`, for HorizontalPodAutoscalers without Prometheus.

    async with external_metrics(transport, store, clock=…, leading=…, service=ServiceTarget(…)) as running:
        running.problem()

It is an aggregated API: the API server proxies requests, authenticates with a client certificate, and passes the user
on in request headers. Every replica serves it; the Service leads to the leader.
"""

from springtide.metrics.external.documents import SeriesMetrics
from springtide.metrics.external.leader_endpoints import ENDPOINTS, SERVICE_NAME
from springtide.metrics.external.registration import api_service
from springtide.metrics.external.serving import PERMISSIONS, ExternalMetrics, external_metrics

__all__ = [
    "ENDPOINTS",
    "PERMISSIONS",
    "SERVICE_NAME",
    "ExternalMetrics",
    "SeriesMetrics",
    "api_service",
    "external_metrics",
]
