"""The controllers of Springtide: one folder for each kind, with its decision, its controller and its explanation."""

from springtide.cluster.controller import Controller
from springtide.controllers.calendar import CalendarController
from springtide.controllers.cron_federated_hpa import CronFederatedHPAController
from springtide.controllers.grant import GrantController
from springtide.controllers.horizontal_autoscaler import HorizontalAutoscalerController
from springtide.controllers.metrics_producer import MetricsProducerController
from springtide.controllers.scalable_node_group import ScalableNodeGroupController

__all__ = [
    "CONTROLLERS",
    "CalendarController",
    "CronFederatedHPAController",
    "GrantController",
    "HorizontalAutoscalerController",
    "MetricsProducerController",
    "ScalableNodeGroupController",
]


CONTROLLERS: tuple[type[Controller], ...] = (
    CalendarController,
    GrantController,
    MetricsProducerController,
    HorizontalAutoscalerController,
    ScalableNodeGroupController,
    CronFederatedHPAController,
)
"""All controllers, in the order in which they are started."""
