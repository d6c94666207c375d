"""What a Calendar means: a set of days, and when they begin and end."""

from __future__ import annotations

import datetime

from springtide import almanac
from springtide.almanac import CalendarError, Days, Zone, load_zone, public_holidays
from springtide.apis.forecast import ForecastQuery, LaneStyle, Outlook, timeline_lane
from springtide.apis.meta.times import date_and_time
from springtide.apis.springtide.types import Calendar, CalendarSpec


def compile_calendar(spec: CalendarSpec) -> almanac.DayCalendar:
    """Compile a calendar without errors; raises `CalendarError` where its country's holidays are not at hand."""
    return almanac.DayCalendar(
        Days(
            dates=tuple(_date(day) for day in spec.dates or ()),
            ranges=tuple((_date(days.from_), _date(days.until)) for days in spec.ranges or ()),
            yearly=tuple(_month_day(day) for day in spec.yearly or ()),
            holidays=(
                public_holidays(spec.holidays.country, spec.holidays.subdivision) if spec.holidays is not None else None
            ),
        ),
        load_zone(spec.time_zone) if spec.time_zone is not None else None,
    )


def forecast_calendar(calendar: Calendar, question: ForecastQuery) -> Outlook:
    """Look ahead: which days are in the calendar; nothing can be told where its holidays are not at hand."""
    try:
        compiled = compile_calendar(calendar.spec)
    except CalendarError:
        return Outlook(zones=(calendar.spec.time_zone or question.default_zone,), lanes=())
    zone = compiled.zone or load_zone(question.default_zone)
    timeline = compiled.timeline(zone)
    lane = timeline_lane(
        "active",
        LaneStyle.ACTIVE,
        timeline,
        question,
        because=lambda at, listed: _change_reason(at, listed, zone),
        because_now=f"the day is {'' if timeline.at(question.start) else 'not '}in the calendar ({zone.name})",
    )
    return Outlook(zones=(zone.name,), lanes=(lane,))


def _change_reason(at: int, listed: bool, zone: Zone) -> str:
    words = "days of the calendar begin" if listed else "the days of the calendar are over"
    return f"{words} ({date_and_time(at, zone)})"


def _date(text: str) -> datetime.date:
    return datetime.date.fromisoformat(text)


def _month_day(text: str) -> tuple[int, int]:
    month, _, day = text.partition("-")
    return int(month), int(day)
