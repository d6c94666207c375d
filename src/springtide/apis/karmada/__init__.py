"""autoscaling.karmada.io: scaling at certain times, and the autoscaler over several clusters that it acts on."""

from __future__ import annotations

from springtide.apis.karmada.federated import FederatedHPA
from springtide.apis.karmada.outlook import forecast, forecast_sound_rules
from springtide.apis.karmada.spellings import fixes
from springtide.apis.karmada.types import CronFederatedHPA
from springtide.apis.kinds import Column, Kind, Version

_TARGET_COLUMNS = (
    Column("REFERENCE-KIND", "string", ".spec.scaleTargetRef.kind"),
    Column("REFERENCE-NAME", "string", ".spec.scaleTargetRef.name"),
)
_AGE = Column("AGE", "date", ".metadata.creationTimestamp")

KINDS: tuple[Kind, ...] = (
    Kind(
        group="autoscaling.karmada.io",
        kind="CronFederatedHPA",
        plural="cronfederatedhpas",
        scope="Namespaced",
        short_names=("cronfhpa",),
        categories=("karmada-io",),
        versions=(
            Version(
                name="v1alpha1",
                view=CronFederatedHPA,
                storage=True,
                columns=(*_TARGET_COLUMNS, _AGE),
                forecaster=forecast,
                salvager=forecast_sound_rules,
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
            Version(
                name="v1alpha1",
                view=FederatedHPA,
                storage=True,
                columns=(
                    *_TARGET_COLUMNS,
                    Column("MINPODS", "integer", ".spec.minReplicas"),
                    Column("MAXPODS", "integer", ".spec.maxReplicas"),
                    Column("REPLICAS", "integer", ".status.currentReplicas"),
                    _AGE,
                ),
            ),
        ),
    ),
)

__all__ = ["KINDS", "fixes"]
