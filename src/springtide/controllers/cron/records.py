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
from springtide.apis.meta.scale_targets import intended_version
from springtide.cluster.controller import Cached
from springtide.cluster.origins import Origin
from springtide.cluster.resources import Object, Resource, Selection
from springtide.controllers.cron.cursor import ANNOTATION as CURSOR

CRON_FEDERATED_HPAS = Resource("autoscaling.karmada.io", "v1alpha1", "cronfederatedhpas", "CronFederatedHPA")

BY_TARGET = "target"
BY_CALENDAR = "calendar"


@dataclass(frozen=True, slots=True)
class TargetName:
    """An object that is scaled, whatever version of its kind a reference names."""

    namespace: str
    group: str
    kind: str
    name: str

    @classmethod
    def of(cls, namespace: str, reference: Any) -> TargetName | None:
        """Read a reference as it stands in an object; None where it is none."""
        if not isinstance(reference, dict) or not reference.get("kind") or not reference.get("name"):
            return None
        kind = str(reference["kind"])
        version = reference.get("apiVersion") or intended_version(kind, None) or ""
        return cls(namespace, str(version).rpartition("/")[0], kind, str(reference["name"]))


@dataclass(frozen=True, slots=True)
class CronRecord:
    """One CronFederatedHPA."""

    origin: Origin
    generation: int
    created: int
    edited: int | None
    """When somebody last changed the spec, if the managed fields tell."""
    cursor: str
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
        written=msgspec.json.encode(written),
        status=msgspec.json.encode(item.get("status") or {}),
        target=TargetName.of(metadata.get("namespace", ""), reference),
        calendars=tuple(_calendars(spec)),
    )


def _last_edit(managed: Iterable[Any]) -> int | None:
    """Find when the spec was written last; entries of a subresource are about something else."""
    times = [
        parse_instant(entry["time"])
        for entry in managed
        if entry.get("time") and not entry.get("subresource") and "f:spec" in (entry.get("fieldsV1") or {})
    ]
    return max(times, default=None)


def _calendars(spec: Any) -> list[str]:
    rules = spec.get("rules") if isinstance(spec, dict) else None
    names = [
        reference.get("name")
        for rule in (rules if isinstance(rules, list) else ())
        if isinstance(rule, dict)
        for reference in (rule.get("calendars") or ())
        if isinstance(reference, dict)
    ]
    return list(dict.fromkeys(str(name) for name in names if name))


def _targets(record: CronRecord) -> tuple[TargetName, ...]:
    return () if record.target is None else (record.target,)


ALL_CRONS = Cached(
    Selection(CRON_FEDERATED_HPAS),
    record=record_of,
    indexes={BY_TARGET: _targets, BY_CALENDAR: lambda record: record.calendars},
)
