"""Lists that are sets or maps must not hold the same thing twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from springtide.cluster.errors import Cause
from springtide.simulator.api.custom import wording
from springtide.simulator.api.custom.places import Place


def judge_lists(value: Any, place: Place, path: str = "") -> Iterator[Cause]:
    """Find the entries of sets and of lists with keys that are there twice."""
    if not place.unique:
        return
    if isinstance(value, dict):
        for name, part in value.items():
            declared = place.properties.get(name)
            child = declared or place.values
            if child is not None and child.unique:
                step = f"{path}.{name}" if declared and path else name if declared else f"{path}[{name}]"
                yield from judge_lists(part, child, step)
    elif isinstance(value, list):
        if place.list_type == "set":
            yield from _repeated(value, path)
        elif place.list_type == "map":
            yield from _judge_map(value, place, path)
        if place.items is not None:
            for index, part in enumerate(value):
                yield from judge_lists(part, place.items, f"{path}[{index}]")


def _judge_map(value: list[Any], place: Place, path: str) -> Iterator[Cause]:
    for index, entry in enumerate(value):
        if entry is not None and not isinstance(entry, dict):
            detail = "must be an object for an array of list-type map"
            yield wording.invalid(f"{path}[{index}]", entry, detail)
            return
    keys = [{name: (entry or {})[name] for name in place.list_keys if name in (entry or {})} for entry in value]
    yield from _repeated(keys, path)


def _repeated(values: list[Any], path: str) -> Iterator[Cause]:
    if len(values) < 2:
        return
    times: dict[str, int] = {}
    for index, value in enumerate(values):
        text = json.dumps(value, sort_keys=True)
        times[text] = times.get(text, 0) + 1
        if times[text] == 2:
            yield wording.duplicate(f"{path}[{index}]", value)
