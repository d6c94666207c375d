"""Windows between patterns across changes of the clock: no occurrence is lost, none happens twice."""

import pytest

from springtide.almanac import MatchPolicy

from .behaviours import Behaviour
from .moments import utc

ET = "America/New_York"
BERLIN = "Europe/Berlin"


def window(start: str, end: str) -> Behaviour:
    """Return a daily behaviour between two times written HH:MM."""
    first, last = (dict(zip(("hours", "minutes"), text.split(":"), strict=True)) for text in (start, end))
    return Behaviour(1, {**first}, {**last})


CASES = [
    pytest.param(ET, "22:00", "02:30", "2026-03-07T21:59:59-05:00", False, id="Z01"),
    pytest.param(ET, "22:00", "02:30", "2026-03-07T22:00-05:00", True, id="Z02"),
    pytest.param(ET, "22:00", "02:30", "2026-03-08T01:59:59-05:00", True, id="Z03"),
    pytest.param(ET, "22:00", "02:30", "2026-03-08T03:00-04:00", False, id="Z04"),
    pytest.param(ET, "22:00", "02:30", "2026-03-08T22:00-04:00", True, id="Z05"),
    pytest.param(ET, "02:30", "06:00", "2026-03-07T06:00-05:00", False, id="Z06"),
    pytest.param(ET, "02:30", "06:00", "2026-03-07T12:00-05:00", False, id="Z07"),
    pytest.param(ET, "02:30", "06:00", "2026-03-08T01:59:59-05:00", False, id="Z08"),
    pytest.param(ET, "02:30", "06:00", "2026-03-08T03:00-04:00", True, id="Z09"),
    pytest.param(ET, "02:30", "06:00", "2026-03-08T06:00-04:00", False, id="Z10"),
    pytest.param(ET, "02:00", "02:45", "2026-03-07T12:00-05:00", False, id="Z11-day-before"),
    pytest.param(ET, "02:00", "02:45", "2026-03-08T01:59:59-05:00", False, id="Z11-before"),
    pytest.param(ET, "02:00", "02:45", "2026-03-08T03:00-04:00", False, id="Z11-after-the-gap"),
    pytest.param(ET, "02:00", "02:45", "2026-03-08T12:00-04:00", False, id="Z11-noon"),
    pytest.param(ET, "02:00", "02:45", "2026-03-09T02:30-04:00", True, id="Z12"),
    pytest.param(ET, "01:30", "06:00", "2026-11-01T01:29:59-04:00", False, id="Z13"),
    pytest.param(ET, "01:30", "06:00", "2026-11-01T01:30-04:00", True, id="Z14"),
    pytest.param(ET, "01:30", "06:00", "2026-11-01T01:00-05:00", True, id="Z15"),
    pytest.param(ET, "01:30", "06:00", "2026-11-01T01:30-05:00", True, id="Z16"),
    pytest.param(ET, "01:30", "06:00", "2026-11-01T06:00-05:00", False, id="Z17"),
    pytest.param(ET, "22:00", "01:30", "2026-11-01T01:30-04:00", False, id="Z18-first-pass"),
    pytest.param(ET, "22:00", "01:30", "2026-11-01T01:29:59-05:00", False, id="Z18-second-pass"),
    pytest.param(ET, "22:00", "01:30", "2026-11-01T01:30-05:00", False, id="Z19"),
    pytest.param(ET, "09:00", "17:00", "2026-03-08T08:59:59-04:00", False, id="Z22-before"),
    pytest.param(ET, "09:00", "17:00", "2026-03-08T09:00-04:00", True, id="Z22-start"),
    pytest.param(ET, "09:00", "17:00", "2026-03-08T16:59:59-04:00", True, id="Z22-inside"),
    pytest.param(ET, "09:00", "17:00", "2026-03-08T17:00-04:00", False, id="Z22-end"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-03-28T12:00+01:00", False, id="Z23"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-03-29T03:00+02:00", True, id="Z24-start"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-03-29T04:00+02:00", False, id="Z24-end"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-10-25T02:30+02:00", True, id="Z25-first-pass"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-10-25T02:15+01:00", True, id="Z25-second-pass-before"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-10-25T02:30+01:00", True, id="Z25-second-pass"),
    pytest.param(BERLIN, "02:30", "04:00", "2026-10-25T04:00+01:00", False, id="Z25-end"),
    pytest.param("America/Santiago", "00:00", "08:00", "2026-09-05T08:00-04:00", False, id="Z26-end"),
    pytest.param("America/Santiago", "00:00", "08:00", "2026-09-05T23:59:59-04:00", False, id="Z26-last-second"),
    pytest.param("America/Santiago", "00:00", "08:00", "2026-09-06T01:00-03:00", True, id="Z27-first-instant"),
    pytest.param("America/Santiago", "00:00", "08:00", "2026-09-06T08:00-03:00", False, id="Z27-end"),
    pytest.param("Africa/Cairo", "18:00", "00:00", "2026-04-23T18:00+02:00", True, id="Z28-start"),
    pytest.param("Africa/Cairo", "18:00", "00:00", "2026-04-23T23:59:59+02:00", True, id="Z28-last-second"),
    pytest.param("Africa/Cairo", "18:00", "00:00", "2026-04-24T01:00+03:00", False, id="Z29"),
    pytest.param("Australia/Lord_Howe", "02:00", "06:00", "2026-04-05T02:00+10:30", True, id="Z31-second-pass"),
    pytest.param("Australia/Lord_Howe", "02:00", "06:00", "2026-04-05T05:00+10:30", True, id="Z31-inside"),
]


@pytest.mark.parametrize("policy", MatchPolicy)
@pytest.mark.parametrize(("zone", "start", "end", "now", "active"), CASES)
def test_window_across_a_change(zone: str, start: str, end: str, now: str, active: bool, policy: MatchPolicy) -> None:
    """A window keeps its shape: what the clock skips happens right after, what it repeats happens once."""
    assert window(start, end).active(zone, policy).at(utc(now)) is active


@pytest.mark.parametrize(
    ("start", "end", "hours"),
    [
        pytest.param("2026-03-07T22:00-05:00", "2026-03-08T06:00-04:00", 7, id="Z21-spring"),
        pytest.param("2026-10-31T22:00-04:00", "2026-11-01T06:00-05:00", 9, id="Z21-autumn"),
    ],
)
def test_a_night_is_as_long_as_its_clock_says(start: str, end: str, hours: int) -> None:
    """A window from 22:00 to 06:00 lasts seven hours in spring and nine in autumn."""
    nights = window("22:00", "06:00").active(ET)

    assert nights.changes(utc(start) - 1, utc(end)) == [(utc(start), True), (utc(end), False)]
    assert utc(end) - utc(start) == hours * 3600
