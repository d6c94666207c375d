"""Objects as rows."""

from __future__ import annotations

from typing import Any

from springtide.cluster.port import Change, Event, Page
from springtide.cluster.resources import Object
from springtide.simulator.http.answer import encode
from springtide.simulator.http.tables.ages import Ages
from springtide.simulator.http.tables.layouts import Layout
from springtide.simulator.http.views import CLOSING, line, list_metadata

INCLUDED = ("None", "Metadata", "Object")


class TableView:
    """Objects as rows of a table, each with as much of the object as the client asks for."""

    def __init__(self, layout: Layout, ages: Ages, *, version: str, include: str) -> None:
        self._layout = layout
        self._ages = ages
        self._version = f"meta.k8s.io/{version}"
        self._include = include
        self._columns: list[Any] | None = [column.definition() for column in layout.columns]

    def single(self, item: Object) -> bytes:
        """Write a table of one row."""
        page = Page((item,), item["metadata"].get("resourceVersion", ""))
        return self.opening(page) + self.entry(item) + CLOSING

    def opening(self, page: Page) -> bytes:
        """Write everything before the first row."""
        return encode(self._table(list_metadata(page)))[:-1] + b',"rows":['

    def entry(self, item: Object) -> bytes:
        """Write a row."""
        return encode(self._row(item))

    def change(self, event: Event) -> bytes:
        """Write a line of a watch; only the first tells what the columns are."""
        version = event.object["metadata"].get("resourceVersion", "")
        table = self._table({"resourceVersion": version}) | {"rows": [self._row(event.object)]}
        self._columns = None
        return line(event.change, table)

    def beginning(self, item: Object) -> bytes:
        """Write the line of an object that was there before."""
        return self.change(Event(Change.ADDED, item))

    def _table(self, metadata: Object) -> Object:
        return {
            "kind": "Table",
            "apiVersion": self._version,
            "metadata": metadata,
            "columnDefinitions": self._columns,
        }

    def _row(self, item: Object) -> Object:
        whole = "name" in item["metadata"]
        row: Object = {"cells": self._layout.cells(item, self._ages) if whole else []}
        if conditions := self._layout.conditions(item):
            row["conditions"] = conditions
        return row | {"object": self._included(item)}

    def _included(self, item: Object) -> Object | None:
        if self._include == "None":
            return None
        if self._include == "Object":
            return item
        return {"kind": "PartialObjectMetadata", "apiVersion": self._version, "metadata": item["metadata"]}
