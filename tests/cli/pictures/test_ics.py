"""The calendar file, read back by a small parser of RFC 5545."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

from tests.cli.pictures import samples
from tests.cli.pictures.samples import DAY, LOS_ANGELES, START, instant

from springtide.apis.forecast import Forecast, LaneStyle
from springtide.cli.pictures.ics import render_ics


def read(text: str) -> list[dict[str, str]]:
    """Unfold lines, check the calendar, and return the properties of each event."""
    assert text.endswith("\r\n")
    assert "\n" not in text.replace("\r\n", "")
    lines = text.replace("\r\n ", "").split("\r\n")[:-1]
    assert (lines[0], lines[-1]) == ("BEGIN:VCALENDAR", "END:VCALENDAR")
    events: list[dict[str, str]] = []
    for line in lines:
        name, _, value = line.partition(":")
        if line == "BEGIN:VEVENT":
            events.append({})
        elif events and name not in ("END", "BEGIN"):
            assert name not in events[-1]
            events[-1][name] = value
    return events


def unescape(text: str) -> str:
    return text.replace("\\,", ",").replace("\\;", ";").replace("\\\\", "\\")


def events(*forecasts: Forecast) -> list[dict[str, str]]:
    return read("".join(render_ics(forecasts)))


def test_a_level_is_an_event_from_its_change_to_the_next() -> None:
    found = events(samples.weekly_capacity())

    weekend = found[1]
    assert (weekend["DTSTART"], weekend["DTEND"]) == ("20261031T000000Z", "20261102T170000Z")
    assert weekend["SUMMARY"] == "MetricsProducer/scheduled-capacity replicas: 1"
    assert unescape(weekend["DESCRIPTION"]) == "behaviors[0] weekend: Fri 17:00 to Mon 09:00"
    assert all(one["DTEND"] == two["DTSTART"] for one, two in pairwise(found))
    assert (found[0]["DTSTART"], found[-1]["DTEND"]) == ("20261030T190000Z", "20261106T190000Z")


def test_a_firing_is_an_event_without_length() -> None:
    found = events(samples.cron_rules())

    assert len(found) == 12
    assert not any("DTEND" in event for event in found)
    assert unescape(found[-1]["SUMMARY"]) == "CronFederatedHPA/shop-frontend relax-at-night: min 2, max 10"


def test_a_buffer_has_events_only_while_it_is_on() -> None:
    forecast = samples.buffer()
    on = [change for change in forecast.lanes[0].changes if change.value is True]

    assert len(events(forecast)) == len(on) + 1  # and the one that is on at the start


def test_lines_are_folded_at_75_octets_and_never_within_a_character() -> None:
    name = "漢字שלום" * 20
    text = "".join(render_ics([samples.forecast(samples.lane("x", LaneStyle.LEVEL, 1, [], because=name), name=name)]))

    for line in text.encode().split(b"\r\n"):
        assert len(line) <= 75
        line.decode()
    assert read(text)[0]["DESCRIPTION"] == name


def test_text_is_escaped_and_cannot_add_properties() -> None:
    evil = "a\\b;c,d\r\nATTENDEE:mailto:x\nEND:VEVENT"
    (event,) = events(samples.forecast(samples.lane(evil, LaneStyle.LEVEL, 1, [], because=evil)))

    assert "ATTENDEE" not in event
    assert "a\\\\b\\;c\\,d" in event["DESCRIPTION"]
    assert unescape(event["DESCRIPTION"]).startswith("a\\b;c,d")


def test_identifiers_are_unique_within_a_calendar() -> None:
    identifiers = [event["UID"] for event in events(*samples.all_samples())]

    assert len(set(identifiers)) == len(identifiers)


def test_a_later_forecast_gives_the_same_change_the_same_identifier() -> None:
    change = "20261102T170000Z"
    today, tomorrow = samples.weekly_capacity(), samples.weekly_capacity(start=START + DAY)

    one, two = ({e["DTSTART"]: e["UID"] for e in events(forecast)} for forecast in (today, tomorrow))

    assert one[change] == two[change]


def test_the_stamp_is_the_start_of_the_forecast() -> None:
    stamps = {event["DTSTAMP"] for event in events(*samples.all_samples())}

    assert stamps == {"20261030T190000Z"}


def test_the_same_lane_of_another_object_is_another_event() -> None:
    one = samples.weekly_capacity()
    other = dataclasses.replace(one, namespace="other")

    assert not {event["UID"] for event in events(one)} & {event["UID"] for event in events(other)}


def test_an_empty_preview_is_a_calendar() -> None:
    assert events() == []
    assert events(samples.forecast()) == []


def test_times_before_the_epoch() -> None:
    start = instant("0990-01-01T00:00")

    (event,) = events(samples.forecast(samples.lane("x", LaneStyle.LEVEL, 1, []), start=start, zone=LOS_ANGELES))

    assert event["DTSTART"] == "09900101T000000Z"
