"""springtide.dev: the kinds that belong to nobody else."""

from __future__ import annotations

from typing import Any

from springtide.apis.kinds import Column, Kind, Reading, Version
from springtide.apis.springtide.calendars import forecast_calendar
from springtide.apis.springtide.types import Calendar, Grant, NodeClass

_GROUP = "springtide.dev"
_AGE = Column("Age", "date", ".metadata.creationTimestamp")
_READY = Column("Ready", "string", ".status.conditions[?(@.type=='Ready')].status")
_ACTIVE = Column("Active", "string", ".status.conditions[?(@.type=='Active')].status")

KINDS: tuple[Kind, ...] = (
    Kind(
        group=_GROUP,
        kind="Calendar",
        plural="calendars",
        scope="Cluster",
        categories=("springtide",),
        versions=(
            Version(
                name="v1alpha1",
                view=Calendar,
                storage=True,
                columns=(
                    Column("Zone", "string", ".spec.timeZone"),
                    Column("Next", "string", ".status.nextDates[0]"),
                    _READY,
                    _ACTIVE,
                    _AGE,
                ),
                forecaster=forecast_calendar,
            ),
        ),
    ),
    Kind(
        group=_GROUP,
        kind="Grant",
        plural="grants",
        scope="Cluster",
        categories=("springtide",),
        versions=(
            Version(
                name="v1alpha1",
                view=Grant,
                storage=True,
                columns=(Column("Namespaces", "string", ".spec.namespaces"), _READY, _AGE),
            ),
        ),
    ),
    Kind(
        group=_GROUP,
        kind="NodeClass",
        plural="nodeclasses",
        scope="Cluster",
        categories=("springtide",),
        versions=(
            Version(
                name="v1alpha1",
                view=NodeClass,
                storage=True,
                columns=(Column("Provider", "string", ".spec.provider"), _AGE),
            ),
        ),
    ),
)


def fixes(value: dict[str, Any]) -> Reading:
    """Repair slips that can mean only one thing; these kinds have none."""
    return Reading(value)


__all__ = ["KINDS", "fixes"]
