"""The CronFederatedHPA controller: scales workloads, and moves the bounds of autoscalers, at the times of rules.

`plan` decides which firings are due, `cursor` remembers how far a rule has come, `history` what it did; all three are
pure. `targets` carries out what was decided, and `controller` puts them together.
"""

from springtide.controllers.cron_federated_hpa.controller import CronFederatedHPAController
from springtide.controllers.cron_federated_hpa.executor import CronMetrics

__all__ = ["CronFederatedHPAController", "CronMetrics"]
