"""Where ticks stand: whatever the range, inside it, in order, not too many, and at round local times."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.pictures.samples import DAY, LOS_ANGELES, START, instant

from springtide.cli.pictures.axis import lay_out_axis
from springtide.cli.pictures.clock import wall_clock

ZONES = (LOS_ANGELES, "UTC", "Asia/Beirut", "Africa/Cairo", "Australia/Lord_Howe", "America/Havana", "Pacific/Apia")


@settings(max_examples=150, deadline=None)
@given(
    zone=st.sampled_from(ZONES),
    start=st.integers(instant("1970-01-02T00:00"), instant("2037-01-01T00:00")),
    length=st.sampled_from((1, 60, 3600, 86400, 7 * 86400, 31 * 86400, 90 * 86400, 400 * 86400)),
    room=st.integers(5, 40),
)
def test_ticks_and_cells_fill_the_range_in_order(zone: str, start: int, length: int, room: int) -> None:
    clock, until = wall_clock(zone), start + length

    axis = lay_out_axis(clock, start, until, room=room)

    assert axis.cells[0].start == start
    assert axis.cells[-1].end == until
    assert all(one.end == two.start for one, two in pairwise(axis.cells))
    assert all(one.at < two.at for one, two in pairwise(axis.ticks))
    assert all(start < tick.at < until for tick in axis.ticks)
    assert len(axis.ticks) <= 2 * room
    for begin, end in axis.weekends:
        assert clock.read(begin).weekday() in (5, 6)
        assert clock.read(end - 1).weekday() in (5, 6)


@pytest.mark.parametrize(
    ("length", "labels"),
    [
        pytest.param(3600, ["12:05", "12:10"], id="an-hour"),
        pytest.param(DAY, ["13:00", "14:00"], id="a-day"),
        pytest.param(7 * DAY, ["18:00", "06:00"], id="a-week"),
        pytest.param(30 * DAY, ["31", "1"], id="a-month"),
        pytest.param(90 * DAY, ["2 Nov", "9 Nov"], id="a-quarter"),
        pytest.param(400 * DAY, ["Nov", "Dec"], id="a-year"),
    ],
)
def test_the_range_decides_what_the_ticks_are(length: int, labels: list[str]) -> None:
    axis = lay_out_axis(wall_clock(LOS_ANGELES), START, START + length, room=28)

    assert labels == [tick.label for tick in axis.ticks[:2]]


def test_a_day_on_which_the_clocks_go_back_is_an_hour_longer() -> None:
    axis = lay_out_axis(wall_clock(LOS_ANGELES), START, START + 7 * DAY, room=28)

    sunday = next(cell for cell in axis.cells if cell.labels[0] == "Sun 1 Nov")
    assert sunday.end - sunday.start == 25 * 3600


def test_a_time_that_the_clocks_jump_over_has_no_tick() -> None:
    start = instant("2026-03-08T00:00", LOS_ANGELES)

    labels = [tick.label for tick in lay_out_axis(wall_clock(LOS_ANGELES), start, start + 6 * 3600, room=6).ticks]

    assert labels == ["01:00", "03:00", "04:00", "05:00", "06:00"]


def test_a_day_without_midnight_begins_at_its_first_instant() -> None:
    start = instant("2026-03-28T12:00", "Asia/Beirut")

    cells = lay_out_axis(wall_clock("Asia/Beirut"), start, start + DAY, room=28).cells

    assert wall_clock("Asia/Beirut").moment(cells[1].start) == "Sun 29 Mar 01:00 EEST"


def test_an_empty_range_is_an_axis_too() -> None:
    axis = lay_out_axis(wall_clock("UTC"), START, START, room=28)

    assert (len(axis.cells), axis.ticks) == (1, ())


def test_a_day_that_is_skipped_is_not_on_the_axis() -> None:
    start = instant("2011-12-28T12:00", "Pacific/Apia")

    cells = lay_out_axis(wall_clock("Pacific/Apia"), start, start + 3 * DAY, room=28).cells

    assert [cell.labels[0] for cell in cells] == ["Wed 28 Dec", "Thu 29 Dec", "Sat 31 Dec", "Sun 1 Jan"]
