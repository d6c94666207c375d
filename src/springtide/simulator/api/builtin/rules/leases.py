"""Leases: how long they hold, and when they were taken, to the microsecond."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from springtide.cluster.errors import BadRequest, Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.judging import invalid
from springtide.simulator.api.builtin.rules.making import AT_LEAST_ZERO

_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_PARTS = (
    ("2006", r"\d{4}"),
    ("-", "-"),
    ("01", r"\d\d"),
    ("-", "-"),
    ("02", r"\d\d"),
    ("T", "T"),
    ("15", r"\d\d"),
    (":", ":"),
    ("04", r"\d\d"),
    (":", ":"),
    ("05", r"\d\d"),
    (".000000", r"\.\d{6}"),
    ("Z07:00", r"Z|[-+]\d\d:\d\d"),
)
"""The parts of an instant as messages name them, and what they look like."""

_RANGES = (("month", 1, 12, 5), ("day", 1, 31, 8), ("hour", 0, 23, 11), ("minute", 0, 59, 14), ("second", 0, 59, 17))
"""What an instant consists of, how small and how great it may be, and where it stands."""


def lease(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
    """Judge a lease; one whose times cannot be read is no lease at all."""
    spec = item.get("spec") or {}
    for name in ("acquireTime", "renewTime"):
        if problem := _instant_problem(spec.get(name)):
            raise BadRequest(f'Lease in version "v1" cannot be handled as a Lease: {problem}')
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield invalid("spec.leaseTransitions", transitions, AT_LEAST_ZERO)


def _instant_problem(text: Any) -> str:
    if text is None:
        return ""
    rest = text
    for part, form in _PARTS:
        found = re.match(form, rest)
        if found is None:
            return f'parsing time "{text}" as "{_LAYOUT}": cannot parse "{rest}" as "{part}"'
        rest = rest[found.end() :]
    if rest:
        return f'parsing time "{text}": extra text: "{rest}"'
    for name, low, high, at in _RANGES:
        if not low <= int(text[at : at + 2]) <= high:
            return f'parsing time "{text}": {name} out of range'
    return ""
