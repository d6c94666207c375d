"""The table of each kind, and the view that encodes objects as rows."""

from __future__ import annotations

from typing import Any

from springtide.apiserver.definitions import DEFINITIONS
from springtide.apiserver.http.responses import encode
from springtide.apiserver.http.routes import RequestTarget
from springtide.apiserver.http.tables.cells import AgeFormatter, TableLayout, columns
from springtide.apiserver.http.tables.custom import custom_layout
from springtide.apiserver.http.tables.pods import PODS
from springtide.apiserver.http.tables.resources import RESOURCES
from springtide.apiserver.http.tables.workloads import AUTOSCALERS, WORKLOADS
from springtide.apiserver.http.views import CLOSING, line, list_metadata
from springtide.apiserver.server import ApiServer
from springtide.cluster.resources import Key, Object
from springtide.cluster.transport import ListPage, WatchEvent, WatchEventType

_BUILTIN = {"Pod": PODS, "HorizontalPodAutoscaler": AUTOSCALERS} | WORKLOADS | RESOURCES

INCLUDED = ("None", "Metadata", "Object")


def _plain(item: Object, ages: AgeFormatter) -> list[Any]:  # noqa: ARG001 - the table has no age
    return [item["metadata"]["name"], item["metadata"].get("creationTimestamp")]


_PLAIN = TableLayout(columns("Name", "Created At:date"), _plain)


def layout_of(server: ApiServer, target: RequestTarget) -> TableLayout:
    """Return the table for a request."""
    kind = target.kind
    if target.subresource == "scale":
        return _BUILTIN["Scale"]
    if kind.strategic:
        return _BUILTIN.get(kind.resource.kind, _PLAIN)
    definition = server.find(DEFINITIONS, Key("", f"{kind.resource.plural}.{kind.resource.group}"))
    return _PLAIN if definition is None else custom_layout(definition, kind.resource.version)


class TableView:
    """Objects as rows of a table, with as much of the object as the client requests."""

    def __init__(self, layout: TableLayout, ages: AgeFormatter, *, version: str, include: str) -> None:
        self._layout = layout
        self._ages = ages
        self._version = f"meta.k8s.io/{version}"
        self._include = include
        self._columns: list[Any] | None = [column.definition() for column in layout.columns]

    def single(self, item: Object) -> bytes:
        """Encode a table with one row."""
        page = ListPage((item,), item["metadata"].get("resourceVersion", ""))
        return self.opening(page) + self.entry(item) + CLOSING

    def opening(self, page: ListPage) -> bytes:
        """Encode the start of a table, up to its first row."""
        return encode(self._table(list_metadata(page)))[:-1] + b',"rows":['

    def entry(self, item: Object) -> bytes:
        """Encode a row."""
        return encode(self._row(item))

    def change(self, event: WatchEvent) -> bytes:
        """Encode a watch event; only the first has column definitions."""
        version = event.object["metadata"].get("resourceVersion", "")
        table = self._table({"resourceVersion": version}) | {"rows": [self._row(event.object)]}
        self._columns = None
        return line(event.change, table)

    def initial(self, item: Object) -> bytes:
        """Encode the ADDED event of an existing object."""
        return self.change(WatchEvent(WatchEventType.ADDED, item))

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
