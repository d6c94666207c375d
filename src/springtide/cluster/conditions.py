"""Conditions and status patches.

The conditions of an object have many writers, and no writer may lose those of another. If the schema declares the list
as a map by type, server-side apply does that: a controller applies all its conditions and owns only these. If the list
is atomic, it is read, merged and patched with the version that was read as precondition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from springtide.apis.forecast import format_instant
from springtide.apis.redaction import redacted
from springtide.cluster.resources import Object, Resource, key_of
from springtide.cluster.transport import Patch

LONGEST_MESSAGE = 32_768


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"

    @classmethod
    def of(cls, holds: bool | None) -> ConditionStatus:
        """Return the status for a truth value; None is unknown."""
        return cls.UNKNOWN if holds is None else cls.TRUE if holds else cls.FALSE


class ConditionList(StrEnum):
    """How the schema of a kind declares its list of conditions."""

    MAP = "map"
    """A map by type (`x-kubernetes-list-type: map`): every field manager owns its own entries."""
    ATOMIC = "atomic"
    """One value: a write of one entry writes all."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One observation about an object, and why."""

    type: str
    status: ConditionStatus
    reason: str
    message: str


def own_conditions(
    existing: Sequence[Object], wanted: Iterable[Condition], *, now: int, generation: int | None
) -> list[Object]:
    """Return conditions as the API has them; `lastTransitionTime` stays if the status is unchanged."""
    by_type = _first_by_type(existing)
    return [_entry(by_type.get(condition.type), condition, now, generation) for condition in wanted]


def merged_conditions(
    existing: Sequence[Object], wanted: Iterable[Condition], *, now: int, generation: int | None
) -> list[Object]:
    """Merge conditions into a list that others write as well: theirs stay as they are, and where they are.

    Such a list may hold a type twice; of `wanted` types only the first entry stays.
    """
    own = {entry["type"]: entry for entry in own_conditions(existing, wanted, now=now, generation=generation)}
    first = _first_by_type(existing)
    kept = [own.get(entry.get("type"), entry) for entry in existing if _is_kept(entry, own, first)]
    return [*kept, *(entry for name, entry in own.items() if name not in first)]


def status_patch(
    resource: Resource,
    item: Object,
    fields: Mapping[str, Any],
    conditions: Sequence[Condition],
    *,
    now: int,
    listed: ConditionList = ConditionList.MAP,
    observes_generation: bool = True,
) -> Patch | None:
    """Compute the patch that brings the status of an object to the desired one; None if there is nothing to change.

    A field that is None must be absent; an apply removes it only if the same field manager wrote it, so check the
    answer, as `Client.apply_status` does. An apply also removes fields that the manager wrote before and does not name
    now: always name the same ones. `observes_generation` is off for schemas whose conditions have no
    `observedGeneration`: a field that the server drops would be written forever.
    """
    status = item.get("status") or {}
    existing = status.get("conditions") or []
    generation = item["metadata"].get("generation") if observes_generation else None
    merge = merged_conditions if listed is ConditionList.ATOMIC else own_conditions
    entries = merge(existing, conditions, now=now, generation=generation)
    twice = listed is ConditionList.ATOMIC and len(entries) < len(existing)
    if all(status.get(name) == value for name, value in fields.items()) and _shown(entries, existing) and not twice:
        return None
    wanted = {**fields, "conditions": entries} if conditions else dict(fields)
    if listed is ConditionList.ATOMIC:
        return Patch.merge({"status": wanted})
    key = key_of(item)
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": key.name} | ({"namespace": key.namespace} if key.namespace else {}),
        "status": {name: value for name, value in wanted.items() if value is not None},
    }
    return Patch.apply(body, force=True)


def _shown(entries: Sequence[Object], existing: Sequence[Object]) -> bool:
    """Return whether every entry is in the list already; entries there may have further fields."""
    by_type = _first_by_type(existing)
    return all(entry.items() <= by_type.get(entry["type"], {}).items() for entry in entries)


def _first_by_type(entries: Sequence[Object]) -> dict[str | None, Object]:
    """Index entries by type; of two of a type, the first counts."""
    return {entry.get("type"): entry for entry in reversed(entries)}


def _is_kept(entry: Object, own: Mapping[str, Object], first: Mapping[str | None, Object]) -> bool:
    return entry.get("type") not in own or first[entry.get("type")] is entry


def _entry(before: Object | None, condition: Condition, now: int, generation: int | None) -> Object:
    unchanged = before is not None and before.get("status") == condition.status
    since = (before or {}).get("lastTransitionTime") if unchanged else None
    entry: Object = {
        "type": condition.type,
        "status": str(condition.status),
        "lastTransitionTime": since or format_instant(now),
        "reason": condition.reason,
        "message": _fitting(condition.message),
    }
    if generation is not None:
        entry["observedGeneration"] = generation
    return entry


def _fitting(message: str) -> str:
    """Remove passwords from a message, and cut it to what the API takes."""
    message = redacted(message)
    return message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 1]}…"
