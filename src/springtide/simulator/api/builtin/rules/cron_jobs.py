"""Cron jobs: schedules and time zones, judged as the cron library of Kubernetes reads them.

Nothing runs by them here. The almanac's own grammar is stricter on purpose: it refuses what never fires.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import starmap

from springtide.almanac.zone_names import known_zones
from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.judging import invalid
from springtide.simulator.api.builtin.rules.making import field_of

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_WEEKDAYS)}),
)
"""Minute, hour, day, month and weekday: the least, the most, and the words that stand for numbers."""
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = "@every "
_DURATION = re.compile(r"[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)")
_ZONE = re.compile(r"(CRON_)?TZ=(?P<zone>\S*)\s+(?P<rest>.*)", re.DOTALL)


def cron_job(item: Object, old: Object | None) -> Iterator[Cause]:
    """Judge when a cron job runs."""
    schedule, zone = field_of(item, "spec.schedule"), field_of(item, "spec.timeZone")
    if schedule:
        yield from _schedule(schedule, zone, "TZ" in (field_of(old, "spec.schedule") or ""))
    if zone is not None and zone != field_of(old, "spec.timeZone") and (problem := _zone_problem(zone)):
        yield invalid("spec.timeZone", zone, problem)


def _schedule(schedule: str, zone: str | None, had_zone: bool) -> Iterator[Cause]:
    path = "spec.schedule"
    if problem := schedule_problem(schedule):
        yield invalid(path, schedule, problem)
    if "TZ" in schedule and not had_zone:
        yield invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    elif "TZ" in schedule and zone is not None:
        yield invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


def schedule_problem(text: str) -> str:
    """Tell what is wrong with a schedule; empty where nothing is."""
    if zoned := _ZONE.fullmatch(text):
        if not _is_zone(zoned["zone"]):
            return f"provided bad location {zoned['zone']}: unknown time zone {zoned['zone']}"
        text = zoned["rest"].strip()
    if text.startswith(_EVERY):
        length = text.removeprefix(_EVERY)
        problem = f'time: invalid duration "{length}"'
        return "" if _DURATION.fullmatch(length) else f"failed to parse duration {text}: {problem}"
    if text.startswith("@"):
        return "" if text in _DESCRIPTORS else f"unrecognized descriptor: {text}"
    parts = text.split()
    if len(parts) != len(_FIELDS):
        return f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: [{' '.join(parts)}]"
    try:
        for part, (low, high, words) in zip(parts, _FIELDS, strict=True):
            for span in filter(None, part.split(",")):
                _check(span, low, high, words)
    except ValueError as error:
        return str(error)
    return ""


def _check(text: str, low: int, high: int, words: dict[str, int]) -> None:
    """Refuse a span that no clock reaches: `*`, `5`, `mon-fri`, `*/15`, `10-50/20`."""
    span, *steps = text.split("/")
    ends = span.split("-")
    if ends[0] in ("*", "?"):
        first, last = low, high
    elif len(ends) > 2:
        raise ValueError(f"too many hyphens: {text}")
    else:
        first, *others = starmap(_number, ((end, words) for end in ends))
        last = others[0] if others else high if steps else first
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {text}")
    if first < low:
        raise ValueError(f"beginning of range ({first}) below minimum ({low}): {text}")
    if last > high:
        raise ValueError(f"end of range ({last}) above maximum ({high}): {text}")
    if first > last:
        raise ValueError(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if steps and _number(steps[0], {}) == 0:
        raise ValueError(f"step of range should be a positive number: {text}")


def _number(text: str, words: dict[str, int]) -> int:
    if text.lower() in words:
        return words[text.lower()]
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise ValueError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if int(text) < 0:
        raise ValueError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def _zone_problem(zone: str) -> str:
    if not zone:
        return "timeZone must be nil or non-empty string"
    if zone.lower() == "local":
        return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    return "" if _is_zone(zone) else f"unknown time zone {zone}"


def _is_zone(name: str) -> bool:
    return name in known_zones()
