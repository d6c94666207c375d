"""HorizontalPodAutoscalers on metrics that a scenario gives: the algorithm of Kubernetes, in exact arithmetic."""

from springtide.simulator.behaviours.autoscaling.controller import HorizontalPodAutoscalers
from springtide.simulator.behaviours.autoscaling.metrics import Metrics, NoMetrics, Scripted, Steps

__all__ = ["HorizontalPodAutoscalers", "Metrics", "NoMetrics", "Scripted", "Steps"]
