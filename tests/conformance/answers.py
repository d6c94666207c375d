"""The recorded answers of a real API server, one file for each area; and how other answers differ from them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.conformance.session import Object

_FOLDER = Path(__file__).with_name("answers")
ABSENT = "(absent)"


class Difference(NamedTuple):
    """A field that is not as it was recorded."""

    field: str
    """Where: the number of the step, from 1, and then names of members and numbers of items, with slashes."""
    recorded: Any
    played: Any

    def __str__(self) -> str:
        return f"{self.field}\n    recorded: {_text(self.recorded)}\n    played:   {_text(self.played)}"


@cache
def recorded(area: str) -> Mapping[str, Sequence[Object]]:
    """Read the answers of an area, by the names of its cases."""
    path = _FOLDER / f"{area}.json"
    read: Mapping[str, Sequence[Object]] = json.loads(path.read_text()) if path.exists() else {}
    return read


def recorded_areas() -> list[str]:
    """Name the areas of which answers are kept."""
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


def write(area: str, answers: Mapping[str, Sequence[Object]]) -> None:
    """Keep the answers of an area: a line for each step, so that a change of the server reads well."""
    cases = [
        f"  {json.dumps(name)}: [\n" + ",\n".join(f"    {_text(step)}" for step in steps) + "\n  ]"
        for name, steps in answers.items()
    ]
    _FOLDER.mkdir(exist_ok=True)
    (_FOLDER / f"{area}.json").write_text("{\n" + ",\n".join(cases) + "\n}\n")
    recorded.cache_clear()


def differences(recorded: Sequence[Object], played: Sequence[Object]) -> Iterator[Difference]:
    """Compare the steps of two plays: member by member where the outcome is the same, and else only the outcome."""
    for place, (expected, actual) in enumerate(zip(recorded, played, strict=True), 1):
        if expected.get("status") == actual.get("status"):
            yield from _differences(expected, actual, str(place))
        else:
            yield Difference(f"{place}/status", _outcome(expected), _outcome(actual))


def _outcome(step: Object) -> str:
    body = step.get("body")
    return f"{step.get('status')} {body.get('message', '') if isinstance(body, dict) else body}".strip()


def _differences(recorded: Any, played: Any, field: str) -> Iterator[Difference]:
    if isinstance(recorded, dict) and isinstance(played, dict):
        for key in sorted(recorded.keys() | played.keys()):
            yield from _differences(recorded.get(key, ABSENT), played.get(key, ABSENT), f"{field}/{key}")
    elif isinstance(recorded, list) and isinstance(played, list) and len(recorded) == len(played):
        for place, (expected, actual) in enumerate(zip(recorded, played, strict=True), 1):
            yield from _differences(expected, actual, f"{field}/{place}")
    elif recorded != played or isinstance(recorded, bool) != isinstance(played, bool):
        yield Difference(field, recorded, played)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
