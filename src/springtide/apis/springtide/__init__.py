"""springtide.dev: the kinds that only Springtide has, Calendar, Grant and NodeClass."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from springtide.apis.kinds import MESSAGE, PAUSED, Kind, KindVersion, NormalizedTree, PrinterColumn, View, doc
from springtide.apis.meta.types import Conditions, Object
from springtide.apis.springtide.calendars import Calendar, forecast_calendar
from springtide.apis.springtide.grants import Grant

__all__ = ["KINDS", "fixes"]


class NodeClassSpec(View, kw_only=True):
    """The provider of the nodes, and its settings."""

    provider: Annotated[Literal["simulated", "cluster-api", "aws"], doc("Who makes the nodes.")]
    parameters: Annotated[Annotated[dict[str, str], Meta(max_length=100)] | None, doc("Settings of the provider.")] = (
        None
    )


class NodeClassStatus(View, kw_only=True):
    """What is observed about the class."""

    conditions: Annotated[Conditions | None, doc("What is observed about the class.")] = None


class NodeClass(Object, kw_only=True):
    """Where the nodes of a NodePool come from."""

    spec: Annotated[NodeClassSpec, doc("The provider, and its settings.")]
    status: Annotated[NodeClassStatus | None, doc("What is observed.")] = None


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
        short_names=("cal",),
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
                    PAUSED,
                    _AGE,
                    # `Active` is False on most days.
                    PrinterColumn("Message", "string", '.status.conditions[?(@.status=="Unknown")].message'),
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
        short_names=("grt",),
        categories=("springtide",),
        versions=(
            KindVersion(
                name="v1alpha1",
                view=Grant,
                storage=True,
                columns=(PrinterColumn("Namespaces", "string", ".spec.namespaces"), _READY, PAUSED, _AGE, MESSAGE),
            ),
        ),
    ),
    Kind(
        group=_GROUP,
        kind="NodeClass",
        plural="nodeclasses",
        scope="Cluster",
        short_names=("nclass",),
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
    """Return the object unchanged: these kinds have no repairs."""
    return NormalizedTree(value)
