"""Moments as tests write them: ISO texts that become instants."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

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
