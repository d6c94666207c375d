"""The HorizontalPodAutoscaler controller on metrics of a scenario, in exact arithmetic."""

from springtide.simulator.behaviours.autoscaling.controller import HorizontalPodAutoscalers
from springtide.simulator.behaviours.autoscaling.metrics import Metrics, MetricSteps, NoPodMetrics, ScriptedMetrics

__all__ = ["HorizontalPodAutoscalers", "MetricSteps", "Metrics", "NoPodMetrics", "ScriptedMetrics"]
