"""The calendars that schedules and rules refer to, compiled once for all controllers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from springtide import almanac
from springtide.almanac import CalendarError
from springtide.apis.kinds import ValidationContext
from springtide.apis.springtide.calendars import Calendar, compile_calendar
from springtide.apis.structural_validation import check_structure
from springtide.cluster.controller import Cached, Permission
from springtide.cluster.resources import Object, Resource, Selection
from springtide.cluster.store import Store

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


ALL_CALENDARS = Cached(Selection(CALENDARS), record=compiled_calendar)
"""The cache of all calendars; controllers whose schedules refer to calendars watch and follow it."""

NO_CALENDARS: Mapping[str, almanac.DayCalendar] = MappingProxyType({})


def calendars_in(store: Store[CompiledCalendar]) -> dict[str, almanac.DayCalendar]:
    """Give the calendars without errors, by name."""
    return {one.name: one.calendar for one in store.values() if one.calendar is not None}
