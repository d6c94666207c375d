"""The HorizontalAutoscaler controller: sets the replicas of anything that can be scaled, by queries on metrics."""

from springtide.controllers.conflicts import HORIZONTAL_AUTOSCALERS
from springtide.controllers.horizontal_autoscaler.controller import HorizontalAutoscalerController

__all__ = ["HORIZONTAL_AUTOSCALERS", "HorizontalAutoscalerController"]
