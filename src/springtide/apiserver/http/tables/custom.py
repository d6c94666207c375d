"""Tables of custom kinds: printer columns, and the part of JSONPath that they use (fields, list entries, filters)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from springtide.apiserver.http.tables.cells import AgeFormatter, TableColumn, TableLayout
from springtide.cluster.resources import Object

Step = Callable[[Any], Iterator[Any]]

_TOKEN = re.compile(
    r"""\.?\[\s*(?:(?P<all>\*)|(?P<index>-?\d{1,18})|(?P<quoted>'[^']*'|"[^"]*")|\?\((?P<filter>.*?)\))\s*\]"""
    r"""|\.(?P<every>\*)|\.?(?P<name>(?:\\.|[^.\[\]\\])+)""",
    re.DOTALL,
)
_FILTER = re.compile(r"@(?P<path>[^=!<>]*+)(?:(?P<compare>==|!=|<=|>=|<|>)(?P<literal>.+))?", re.DOTALL)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}

_AGE: Object = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_NAME = TableColumn("Name", format="name")


def first(value: Any, path: str) -> Any:
    """Return the first value at a path; None where there is none."""
    values = [value]
    for step in _steps(path):
        values = [found for each in values for found in step(each)]
    return values[0] if values else None


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[Step, ...]:
    steps, place = [], 0
    path = path.strip().removeprefix("{").removesuffix("}")
    while place < len(path):
        token = _TOKEN.match(path, place)
        if token is None or token.end() == place:
            return (lambda _: iter(()),)
        steps.append(_step(token))
        place = token.end()
    return tuple(steps)


def _step(token: re.Match[str]) -> Step:
    parts = token.groupdict()
    if parts["all"] or parts["every"]:
        return _every
    if parts["index"] is not None:
        return _entry(int(parts["index"]))
    if parts["filter"] is not None:
        return _matching(parts["filter"])
    name = parts["quoted"][1:-1] if parts["quoted"] else re.sub(r"\\(.)", r"\1", parts["name"])
    return lambda value: iter((value[name],) if isinstance(value, dict) and name in value else ())


def _every(value: Any) -> Iterator[Any]:
    return iter(value if isinstance(value, list) else value.values() if isinstance(value, dict) else ())


def _entry(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _matching(condition: str) -> Step:
    parsed = _FILTER.fullmatch(condition.strip())
    if parsed is None:
        return lambda _: iter(())
    path, compare, literal = parsed["path"].strip(), parsed["compare"], _literal(parsed["literal"])

    def holds(entry: Any) -> bool:
        found = first(entry, path)
        if compare is None:
            return found is not None
        try:
            return found is not None and _COMPARE[compare](found, literal)
        except TypeError:
            return False

    return lambda value: (entry for entry in (value if isinstance(value, list) else ()) if holds(entry))


def _literal(text: str | None) -> Any:
    if text is None or not (text := text.strip()):
        return None
    if text[0] in "'\"":
        return text[1:-1]
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def custom_layout(definition: Object, version: str) -> TableLayout:
    """Return the table of a custom kind: its name and printer columns, or its age."""
    versions = definition["spec"]["versions"]
    asked = next((each.get("additionalPrinterColumns") for each in versions if each["name"] == version), None)
    wanted: list[Object] = asked or [_AGE]
    columns = [_column(each) for each in wanted]
    paths = [(each["type"], each["jsonPath"]) for each in wanted]

    def cells(item: Object, ages: AgeFormatter) -> list[Any]:
        return [item["metadata"]["name"], *(_cell(type_, first(item, path), ages) for type_, path in paths)]

    return TableLayout((_NAME, *columns), cells)


def _column(asked: Object) -> TableColumn:
    where = f"Custom resource definition column (in JSONPath format): {asked['jsonPath']}"
    return TableColumn(
        asked["name"],
        asked["type"],
        asked.get("format", ""),
        asked.get("priority", 0),
        asked.get("description") or ("" if asked is _AGE else where),
    )


def _cell(type_: str, value: Any, ages: AgeFormatter) -> Any:
    """Return the cell of a value; None if its type does not match the column."""
    if value is None:
        return None
    kind = type(value)
    match type_:
        case "string":
            return value if kind is str else msgspec.json.encode(value, order="sorted").decode()
        case "integer" if kind in (int, float):
            return int(value)
        case "number" if kind in (int, float):
            return float(value)
        case "boolean" if kind is bool:
            return value
        case "date" if kind is str:
            return ages.since(value)
        case _:
            return None
