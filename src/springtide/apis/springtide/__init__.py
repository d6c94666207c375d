"""springtide.dev: the kinds that belong to nobody else."""

from __future__ import annotations

from typing import Any

from springtide.apis.kinds import Kind, KindVersion, NormalizedTree, PrinterColumn
from springtide.apis.springtide.calendars import forecast_calendar
from springtide.apis.springtide.types import Calendar, Grant, NodeClass

__all__ = ["KINDS", "fixes"]


_GROUP = "springtide.dev"
_AGE = PrinterColumn("Age", "date", ".metadata.creationTimestamp")
_READY = PrinterColumn("Ready", "string", ".status.conditions[?(@.type=='Ready')].status")
_ACTIVE = PrinterColumn("Active", "string", ".status.conditions[?(@.type=='Active')].status")

KINDS: tuple[Kind, ...] = (
    Kind(
        group=_GROUP,
        kind="Calendar",
        plural="calendars",
        scope="Cluster",
        categories=("springtide",),
        versions=(
            KindVersion(
                name="v1alpha1",
                view=Calendar,
                storage=True,
                columns=(
                    PrinterColumn("Zone", "string", ".spec.timeZone"),
                    PrinterColumn("Next", "string", ".status.nextDates[0]"),
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
            KindVersion(
                name="v1alpha1",
                view=Grant,
                storage=True,
                columns=(PrinterColumn("Namespaces", "string", ".spec.namespaces"), _READY, _AGE),
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
            KindVersion(
                name="v1alpha1",
                view=NodeClass,
                storage=True,
                columns=(PrinterColumn("Provider", "string", ".spec.provider"), _AGE),
            ),
        ),
    ),
)


def fixes(value: dict[str, Any]) -> NormalizedTree:
    """Repair slips that can mean only one thing; these kinds have none."""
    return NormalizedTree(value)
