"""Calendar: days that schedules exclude, or that they are for; its fields, its compiled form and its forecast."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Annotated

from msgspec import Meta

from springtide.almanac import CalendarError, DayCalendar, Days, Zone, load_zone, public_holidays
from springtide.apis.forecast import ForecastQuery, LaneStyle, Outlook, timeline_lane
from springtide.apis.kinds import CelRule, NonEmpty, ValidationContext, View, as_set, doc, schema, text_format
from springtide.apis.kinds import Zone as ZoneName
from springtide.apis.meta.times import date_and_time
from springtide.apis.meta.types import Conditions, Object
from springtide.apis.problems import Problem, error, warning

# CEL rules may only compare strings of limited length; our own checks have better messages for it.
Date = Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), schema(maxLength=10), text_format("date")]
MonthDay = Annotated[str, Meta(pattern=r"^[0-9]{2}-[0-9]{2}$"), schema(maxLength=5), text_format("month-day")]

_LEAP_DAY = "02-29"


class DateRange(View, kw_only=True):
    """Days in a row."""

    __rules__ = (
        CelRule(
            "self.from <= self.until", "A range must not end before it begins: write a later until, or an earlier from."
        ),
    )
    __mistaken__ = {"start": "write `from`", "end": "write `until`, the last day", "to": "write `until`, the last day"}

    from_: Annotated[Date, doc("The first day.")]
    until: Annotated[Date, doc("The last day, which belongs to the range.")]

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find ranges that end before they begin."""
        if self.until < self.from_:
            yield error(
                ("until",), f"the range ends on {self.until}, before it begins on {self.from_}", "write a later `until`"
            )


class Holidays(View, kw_only=True):
    """The public holidays of a country."""

    __mistaken__ = {"state": "write `subdivision`", "region": "write `subdivision`"}

    country: Annotated[NonEmpty, doc("The country, by its ISO 3166 code, such as DE.")]
    subdivision: Annotated[NonEmpty | None, doc("The part of the country, by its code, such as BE.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find countries and subdivisions without known holidays."""
        key = "country"
        try:
            public_holidays(self.country)
            key = "subdivision"
            public_holidays(self.country, self.subdivision)
        except CalendarError as failure:
            # Without the package, a valid country cannot be told from an invalid one.
            report = error if find_spec("holidays") is not None else warning
            yield report((key,), failure.message, failure.hint)


class CalendarSpec(View, kw_only=True):
    """The days of the calendar: all that are listed in any field."""

    __mistaken__ = {"timezone": "write `timeZone`", "days": "write `dates`", "annual": "write `yearly`"}

    time_zone: Annotated[
        ZoneName | None, doc("Time zone in which the days begin; that of the referring object if not set.")
    ] = None
    dates: Annotated[Annotated[tuple[Date, ...], Meta(max_length=1024), as_set] | None, doc("Single days.")] = None
    ranges: Annotated[Annotated[tuple[DateRange, ...], Meta(max_length=256)] | None, doc("Days in a row.")] = None
    yearly: Annotated[
        Annotated[tuple[MonthDay, ...], Meta(max_length=366), as_set] | None,
        doc("Days of every year, as month and day."),
    ] = None
    holidays: Annotated[Holidays | None, doc("The public holidays of a country.")] = None

    def problems(self, context: ValidationContext) -> Iterator[Problem]:  # noqa: ARG002
        """Find calendars without days, and days that most years do not have."""
        if not (self.dates or self.ranges or self.yearly or self.holidays):
            yield warning((), "the calendar has no days", "add `dates`, `ranges`, `yearly` or `holidays`")
        for position, day in enumerate(self.yearly or ()):
            if day == _LEAP_DAY:
                yield warning(("yearly", position), "29 February exists in leap years only")


class CalendarStatus(View, kw_only=True):
    """The next days of the calendar, and its conditions."""

    next_dates: Annotated[tuple[Date, ...] | None, doc("The next days of the calendar.")] = None
    conditions: Annotated[Conditions | None, doc("What is observed about the calendar.")] = None


class Calendar(Object, kw_only=True):
    """Days that schedules exclude, or that they are for: holidays, freezes, sales."""

    spec: Annotated[CalendarSpec, doc("Which days are in the calendar.")]
    status: Annotated[CalendarStatus | None, doc("The next days of the calendar.")] = None


def compile_calendar(spec: CalendarSpec) -> DayCalendar:
    """Compile a calendar without errors; raises `CalendarError` if the holidays of its country are not known."""
    return DayCalendar(
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


def forecast_calendar(calendar: Calendar, query: ForecastQuery) -> Outlook:
    """Forecast the days of a calendar; without lanes if the holidays of its country are not known."""
    try:
        compiled = compile_calendar(calendar.spec)
    except CalendarError:
        return Outlook(zones=(calendar.spec.time_zone or query.default_zone,), lanes=())
    zone = compiled.zone or load_zone(query.default_zone)
    timeline = compiled.timeline(zone)
    lane = timeline_lane(
        "active",
        LaneStyle.ACTIVE,
        timeline,
        query,
        because=lambda at, listed: _change_reason(at, listed, zone),
        because_now=f"the day is {'' if timeline.at(query.start) else 'not '}in the calendar ({zone.name})",
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
