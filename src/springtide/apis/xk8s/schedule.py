"""When a buffer is active, and why.

The windows of a buffer are read as people mean them: open from a start until the end after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from springtide.almanac import Calendar, MatchPolicy, Timeline, Zone, always, both, either, load_zone
from springtide.apis.forecast import Lane, LaneStyle, Outlook, Question
from springtide.apis.meta.clock_times import clock_time
from springtide.apis.meta.lanes import level_lane
from springtide.apis.meta.windows import known_references, open_times
from springtide.apis.xk8s.buffers import BufferSchedule, CapacityBuffer

_LANE = "active"


@dataclass(frozen=True, slots=True)
class ActiveTimes:
    """A compiled schedule: its windows and its calendars, each by itself so that reasons can name them."""

    zone: Zone
    windows: tuple[Timeline[bool], ...]
    calendars: tuple[tuple[str, Timeline[bool]], ...]
    """The calendars' names, and when each lets the buffer be active."""

    def timeline(self) -> Timeline[bool]:
        """Give the times at which the buffer is active."""
        return both(either(*self.windows), *(allows for _, allows in self.calendars))

    def state(self, at: int) -> str:
        """Say why the buffer is active or not at an instant."""
        if (refusing := self._refusing(at)) is not None:
            return f"calendar `{refusing}` leaves the day out ({self.zone.name})"
        if (window := self._open(at)) is not None:
            return f"`windows[{window}]` is open ({self.zone.name})"
        return f"no window is open ({self.zone.name})"

    def change(self, at: int, active: bool) -> str:
        """Say why the buffer becomes active, or stops being so, at an instant."""
        when = clock_time(at, self.zone)
        if not active:
            refusing = self._refusing(at)
            if refusing is not None:
                return f"calendar `{refusing}` leaves the day out ({when})"
            return f"`windows[{self._open(at - 1)}]` closes ({when})"
        refused = self._refusing(at - 1)
        if refused is not None:
            return f"calendar `{refused}` lets the day be used ({when})"
        return f"`windows[{self._open(at)}]` opens ({when})"

    def _open(self, at: int) -> int | None:
        return next((position for position, window in enumerate(self.windows) if window.at(at)), None)

    def _refusing(self, at: int) -> str | None:
        return next((name for name, allows in self.calendars if not allows.at(at)), None)


def active_times(schedule: BufferSchedule, default_zone: str, calendars: Mapping[str, Calendar]) -> ActiveTimes:
    """Compile a schedule without errors; calendars that do not exist leave nothing out."""
    zone = load_zone(schedule.time_zone or default_zone)
    windows = tuple(open_times(window, zone, MatchPolicy.WINDOW) for window in schedule.windows or ())
    used = [reference for reference in schedule.calendars or () if reference.name in calendars]
    return ActiveTimes(
        zone,
        windows or (always(),),
        tuple(
            (reference.name, compiled.timeline(zone))
            for reference, compiled in zip(used, known_references(used, calendars), strict=True)
        ),
    )


def forecast_buffer(buffer: CapacityBuffer, question: Question) -> Outlook:
    """Look ahead: when the buffer is active."""
    schedule = buffer.spec.schedule
    if schedule is None:
        lane = Lane(_LANE, LaneStyle.ACTIVE, True, (), None, "the buffer has no schedule: it is always active")
        return Outlook(zones=(question.default_zone,), lanes=(lane,))
    times = active_times(schedule, question.default_zone, question.calendars)
    lane = level_lane(
        _LANE,
        LaneStyle.ACTIVE,
        times.timeline(),
        question,
        because=times.change,
        because_now=times.state(question.start),
    )
    return Outlook(zones=(times.zone.name,), lanes=(lane,))
