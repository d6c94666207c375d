"""Forecasts to draw, as real objects compile to."""

from __future__ import annotations

import dataclasses
import datetime
import zoneinfo
from typing import TypeAlias

from springtide.apis.forecast import Forecast, Lane, LaneChange, LaneCollision, LaneStyle, LaneValue
from springtide.apis.problems import warning

LOS_ANGELES = "America/Los_Angeles"
BERLIN = "Europe/Berlin"
DAY = 86400

Points: TypeAlias = list[tuple[int, LaneValue]]


def instant(text: str, zone: str = "UTC") -> int:
    """Parse a local time of a zone."""
    return int(datetime.datetime.fromisoformat(text).replace(tzinfo=zoneinfo.ZoneInfo(zone)).timestamp())


START = instant("2026-10-30T12:00", LOS_ANGELES)
"""The Friday noon before the clocks of Los Angeles go back."""


def forecast(
    *lanes: Lane,
    kind: str = "MetricsProducer",
    name: str = "sample",
    start: int = START,
    length: int = 7 * DAY,
    zone: str | None = LOS_ANGELES,
    namespace: str | None = "default",
    collisions: tuple[LaneCollision, ...] = (),
) -> Forecast:
    """Build a forecast with defaults."""
    return Forecast(
        api_version="autoscaling.karpenter.sh/v1alpha1",
        kind=kind,
        namespace=namespace,
        name=name,
        start=start,
        until=start + length,
        zones=(zone,) if zone else (),
        lanes=lanes,
        collisions=collisions,
    )


def lane(
    name: str,
    style: LaneStyle,
    current: LaneValue,
    changes: Points,
    *,
    because: str = "",
    reasons: dict[str, str] | None = None,
    until: int | None = None,
) -> Lane:
    """Build a lane; of the changes after ``until``, it has only the next one."""
    made = [LaneChange(at, value, (reasons or {}).get(str(value), because)) for at, value in changes]
    shown = tuple(change for change in made if until is None or change.at <= until)
    return Lane(name, style, current, shown, made[0] if made else None, because=because)


def _cut(points: Points, start: int, before: LaneValue) -> tuple[LaneValue, Points]:
    """Split points in time into the value at the start and what lies ahead of it."""
    current = next((value for at, value in reversed(points) if at <= start), before)
    return current, [(at, value) for at, value in points if at > start]


def _local_days(start: int, length: int, zone: str) -> list[datetime.date]:
    first = datetime.datetime.fromtimestamp(start, zoneinfo.ZoneInfo(zone)).date()
    return [first + datetime.timedelta(days=n) for n in range(-4, length // DAY + 5)]


def _at(day: datetime.date, time: str, zone: str) -> int:
    return instant(f"{day.isoformat()}T{time}", zone)


def weekly_capacity(start: int = START, length: int = 7 * DAY) -> Forecast:
    """The scheduled-capacity design's example: office hours 3, nights 2, weekends 1."""
    points: Points = []
    for day in _local_days(start, length, LOS_ANGELES):
        if day.weekday() < 5:
            points.append((_at(day, "09:00", LOS_ANGELES), 3))
            points.append((_at(day, "17:00", LOS_ANGELES), 1 if day.weekday() == 4 else 2))
    reasons = {
        "1": "behaviors[0] weekend: Fri 17:00 to Mon 09:00",
        "2": "behaviors[2] nights: weekdays 17:00 to 09:00",
        "3": "behaviors[1] office-hours: weekdays 09:00 to 17:00",
    }
    current, ahead = _cut(points, start, 2)
    until = start + length
    because = reasons[str(current)]
    made = lane("replicas", LaneStyle.LEVEL, current, ahead, because=because, reasons=reasons, until=until)
    friday, monday = instant("2026-10-30T17:00", LOS_ANGELES), instant("2026-11-02T09:00", LOS_ANGELES)
    overlap = LaneCollision(
        friday,
        monday,
        "weekend (1) and nights (2) both claim Fri 17:00 to Mon 09:00; weekend wins because it is listed first",
    )
    return forecast(made, name="scheduled-capacity", start=start, length=length, collisions=(overlap,))


def cron_rules(start: int = START, length: int = 7 * DAY) -> Forecast:
    """A cron object with a rule for replicas and one for bounds."""
    up: Points = []
    night: Points = []
    for day in _local_days(start, length, BERLIN):
        if day.weekday() < 5:
            up.append((_at(day, "08:30", BERLIN), {"replicas": 12}))
        night.append((_at(day, "22:00", BERLIN), {"min": 2, "max": 10}))
    lanes = [
        lane(name, LaneStyle.FIRINGS, *_cut(points, start, None), because=text, until=start + length)
        for name, points, text in (
            ("scale-up-mornings", up, "rule scale-up-mornings: 30 8 * * mon-fri in Europe/Berlin"),
            ("relax-at-night", night, "rule relax-at-night: 0 22 * * * in Europe/Berlin"),
        )
    ]
    return forecast(
        *lanes,
        kind="CronFederatedHPA",
        name="shop-frontend",
        namespace="shop",
        start=start,
        length=length,
        zone=BERLIN,
    )


def node_pool(start: int = START, length: int = 7 * DAY) -> Forecast:
    """A pool whose budgets differ by reason; drift is blocked in office hours."""
    drifted: Points = []
    for day in _local_days(start, length, BERLIN):
        if day.weekday() < 5:
            drifted.append((_at(day, "09:00", BERLIN), 0))
            drifted.append((_at(day, "17:00", BERLIN), "20%"))
    current, ahead = _cut(drifted, start, "20%")
    because = "budgets[1]: 0 from 09:00 for 8h on weekdays"
    saturday = instant("2026-10-31T06:00", BERLIN)
    return forecast(
        lane("Drifted", LaneStyle.BUDGET, current, ahead, because=because, until=start + length),
        lane(
            "Underutilized",
            LaneStyle.BUDGET,
            *_cut([(saturday, "unlimited"), (saturday + 12 * 3600, {"min": ["20%", 5]})], start, {"min": ["20%", 5]}),
            until=start + length,
            because="budgets[0] and budgets[2]: the smaller of 20% and 5",
        ),
        lane("Empty", LaneStyle.BUDGET, "unlimited", [], because="no budget is active for Empty"),
        lane("Expired", LaneStyle.BUDGET, 0, [], because="budgets[3]: 0, always active"),
        kind="NodePool",
        name="general-purpose",
        namespace=None,
        start=start,
        length=length,
        zone=BERLIN,
    )


def buffer(start: int = START, length: int = 7 * DAY) -> Forecast:
    """A buffer that is active on weekdays, with a warning."""
    points: Points = []
    for day in _local_days(start, length, LOS_ANGELES):
        if day.weekday() < 5:
            points.append((_at(day, "08:00", LOS_ANGELES), True))
            points.append((_at(day, "18:00", LOS_ANGELES), False))
    because = "windows[0]: 08:00 to 18:00 on weekdays"
    made = forecast(
        lane("active", LaneStyle.ACTIVE, *_cut(points, start, False), because=because, until=start + length),
        kind="CapacityBuffer",
        name="burst-headroom",
        start=start,
        length=length,
    )
    problem = warning(("spec", "schedule", "windows", 0), "the window is shorter than a day's peak", "end it at 20")
    return dataclasses.replace(made, problems=(problem,))


def every_five_minutes(length: int = 90 * DAY) -> Forecast:
    """A rule that fires far more often than a picture has pixels."""
    points: Points = [(at, {"replicas": 4}) for at in range(START + 300, START + length + 1, 300)]
    return forecast(
        lane("busy", LaneStyle.FIRINGS, {"replicas": 4}, points, because="rule busy: */5 * * * *"),
        kind="CronFederatedHPA",
        name="dense",
        length=length,
    )


def all_samples() -> list[Forecast]:
    """One of each kind, over the week in which the clocks go back in Los Angeles."""
    return [weekly_capacity(), cron_rules(), node_pool(), buffer()]
