"""What is kept in memory of CronFederatedHPAs: little, as there may be tens of thousands.

Spec and status are kept as JSON text, which takes a fraction of what dictionaries do; it is read when something is due.
Of the managed fields only one thing is kept: when somebody last changed the spec.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from springtide.apis.extensions import ANNOTATION as EXTENSIONS
from springtide.apis.extensions import merge_extensions
from springtide.apis.meta.instants import parse_instant
from springtide.cluster.controller import Cached
from springtide.cluster.origins import Origin
from springtide.cluster.pausing import ANNOTATION as PAUSED
from springtide.cluster.resources import Object, Resource, Selection
from springtide.controllers.cron.cursor import ANNOTATION as CURSOR
from springtide.controllers.scalers import BY_TARGET, TargetName

CRON_FEDERATED_HPAS = Resource("autoscaling.karmada.io", "v1alpha1", "cronfederatedhpas", "CronFederatedHPA")

BY_CALENDAR = "calendar"


@dataclass(frozen=True, slots=True)
class CronRecord:
    """One CronFederatedHPA."""

    origin: Origin
    generation: int
    created: int
    edited: int | None
    """When somebody last changed the spec, if the managed fields tell."""
    cursor: str
    paused: bool
    """Whether somebody keeps us from acting on it."""
    going: bool
    """Whether it is being deleted, and only waits for its finalizers."""
    written: bytes
    """What it says, without who it is: objects that say the same are judged once."""
    status: bytes
    target: TargetName | None
    calendars: tuple[str, ...]

    def observed(self) -> Object:
        """Give the object as far as a write of its status needs it."""
        key = self.origin.key
        return {
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "uid": self.origin.uid,
                "resourceVersion": self.origin.version,
                "generation": self.generation,
            },
            "status": msgspec.json.decode(self.status),
        }


def record_of(item: Object) -> CronRecord:
    """Keep of an object what is needed."""
    metadata = item["metadata"]
    annotations = metadata.get("annotations") or {}
    extensions = {EXTENSIONS: annotations[EXTENSIONS]} if EXTENSIONS in annotations else {}
    written = {
        "apiVersion": CRON_FEDERATED_HPAS.api_version,
        "kind": CRON_FEDERATED_HPAS.kind,
        "metadata": {"name": "any", "annotations": extensions},
        "spec": item.get("spec"),
    }
    spec = merge_extensions(written)[0].get("spec")
    reference = spec.get("scaleTargetRef") if isinstance(spec, dict) else None
    return CronRecord(
        origin=Origin.of(item),
        generation=metadata.get("generation") or 0,
        created=parse_instant(metadata["creationTimestamp"]),
        edited=_last_edit(metadata.get("managedFields") or ()),
        cursor=annotations.get(CURSOR, ""),
        paused=annotations.get(PAUSED) == "true",
        going=bool(metadata.get("deletionTimestamp")),
        written=msgspec.json.encode(written),
        status=msgspec.json.encode(item.get("status") or {}),
        target=TargetName.of(metadata.get("namespace", ""), reference),
        calendars=tuple(_calendars(spec)),
    )


def _last_edit(managed: Iterable[Any]) -> int | None:
    """Find when the spec, or what the annotation adds to it, was written last."""
    times = [
        parse_instant(entry["time"])
        for entry in managed
        # Entries of a subresource are about something else.
        if entry.get("time") and not entry.get("subresource") and _has_spec(entry.get("fieldsV1") or {})
    ]
    return max(times, default=None)


def _has_spec(fields: Any) -> bool:
    annotations = fields.get("f:metadata", {}).get("f:annotations", {})
    return "f:spec" in fields or f"f:{EXTENSIONS}" in annotations


def _calendars(spec: Any) -> list[str]:
    names = [
        reference.get("name")
        for rule in _mappings(spec.get("rules") if isinstance(spec, dict) else None)
        for reference in _mappings(rule.get("calendars"))
    ]
    return list(dict.fromkeys(str(name) for name in names if name))


def _mappings(value: Any) -> list[Any]:
    """Give the entries of a list, as far as they are what they should be; what is not is told elsewhere."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _targets(record: CronRecord) -> tuple[TargetName, ...]:
    return () if record.target is None else (record.target,)


ALL_CRONS = Cached(
    Selection(CRON_FEDERATED_HPAS),
    record=record_of,
    indexes={BY_TARGET: _targets, BY_CALENDAR: lambda record: record.calendars},
)
