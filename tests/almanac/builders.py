"""Short forms for tests: instants from ISO texts, and schedules from behaviours with patterns."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from springtide.almanac import MatchPolicy, Timeline, TimePattern, load_zone, overlay, recurring

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc(text: str) -> int:
    """Return the instant of an ISO text; without an offset it is UTC."""
    return _seconds(datetime.fromisoformat(text))


def local(zone: str, text: str) -> int:
    """Return the instant at which a zone's clock first shows an ISO text, or of a text with an offset."""
    moment = datetime.fromisoformat(text)
    return _seconds(moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone)))


def show(t: int | None, zone: str = "UTC") -> str | None:
    """Return an instant as a zone's clock shows it, with its offset."""
    return None if t is None else (EPOCH + timedelta(seconds=t)).astimezone(ZoneInfo(zone)).isoformat()


def _seconds(moment: datetime) -> int:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware.astimezone(UTC) - EPOCH) // timedelta(seconds=1)


WEEKDAYS = "Mon,Tue,Wed,Thu,Fri"


@dataclass(frozen=True)
class Behaviour:
    """A value between two patterns; patterns are given as the arguments of `Pattern.parse`."""

    value: int
    start: dict[str, str | int]
    end: dict[str, str | int]
    priority: int = 0

    def active(self, zone: str = "UTC", policy: MatchPolicy = MatchPolicy.LITERAL) -> Timeline[bool]:
        """Return when the behaviour is active."""
        return recurring(TimePattern.parse(**self.start), TimePattern.parse(**self.end), load_zone(zone), policy)


def daily(value: int, start: int, end: int, priority: int = 0) -> Behaviour:
    """Return a behaviour from one hour of every day to another."""
    return Behaviour(value, {"hours": start}, {"hours": end}, priority)


def replicas(
    behaviours: Sequence[Behaviour], default: int, zone: str = "UTC", policy: MatchPolicy = MatchPolicy.LITERAL
) -> Timeline[int]:
    """Return the value of a schedule: the highest priority wins, then the order of the list."""
    ranked = sorted(behaviours, key=lambda behaviour: -behaviour.priority)
    return overlay([(behaviour.active(zone, policy), behaviour.value) for behaviour in ranked], default)
