"""The calendars that schedules and rules refer to, compiled once for all controllers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from springtide import almanac
from springtide.almanac import CalendarError
from springtide.apis.kinds import ValidationContext
from springtide.apis.springtide.calendars import Calendar, compile_calendar
from springtide.apis.structural_validation import check_structure
from springtide.cluster.controller import Cached, Permission
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.state import SharedState
from springtide.cluster.store import Delta
from springtide.controllers.calendar.decide import decide

CALENDARS = Resource("springtide.dev", "v1alpha1", "calendars", "Calendar", namespaced=False)
PERMISSIONS = (Permission(CALENDARS, ("get", "list", "watch")),)


@dataclass(frozen=True, slots=True)
class CompiledCalendar:
    """A Calendar object, compiled; two are equal if their specs are."""

    name: str
    written: object
    calendar: almanac.DayCalendar | None
    """None where the object has errors: schedules then ignore it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompiledCalendar) and (self.name, self.written) == (other.name, other.written)

    def __hash__(self) -> int:
        return hash(self.name)


def compiled_calendar(item: Object) -> CompiledCalendar:
    """Compile a Calendar object; one with errors has no days."""
    written = {name: part for name, part in item.items() if name != "status"}
    checked = check_structure(written, Calendar, ValidationContext(now=0, deep_search=False))
    compiled = None
    if isinstance(checked.view, Calendar) and not any(one.severity == "error" for one in checked.problems):
        try:
            compiled = compile_calendar(checked.view.spec)
        except CalendarError:
            compiled = None  # the status of the Calendar says why
    return CompiledCalendar(item["metadata"]["name"], item.get("spec"), compiled)


ALL_CALENDARS = Cached(Selection(CALENDARS), record=compiled_calendar, trial=decide)


class Calendars(SharedState[str]):
    """All calendars, compiled; a change is the name of a calendar."""

    optional_sources = (ALL_CALENDARS,)

    def __init__(self) -> None:
        self._usable: dict[str, almanac.DayCalendar] = {}

    def apply(self, cached: Cached, delta: Delta[CompiledCalendar]) -> None:  # noqa: ARG002 - there is one source
        """Update one calendar."""
        name = delta.key.name
        if delta.new is not None and delta.new.calendar is not None:
            self._usable[name] = delta.new.calendar
        else:
            self._usable.pop(name, None)
        self.publish(name)

    def reset(self) -> None:
        """Forget all calendars."""
        self._usable = {}

    @property
    def usable(self) -> Mapping[str, almanac.DayCalendar]:
        """The calendars without errors, by name."""
        return self._usable

    def find(self, name: str) -> CompiledCalendar | None:
        """Return a calendar with or without errors; None where it does not exist."""
        found: CompiledCalendar | None = self.store(ALL_CALENDARS).get(Key("", name))
        return found
