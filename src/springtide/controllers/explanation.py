"""What all explanations share: what they are made from, their parts, and what can block an object of any kind.

`ExplanationInput` is the object with its status, the objects around it, and the time. Each kind makes an `Explanation`
from it, with the `decide` of its controller. Nothing here does I/O.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from springtide import almanac
from springtide.apis.forecast import LaneValue, format_instant
from springtide.apis.meta.times import parse_instant
from springtide.apis.objects import LoadedObject, calendars_in
from springtide.apis.problems import Problem, format_path
from springtide.apis.references import ObjectKey, ReferenceRole, references_of
from springtide.apis.springtide.grants import Grant, GrantedResource, is_granted
from springtide.cluster.resources import Object
from springtide.controllers.conflicts import (
    CONFLICT_CONDITION,
    AutoscalerRecord,
    ScaleTargetKey,
    autoscalers_among,
    conflict_condition,
)


@dataclass(frozen=True, slots=True)
class UpcomingChange:
    """A change that lies ahead."""

    at: int
    value: LaneValue
    lane: str
    """What changes: `replicas`, or the rule that fires."""
    because: str
    zone: str
    """The time zone in which its author wrote the time."""

    def document(self) -> dict[str, Any]:
        """Write it as scripts read it."""
        return {"at": format_instant(self.at), "value": self.value, "lane": self.lane, "because": self.because}


@dataclass(frozen=True, slots=True)
class Blocker:
    """Something that keeps the object from taking effect."""

    what: str
    why: str
    until: int | None = None
    """When it ends without a user; None where it does not, or where that is not known."""

    def document(self) -> dict[str, Any]:
        """Write it as scripts read it."""
        return {"what": self.what, "why": self.why, "until": None if self.until is None else format_instant(self.until)}


@dataclass(frozen=True, slots=True)
class ObservedCondition:
    """A condition, as the controller has written it."""

    type: str
    status: str
    reason: str
    message: str
    since: int | None

    def document(self) -> dict[str, Any]:
        """Write it as scripts read it."""
        return {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "since": None if self.since is None else format_instant(self.since),
        }


@dataclass(frozen=True, slots=True)
class PastEvent:
    """Something that happened: an execution of a rule, or an event."""

    at: int
    what: str
    bad: bool = False

    def document(self) -> dict[str, Any]:
        """Write it as scripts read it."""
        return {"at": format_instant(self.at), "what": self.what, "bad": self.bad}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedObject:
    """The object and the instant that are explained."""

    api_version: str
    kind: str
    namespace: str | None
    name: str
    at: int

    def document(self) -> dict[str, Any]:
        """Write it as scripts read it."""
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "at": format_instant(self.at),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What one object wants, why, what comes next, and what stopped it."""

    subject: ExplainedObject
    zone: str
    """The zone to show times in."""
    wants: Mapping[str, Any]
    headline: str
    """What it wants, in words."""
    because: tuple[str, ...]
    next: tuple[UpcomingChange, ...] = ()
    next_unknown: str = ""
    """Why it is not known what comes next, where that is so."""
    stopped: tuple[Blocker, ...] = ()
    conditions: tuple[ObservedCondition, ...] = ()
    history: tuple[PastEvent, ...] = ()
    """What happened, newest first."""
    notes: tuple[str, ...] = ()
    """What else is useful: readers of the object, and what could not be read."""

    def document(self) -> dict[str, Any]:
        """Write the explanation as scripts read it."""
        return {
            **self.subject.document(),
            "wants": dict(self.wants),
            "because": list(self.because),
            "next": [coming.document() for coming in self.next],
            "nextUnknown": self.next_unknown or None,
            "stopped": [stop.document() for stop in self.stopped],
            "conditions": [condition.document() for condition in self.conditions],
            "history": [happening.document() for happening in self.history],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class TargetState:
    """The target of an object, as it is now."""

    label: str
    """Its name in messages: Deployment `web`."""
    values: Mapping[str, int] = field(default_factory=dict)
    """Its present `replicas`, or `min` and `max`, as far as they are set."""
    observed: int | None = None
    """Replicas that exist."""
    trouble: str = ""
    """Why it cannot be read, if it cannot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationInput:
    """Everything that an explanation is made from; `unknown` says what could not be read."""

    object: LoadedObject
    status: Mapping[str, Any]
    at: int
    default_zone: str = "UTC"
    others: tuple[LoadedObject, ...] = ()
    """Other Calendars, Grants, producers and autoscalers that may concern the object."""
    scalers: tuple[ExplanationInput, ...] = ()
    """The same for each object that scales this one, where this one has no explanation of its own."""
    target: TargetState | None = None
    events: tuple[PastEvent, ...] = ()
    paused: str = ""
    """What pauses the object, if it is paused."""
    unknown: tuple[str, ...] = ()
    unseen: frozenset[str] = frozenset()
    """Kinds that could not be listed, so that none of their objects is reported as missing."""
    present: bool = True
    """Whether `at` is the time at which the status was read, so that the two can be compared."""
    read_at: int | None = None
    """When the status and the target were read, where `at` is another time and that is known."""

    @property
    def subject(self) -> ExplainedObject:
        """The object and the instant, for the head of the explanation."""
        one = self.object
        return ExplainedObject(
            api_version=one.api_version, kind=one.kind.kind, namespace=one.namespace, name=one.name, at=self.at
        )

    @property
    def not_known(self) -> str:
        """The headline where it is not known what the object wants."""
        return "not known yet" if self.present else "not known for that time"

    def has_reported(self, type_: str) -> bool:
        """Return whether a controller has written a condition that holds for the explained time."""
        return self.present and any(one.type == type_ for one in self.conditions)

    @property
    def calendars(self) -> dict[str, almanac.DayCalendar]:
        """The calendars that can be used, by name."""
        return calendars_in(self.others)

    @property
    def unusable_calendars(self) -> tuple[str, ...]:
        """Name the calendars of the object that cannot be used."""
        usable = self.calendars
        if "Calendar" in self.unseen:
            return ()
        present = {other.name for other in self.others if other.kind.kind == "Calendar"}
        wanted = dict.fromkeys(
            one.target.name for one in references_of(self.object) if one.role is ReferenceRole.CALENDAR
        )
        return tuple(
            f"Calendar `{name}` {'has errors' if name in present else 'does not exist'}: its days do not count"
            for name in wanted
            if name not in usable
        )

    @property
    def created(self) -> int | None:
        """When the object was created."""
        return instant_of(self.object.value.get("metadata", {}).get("creationTimestamp"))

    @property
    def conditions(self) -> tuple[ObservedCondition, ...]:
        """The conditions of the status, with `Ready` first."""
        listed = self.status.get("conditions")
        found = [_observation(one) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        return tuple(sorted(found, key=lambda one: one.type != "Ready"))

    def conflicting_autoscalers(self) -> list[AutoscalerRecord]:
        """Return the other autoscalers of the same target, as controllers find them."""
        spec = self.object.value.get("spec")
        reference = spec.get("scaleTargetRef") if isinstance(spec, dict) else None
        target = ScaleTargetKey.of(self.object.namespace or "", reference)
        return [] if target is None else autoscalers_among(map(stored_form, self.others), target)

    def conflicting_rules(self) -> tuple[LoadedObject, ...]:
        """Return the objects whose rules set the same target at their times."""
        mine = scaled_by(self.object)
        return tuple(
            other
            for other in self.others
            if any(one.target == mine and one.role is ReferenceRole.CRON for one in references_of(other))
        )

    def scaled_by(self) -> tuple[LoadedObject, ...]:
        """Return the objects that scale this one."""
        me = ObjectKey(self.object.kind.group, self.object.kind.kind, self.object.namespace, self.object.name)
        return tuple(other for other in self.others if scaled_by(other) == me)

    def grants_for(self, reach: GrantedResource, target: str) -> tuple[str, ...]:
        """Name the Grants that let the object reach a target."""
        return tuple(
            other.name
            for other in self.others
            if isinstance(other.view, Grant)
            and other.sound
            and is_granted([other.view.spec], self.object.namespace or "", reach, target)
        )


def stored_form(loaded: LoadedObject) -> Object:
    """Return an object as a cluster stores it, with its name and namespace written out."""
    metadata = loaded.value.get("metadata") or {}
    return {**loaded.value, "metadata": {**metadata, "name": loaded.name, "namespace": loaded.namespace or ""}}


def scaled_by(loaded: LoadedObject) -> ObjectKey | None:
    """Return what an object scales."""
    scaling = (one.target for one in references_of(loaded) if one.role in (ReferenceRole.SCALES, ReferenceRole.CRON))
    return next(scaling, None)


def instant_of(text: object) -> int | None:
    """Read a time from a status; None where it is missing or malformed."""
    try:
        return parse_instant(text) if isinstance(text, str) else None
    except ValueError:
        return None


def mappings(value: object) -> Iterator[dict[str, Any]]:
    """Return the entries of a list in a status that are objects."""
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict):
            yield entry


def _observation(condition: Mapping[str, Any]) -> ObservedCondition:
    fields = {name: str(condition.get(name) or "") for name in ("type", "status", "reason", "message")}
    return ObservedCondition(**fields, since=instant_of(condition.get("lastTransitionTime")))


_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z", re.ASCII)
_NOT_BLOCKING = ("Ready", "Unambiguous")
"""Conditions that block nothing: one repeats the others, one reports ambiguities of a schedule."""
_INVALID = "Invalid"


def common_blockers(facts: ExplanationInput, controller: str) -> Iterator[Blocker]:
    """Find what blocks an object of any kind: a pause, its errors, a missing controller, or a False condition."""
    yield from _user_blockers(facts)
    for problem in facts.object.problems:
        if problem.severity == "error":
            yield Blocker(f"{format_path(problem.path) or facts.object.kind.kind} is wrong", _problem_message(problem))
    if not facts.present:
        return  # conditions are those of the present
    if not facts.status and not facts.paused:
        yield Blocker(
            "no controller has reported yet",
            f"nothing has acted on it; see that `springtide controller` runs, with {controller}, and does more than"
            " observe",
        )
    yield from _reported_blockers(facts)


def _reported_blockers(facts: ExplanationInput) -> Iterator[Blocker]:
    """Return the conditions that are False, one blocker per message; errors of the object are reported already."""
    messages: dict[str, list[ObservedCondition]] = {}
    for condition in facts.conditions:
        if condition.status == "False" and condition.type not in _NOT_BLOCKING and condition.reason != _INVALID:
            messages.setdefault(condition.message or condition.reason, []).append(condition)
    for why, conditions in messages.items():
        types = " and ".join(one.type for one in conditions)
        yield Blocker(f"{types} {'is' if len(conditions) == 1 else 'are'} False", why, end_named_in(why, facts.at))


def _user_blockers(facts: ExplanationInput) -> Iterator[Blocker]:
    if facts.paused:
        yield Blocker("no controller touches it", facts.paused)
    if facts.object.value.get("metadata", {}).get("deletionTimestamp"):
        yield Blocker("it is being deleted", "a finalizer still keeps it")


def end_named_in(message: str, at: int) -> int | None:
    """Find the first time ahead that a message names."""
    named = (instant_of(text) for text in _INSTANT.findall(message))
    return min((instant for instant in named if instant is not None and instant > at), default=None)


def _problem_message(problem: Problem) -> str:
    """Write a problem with its hint."""
    return f"{problem.message} ({problem.hint})" if problem.hint else problem.message


def target_blockers(facts: ExplanationInput) -> Iterator[Blocker]:
    """Report a target that cannot be read."""
    if facts.target is not None and facts.target.trouble:
        yield Blocker(f"{facts.target.label} cannot be scaled", facts.target.trouble)


def conflict_blockers(
    facts: ExplanationInput, remedy: Callable[[Sequence[AutoscalerRecord]], str]
) -> Iterator[Blocker]:
    """Report other autoscalers of the target, unless the controller has reported them."""
    found = facts.conflicting_autoscalers()
    if found and not facts.has_reported(CONFLICT_CONDITION):
        label = target_label(facts)
        yield Blocker(f"another autoscaler scales {label}", conflict_condition(label, found, remedy(found)).message)


def target_label(facts: ExplanationInput) -> str:
    """Name the target of an object."""
    return facts.target.label if facts.target is not None else "its target"


def target_sentences(facts: ExplanationInput) -> Iterator[str]:
    """Say what the target has now, where that is known."""
    target = facts.target
    if target is None or target.trouble:
        return
    values = [f"{name} {value}" for name, value in target.values.items() if name != "replicas"]
    if "replicas" in target.values:
        asked = target.values["replicas"]
        present = f", {target.observed} of them exist" if target.observed not in (None, asked) else ""
        values.insert(0, f"{asked} replica{'' if asked == 1 else 's'}{present}")
    yield f"{'' if facts.present else 'at present '}{target.label} has {', '.join(values) or 'nothing set'}"
