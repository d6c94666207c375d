"""Fields that lists can be selected by: they exist, and are single values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from springtide.cluster.errors import Cause
from springtide.simulator.api.custom import wording

_SINGLE: Final = ("string", "boolean", "integer")
_NOT_SINGLE: Final = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)


def judge_selectable(fields: Sequence[Any], schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Find the fields of a version that cannot be selected by."""
    seen: list[str] = []
    for index, field in enumerate(fields):
        written, here = (field or {}).get("jsonPath") or "", f"{path}[{index}].jsonPath"
        if not written:
            continue
        if problem := _problem(written, schema.get("openAPIV3Schema") or {}):
            yield wording.invalid(here, written, problem)
        elif written in seen:
            yield wording.duplicate(here, written)
        seen.append(written)


def _problem(written: str, schema: Mapping[str, Any]) -> str:
    if not written.startswith("."):
        return f"is an invalid path: expected [ or . but got: {written.split('.')[0]}"
    if "[" in written:
        return "is an invalid path: array notation is not allowed"
    here: Any = schema
    for step in written[1:].split("."):
        here = (here.get("properties") or {}).get(step)
        if not isinstance(here, Mapping):
            return "is an invalid path: does not refer to a valid field"
    return "" if here.get("type") in _SINGLE else _NOT_SINGLE
