"""HorizontalAutoscalers as they are kept in memory."""

from __future__ import annotations

from springtide.cluster.controller import Cached
from springtide.cluster.resources import Resource, Selection

HORIZONTAL_AUTOSCALERS = Resource(
    "autoscaling.karpenter.sh", "v1alpha1", "horizontalautoscalers", "HorizontalAutoscaler"
)
ALL_AUTOSCALERS = Cached(Selection(HORIZONTAL_AUTOSCALERS))
