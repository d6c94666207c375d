"""The scale subresource: an object seen as a number of replicas."""

from __future__ import annotations

from typing import Any

from springtide.cluster.errors import BadRequest, Cause, NotFound
from springtide.cluster.resources import Key, Object, Resource
from springtide.simulator.api.answers import conflict, invalid
from springtide.simulator.api.bodies import body_of, leaf, part
from springtide.simulator.api.kinds import ScalePaths, ServedKind
from springtide.simulator.api.reviews import View
from springtide.simulator.api.selectors import selector_of
from springtide.simulator.api.values import found, removed, replaced, steps

_SCALE = Resource("autoscaling", "v1", "scales", "Scale")
_COPIED = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_read(kind: ServedKind, item: Object) -> Object:
    """Give the scale of an object to whoever reads it; one that says no number has none."""
    path = _paths(kind).spec
    if found(item, steps(path)) is None:
        raise NotFound(f'the spec replicas field "{path}" does not exist')
    return scale_of(kind, item)


def scale_of(kind: ServedKind, item: Object) -> Object:
    """Give the scale of an object as a write sees it, which may name the first number."""
    paths = _paths(kind)
    replicas = found(item, steps(paths.spec))
    metadata = item["metadata"]
    status: Object = {"replicas": found(item, steps(paths.status)) or 0}
    if paths.selector and (selector := _selector_text(found(item, steps(paths.selector)))):
        status["selector"] = selector
    return {
        "apiVersion": _SCALE.api_version,
        "kind": _SCALE.kind,
        "metadata": {name: metadata[name] for name in _COPIED if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def scaled(kind: ServedKind, item: Object, scale: Any) -> Object:
    """Give an object with the number of replicas that a scale asks for."""
    metadata = item["metadata"]
    body = body_of(_SCALE.kind, scale, metadata["name"])
    wanted = part(body, "metadata")
    if leaf(wanted, "resourceVersion", str, "") not in ("", metadata["resourceVersion"]):
        raise conflict(kind.resource, metadata["name"])
    if leaf(wanted, "uid", str, "") not in ("", metadata["uid"]):
        why = f"Precondition failed: UID in precondition: {wanted['uid']}, UID in object meta: {metadata['uid']}"
        raise conflict(kind.resource, metadata["name"], why)
    replicas = part(body, "spec").get("replicas", 0)
    _check_replicas(kind, replicas, metadata["name"])
    return replaced(item, steps(_paths(kind).spec), replicas)


def scale_view(kind: ServedKind) -> View:
    """Show objects of a kind as their scale."""
    return View(lambda item: scale_of(kind, item), lambda item, scale: scaled(kind, item, scale))


def scale_written(kind: ServedKind, item: Object) -> Object:
    """Give an object as its owners see it when its scale has been written: a scale of nothing says no number."""
    path = steps(_paths(kind).spec)
    return item if found(item, path) else removed(item, path)


def scale_applied(kind: ServedKind, key: Key, scale: Any) -> Object:
    """Give what an apply of a scale applies to the object: its number of replicas, where it names one."""
    if not isinstance(scale, dict) or (scale.get("apiVersion"), scale.get("kind")) != (_SCALE.api_version, _SCALE.kind):
        told = f"{scale.get('apiVersion')}, Kind={scale.get('kind')}" if isinstance(scale, dict) else repr(scale)
        raise BadRequest(f"invalid object type: {told}")
    version = leaf(part(body_of(_SCALE.kind, scale, key.name), "metadata"), "resourceVersion", str, "")
    metadata = {"name": key.name} | ({"resourceVersion": version} if version else {})
    resource = kind.resource
    body: Object = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    replicas = part(scale, "spec").get("replicas")
    if replicas is None:
        return body
    _check_replicas(kind, replicas, key.name)
    return replaced(body, steps(_paths(kind).spec), replicas)


def _check_replicas(kind: ServedKind, replicas: Any, name: str) -> None:
    """Refuse what is no number; a negative one is for the rules of a custom kind to refuse, in its own words."""
    if type(replicas) is not int or (replicas < 0 and kind.strategic):
        message = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid(_SCALE, name, (Cause("spec.replicas", message),))


def _paths(kind: ServedKind) -> ScalePaths:
    if kind.scale is None:
        raise NotFound(f"{kind.resource} has no scale")
    return kind.scale


def _selector_text(value: Any) -> str:
    """Write the selector of an object: kept as text in custom kinds, as an object in the built-in ones."""
    return value if isinstance(value, str) else str(selector_of(value)) if isinstance(value, dict) else ""
