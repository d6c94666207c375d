"""The series of our objects as `external.metrics.k8s.io/v1beta1`, for stock autoscalers and without Prometheus.

    async with external_metrics(transport, book, clock=…, leading=…, service=ServiceTarget(…)) as up:
        up.problem()

It is an aggregated API: the API server of the cluster passes requests on, proves itself with a certificate, and says
who asks. Every replica serves it; the Service leads to the one that leads.
"""

from springtide.metrics.external.documents import SeriesMetrics
from springtide.metrics.external.leader_label import LABEL
from springtide.metrics.external.registration import api_service
from springtide.metrics.external.serving import PERMISSIONS, ExternalMetrics, external_metrics

__all__ = ["LABEL", "PERMISSIONS", "ExternalMetrics", "SeriesMetrics", "api_service", "external_metrics"]
