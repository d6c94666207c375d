"""Timelines as lanes: the values of a stretch of time, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from springtide.almanac import Timeline
from springtide.apis.forecast import Change, Lane, LaneStyle, LaneValue, Question

V = TypeVar("V", bound=LaneValue)


def level_lane(
    name: str,
    style: LaneStyle,
    timeline: Timeline[V],
    question: Question,
    *,
    because: Callable[[int, V], str],
    because_now: str,
) -> Lane:
    """Write out a timeline over the time that is asked about; `because` gives the reason of a change."""
    upcoming = timeline.next_change(question.start)
    return Lane(
        name=name,
        style=style,
        current=timeline.at(question.start),
        changes=tuple(
            Change(at, value, because(at, value)) for at, value in timeline.changes(question.start, question.until)
        ),
        next=None if upcoming is None else Change(*upcoming, because(*upcoming)),
        because=because_now,
    )
