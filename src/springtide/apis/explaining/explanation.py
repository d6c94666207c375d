"""The answer to "why?": the parts of an explanation, and their shape for scripts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from springtide.apis.forecast import LaneValue, format_instant


@dataclass(frozen=True, slots=True)
class Coming:
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
class Stop:
    """Something that keeps the object from having its way."""

    what: str
    why: str
    until: int | None = None
    """When it ends by itself; None where it does not, or where that is not known."""

    def document(self) -> dict[str, Any]:
        """Write it as scripts read it."""
        return {"what": self.what, "why": self.why, "until": None if self.until is None else format_instant(self.until)}


@dataclass(frozen=True, slots=True)
class Observation:
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
class Happening:
    """Something that happened: an execution of a rule, or an event."""

    at: int
    what: str
    bad: bool = False

    def document(self) -> dict[str, Any]:
        """Write it as scripts read it."""
        return {"at": format_instant(self.at), "what": self.what, "bad": self.bad}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
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

    subject: Subject
    zone: str
    """The zone to show times in."""
    wants: Mapping[str, Any]
    headline: str
    """What it wants, in words."""
    because: tuple[str, ...]
    next: tuple[Coming, ...] = ()
    next_unknown: str = ""
    """Why it is not known what comes next, where that is so."""
    stopped: tuple[Stop, ...] = ()
    conditions: tuple[Observation, ...] = ()
    history: tuple[Happening, ...] = ()
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
