"""The answer to "why?": the parts of an explanation, and their shape for scripts.

What an explanation is made from: the object, its surroundings, and the time.

What can stop any object: somebody's pause, its own errors, a controller that is not there, or what one reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from springtide import almanac
from springtide.apis.forecast import LaneValue, format_instant
from springtide.apis.meta.times import parse_instant
from springtide.apis.objects import LoadedObject, calendars_in
from springtide.apis.problems import Problem, format_path
from springtide.apis.references import ObjectKey, ReferenceRole, references_of
from springtide.apis.springtide.grants import Grant, GrantedResource, is_granted


@dataclass(frozen=True, slots=True)
class UpcomingChange:
    """Something that lies ahead."""

    at: int
    value: LaneValue
    lane: str
    """What changes: `replicas`, or the rule that fires."""
    because: str
    zone: str
    """The zone that its author wrote the time in."""

    def document(self) -> dict[str, Any]:
        """Write it as scripts read it."""
        return {"at": format_instant(self.at), "value": self.value, "lane": self.lane, "because": self.because}


@dataclass(frozen=True, slots=True)
class Blocker:
    """Something that keeps the object from having its way."""

    what: str
    why: str
    until: int | None = None
    """When it ends by itself; None where it does not, or where that is not known."""

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
    """What is explained: an object, at an instant."""

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
    """What is good to know besides: who follows the object, and what could not be looked at."""

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
    """What an object acts on, as it is now."""

    label: str
    """How sentences call it: Deployment `web`."""
    values: Mapping[str, int] = field(default_factory=dict)
    """What is set there: `replicas`, or `min` and `max`; what is not set is not here."""
    observed: int | None = None
    """Replicas that are there."""
    trouble: str = ""
    """Why nothing is known about it, where that is so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationInput:
    """Everything that is known; what could not be looked at is told in `unknown`."""

    object: LoadedObject
    status: Mapping[str, Any]
    at: int
    default_zone: str = "UTC"
    others: tuple[LoadedObject, ...] = ()
    """Calendars, Grants, producers and autoscalers that may have to do with the object, itself left out."""
    target: TargetState | None = None
    events: tuple[PastEvent, ...] = ()
    paused: str = ""
    """Who keeps controllers from touching the object, where somebody does."""
    unknown: tuple[str, ...] = ()
    unseen: frozenset[str] = frozenset()
    """Kinds of which nothing could be seen: none of them is said to be missing."""
    present: bool = True
    """Whether `at` is the time that the status was read at, so that the two can be compared."""

    @property
    def subject(self) -> ExplainedObject:
        """What is to be explained."""
        one = self.object
        return ExplainedObject(
            api_version=one.api_version, kind=one.kind.kind, namespace=one.namespace, name=one.name, at=self.at
        )

    @property
    def not_known(self) -> str:
        """How a headline says that it is not known what is wanted."""
        return "not known yet" if self.present else "not known for that time"

    def has_reported(self, type_: str) -> bool:
        """Tell whether a controller has written a condition, and it is of the time that is explained."""
        return self.present and any(one.type == type_ for one in self.conditions)

    @property
    def calendars(self) -> dict[str, almanac.DayCalendar]:
        """The calendars that can be used, by name."""
        return calendars_in(self.others)

    @property
    def unusable_calendars(self) -> tuple[str, ...]:
        """Say which of its calendars the object must do without."""
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
        """When the object was made."""
        return instant_of(self.object.value.get("metadata", {}).get("creationTimestamp"))

    @property
    def conditions(self) -> tuple[ObservedCondition, ...]:
        """What the controller has observed; `Ready`, which sums up the others, comes first where it is there."""
        listed = self.status.get("conditions")
        found = [_observation(one) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        return tuple(sorted(found, key=lambda one: one.type != "Ready"))

    def conflicting(self, role: ReferenceRole) -> tuple[LoadedObject, ...]:
        """Give the other objects that scale the same target: again and again, or at times."""
        mine = scaled_by(self.object)
        return tuple(
            other
            for other in self.others
            if any(one.target == mine and one.role is role for one in references_of(other))
        )

    def scaled_by(self) -> tuple[LoadedObject, ...]:
        """Give the objects that scale this one."""
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


def scaled_by(loaded: LoadedObject) -> ObjectKey | None:
    """Give what an object scales."""
    scaling = (one.target for one in references_of(loaded) if one.role in (ReferenceRole.SCALES, ReferenceRole.CRON))
    return next(scaling, None)


def instant_of(text: object) -> int | None:
    """Read a time of a status; None where there is none that can be read."""
    try:
        return parse_instant(text) if isinstance(text, str) else None
    except ValueError:
        return None


def mappings(value: object) -> Iterator[dict[str, Any]]:
    """Give the entries of a list of a status, as far as they are what they should be."""
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict):
            yield entry


def _observation(condition: Mapping[str, Any]) -> ObservedCondition:
    words = {name: str(condition.get(name) or "") for name in ("type", "status", "reason", "message")}
    return ObservedCondition(**words, since=instant_of(condition.get("lastTransitionTime")))


_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z", re.ASCII)
_NOT_BLOCKING = ("Ready", "Unambiguous")
"""Conditions that stop nothing: one sums up the others, one tells of surprises."""
_INVALID = "Invalid"


def common_blockers(facts: ExplanationInput, controller: str) -> Iterator[Blocker]:
    """Find what stops an object, whatever its kind."""
    yield from _user_blockers(facts)
    for problem in facts.object.problems:
        if problem.severity == "error":
            yield Blocker(f"{format_path(problem.path) or facts.object.kind.kind} is wrong", _problem_message(problem))
    if not facts.present:
        return  # what a controller has reported is of the present
    if not facts.status and not facts.paused:
        yield Blocker(
            "no controller has reported yet",
            f"nothing has acted on it; see that `springtide controller` runs, with {controller}, and does more than"
            " observe",
        )
    yield from _reported_blockers(facts)


def _reported_blockers(facts: ExplanationInput) -> Iterator[Blocker]:
    """Give what the controller complains of, each complaint once; that the object is wrong is told already."""
    complaints: dict[str, list[ObservedCondition]] = {}
    for condition in facts.conditions:
        if condition.status == "False" and condition.type not in _NOT_BLOCKING and condition.reason != _INVALID:
            complaints.setdefault(condition.message or condition.reason, []).append(condition)
    for why, conditions in complaints.items():
        types = " and ".join(one.type for one in conditions)
        yield Blocker(f"{types} {'is' if len(conditions) == 1 else 'are'} False", why, end_named_in(why, facts.at))


def _user_blockers(facts: ExplanationInput) -> Iterator[Blocker]:
    if facts.paused:
        yield Blocker("no controller touches it", facts.paused)
    if facts.object.value.get("metadata", {}).get("deletionTimestamp"):
        yield Blocker("it is being deleted", "somebody asked for it")


def end_named_in(words: str, at: int) -> int | None:
    """Find the time that words give for an end: the first that lies ahead."""
    named = (instant_of(text) for text in _INSTANT.findall(words))
    return min((instant for instant in named if instant is not None and instant > at), default=None)


def _problem_message(problem: Problem) -> str:
    """Write a problem with its fix."""
    return f"{problem.message} ({problem.hint})" if problem.hint else problem.message
