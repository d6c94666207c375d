"""The HorizontalAutoscaler controller: sets the replicas of anything that can be scaled, by queries on metrics."""

from springtide.controllers.horizontal_autoscaler.controller import HorizontalAutoscalerController
from springtide.controllers.horizontal_autoscaler.resources import HORIZONTAL_AUTOSCALERS

__all__ = ["HORIZONTAL_AUTOSCALERS", "HorizontalAutoscalerController"]
