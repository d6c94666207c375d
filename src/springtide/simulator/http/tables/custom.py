"""The columns that CRDs ask for."""

from __future__ import annotations

from typing import Any

import msgspec

from springtide.cluster.resources import Object
from springtide.simulator.http.tables.ages import Ages
from springtide.simulator.http.tables.jsonpath import first
from springtide.simulator.http.tables.layouts import Column, Layout

_AGE: Object = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_NAME = Column("Name", format="name")


def custom_layout(definition: Object, version: str) -> Layout:
    """Give the table of a custom kind: its name and what its CRD lists, or its age."""
    versions = definition["spec"]["versions"]
    asked = next((each.get("additionalPrinterColumns") for each in versions if each["name"] == version), None)
    wanted: list[Object] = asked or [_AGE]
    columns = [_column(each) for each in wanted]
    paths = [(each["type"], each["jsonPath"]) for each in wanted]

    def cells(item: Object, ages: Ages) -> list[Any]:
        return [item["metadata"]["name"], *(_cell(type_, first(item, path), ages) for type_, path in paths)]

    return Layout((_NAME, *columns), cells)


def _column(asked: Object) -> Column:
    where = f"Custom resource definition column (in JSONPath format): {asked['jsonPath']}"
    return Column(
        asked["name"],
        asked["type"],
        asked.get("format", ""),
        asked.get("priority", 0),
        asked.get("description") or ("" if asked is _AGE else where),
    )


def _cell(type_: str, value: Any, ages: Ages) -> Any:
    """Give a value as its column has it; what is of another type is left out."""
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
