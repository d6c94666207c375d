"""How fast autoscalers may change replicas: what HorizontalAutoscaler and FederatedHPA say in the same words."""

from __future__ import annotations

from typing import Annotated, Literal

from springtide.apis.fields import PositiveCount, View, doc, int32


class SpeedLimit(View, kw_only=True):
    """How much may change within a period; the kinds add in which unit."""

    value: Annotated[PositiveCount, doc("How much may change.")]
    period_seconds: Annotated[Annotated[int, int32(1, 1800)], doc("Within how many seconds.")]


class DirectionRules(View, kw_only=True):
    """How replicas may change in one direction; the kinds add their policies."""

    stabilization_window_seconds: Annotated[
        Annotated[int, int32(0, 3600)] | None,
        doc("How far back recommendations count; 0 for up and 300 for down if not set."),
    ] = None
    select_policy: Annotated[
        Literal["Max", "Min", "Disabled"] | None,
        doc("Which of several recommendations or policies is taken; Disabled never moves this way. Max if not set."),
    ] = None
