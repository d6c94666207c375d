"""What an explanation is made from: the object, its surroundings, and the time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from springtide import almanac
from springtide.apis.explaining.explanation import Happening, Observation, Subject
from springtide.apis.meta.instants import parse_instant
from springtide.apis.objects import LoadedObject
from springtide.apis.outlook import calendars_among
from springtide.apis.references import Role, Target, references_of
from springtide.apis.springtide.grants import Reach, allowed
from springtide.apis.springtide.types import Grant


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
class Facts:
    """Everything that is known; what could not be looked at is told in `unknown`."""

    object: LoadedObject
    status: Mapping[str, Any]
    at: int
    default_zone: str = "UTC"
    others: tuple[LoadedObject, ...] = ()
    """Calendars, Grants, producers and autoscalers that may have to do with the object, itself left out."""
    target: TargetState | None = None
    events: tuple[Happening, ...] = ()
    paused: str = ""
    """Who keeps controllers from touching the object, where somebody does."""
    unknown: tuple[str, ...] = ()
    unseen: frozenset[str] = frozenset()
    """Kinds of which nothing could be seen: none of them is said to be missing."""
    present: bool = True
    """Whether `at` is the time that the status was read at, so that the two can be compared."""

    @property
    def subject(self) -> Subject:
        """What is to be explained."""
        one = self.object
        return Subject(
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
    def calendars(self) -> dict[str, almanac.Calendar]:
        """The calendars that can be used, by name."""
        return calendars_among(self.others)

    @property
    def unusable_calendars(self) -> tuple[str, ...]:
        """Say which of its calendars the object must do without."""
        usable = self.calendars
        if "Calendar" in self.unseen:
            return ()
        present = {other.name for other in self.others if other.kind.kind == "Calendar"}
        wanted = dict.fromkeys(one.target.name for one in references_of(self.object) if one.role is Role.CALENDAR)
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
    def conditions(self) -> tuple[Observation, ...]:
        """What the controller has observed; `Ready`, which sums up the others, comes first where it is there."""
        listed = self.status.get("conditions")
        found = [_observation(one) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        return tuple(sorted(found, key=lambda one: one.type != "Ready"))

    def contenders(self, role: Role) -> tuple[LoadedObject, ...]:
        """Give the other objects that scale the same target: again and again, or at times."""
        mine = scaled_by(self.object)
        return tuple(
            other
            for other in self.others
            if any(one.target == mine and one.role is role for one in references_of(other))
        )

    def scaled_by(self) -> tuple[LoadedObject, ...]:
        """Give the objects that scale this one."""
        me = Target(self.object.kind.group, self.object.kind.kind, self.object.namespace, self.object.name)
        return tuple(other for other in self.others if scaled_by(other) == me)

    def granting(self, reach: Reach, target: str) -> tuple[str, ...]:
        """Name the Grants that let the object reach a target."""
        return tuple(
            other.name
            for other in self.others
            if isinstance(other.view, Grant)
            and other.sound
            and allowed([other.view.spec], self.object.namespace or "", reach, target)
        )


def scaled_by(loaded: LoadedObject) -> Target | None:
    """Give what an object scales."""
    scaling = (one.target for one in references_of(loaded) if one.role in (Role.SCALES, Role.CRON))
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


def _observation(condition: Mapping[str, Any]) -> Observation:
    words = {name: str(condition.get(name) or "") for name in ("type", "status", "reason", "message")}
    return Observation(**words, since=instant_of(condition.get("lastTransitionTime")))
