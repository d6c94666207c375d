"""Conditions, and the status they stand in: what a controller has observed, for people and for other programs.

An object's conditions have many writers, and none may lose what another wrote. Where the schema tells entries apart by
their type, server-side apply does that: a controller sends all conditions of its own and owns just these. Where the
list is one value, it is read, merged and patched under the version it was read at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from springtide.apis.forecast import format_instant
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
        """Turn a plain answer into the word for it; None is unknown."""
        return cls.UNKNOWN if holds is None else cls.TRUE if holds else cls.FALSE


class ConditionList(StrEnum):
    """How the schema of a kind declares its list of conditions."""

    MAP = "map"
    """Entries are told apart by their type (`x-kubernetes-list-type: map`): every writer owns its own."""
    ATOMIC = "atomic"
    """The list is one value: whoever writes one entry writes all."""


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
    """Write conditions as the API has them; the time of the last transition stays where the status does."""
    by_type = _first_by_type(existing)
    return [_entry(by_type.get(condition.type), condition, now, generation) for condition in wanted]


def merged_conditions(
    existing: Sequence[Object], wanted: Iterable[Condition], *, now: int, generation: int | None
) -> list[Object]:
    """Put conditions into a list that others write as well: theirs stay as they are, and where they are.

    Nothing keeps such a list from naming a type twice; of ours the first stays.
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
    """Compute the patch that brings the status of an object to what it should be; None where it is there already.

    A field that is None is one that the status must not have; an apply removes it only where the same controller wrote
    it, so look at what is left, as `Client.apply_status` does. Fields that are not named are not touched, but by an
    apply those go that the same controller wrote before: name always the same ones. `observes_generation` is for
    schemas whose conditions have no `observedGeneration`: a field that the server drops would be written forever.
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
    """Tell whether every entry stands in a list already, whatever else its namesakes there have."""
    by_type = _first_by_type(existing)
    return all(entry.items() <= by_type.get(entry["type"], {}).items() for entry in entries)


def _first_by_type(entries: Sequence[Object]) -> dict[str | None, Object]:
    """Find entries by their type; of two of a type, people and programs look at the first."""
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
    """Cut a message to what the API takes."""
    return message if len(message) <= LONGEST_MESSAGE else f"{message[: LONGEST_MESSAGE - 1]}…"
