"""The calendars that schedules refer to, compiled as they come."""

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
from springtide.cluster.resources import Object, Selection
from springtide.cluster.store import Store
from springtide.controllers.calendar import CALENDARS

PERMISSIONS = (Permission(CALENDARS, ("get", "list", "watch")),)


@dataclass(frozen=True, slots=True)
class CompiledCalendar:
    """A calendar, as far as it can be used; equal to another one if it was written the same."""

    name: str
    written: object
    calendar: almanac.DayCalendar | None
    """None where it has errors: it counts as absent."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompiledCalendar) and (self.name, self.written) == (other.name, other.written)

    def __hash__(self) -> int:
        return hash(self.name)


def _compiled(item: Object) -> CompiledCalendar:
    written = {name: part for name, part in item.items() if name != "status"}
    checked = check_structure(written, Calendar, ValidationContext(now=0, deep_search=False))
    compiled = None
    if isinstance(checked.view, Calendar) and not any(one.severity == "error" for one in checked.problems):
        try:
            compiled = compile_calendar(checked.view.spec)
        except CalendarError:
            compiled = None  # the Calendar's own status says why
    return CompiledCalendar(item["metadata"]["name"], item.get("spec"), compiled)


ALL_CALENDARS = Cached(Selection(CALENDARS), record=_compiled)
"""To be watched with `to_nobody`, and followed by whoever schedules with calendars."""

NO_CALENDARS: Mapping[str, almanac.DayCalendar] = MappingProxyType({})


def calendars_in(store: Store[CompiledCalendar]) -> dict[str, almanac.DayCalendar]:
    """Give the calendars that can be used, by name."""
    return {one.name: one.calendar for one in store.values() if one.calendar is not None}
