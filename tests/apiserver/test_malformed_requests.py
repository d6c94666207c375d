"""Malformed objects are stored or refused with an API error."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.objects import (
    BUDGETS,
    CONFIG_MAPS,
    DEFINITIONS,
    DEPLOYMENTS,
    LIMIT_RANGES,
    NAMESPACES,
    PODS,
    QUOTAS,
    WIDGETS,
    WRITE,
    config_map,
    definition,
    deployment,
    key,
    make_server,
    pod,
    widget,
)

from springtide.cluster.errors import ApiError
from springtide.cluster.resources import Object, Resource
from springtide.cluster.transport import Patch

_BODIES: dict[str, tuple[Resource, Object]] = {
    "configmap": (CONFIG_MAPS, config_map(labels={"a": "b"}, finalizers=["example.com/a"])),
    "pod": (PODS, pod(requests={"cpu": "1"}, spec={"priorityClassName": "system-node-critical"})),
    "deployment": (DEPLOYMENTS, deployment(replicas=1)),
    "namespace": (NAMESPACES, {"metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes"]}}),
    "quota": (QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}, "scopes": ["BestEffort"]}}),
    "budget": (BUDGETS, {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"a": "b"}}}}),
    "limits": (
        LIMIT_RANGES,
        {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
    ),
    "definition": (DEFINITIONS, definition(beta=True, selectable=(".spec.color",))),
    "widget": (WIDGETS, widget(size=1)),
}
_JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", "x", 0, -1, 1.5, True, [], {}, [None], ["x"], [{}], {"x": None}, {"": []}]
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return all paths of a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for step, item in inner for place in _places(item, (*path, step)))]


def _with_junk(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    """Return a value with junk at one path."""
    if not path:
        return junk
    step, *rest = path
    if isinstance(value, dict):
        return {**value, step: _with_junk(value[step], tuple(rest), junk)}
    return [*value[:step], _with_junk(value[step], tuple(rest), junk), *value[step + 1 :]]


@pytest.mark.parametrize("name", _BODIES)
@given(data=st.data())
def test_malformed_objects_are_stored_or_refused(name: str, data: st.DataObject) -> None:
    server = make_server()
    server.create(DEFINITIONS, definition(), WRITE)
    resource, body = _BODIES[name]
    spoilt = _with_junk(body, data.draw(st.sampled_from(_places(body))), data.draw(_JUNK))
    namespace = "default" if resource.namespaced else ""
    before = server.revision
    try:
        server.create(resource, spoilt, WRITE, namespace=namespace)
    except ApiError:
        assert server.revision == before
    with suppress(ApiError):
        server.create(resource, body, WRITE, namespace=namespace)
    for subresource in ("", "status", "scale", "finalize"):
        with suppress(ApiError):
            at = key(body["metadata"]["name"])._replace(namespace=namespace)
            server.patch(resource, at, Patch.merge(spoilt), WRITE, subresource=subresource)
    for subresource in ("eviction", "binding"):
        with suppress(ApiError):
            server.create(PODS, spoilt, WRITE, namespace="default", name="p", subresource=subresource)
