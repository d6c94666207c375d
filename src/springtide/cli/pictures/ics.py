"""Writes forecasts as a calendar file (RFC 5545), so that a team sees capacity beside its meetings.

A level becomes an event from one change to the next, a firing an event without duration. The identifiers depend only on
the object, the lane and the instant: importing a later forecast replaces events instead of duplicating them.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from springtide import __version__
from springtide.apis.forecast import LaneStyle, format_instant
from springtide.cli.pictures.formatting import format_subject, is_on, printable
from springtide.cli.pictures.lanes import describe_value, lane_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from springtide.apis.forecast import Forecast, Lane, LaneValue


_LONGEST_LINE: Final = 75  # octets, without the line break


def render_ics(forecasts: Sequence[Forecast], *, title: str | None = None) -> Iterator[str]:
    """Write forecasts as one calendar, piece by piece; lines end with CR LF."""
    yield _lines(
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        f"PRODID:-//Springtide//preview {__version__}//EN",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        *([f"X-WR-CALNAME:{_text(title)}"] if title else ()),
    )
    for forecast in forecasts:
        for lane in forecast.lanes:
            for event in _events(forecast, lane):
                yield _lines(*event)
    yield _lines("END:VCALENDAR")


def _lines(*lines: str) -> str:
    return "".join(f"{_fold(line)}\r\n" for line in lines)


def _events(forecast: Forecast, lane: Lane) -> Iterator[Iterator[str]]:
    if lane.style is LaneStyle.FIRINGS:
        for change in lane.changes:
            yield _event(forecast, lane, change.value, change.because, change.at, None)
        return
    for span in lane_spans(lane, forecast.start, forecast.until):
        if lane.style is LaneStyle.ACTIVE and not is_on(span.value):
            continue
        yield _event(forecast, lane, span.value, span.because, span.start, span.end)


def _event(
    forecast: Forecast, lane: Lane, value: LaneValue, because: str, start: int, end: int | None
) -> Iterator[str]:
    yield "BEGIN:VEVENT"
    yield f"UID:{_identifier(forecast, lane, start)}"
    yield f"DTSTAMP:{_utc(forecast.start)}"
    yield f"DTSTART:{_utc(start)}"
    if end is not None:
        yield f"DTEND:{_utc(end)}"
    yield f"SUMMARY:{_text(f'{format_subject(forecast)} {lane.name}: {describe_value(lane, value)}')}"
    if because:
        yield f"DESCRIPTION:{_text(because)}"
    yield f"CATEGORIES:{_text(forecast.kind)}"
    yield "TRANSP:TRANSPARENT"  # not shown as busy time
    yield "END:VEVENT"


def _identifier(forecast: Forecast, lane: Lane, start: int) -> str:
    # The start of the current value is unknown: every later forecast replaces its event.
    since = "current" if start == forecast.start else str(start)
    parts = (forecast.api_version, forecast.kind, forecast.namespace or "", forecast.name, lane.name, since)
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{digest[:32]}@springtide.dev"


def _utc(at: int) -> str:
    return format_instant(at).replace("-", "").replace(":", "")


def _text(text: str) -> str:
    """Escape text as the standard requires."""
    return printable(text).replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")


def _fold(line: str) -> str:
    """Fold a line that has too many octets, never within a character; continuation lines start with a space."""
    if len(line) <= _LONGEST_LINE and line.isascii():
        return line
    folded: list[str] = []
    length = 0
    for character in line:
        size = len(character.encode())
        if length + size > _LONGEST_LINE:
            folded.append("\r\n ")
            length = 1
        folded.append(character)
        length += size
    return "".join(folded)
