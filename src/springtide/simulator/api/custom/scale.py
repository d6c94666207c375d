"""The numbers that the scale subresource reads must be counts, whatever the schema says about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.custom import wording
from springtide.simulator.api.kinds import ScalePaths

_MOST = 2**31 - 1


def judge_scale(value: Object, paths: ScalePaths) -> Iterator[Cause]:
    """Find what is wrong with the replicas and the selector of an object that can be scaled."""
    for path in (paths.spec, paths.status):
        count, problem = _read(value, path, int, "int64")
        if problem:
            yield wording.invalid(path, 0, problem)
        elif count is not None and count < 0:
            yield wording.invalid(path, count, "should be a non-negative integer")
        elif count is not None and count > _MOST:
            yield wording.invalid(path, count, f"should be less than or equal to {_MOST}")
    if paths.selector:
        _, problem = _read(value, paths.selector, str, "string")
        if problem:
            yield wording.invalid(paths.selector, "", problem)


def _read(value: Any, path: str, expected: type, name: str) -> tuple[Any, str]:
    """Follow a path; give what is there, or what is wrong with it."""
    steps = path.removeprefix(".").split(".")
    for index, step in enumerate(steps):
        if not isinstance(value, dict):
            here = ".".join(["", *steps[: index + 1]])
            return None, f"{here} accessor error: {wording.shown(value)} is not a map"
        if step not in value:
            return None, ""
        value = value[step]
    if not isinstance(value, expected) or isinstance(value, bool):
        return None, f"{path} accessor error: {wording.shown(value)} is not of the type {name}"
    return value, ""
