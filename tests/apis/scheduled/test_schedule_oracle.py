"""Schedules against a slow reading of their definition: hours of a day, and the best of what is active."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.apis.scheduled.objects import as_producer, as_spec, schedule, scheduled

from springtide.almanac import load_zone
from springtide.apis.forecast import ForecastQuery
from springtide.apis.scheduled.schedule import active_behaviors, compile_behaviors, compile_schedule, forecast_schedule

HOUR = 3600
DAY = 24 * HOUR


@dataclass(frozen=True)
class Daily:
    """A behaviour that comes every day, as plain numbers."""

    start: int
    end: int
    replicas: int
    priority: int | None
    suspend: bool

    def active(self, t: int) -> bool:
        hour = t % DAY // HOUR
        if self.suspend:
            return False
        if self.start < self.end:
            return self.start <= hour < self.end
        return hour >= self.start or hour < self.end

    def written(self) -> dict[str, Any]:
        return {
            "replicas": self.replicas,
            "start": {"hours": self.start},
            "end": {"hours": str(self.end)},
            "suspend": self.suspend,
            **({} if self.priority is None else {"priority": self.priority}),
        }


HOURS = st.integers(0, 23)
BEHAVIORS = st.lists(
    st.builds(Daily, HOURS, HOURS, st.integers(0, 4), st.none() | st.integers(-1, 1), st.booleans()), max_size=5
)
INSTANTS = st.integers(0, 60 * DAY)
DEFAULT = 2


def ranked(behaviors: list[Daily], t: int) -> list[int]:
    """Return who is active, best first."""
    active = [position for position, behavior in enumerate(behaviors) if behavior.active(t)]
    return sorted(active, key=lambda position: (-(behaviors[position].priority or 0), position))


def expected(behaviors: list[Daily], t: int) -> int:
    best = ranked(behaviors, t)
    return behaviors[best[0]].replicas if best else DEFAULT


@given(BEHAVIORS, INSTANTS)
def test_value_and_winner(behaviors: list[Daily], t: int) -> None:
    spec = as_spec(schedule(*(behavior.written() for behavior in behaviors), default=DEFAULT))
    utc = load_zone("UTC")

    assert expected(behaviors, t) == compile_schedule(spec, utc, {}).at(t)
    assert ranked(behaviors, t) == [claim.position for claim in active_behaviors(compile_behaviors(spec, utc, {}), t)]


@given(BEHAVIORS, INSTANTS)
def test_lane_tells_every_change(behaviors: list[Daily], start: int) -> None:
    """Changes are exactly the hours at which the value becomes another one, and next is the first of them."""
    value = scheduled(*(behavior.written() for behavior in behaviors), default=DEFAULT)
    (lane,) = forecast_schedule(as_producer(value), ForecastQuery(start=start, until=start + 2 * DAY)).lanes
    hours = range(start // HOUR * HOUR + HOUR, start + 2 * DAY + 1, HOUR)
    changes = [
        (hour, expected(behaviors, hour))
        for hour in hours
        if expected(behaviors, hour) != expected(behaviors, hour - 1)
    ]

    assert changes == [(change.at, change.value) for change in lane.changes]
    assert changes[:1] == ([] if lane.next is None else [(lane.next.at, lane.next.value)])
