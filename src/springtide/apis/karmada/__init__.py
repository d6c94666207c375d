"""autoscaling.karmada.io: CronFederatedHPA, and FederatedHPA as its target."""

from __future__ import annotations

from springtide.apis.karmada.cron import CronFederatedHPA, fixes, forecast_rules, forecast_valid_rules
from springtide.apis.karmada.federated import FederatedHPA
from springtide.apis.kinds import MESSAGE, PAUSED, Kind, KindVersion, PrinterColumn

__all__ = ["KINDS", "fixes"]


_TARGET_COLUMNS = (
    PrinterColumn("REFERENCE-KIND", "string", ".spec.scaleTargetRef.kind"),
    PrinterColumn("REFERENCE-NAME", "string", ".spec.scaleTargetRef.name"),
)
_AGE = PrinterColumn("AGE", "date", ".metadata.creationTimestamp")

KINDS: tuple[Kind, ...] = (
    Kind(
        group="autoscaling.karmada.io",
        kind="CronFederatedHPA",
        plural="cronfederatedhpas",
        scope="Namespaced",
        short_names=("cronfhpa",),
        categories=("karmada-io",),
        versions=(
            KindVersion(
                name="v1alpha1",
                view=CronFederatedHPA,
                storage=True,
                columns=(
                    *_TARGET_COLUMNS,
                    PrinterColumn("NEXT", "string", ".status.nextExecutionTime", extension=True),
                    PrinterColumn("LAST", "date", ".status.lastExecutionTime", extension=True),
                    PrinterColumn("READY", "string", ".status.conditions[?(@.type=='Ready')].status", extension=True),
                    PAUSED,
                    _AGE,
                    MESSAGE,
                ),
                forecaster=forecast_rules,
                partial_forecaster=forecast_valid_rules,
            ),
        ),
    ),
    Kind(
        group="autoscaling.karmada.io",
        kind="FederatedHPA",
        plural="federatedhpas",
        scope="Namespaced",
        short_names=("fhpa",),
        categories=("karmada-io",),
        versions=(
            KindVersion(
                name="v1alpha1",
                view=FederatedHPA,
                storage=True,
                columns=(
                    *_TARGET_COLUMNS,
                    PrinterColumn("MINPODS", "integer", ".spec.minReplicas"),
                    PrinterColumn("MAXPODS", "integer", ".spec.maxReplicas"),
                    PrinterColumn("REPLICAS", "integer", ".status.currentReplicas"),
                    _AGE,
                ),
            ),
        ),
    ),
)
