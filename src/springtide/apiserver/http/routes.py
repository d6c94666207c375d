"""Paths: the kind, object and subresource of a request, and messages for features that the embedded cluster lacks."""

from __future__ import annotations

from dataclasses import dataclass

from springtide.apiserver.errors import no_such_resource
from springtide.apiserver.kinds import Catalogue, ServedKind
from springtide.cluster.errors import ApiError, MethodNotAllowed, NotFound, StatusDetails
from springtide.cluster.resources import Key, Resource

WRONG_METHOD = "the server does not allow this method on the requested resource"
_NAMESPACE_SUBRESOURCES = ("status", "finalize")

_SUBRESOURCES = {
    ("pods", "attach"): "no containers run in the embedded cluster, so there is nothing to attach to",
    ("pods", "ephemeralcontainers"): "no containers run in the embedded cluster, so none can be debugged",
    ("pods", "exec"): "no containers run in the embedded cluster, so nothing can be executed in them",
    ("pods", "log"): "no containers run in the embedded cluster, so there are no logs",
    ("pods", "portforward"): "no containers run in the embedded cluster, so no port can be forwarded",
    ("pods", "proxy"): "no containers run in the embedded cluster, so they cannot be reached",
    ("pods", "resize"): "pods of the embedded cluster cannot be resized in place",
    ("nodes", "proxy"): "nodes of the embedded cluster are simulated, so their kubelets cannot be reached",
    ("services", "proxy"): "the embedded cluster has no pod network, so services cannot be reached",
    ("serviceaccounts", "token"): "the embedded cluster issues no tokens to service accounts; use its kubeconfig",
}
_GROUPS = {
    "certificates.k8s.io": "certificate signing requests",
    "networking.k8s.io": "ingresses: there is no pod network",
    "discovery.k8s.io": "endpoint slices: there is no pod network",
    "events.k8s.io": "events in this group: they are served in v1",
    "flowcontrol.apiserver.k8s.io": "flow control",
    "node.k8s.io": "runtime classes",
    "resource.k8s.io": "dynamic resource allocation",
    "metrics.k8s.io": "resource metrics",
}
_CORE = {
    "endpoints": "endpoints: there is no pod network",
    "componentstatuses": "component statuses",
    "bindings": "bindings apart from pods: create the binding subresource of a pod",
}


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """What a request refers to; a whole collection if it has no name."""

    kind: ServedKind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        """The key of the object."""
        return Key(self.namespace, self.name)

    @property
    def is_missing(self) -> bool:
        """Whether the kind does not have this subresource."""
        return bool(self.subresource) and self.subresource not in self.kind.subresources


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """The parts of a path below a group version."""

    group: str
    version: str
    namespace: str
    plural: str
    name: str
    subresource: str


def parse_path(path: str) -> ResourcePath | None:
    """Split a path; None if it names no resource."""
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        group, rest = "", parts[1:]
    elif parts[0] == "apis" and len(parts) > 1:
        group, rest = parts[1], parts[2:]
    else:
        return None
    if len(rest) < 2 or (not group and parts[0] == "apis") or "" in rest:
        return None
    version, rest = rest[0], rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and (group or rest[2] not in _NAMESPACE_SUBRESOURCES or len(rest) > 3):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "")[:3]
    if len(rest) > 3:
        subresource = "/".join(rest[2:])
    return ResourcePath(group, version, namespace, plural, name, subresource)


def resolve_target(catalogue: Catalogue, place: ResourcePath, method: str) -> RequestTarget:
    """Return the kind and object of a path, or refuse with the errors of a kube-apiserver."""
    kind = catalogue.find(Resource(place.group, place.version, place.plural, ""))
    if place.namespace and not kind.resource.namespaced:
        raise no_such_resource()
    if kind.resource.namespaced and not place.namespace:
        if place.name or (not kind.strategic and method != "GET"):
            raise no_such_resource()
        if method != "GET":
            raise wrong_method()
    target = RequestTarget(kind, place.namespace, place.name, place.subresource)
    # A custom kind has one route for all subresources; missing ones are reported later.
    if target.is_missing and kind.strategic:
        raise no_such_resource()
    return target


def wrong_method() -> MethodNotAllowed:
    """The path does not support this method."""
    return MethodNotAllowed(WRONG_METHOD, about=StatusDetails())


class NotImplementedHere(ApiError):
    """The embedded cluster does not implement this."""

    code = 501
    reason = "NotImplemented"


def missing_feature_error(place: ResourcePath) -> ApiError | None:
    """Return the error for a feature that only a real cluster has; None for other paths."""
    if not place.group and (why := _SUBRESOURCES.get((place.plural, place.subresource.partition("/")[0]))):
        return NotImplementedHere(why)
    missing = _GROUPS.get(place.group) or (_CORE.get(place.plural) if not place.group else None)
    return None if missing is None else NotFound(f"the embedded cluster has no {missing}", about=StatusDetails())
