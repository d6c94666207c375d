"""Aliases of fields of this group, and repairs by `springtide convert`.

The first implementation called the schedule `scheduleSpec`, which is read as an alias. Ranges in patterns are rejected,
because the design has lists only, but each means exactly one list, so `springtide convert` writes that list.
"""

from __future__ import annotations

import re
from typing import Any

from springtide.almanac.pattern import PATTERN_FIELDS, PatternField
from springtide.apis.kinds import NormalizedTree
from springtide.apis.meta.repair import TreeRepair
from springtide.apis.meta.scaling import repair_target_version
from springtide.apis.problems import Path

_RANGE = re.compile(r"(?P<low>\w+)\s*-\s*(?P<high>\w+)", re.ASCII)


def read_producer(value: dict[str, Any]) -> NormalizedTree:
    """Read the alias `scheduleSpec` of a MetricsProducer."""
    repair = TreeRepair(value)
    repair.rename(("spec",), "scheduleSpec", "schedule", "`scheduleSpec` is read as `schedule`")
    return repair.result()


def fixes(value: dict[str, Any]) -> NormalizedTree:
    """Repair mistakes with only one possible meaning."""
    repair = TreeRepair(value)
    match value.get("kind"):
        case "MetricsProducer":
            repair.rename(("spec",), "scheduleSpec", "schedule", "`scheduleSpec` was renamed to `schedule`")
            for behavior in repair.entries(("spec", "schedule", "behaviors")):
                for pattern in ("start", "end"):
                    _expand_ranges(repair, (*behavior, pattern))
        case "HorizontalAutoscaler":
            repair_target_version(repair, ("spec", "scaleTargetRef"))
    return repair.result()


def _expand_ranges(repair: TreeRepair, pattern: Path) -> None:
    for name, field in PATTERN_FIELDS.items():
        path = (*pattern, name)
        text = repair.at(path)
        if not isinstance(text, str):
            continue
        listed = ",".join(_expand_range(element.strip(), field) for element in text.split(","))
        if listed.count(",") > text.count(","):
            repair.replace(path, listed, f'`{name}: {text}` was written out as "{listed}"')


def _expand_range(element: str, field: PatternField) -> str:
    """Return a range as a list; a reversed range, or no range, is returned unchanged."""
    ends = _RANGE.fullmatch(element)
    if ends is None:
        return element
    low, high = field.number(ends["low"]), field.number(ends["high"])
    if low is None or high is None or low >= high:
        return element
    return ",".join(field.word(number) for number in range(low, high + 1))
