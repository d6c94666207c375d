"""Instants in sentences."""

from __future__ import annotations

from tests.almanac.moments import utc

from springtide.almanac import load_zone
from springtide.apis.meta.clock_times import clock_time, date_and_time, dates_and_times

BERLIN = load_zone("Europe/Berlin")


def test_time_of_day() -> None:
    assert clock_time(utc("2026-06-05T15:00:00"), BERLIN) == "17:00 Europe/Berlin"


def test_seconds_are_shown_where_there_are_any() -> None:
    assert clock_time(utc("2026-06-05T15:00:01"), BERLIN) == "17:00:01 Europe/Berlin"


def test_day_is_the_local_one() -> None:
    assert date_and_time(utc("2026-06-05T23:00:00"), BERLIN) == "Sat 2026-06-06 01:00 Europe/Berlin"


def test_before_the_epoch() -> None:
    assert date_and_time(utc("1900-01-01T00:00:00"), load_zone("UTC")) == "Mon 1900-01-01 00:00 UTC"


def test_zone_stands_once() -> None:
    instants = [utc("2026-06-05T15:00:00"), utc("2026-06-12T15:00:00")]

    assert dates_and_times(instants, BERLIN) == "Fri 2026-06-05 17:00, Fri 2026-06-12 17:00 Europe/Berlin"
