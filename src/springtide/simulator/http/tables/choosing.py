"""Which table a kind is shown as."""

from __future__ import annotations

from typing import Any

from springtide.cluster.resources import Key, Object
from springtide.simulator.api.definitions import DEFINITIONS
from springtide.simulator.api.server import ApiServer
from springtide.simulator.http.routes import Target
from springtide.simulator.http.tables.ages import Ages
from springtide.simulator.http.tables.autoscalers import AUTOSCALERS
from springtide.simulator.http.tables.custom import custom_layout
from springtide.simulator.http.tables.layouts import Layout, columns
from springtide.simulator.http.tables.others import OTHERS
from springtide.simulator.http.tables.pods import PODS
from springtide.simulator.http.tables.workloads import WORKLOADS


def _plain(item: Object, ages: Ages) -> list[Any]:  # noqa: ARG001 - it tells when, not how long ago
    return [item["metadata"]["name"], item["metadata"].get("creationTimestamp")]


_PLAIN = Layout(columns("Name", "Created At:date"), _plain)
_BUILTIN = {"Pod": PODS, "HorizontalPodAutoscaler": AUTOSCALERS} | WORKLOADS | OTHERS


def layout_of(server: ApiServer, target: Target) -> Layout:
    """Give the table of what a request is about."""
    kind = target.kind
    if target.subresource == "scale":
        return _BUILTIN["Scale"]
    if kind.strategic:
        return _BUILTIN.get(kind.resource.kind, _PLAIN)
    definition = server.find(DEFINITIONS, Key("", f"{kind.resource.plural}.{kind.resource.group}"))
    return _PLAIN if definition is None else custom_layout(definition, kind.resource.version)
