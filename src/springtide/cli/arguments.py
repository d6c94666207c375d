"""Times, spans and zones as people type them on a command line."""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Callable
from typing import Any

import click

from springtide.almanac import UnknownZone, Zone, load_zone
from springtide.apis.meta.instants import parse_instant
from springtide.quantity import DurationError, parse_span

_LONGEST = 3660 * 86400
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_LOCAL_TIME = re.compile(r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(:\d{2})?", re.ASCII)


class SpanType(click.ParamType[int]):
    """A length of time: ``7d``, ``36h``, ``2w``, ``1d12h``; in seconds."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a span, or tell how one is written."""
        if isinstance(value, int):
            return value
        try:
            seconds = parse_span(value)
        except DurationError as failure:
            self.fail(f"{value!r} is not a length of time; {failure.hint}", param, ctx)
        if not 0 < seconds <= _LONGEST:
            self.fail(f"{value!r} must be longer than nothing and at most ten years", param, ctx)
        return seconds


class ZoneType(click.ParamType[str]):
    """The name of a time zone."""

    name = "zone"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check that the zone exists, or tell which one was probably meant."""
        try:
            load_zone(value)
        except UnknownZone as failure:
            self.fail(f"{failure}; {failure.hint}" if failure.hint else str(failure), param, ctx)
        return str(value)


def parse_moment(text: str | None, zone: Zone, option: str) -> int:
    """Read a moment: RFC 3339, or a date or a time of the given zone's wall clock; the present if there is none."""
    named = parse_named_moment(text, zone, option)
    return int(time.time()) if named is None else named


def parse_named_moment(text: str | None, zone: Zone, option: str) -> int | None:
    """Read a moment likewise; None means the present of whatever is looked at."""
    if text is None or text == "now":
        return None
    try:
        return parse_instant(text)
    except ValueError:
        pass
    local = _LOCAL_TIME.fullmatch(text)
    try:
        if local is not None:
            wall = datetime.datetime.fromisoformat(f"{local[1]}T{local[2]}{local[3] or ':00'}")
        elif _DATE.fullmatch(text):
            wall = datetime.datetime.fromisoformat(text)
        else:
            raise ValueError(text)
    except ValueError:
        message = f"{text!r} is not a time; write 2026-11-27T06:00:00Z, 2026-11-27T06:00 or 2026-11-27"
        raise click.BadParameter(message, param_hint=option) from None
    return zone.instant((wall - datetime.datetime(1970, 1, 1)) // datetime.timedelta(seconds=1))  # noqa: DTZ001


def default_timezone_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--default-timezone``, which controllers have as well."""
    return click.option(
        "--default-timezone",
        type=ZoneType(),
        default="UTC",
        show_default=True,
        metavar="ZONE",
        help="The zone of objects that name none.",
    )(command)


def files_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the manifests: files, folders, or ``-`` for standard input."""
    return click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR|-...")(command)


def sources_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what is read: manifests as above, or objects of a cluster by kind and name."""
    return click.argument("names", nargs=-1, metavar="[FILE|DIR|-|KIND[/NAME]]...")(command)
