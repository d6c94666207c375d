"""Zones compared with zoneinfo, what they offer beyond it, and hints for unknown names."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.almanac import reference, strategies
from tests.almanac.builders import EPOCH, utc

from springtide.almanac import (
    UTC,
    UnknownZone,
    ZoneTransition,
    fixed_abbreviation_warning,
    is_fixed_abbreviation,
    load_zone,
    tzdata_version,
)
from springtide.almanac.zone_files import PosixRule, parse_zone_file
from springtide.almanac.zones import _CITIES, known_zones

DAY = 86_400


@settings(max_examples=500, deadline=None)
@given(name=st.sampled_from(sorted(known_zones())), t=st.integers(utc("0002-01-01"), utc("9998-12-31")))
def test_any_zone_at_any_time_agrees_with_zoneinfo(name: str, t: int) -> None:
    """All zones of the database have zoneinfo's offsets over all years."""
    assert load_zone(name).offset_at(t) == reference.offset(t, name)


@pytest.mark.parametrize("name", sorted(known_zones()))
def test_every_change_agrees_with_zoneinfo(name: str) -> None:
    """The offsets on both sides of every change are zoneinfo's."""
    changes = load_zone(name).transitions(utc("1800-01-01"), utc("2045-01-01"))

    zone = ZoneInfo(name)
    for change in changes:
        moment = EPOCH + timedelta(seconds=change.at)
        after = moment.astimezone(zone).utcoffset()
        before = (moment - timedelta(seconds=1)).astimezone(zone).utcoffset()
        assert (before, after) == (timedelta(seconds=change.before), timedelta(seconds=change.after))


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_wall_times_belong_to_their_first_instant(data: st.DataObject) -> None:
    """A wall time maps to the first instant that shows it, or to the end of the gap."""
    name = data.draw(strategies.zones)
    wall = data.draw(strategies.moments(name)) + data.draw(st.integers(-50_000, 50_000))
    shown = (EPOCH + timedelta(seconds=wall)).replace(tzinfo=None)

    assert load_zone(name).instant(wall) == reference.first_shown(shown, name)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_latest_wall_is_the_furthest_the_clock_has_been(data: st.DataObject) -> None:
    """Exactly the wall times up to the latest one map to an instant that has passed."""
    name = data.draw(strategies.zones)
    zone, t = load_zone(name), data.draw(strategies.moments(name))
    latest = zone.latest_wall(t)

    assert zone.instant(latest) <= t < zone.instant(latest + 1)
    assert latest >= zone.local(t)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_stretches_are_where_the_clock_shows_a_day(data: st.DataObject) -> None:
    """The instants of a local day are found also where a clock is turned back over midnight."""
    name = data.draw(strategies.zones)
    zone, t = load_zone(name), data.draw(strategies.moments(name))
    day = data.draw(st.integers(-1, 1)) + zone.local(t) // DAY
    stretches = list(zone.stretches(day * DAY, (day + 1) * DAY))
    probes = [t, *(edge + d for stretch in stretches for edge in stretch for d in (-1, 0))]

    assert all(a < b for a, b in stretches)
    assert stretches == sorted(stretches)
    for probe in probes:
        assert any(a <= probe < b for a, b in stretches) is (zone.local(probe) // DAY == day)


def test_a_clock_turned_back_over_midnight_shows_two_days_twice() -> None:
    """In St John's clocks went from 00:01 back to 23:01 of the day before."""
    zone, day = load_zone("America/St_Johns"), utc("2006-10-29") // DAY

    assert len(list(zone.stretches(day * DAY, (day + 1) * DAY))) == 2


@pytest.mark.parametrize(
    ("zone", "date", "expected"),
    [
        pytest.param("UTC", "2026-06-05", "2026-06-05T00:00Z", id="utc"),
        pytest.param("Africa/Cairo", "2026-04-24", "2026-04-24T01:00+03:00", id="no-midnight"),
        pytest.param("America/Sao_Paulo", "2018-02-18", "2018-02-18T00:00-03:00", id="fold-before-midnight"),
        pytest.param("America/Havana", "2026-11-01", "2026-11-01T00:00-04:00", id="midnight-twice"),
        pytest.param("Pacific/Apia", "2011-12-30", "2011-12-31T00:00+14:00", id="no-such-day"),
    ],
)
def test_day_start(zone: str, date: str, expected: str) -> None:
    """A day starts at its first instant, which need not be a midnight."""
    assert load_zone(zone).day_start(utc(date) // DAY) == utc(expected)


def test_transitions_of_a_year() -> None:
    """The changes of a clock are listed with both offsets, in (a, b]."""
    zone = load_zone("Europe/Berlin")
    spring, autumn = utc("2026-03-29T01:00"), utc("2026-10-25T01:00")

    assert zone.transitions(utc("2026-01-01"), utc("2027-01-01")) == [
        ZoneTransition(spring, 3600, 7200),
        ZoneTransition(autumn, 7200, 3600),
    ]
    assert zone.transitions(spring, autumn - 1) == []
    assert UTC.transitions(utc("1900-01-01"), utc("2100-01-01")) == []


def test_far_future_follows_the_rule() -> None:
    """Changes follow the POSIX rule up to the last year of the calendar."""
    changes = load_zone("America/New_York").transitions(utc("9999-01-01"), utc("9999-12-31"))

    assert [change.at for change in changes] == [utc("9999-03-14T07:00"), utc("9999-11-07T06:00")]


@pytest.mark.parametrize(
    ("rule", "year", "expected"),
    [
        pytest.param("CET-1CEST,M3.5.0,M10.5.0/3", 2026, ["2026-03-29T01:00", "2026-10-25T01:00"], id="last-sunday"),
        pytest.param(
            "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2026, ["2026-03-29T01:00", "2026-10-25T01:00"], id="negative-hour"
        ),
        pytest.param("XXX3YYY,J60,J300", 2024, ["2024-03-01T05:00", "2024-10-27T04:00"], id="julian-without-leap-day"),
        pytest.param("XXX3YYY,59,299/1:30", 2024, ["2024-02-29T05:00", "2024-10-26T03:30"], id="day-of-year"),
        pytest.param("EST5", 2026, [], id="no-changes"),
    ],
)
def test_posix_rules(rule: str, year: int, expected: list[str]) -> None:
    """Every form of a yearly change is parsed."""
    assert [at for at, _ in PosixRule.parse(rule).changes(year)] == [utc(text) for text in expected]


@pytest.mark.parametrize("rule", ["", "nonsense", "CET-1CEST,M3,M10", "CET-1CEST,M3.5.0"])
def test_posix_rule_that_is_none(rule: str) -> None:
    """An invalid footer is an error."""
    with pytest.raises(ValueError, match="time zone rule"):
        PosixRule.parse(rule)


def test_zone_file_that_is_none() -> None:
    """Bytes that are not a time zone file are an error."""
    with pytest.raises(ValueError, match="expected TZif"):
        parse_zone_file(b"TZjf" + bytes(60))


def test_version_is_that_of_the_package() -> None:
    """The release has the form of IANA's releases, such as 2026a."""
    assert tzdata_version()[:2] == "20"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("utc", "did you mean UTC?"),
        ("europe/berlin", "did you mean Europe/Berlin?"),
        ("Europe/Belrin", "did you mean Europe/Berlin?"),
        ("Europe/Munich", "did you mean Europe/Berlin?"),
        ("munich", "did you mean Europe/Berlin?"),
        ("Europe/München", "did you mean Europe/Berlin?"),
        ("Europe/Munih", "did you mean Europe/Berlin?"),
        ("Europe/Zürich", "did you mean Europe/Zurich?"),
        ("America/San Francisco", "did you mean America/Los_Angeles?"),
        ("Asia/Beijing", "did you mean Asia/Shanghai?"),
        ("US/Pacfic", "did you mean US/Pacific?"),
        ("Europe/Xanadu", "zones have the names of large cities"),
        ("PST", "did you mean America/Los_Angeles?"),
        ("Berlin", "did you mean Europe/Berlin?"),
        ("new york", "did you mean America/New_York?"),
        ("America/NewYork", "did you mean America/New_York?"),
        ("Local", "a schedule must not depend on the machine that runs it"),
        ("localtime", "a schedule must not depend on the machine that runs it"),
        ("", "leave the field out for UTC, or name a zone"),
        ("GMT+5", "the fixed offset is called Etc/GMT-5"),
        ("UTC-03:00", "the fixed offset is called Etc/GMT+3"),
        ("+05:30", "name a place instead of an offset"),
        ("Mars/Olympus", "names are listed at iana.org/time-zones"),
        ("A/B", "names are listed at iana.org/time-zones"),
        ("../etc/passwd", "names are listed at iana.org/time-zones"),
        ("/etc/localtime", "a schedule must not depend on the machine that runs it"),
        ("Factory", "names are listed at iana.org/time-zones"),
        ("x" * 10_000, "names are listed at iana.org/time-zones"),
    ],
)
def test_unknown_name_has_a_hint(name: str, hint: str) -> None:
    """An unknown name gets the most similar zone as a hint, or a special hint."""
    with pytest.raises(UnknownZone) as caught:
        load_zone(name)

    assert hint in caught.value.hint


@pytest.mark.parametrize("name", ["UTC", "EST", "CET", "Etc/GMT+5", "America/Argentina/Buenos_Aires"])
def test_known_names(name: str) -> None:
    """Names of the database load, and load once."""
    assert load_zone(name) is load_zone(name)
    assert load_zone(name).name == name


def test_machine_dependent_names_are_unknown() -> None:
    """Names that mean the zone of the machine are unknown."""
    assert known_zones().isdisjoint(("localtime", "posixrules", "Factory"))


@pytest.mark.parametrize("name", ["EST", "MST", "HST"])
def test_abbreviations_that_never_change(name: str) -> None:
    """EST, MST and HST load, have one offset today, and get a warning."""
    warning = fixed_abbreviation_warning(name)

    assert is_fixed_abbreviation(name)
    assert load_zone(name).transitions(1_700_000_000, 2_000_000_000) == []
    assert warning is not None
    assert warning.startswith(f"{name} never changes for daylight saving; did you mean ")


def test_places_are_no_abbreviations() -> None:
    """A zone with a place name gets no warning."""
    assert not is_fixed_abbreviation("America/New_York")
    assert fixed_abbreviation_warning("UTC") is None


def test_cities_of_hints_have_a_zone_and_name_none() -> None:
    """The table is for cities that no zone is named after."""
    named = {name.rsplit("/", 1)[-1].lower() for name in known_zones()}
    listed = [city for cities in _CITIES.values() for city in cities.split()]

    assert set(_CITIES) <= known_zones()
    assert not [city for city in listed if city in named]
    assert len(listed) == len(set(listed))
