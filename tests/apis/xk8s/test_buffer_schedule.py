"""When a buffer is active: windows, calendars, daylight saving, and the words that say why."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.apis.manifests import problems_of, shown

from springtide.almanac import DayCalendar, Days, load_zone
from springtide.apis.forecast import ForecastQuery, LaneStyle, Outlook, format_instant
from springtide.apis.meta.times import parse_instant
from springtide.apis.xk8s.buffers import CapacityBuffer, forecast_buffer

WORKDAYS = "Mon,Tue,Wed,Thu,Fri"
BUSINESS_HOURS = {"start": {"hours": 8, "weekdays": WORKDAYS}, "end": {"hours": 18, "weekdays": WORKDAYS}}
LAUNCH = {"from": "2026-11-27T06:00:00Z", "until": "2026-11-27T20:00:00Z"}
CHRISTMAS = DayCalendar(Days(yearly=((12, 24), (12, 25))))


def buffer(schedule: dict[str, Any] | None) -> dict[str, Any]:
    spec: dict[str, Any] = {"podTemplateRef": {"name": "chunk"}, "replicas": 2}
    if schedule is not None:
        spec["schedule"] = schedule
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": "spare"},
        "spec": spec,
    }


def outlook(schedule: dict[str, Any] | None, start: str, until: str, **query: Any) -> Outlook:
    view = msgspec.convert(buffer(schedule), CapacityBuffer)
    return forecast_buffer(view, ForecastQuery(parse_instant(start), parse_instant(until), **query))


def changes(schedule: dict[str, Any], start: str, until: str, **query: Any) -> list[tuple[str, object]]:
    (lane,) = outlook(schedule, start, until, **query).lanes
    return [(format_instant(change.at), change.value) for change in lane.changes]


def test_without_a_schedule_always_active() -> None:
    """One lane that never changes."""
    (lane,) = outlook(None, "2026-06-01T00:00:00Z", "2026-06-08T00:00:00Z").lanes

    assert (lane.name, lane.style, lane.current, lane.changes, lane.next) == (
        "active",
        LaneStyle.ACTIVE,
        True,
        (),
        None,
    )


def test_business_hours_across_a_weekend() -> None:
    """Open from eight to six on working days, closed from Friday evening to Monday morning."""
    schedule = {"timeZone": "Europe/Berlin", "windows": [BUSINESS_HOURS]}

    assert changes(schedule, "2026-06-05T00:00:00Z", "2026-06-08T23:00:00Z") == [
        ("2026-06-05T06:00:00Z", True),
        ("2026-06-05T16:00:00Z", False),
        ("2026-06-08T06:00:00Z", True),
        ("2026-06-08T16:00:00Z", False),
    ]


def test_hours_follow_the_clock() -> None:
    """In New York the same hours are an hour later in UTC once summer time ends."""
    schedule = {"timeZone": "America/New_York", "windows": [{"start": {"hours": 9}, "end": {"hours": 17}}]}

    assert changes(schedule, "2026-10-31T00:00:00Z", "2026-11-02T00:00:00Z") == [
        ("2026-10-31T13:00:00Z", True),
        ("2026-10-31T21:00:00Z", False),
        ("2026-11-01T14:00:00Z", True),
        ("2026-11-01T22:00:00Z", False),
    ]


def test_an_end_every_day_closes_what_a_weekday_opened() -> None:
    """A window is open from a start until the end after it, also where ends come more often than starts."""
    window = {"start": {"hours": 9, "weekdays": WORKDAYS}, "end": {"hours": 17}}

    assert changes({"windows": [window]}, "2026-06-05T00:00:00Z", "2026-06-07T23:00:00Z") == [
        ("2026-06-05T09:00:00Z", True),
        ("2026-06-05T17:00:00Z", False),
    ]


def test_windows_add_up() -> None:
    """The buffer is active in any of its windows, without a break where they overlap."""
    windows = [{"start": {"hours": 8}, "end": {"hours": 12}}, {"start": {"hours": 10}, "end": {"hours": 14}}, LAUNCH]

    assert changes({"windows": windows}, "2026-11-26T00:00:00Z", "2026-11-28T00:00:00Z") == [
        ("2026-11-26T08:00:00Z", True),
        ("2026-11-26T14:00:00Z", False),
        ("2026-11-27T06:00:00Z", True),
        ("2026-11-27T20:00:00Z", False),
    ]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        pytest.param(
            "Exclude",
            [
                ("2026-12-23T07:00:00Z", True),
                ("2026-12-23T17:00:00Z", False),
                ("2026-12-26T07:00:00Z", True),
                ("2026-12-26T17:00:00Z", False),
            ],
            id="exclude",
        ),
        pytest.param(
            "Only",
            [
                ("2026-12-24T07:00:00Z", True),
                ("2026-12-24T17:00:00Z", False),
                ("2026-12-25T07:00:00Z", True),
                ("2026-12-25T17:00:00Z", False),
            ],
            id="only",
        ),
    ],
)
def test_calendars_take_days_or_leave_them(mode: str, expected: list[tuple[str, bool]]) -> None:
    """Days are those of the schedule's zone where the calendar has none of its own."""
    schedule = {
        "timeZone": "Europe/Berlin",
        "windows": [{"start": {"hours": 8}, "end": {"hours": 18}}],
        "calendars": [{"name": "christmas", "mode": mode}],
    }

    actual = changes(schedule, "2026-12-23T00:00:00Z", "2026-12-26T23:00:00Z", calendars={"christmas": CHRISTMAS})

    assert expected == actual


def test_calendars_alone_make_a_schedule() -> None:
    """Without windows the buffer is active on every day that the calendars leave."""
    schedule = {"calendars": [{"name": "christmas"}]}

    assert changes(schedule, "2026-12-23T00:00:00Z", "2026-12-31T00:00:00Z", calendars={"christmas": CHRISTMAS}) == [
        ("2026-12-24T00:00:00Z", False),
        ("2026-12-26T00:00:00Z", True),
    ]


def test_a_calendar_that_does_not_exist_cuts_nothing() -> None:
    """Its absence is reported elsewhere; the forecast goes on without it."""
    schedule = {"windows": [BUSINESS_HOURS], "calendars": [{"name": "nowhere", "mode": "Only"}]}

    assert len(changes(schedule, "2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z")) == 2


def test_reasons_name_window_calendar_and_zone() -> None:
    """Every change says what opens or closes, and what the clock shows."""
    schedule = {
        "windows": [{"start": {"hours": 22}, "end": {"hours": 6}}],
        "calendars": [{"name": "christmas"}],
    }
    (lane,) = outlook(
        schedule,
        "2026-12-23T00:00:00Z",
        "2026-12-27T00:00:00Z",
        default_zone="Asia/Tokyo",
        calendars={"christmas": DayCalendar(CHRISTMAS.days, load_zone("Asia/Tokyo"))},
    ).lanes

    assert lane.because == "no window is open (Asia/Tokyo)"
    assert [change.because for change in lane.changes] == [
        "`windows[0]` opens (22:00 Asia/Tokyo)",
        "calendar `christmas` excludes the day (00:00 Asia/Tokyo)",
        "calendar `christmas` allows the day (00:00 Asia/Tokyo)",
        "`windows[0]` closes (06:00 Asia/Tokyo)",
        "`windows[0]` opens (22:00 Asia/Tokyo)",
        "`windows[0]` closes (06:00 Asia/Tokyo)",
    ]


def test_next_lies_beyond_what_is_asked() -> None:
    """The next change is given even after the end of the time that is asked about."""
    (lane,) = outlook({"windows": [LAUNCH]}, "2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z").lanes

    assert lane.changes == ()
    assert lane.next is not None
    assert (lane.next.at, lane.next.value) == (parse_instant("2026-11-27T06:00:00Z"), True)


def test_a_window_without_end() -> None:
    """The last second of year 9999 means no end, in every zone."""
    forever = {"from": "2026-06-01T00:00:00Z", "until": "9999-12-31T23:59:59Z"}
    schedule = {"timeZone": "Asia/Tokyo", "windows": [forever]}
    (lane,) = outlook(schedule, "2026-06-02T00:00:00Z", "2026-06-03T00:00:00Z").lanes

    assert (lane.current, lane.changes) == (True, ())
    assert lane.next is not None
    assert lane.next.because == "`windows[0]` closes (23:59:59 Asia/Tokyo)"


def test_zone_of_the_outlook() -> None:
    """An unset zone is the one that the query gives."""
    asked = ({"windows": [BUSINESS_HOURS]}, "2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z")

    assert outlook(*asked).zones == ("UTC",)
    assert outlook(*asked, default_zone="Asia/Tokyo").zones == ("Asia/Tokyo",)


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        pytest.param({"timeZone": "Europe/Berlin", "windows": [BUSINESS_HOURS, LAUNCH]}, [], id="both-kinds"),
        pytest.param({"windows": [{**BUSINESS_HOURS, **LAUNCH}]}, ["error windows[0].from"], id="both-at-once"),
        pytest.param({"windows": [{}]}, ["error windows[0]"], id="empty-window"),
        pytest.param({"windows": [{"start": {"hours": 8}}]}, ["error windows[0]"], id="never-closes"),
        pytest.param({"windows": [{"end": {"hours": 8}}]}, ["error windows[0]"], id="never-opens"),
        pytest.param({"windows": [{"from": LAUNCH["from"]}]}, ["error windows[0]"], id="no-until"),
        pytest.param({"windows": [{"until": LAUNCH["until"]}]}, ["error windows[0]"], id="no-from"),
        pytest.param(
            {"windows": [{"from": LAUNCH["until"], "until": LAUNCH["from"]}]},
            ["error windows[0].until"],
            id="backwards",
        ),
        pytest.param(
            {"windows": [{"from": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z"}]},
            ["warning windows[0].until"],
            id="over",
        ),
        pytest.param(
            {"windows": [{"from": "tomorrow", "until": LAUNCH["until"]}]}, ["error windows[0].from"], id="time"
        ),
        pytest.param(
            {"windows": [{"start": {"hours": "9"}, "end": {"hours": 9}}]}, ["warning windows[0].end"], id="always-open"
        ),
        pytest.param(
            {"windows": [{"start": {"hours": 24, "minutes": "*/5"}, "end": {"hours": 9}}]},
            ["error windows[0].start.hours", "error windows[0].start.minutes"],
            id="every-field-of-a-pattern",
        ),
        pytest.param(
            {"windows": [{"start": {"days": 29, "months": "Feb"}, "end": {"days": 1, "months": "Mar"}}]},
            ["warning windows[0].start.days"],
            id="leap-years-only",
        ),
        pytest.param(
            {"windows": [{"start": {"hour": 9}, "end": {"hours": 17}}]}, ["error windows[0].start.hour"], id="hour"
        ),
        pytest.param({"timeZone": "Berlin", "windows": [BUSINESS_HOURS]}, ["error timeZone"], id="zone"),
        pytest.param({"timeZone": "EST", "windows": [BUSINESS_HOURS]}, ["warning timeZone"], id="zone-without-summer"),
        pytest.param({}, ["warning"], id="nothing"),
        pytest.param(
            {"calendars": [{"name": "a"}, {"name": "a", "mode": "Only"}]},
            ["error calendars[1].name"],
            id="calendar-twice",
        ),
        pytest.param({"calendars": [{"name": "a", "mode": "only"}]}, ["error calendars[0].mode"], id="calendar-mode"),
    ],
)
def test_problems(schedule: dict[str, Any], expected: list[str]) -> None:
    """Each schedule has exactly these problems."""
    found = [
        text.replace("spec.schedule.", "").replace(" spec.schedule", "")
        for text in shown(problems_of(buffer(schedule)))
    ]

    assert expected == found


def test_windows_that_take_turns_never_close() -> None:
    """Where one window opens as another closes, nothing changes, and the search for a change ends."""
    schedule = {
        "windows": [{"start": {"hours": 0}, "end": {"hours": 12}}, {"start": {"hours": 12}, "end": {"hours": 0}}]
    }
    (lane,) = outlook(schedule, "2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z").lanes

    assert (lane.current, lane.changes, lane.next) == (True, (), None)
