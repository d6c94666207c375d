"""The recorded answers of a kube-apiserver, one file per area, and how other answers differ from them."""

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
    """A field that differs from the recorded one."""

    field: str
    """The number of the step, from 1, then field names and list positions from 1, separated by slashes."""
    recorded: Any
    answered: Any

    def __str__(self) -> str:
        return f"{self.field}\n    recorded: {_text(self.recorded)}\n    answered:   {_text(self.answered)}"


@cache
def recorded(area: str) -> Mapping[str, Sequence[Object]]:
    """Return the recorded answers of an area, by case."""
    path = _FOLDER / f"{area}.json"
    read: Mapping[str, Sequence[Object]] = json.loads(path.read_text()) if path.exists() else {}
    return read


def recorded_areas() -> list[str]:
    """Return the areas that have recorded answers."""
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


def write(area: str, answers: Mapping[str, Sequence[Object]]) -> None:
    """Write the answers of an area, one line per step, for readable diffs."""
    cases = [
        f"  {json.dumps(name)}: [\n" + ",\n".join(f"    {_text(step)}" for step in steps) + "\n  ]"
        for name, steps in answers.items()
    ]
    _FOLDER.mkdir(exist_ok=True)
    (_FOLDER / f"{area}.json").write_text("{\n" + ",\n".join(cases) + "\n}\n")
    recorded.cache_clear()


def differences(recorded: Sequence[Object], answered: Sequence[Object]) -> Iterator[Difference]:
    """Yield the differences of two runs. Steps with different status codes are compared by code and message only."""
    for place, (expected, actual) in enumerate(zip(recorded, answered, strict=True), 1):
        if expected.get("status") == actual.get("status"):
            yield from _differences(expected, actual, str(place))
        else:
            yield Difference(f"{place}/status", _outcome(expected), _outcome(actual))


def _outcome(step: Object) -> str:
    body = step.get("body")
    return f"{step.get('status')} {body.get('message', '') if isinstance(body, dict) else body}".strip()


def _differences(recorded: Any, answered: Any, field: str) -> Iterator[Difference]:
    if isinstance(recorded, dict) and isinstance(answered, dict):
        for key in sorted(recorded.keys() | answered.keys()):
            yield from _differences(recorded.get(key, ABSENT), answered.get(key, ABSENT), f"{field}/{key}")
    elif isinstance(recorded, list) and isinstance(answered, list) and len(recorded) == len(answered):
        for place, (expected, actual) in enumerate(zip(recorded, answered, strict=True), 1):
            yield from _differences(expected, actual, f"{field}/{place}")
    elif recorded != answered or isinstance(recorded, bool) != isinstance(answered, bool):
        yield Difference(field, recorded, answered)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
