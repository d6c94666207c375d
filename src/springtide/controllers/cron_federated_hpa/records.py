"""CronFederatedHPAs as the controller caches them, and their specs compiled.

There may be tens of thousands: spec and status are kept as JSON, which takes a fraction of the memory of dictionaries,
and of the managed fields only the time of the last change of the spec. Specs are compiled once for equal objects. An
invalid rule does not affect the others; if the target or the object as a whole is invalid, no rule is in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import msgspec

from springtide.almanac import DayCalendar, Firings, Zone, load_zone
from springtide.almanac.civil import DAY
from springtide.apis.karmada.cron import CronFederatedHPA, CronFederatedHPARule
from springtide.apis.karmada.rules import firings_of, timing_problems
from springtide.apis.karmada.targets import CronTarget, action_of, action_problems
from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.times import parse_instant
from springtide.apis.problems import Problem, has_errors
from springtide.apis.validation import ANNOTATION as EXTENSIONS
from springtide.apis.validation import merge_extensions
from springtide.cluster.controller import Cached, Urgency
from springtide.cluster.pausing import ANNOTATION as PAUSED
from springtide.cluster.pausing import means_paused
from springtide.cluster.resources import Object, Resource, Selection
from springtide.cluster.transport import ObjectVersion
from springtide.controllers.conflicts import BY_TARGET, ScaleTargetKey
from springtide.controllers.cron_federated_hpa.cursor import ANNOTATION as CURSOR
from springtide.controllers.cron_federated_hpa.cursor import timing_fingerprint
from springtide.controllers.cron_federated_hpa.history import HistoryLimits
from springtide.controllers.cron_federated_hpa.plan import RuleAction
from springtide.controllers.validated import validated

CRON_FEDERATED_HPAS = Resource("autoscaling.karmada.io", "v1alpha1", "cronfederatedhpas", "CronFederatedHPA")

BY_CALENDAR = "calendar"


@dataclass(frozen=True, slots=True)
class CronRecord:
    """One CronFederatedHPA."""

    origin: ObjectVersion
    generation: int
    created: int
    edited: int | None
    """When a user last changed the spec, if the managed fields say."""
    cursor: str
    paused: bool
    deleting: bool
    """Whether it is being deleted, and only waits for its finalizers."""
    written: bytes
    """Its spec as JSON, without its name: objects with equal specs are compiled once."""
    status: bytes
    target: ScaleTargetKey | None
    calendars: tuple[str, ...]

    def urgency(self, now: int) -> Urgency:
        """Return whether a rule is due, by the next executions in the status; edits since then are not known there."""
        status = msgspec.json.decode(self.status)
        histories = [one for one in status.get("executionHistories") or () if "nextExecutionTime" in one]
        if any(parse_instant(one["nextExecutionTime"]) <= now for one in histories):
            return Urgency.DUE
        observed = [one.get("observedGeneration") for one in status.get("conditions") or ()]
        return Urgency.LATER if self.cursor and self.generation in observed else Urgency.UNKNOWN

    def differs_only_in_cursor(self, other: CronRecord, cursor: str) -> bool:
        """Return whether a later record of an object is the other one with this cursor, and otherwise unchanged."""
        return self.cursor == cursor and replace(self, origin=other.origin, cursor=other.cursor) == other

    def observed(self) -> Object:
        """Return the parts of the object that a write of its status needs."""
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
    """Make the record of an object."""
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
        origin=ObjectVersion.of(item),
        generation=metadata.get("generation") or 0,
        created=parse_instant(metadata["creationTimestamp"]),
        edited=_last_edit(metadata.get("managedFields") or ()),
        cursor=annotations.get(CURSOR, ""),
        paused=means_paused(annotations.get(PAUSED)),
        deleting=bool(metadata.get("deletionTimestamp")),
        written=msgspec.json.encode(written),
        status=msgspec.json.encode(item.get("status") or {}),
        target=ScaleTargetKey.of(metadata.get("namespace", ""), reference),
        calendars=tuple(_calendars(spec)),
    )


def _last_edit(managed: Iterable[Any]) -> int | None:
    """Find when the spec, or the annotation that extends it, was written last."""
    times = [
        parse_instant(entry["time"])
        for entry in managed
        # Entries of a subresource do not concern the spec.
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
    """Return the entries of a list that are objects; validation reports the others."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _try(item: Object, now: int, default_zone: str) -> None:
    """Compile the spec of an object, and find the firings of its rules."""
    for rule in compile_cron(record_of(item), default_zone).rules:
        firings = rule.firings(default_zone, {})
        firings.at_or_before(now)
        firings.after(now)


def _targets(record: CronRecord) -> tuple[ScaleTargetKey, ...]:
    return () if record.target is None else (record.target,)


ALL_CRONS = Cached(
    Selection(CRON_FEDERATED_HPAS),
    record=record_of,
    indexes={BY_TARGET: _targets, BY_CALENDAR: lambda record: record.calendars},
    trial=_try,
)


_MOST_COMPILED = 16_384
"""How many different specs are kept compiled; each takes some kilobytes, and milliseconds to compile."""
_MOST_TIMINGS = 4096
"""How many different timings of rules are kept compiled."""

_ALL_RULES = ("spec", "rules")


@dataclass(frozen=True, slots=True)
class CompiledCronRule:
    """A rule without errors."""

    name: str
    view: CronFederatedHPARule
    action: RuleAction
    timing: str

    @property
    def limits(self) -> HistoryLimits:
        """How many entries of its history it keeps."""
        return HistoryLimits(self.view.successful_history_limit, self.view.failed_history_limit)

    def firings(self, default_zone: str, calendars: Mapping[str, DayCalendar]) -> Firings:
        """Return the instants at which it fires while it is not suspended."""
        if self.view.calendars:
            return firings_of(self.view, default_zone, calendars)
        return _firings(self.view.schedule, self.view.at, self.view.time_zone or default_zone)


@dataclass(frozen=True, slots=True)
class CompiledCronSpec:
    """A spec, compiled."""

    target: CronTarget | None
    """None where the object as a whole has errors, so that no rule is in force."""
    rules: tuple[CompiledCronRule, ...]
    """The rules without errors, in their order."""
    written: tuple[str, ...] | None
    """The names of all rules, with or without errors; None where the list is malformed."""
    errors: str
    """All errors in one line; empty where there are none."""

    def missing_calendars(self, calendars: Mapping[str, DayCalendar]) -> tuple[str, ...]:
        """Name the calendars of rules that do not exist or have errors."""
        named = (one.name for rule in self.rules for one in rule.view.calendars or ())
        return tuple(dict.fromkeys(name for name in named if name not in calendars))


def compile_cron(record: CronRecord, default_zone: str) -> CompiledCronSpec:
    """Compile the spec of an object as of the day on which it was written: what was valid then stays so."""
    written = record.created if record.edited is None else record.edited
    return _compile(record.written, default_zone, written // DAY * DAY)


def zone_of(spec: CompiledCronSpec, rule: str, default_zone: str) -> Zone:
    """Return the time zone of a rule without errors."""
    named = next(one.view.time_zone for one in spec.rules if one.name == rule)
    return load_zone(named or default_zone)


@lru_cache(maxsize=_MOST_COMPILED)
def _compile(written: bytes, default_zone: str, day: int) -> CompiledCronSpec:
    item = msgspec.json.decode(written)
    verdict = validated(item, CronFederatedHPA, now=day, default_zone=default_zone)
    names = _names_in(item)
    if verdict.view is None or any(not _concerns_one_rule(problem) for problem in verdict.errors):
        return CompiledCronSpec(None, (), names, verdict.error_message)
    spec = verdict.view.spec
    kind = spec.scale_target_ref.target_kind
    context = ValidationContext(now=day, default_zone=default_zone, deep_search=False)
    sound: dict[str, CompiledCronRule] = {}
    for rule in spec.rules:
        if not has_errors((*timing_problems(rule, context), *action_problems(rule, kind))):
            timing = timing_fingerprint(rule.schedule, rule.at, rule.time_zone)
            sound.setdefault(rule.name, CompiledCronRule(rule.name, rule, action_of(rule, kind), timing))
    return CompiledCronSpec(spec.scale_target_ref, tuple(sound.values()), names, verdict.error_message)


@lru_cache(maxsize=_MOST_TIMINGS)
def _firings(schedule: str | None, at: str | None, zone: str) -> Firings:
    return firings_of(CronFederatedHPARule(name="any", schedule=schedule, at=at), zone, {})


def _concerns_one_rule(problem: Problem) -> bool:
    return problem.path[:2] == _ALL_RULES and len(problem.path) > len(_ALL_RULES)


def _names_in(item: dict[str, Any]) -> tuple[str, ...] | None:
    spec = item.get("spec")
    rules = spec.get("rules") if isinstance(spec, dict) else None
    if not isinstance(rules, list):
        return None
    names = (rule.get("name") for rule in rules if isinstance(rule, dict))
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))
