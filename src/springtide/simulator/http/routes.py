"""Paths of the API: which kind, which object and which part of it a request is about."""

from __future__ import annotations

from dataclasses import dataclass

from springtide.cluster.errors import About, MethodNotAllowed
from springtide.cluster.resources import Key, Resource
from springtide.simulator.api.answers import no_such_resource
from springtide.simulator.api.catalogue import Catalogue
from springtide.simulator.api.kinds import ServedKind

WRONG_METHOD = "the server does not allow this method on the requested resource"
_OF_NAMESPACES = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about; without a name it is a whole collection."""

    kind: ServedKind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        """The object."""
        return Key(self.namespace, self.name)

    @property
    def is_missing(self) -> bool:
        """Tell whether this is a subresource that the kind does not have."""
        return bool(self.subresource) and self.subresource not in self.kind.subresources


@dataclass(frozen=True, slots=True)
class Place:
    """A path under a version of a group, taken apart."""

    group: str
    version: str
    namespace: str
    plural: str
    name: str
    subresource: str


def place_of(path: str) -> Place | None:
    """Take a path apart; None for one that names no resource."""
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
    if rest[0] == "namespaces" and len(rest) > 2 and (group or rest[2] not in _OF_NAMESPACES or len(rest) > 3):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "")[:3]
    if len(rest) > 3:
        subresource = "/".join(rest[2:])
    return Place(group, version, namespace, plural, name, subresource)


def target_of(catalogue: Catalogue, place: Place, method: str) -> Target:
    """Find what is served at a place, or refuse as a server does that has no such path."""
    kind = catalogue.find(Resource(place.group, place.version, place.plural, ""))
    if place.namespace and not kind.resource.namespaced:
        raise no_such_resource()
    if kind.resource.namespaced and not place.namespace:
        if place.name or (not kind.strategic and method != "GET"):
            raise no_such_resource()
        if method != "GET":
            raise wrong_method()
    target = Target(kind, place.namespace, place.name, place.subresource)
    # A custom kind has one path for all subresources, and those that it does not have are not found there.
    if target.is_missing and kind.strategic:
        raise no_such_resource()
    return target


def wrong_method() -> MethodNotAllowed:
    """Nothing there answers to this method."""
    return MethodNotAllowed(WRONG_METHOD, about=About())
