"""Times without an offset: each is read in the zone of the schedule that it belongs to, and gets its offset.

API servers accept RFC 3339 times only, so this happens where Springtide reads manifests and extensions, before
validation. Fields declare it with `kinds.ZonedTime`; their zone is the `timeZone` of the nearest object around them
(`timezone` in a MetricsProducer), and the default zone where there is none.

A time that the clock skips is read as the first instant after the gap, and one that it shows twice as the first of the
two, as everywhere in the almanac.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from springtide.almanac import UnknownZone, Zone, load_zone
from springtide.apis.formats import ZONED_TIME
from springtide.apis.kinds import NormalizedTree, View
from springtide.apis.meta.repair import replace_at
from springtide.apis.meta.times import WrittenTime, rfc3339_in, written_time
from springtide.apis.problems import Path, Problem, warning
from springtide.apis.schema import ViewSchema, schema_of


def with_offsets(value: dict[str, Any], view: type[View], default_zone: str) -> NormalizedTree:
    """Complete the times of an object that have no offset, each with a warning that says how it is read."""
    problems: list[Problem] = []
    made = value
    for path, written, zone in _incomplete_times(value, schema_of(view), default_zone, ()):
        full, problem = _completed(written, zone)
        made = replace_at(made, path, full)
        problems.append(problem.under(*path))
    return NormalizedTree(made, tuple(problems))


def _incomplete_times(
    value: Any, schema: ViewSchema, zone: str, path: Path
) -> Iterator[tuple[Path, WrittenTime, Zone]]:
    if schema.format == ZONED_TIME:
        written = written_time(value) if isinstance(value, str) else None
        if written is not None and not written.complete:
            yield path, written, _zone(zone)
    elif isinstance(value, dict):
        own = next((part for key, part in value.items() if key.lower() == "timezone" and isinstance(part, str)), None)
        for key, part in value.items():
            field = schema.field(key)
            inner = schema.items if field is None else field.schema
            if inner is not None and _has_zoned_times(inner):
                yield from _incomplete_times(part, inner, own or zone, (*path, key))
    elif isinstance(value, list) and schema.items is not None and _has_zoned_times(schema.items):
        for position, part in enumerate(value):
            yield from _incomplete_times(part, schema.items, zone, (*path, position))


@cache
def _has_zoned_times(schema: ViewSchema) -> bool:
    below = [field.schema for field in schema.fields] + ([schema.items] if schema.items is not None else [])
    return schema.format == ZONED_TIME or any(_has_zoned_times(each) for each in below)


def _zone(name: str) -> Zone:
    try:
        return load_zone(name)
    except UnknownZone:  # an error of its own
        return load_zone("UTC")


def _completed(written: WrittenTime, zone: Zone) -> tuple[str, Problem]:
    if written.offset:
        full = f"{written.date}T{written.time}{written.offset.upper()}"
        return full, warning((), f"`{written.text}` is read as {full}", f"write {full}")
    at = zone.instant(written.wall)
    full = rfc3339_in(at, zone)
    hint = f"write {full}: API servers accept no time without an offset"
    message = f"`{written.text}` has no offset: it is read in {zone.name}, as {full}"
    if zone.local(at) != written.wall:
        message += "; clocks skip that time, and this is the first instant after it"
    elif len(list(zone.stretches(written.wall, written.wall + 1))) > 1:
        message += "; clocks show that time twice, and this is the first of the two"
    return full, warning((), message, hint)
