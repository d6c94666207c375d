"""CronFederatedHPAs: rules that scale workloads, or move the bounds of autoscalers, at the times of cron schedules.

`plan` decides which firings are due, `cursor` stores the progress of rules, and `history` what they did; all three are
pure, and `decide` puts them together. `evaluator` calls it with what is in the caches, `executor` and `targets` apply
what was decided, and `recorder` writes it down.
"""

from springtide.controllers.cron_federated_hpa.controller import CronFederatedHPAController
from springtide.controllers.cron_federated_hpa.executor import CronMetrics

__all__ = ["CronFederatedHPAController", "CronMetrics"]
