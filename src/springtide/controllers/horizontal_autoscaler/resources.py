"""HorizontalAutoscalers as they are kept in memory."""

from __future__ import annotations

from springtide.cluster.controller import Cached
from springtide.cluster.resources import Selection
from springtide.controllers.scalers import HORIZONTAL_AUTOSCALERS

ALL_AUTOSCALERS = Cached(Selection(HORIZONTAL_AUTOSCALERS))

__all__ = ["ALL_AUTOSCALERS", "HORIZONTAL_AUTOSCALERS"]
