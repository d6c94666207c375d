"""HorizontalPodAutoscalers on metrics that a scenario gives: the algorithm of Kubernetes, in exact arithmetic."""

from springtide.simulator.behaviours.autoscaling.controller import HorizontalPodAutoscalers
from springtide.simulator.behaviours.autoscaling.metrics import Metrics, MetricSteps, NoMetrics, ScriptedMetrics

__all__ = ["HorizontalPodAutoscalers", "MetricSteps", "Metrics", "NoMetrics", "ScriptedMetrics"]
