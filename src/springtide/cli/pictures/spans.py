"""A lane as stretches of time, however it is drawn: its spans, what holds at an instant and what comes next."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from springtide.apis.forecast import Change

if TYPE_CHECKING:
    from collections.abc import Iterable

    from springtide.apis.forecast import Lane, LaneValue


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time over which a lane has one value."""

    start: int
    end: int
    value: LaneValue
    because: str


@dataclass(frozen=True, slots=True)
class Crowd:
    """A run of spans too short to be told apart."""

    start: int
    end: int
    spans: tuple[Span, ...]


def lane_spans(lane: Lane, start: int, until: int) -> list[Span]:
    """Cut a lane into its spans within ``[start, until)``, the first holding the current value."""
    points = [Change(start, lane.current, lane.because), *lane.changes]
    ends = [min(change.at, until) for change in lane.changes] + [until]
    return [
        Span(max(point.at, start), end, point.value, point.because)
        for point, end in zip(points, ends, strict=True)
        if end > max(point.at, start)
    ]


def crowd_together(spans: Iterable[Span], shortest: int) -> list[Span | Crowd]:
    """Put neighbouring spans that last less than ``shortest`` seconds into one crowd."""
    shown: list[Span | Crowd] = []
    run: list[Span] = []

    def close() -> None:
        if len(run) == 1:
            shown.append(run[0])
        elif run:
            shown.append(Crowd(run[0].start, run[-1].end, tuple(run)))
        run.clear()

    for span in spans:
        if span.end - span.start < shortest:
            run.append(span)
        else:
            close()
            shown.append(span)
    close()
    return shown


def value_at(lane: Lane, at: int) -> tuple[LaneValue, str]:
    """Give the value that holds at an instant, and why; before the first change the current one."""
    place = bisect_right(lane.changes, at, key=_instant)
    if place == 0:
        return lane.current, lane.because
    change = lane.changes[place - 1]
    return change.value, change.because


def upcoming(lane: Lane, now: int) -> Change | None:
    """Find the first change after now that the forecast knows of, be it within its range or beyond."""
    place = bisect_right(lane.changes, now, key=_instant)
    if place < len(lane.changes):
        return lane.changes[place]
    return lane.next if lane.next is not None and lane.next.at > now else None


def _instant(change: Change) -> int:
    return change.at
