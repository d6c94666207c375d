"""The scale subresource: reading, updating and applying the replicas of an object."""

from __future__ import annotations

from typing import Any

from springtide.apiserver.admission import AdmissionView
from springtide.apiserver.errors import conflict, invalid
from springtide.apiserver.kinds import ScalePaths, ServedKind
from springtide.apiserver.selectors import selector_of
from springtide.apiserver.values import (
    object_field,
    path_steps,
    typed_body,
    typed_field,
    value_at,
    with_value_at,
    without_value_at,
)
from springtide.cluster.errors import BadRequest, NotFound, StatusCause
from springtide.cluster.resources import Key, Object, Resource

_SCALE = Resource("autoscaling", "v1", "scales", "Scale")
_COPIED = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_read(kind: ServedKind, item: Object) -> Object:
    """Return the scale of an object for a read; NotFound if it has no replicas field."""
    path = _paths(kind).spec
    if value_at(item, path_steps(path)) is None:
        raise NotFound(f'the spec replicas field "{path}" does not exist')
    return scale_of(kind, item)


def scale_of(kind: ServedKind, item: Object) -> Object:
    """Return the scale of an object for a write, which may set the first value."""
    paths = _paths(kind)
    replicas = value_at(item, path_steps(paths.spec))
    metadata = item["metadata"]
    status: Object = {"replicas": value_at(item, path_steps(paths.status)) or 0}
    if paths.selector and (selector := _selector_text(value_at(item, path_steps(paths.selector)))):
        status["selector"] = selector
    return {
        "apiVersion": _SCALE.api_version,
        "kind": _SCALE.kind,
        "metadata": {name: metadata[name] for name in _COPIED if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def with_scale(kind: ServedKind, item: Object, scale: Any) -> Object:
    """Return an object with the replicas of a scale."""
    metadata = item["metadata"]
    body = typed_body(_SCALE.kind, scale, metadata["name"])
    wanted = object_field(body, "metadata")
    if typed_field(wanted, "resourceVersion", str, "") not in ("", metadata["resourceVersion"]):
        raise conflict(kind.resource, metadata["name"])
    if typed_field(wanted, "uid", str, "") not in ("", metadata["uid"]):
        why = f"Precondition failed: UID in precondition: {wanted['uid']}, UID in object meta: {metadata['uid']}"
        raise conflict(kind.resource, metadata["name"], why)
    replicas = object_field(body, "spec").get("replicas", 0)
    _check_replicas(kind, replicas, metadata["name"])
    return with_value_at(item, path_steps(_paths(kind).spec), replicas)


def scale_view(kind: ServedKind) -> AdmissionView:
    """Show webhooks the scale of an object."""
    return AdmissionView(lambda item: scale_of(kind, item), lambda item, scale: with_scale(kind, item, scale))


def owned_by_scale(kind: ServedKind, item: Object) -> Object:
    """Return an object for field ownership after its scale was written: zero replicas own no field."""
    path = path_steps(_paths(kind).spec)
    return item if value_at(item, path) else without_value_at(item, path)


def applied_scale(kind: ServedKind, key: Key, scale: Any) -> Object:
    """Return the object configuration for an apply of a scale: its replicas, if set."""
    if not isinstance(scale, dict) or (scale.get("apiVersion"), scale.get("kind")) != (_SCALE.api_version, _SCALE.kind):
        given = f"{scale.get('apiVersion')}, Kind={scale.get('kind')}" if isinstance(scale, dict) else repr(scale)
        raise BadRequest(f"invalid object type: {given}")
    version = typed_field(
        object_field(typed_body(_SCALE.kind, scale, key.name), "metadata"), "resourceVersion", str, ""
    )
    metadata = {"name": key.name} | ({"resourceVersion": version} if version else {})
    resource = kind.resource
    body: Object = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    replicas = object_field(scale, "spec").get("replicas")
    if replicas is None:
        return body
    _check_replicas(kind, replicas, key.name)
    return with_value_at(body, path_steps(_paths(kind).spec), replicas)


def _check_replicas(kind: ServedKind, replicas: Any, name: str) -> None:
    """Refuse invalid replicas; negative ones of custom kinds are refused by their schema."""
    if type(replicas) is not int or (replicas < 0 and kind.strategic):
        message = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid(_SCALE, name, (StatusCause("spec.replicas", message),))


def _paths(kind: ServedKind) -> ScalePaths:
    if kind.scale is None:
        raise NotFound(f"{kind.resource} has no scale subresource")
    return kind.scale


def _selector_text(value: Any) -> str:
    """Format the selector of an object: text in custom kinds, an object in built-in ones."""
    return value if isinstance(value, str) else str(selector_of(value)) if isinstance(value, dict) else ""
