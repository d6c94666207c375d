"""Helpers that load manifests and list their problems in short form."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from springtide.apis.kinds import ValidationContext
from springtide.apis.objects import LoadedObject, load
from springtide.apis.problems import Problem, format_path

CONTEXT = ValidationContext(now=1_780_000_000)  # 2026-05-28T20:26:40Z


def loaded(value: dict[str, Any], context: ValidationContext = CONTEXT) -> LoadedObject:
    """Read one object of a kind that is known."""
    (found,) = load(json.dumps(value), context)
    assert isinstance(found, LoadedObject)
    return found


def problems_of(value: dict[str, Any], context: ValidationContext = CONTEXT) -> list[Problem]:
    """Read one object and give all its problems, at the paths that the user wrote."""
    return list(loaded(value, context).problems)


def shown(problems: Iterable[Problem]) -> list[str]:
    """Write problems as `severity path`, sorted: what most tables compare."""
    return sorted(f"{problem.severity} {format_path(problem.path)}".rstrip() for problem in problems)
