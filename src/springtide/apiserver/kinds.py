"""The kinds that are served: their structure, what the verbs need to know about them, and the catalogue of all of them.

Built-in kinds are read from data (`springtide.apiserver.builtin`), custom kinds from the schema of their CRD. Both
become trees of `StructureNode`, so patches, managed fields and pruning treat them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from springtide.apiserver.errors import no_such_resource
from springtide.apiserver.storage import CollectionId
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object, Resource


class ValueType(StrEnum):
    """The type of a value."""

    OBJECT = "object"
    """An object with declared fields, or (with `values`) a map with arbitrary keys."""
    LIST = "array"
    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    INT_OR_STRING = "int-or-string"
    ANY = "any"


class ListType(StrEnum):
    """The list type of server-side apply: how much of a list one manager owns."""

    ATOMIC = "atomic"
    """Owned and replaced as a whole."""
    SET = "set"
    """Scalars, each owned separately."""
    MAP = "map"
    """Objects identified by the keys of the list, each owned separately."""


@dataclass(slots=True, eq=False)
class StructureNode:
    """One place in the structure of a kind. Nodes compare by identity, since trees may be recursive."""

    type: ValueType = ValueType.ANY
    fields: dict[str, StructureNode] = field(default_factory=dict)
    values: StructureNode | None = None
    items: StructureNode | None = None
    required: tuple[str, ...] = ()
    always: frozenset[str] = frozenset()
    """Fields that are always present, empty if not given; they may be left out of what is stored."""
    list_kind: ListType = ListType.ATOMIC
    keys: tuple[str, ...] = ()
    """The fields that identify the entries of a MAP list."""
    key_defaults: dict[str, object] = field(default_factory=dict)
    """Defaults of key fields that an entry leaves out, such as TCP for the protocol of a port."""
    atomic: bool = False
    """The object is owned and replaced as a whole."""
    patch_merge: bool = False
    """A strategic merge patch merges this list (by `patch_key`, or as a set of scalars) instead of replacing it."""
    patch_key: str = ""
    patch_retain_keys: bool = False
    """A strategic merge patch of this object drops the fields that `$retainKeys` does not list."""
    patch_replace: bool = False
    """A strategic merge patch replaces this object instead of merging it."""
    nullable: bool = False
    open: bool = False
    """Undeclared fields are kept."""

    def child(self, name: str) -> StructureNode:
        """Return the node of a field or a map value; an undeclared one may hold anything."""
        found = self.fields.get(name)
        return found or self.values or ANYTHING


ANYTHING = StructureNode(open=True)


FieldPath: TypeAlias = tuple[str | int, ...]
"""A field: names and list positions."""


def undeclared_fields(
    value: Any, node: StructureNode, path: FieldPath, *, closed: bool, patch: bool = False
) -> Iterator[FieldPath]:
    """Yield the paths of fields that a structure does not declare; `closed` is for built-in kinds.

    Of a patch, nulls and directives are no fields.
    """
    if type(value) is dict:
        if node.type is not ValueType.OBJECT and not node.fields:
            return
        # A built-in type declares all fields; a custom one may accept any.
        takes_any = not node.fields if closed else node.open
        for name, part in value.items():
            if patch and (part is None or name.startswith("$")):
                continue
            child = node.fields.get(name) or node.values
            if child is None:
                if not takes_any:
                    yield (*path, name)
            elif type(part) is dict or type(part) is list:
                yield from undeclared_fields(part, child, (*path, name), closed=closed, patch=patch)
    elif type(value) is list and node.items is not None:
        for index, part in enumerate(value):
            if type(part) is dict or type(part) is list:
                yield from undeclared_fields(part, node.items, (*path, index), closed=closed, patch=patch)


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The dotted paths that the scale subresource reads and writes (`.spec.replicas`)."""

    spec: str
    status: str
    selector: str = ""


def _as_it_is(value: Object) -> Object:
    return value


def _no_causes(value: Object, old: Object | None) -> tuple[StatusCause, ...]:  # noqa: ARG001
    return ()


@dataclass(frozen=True, slots=True)
class ServedKind:
    """One version of one kind, with everything that the verbs need to know about it."""

    resource: Resource
    structure: StructureNode
    singular: str
    list_kind: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    subresources: tuple[str, ...] = ()
    """Of `status`, `scale`, `eviction`, `binding`, `finalize`."""
    scale: ScalePaths | None = None
    generation: bool = True
    """Whether `metadata.generation` counts changes of the spec."""
    strategic: bool = True
    """Whether the kind is built in: only built-in kinds support strategic merge patches."""
    apply_defaults: Callable[[Object], Object] = _as_it_is
    """Sets defaults and drops unknown fields; may modify and return its argument."""
    prune: Callable[[Object], Object] = _as_it_is
    """Drops unknown fields without setting defaults; may modify and return its argument."""
    validate: Callable[[Object, Object | None], tuple[StatusCause, ...]] = _no_causes
    """Validates an object, given the object before the write; no causes means valid."""
    stored_version: str = ""
    """The storage version of the kind; empty means this version."""


class Catalogue:
    """The kinds that are served now; CRDs add and remove kinds."""

    def __init__(self, kinds: Iterable[ServedKind]) -> None:
        self._kinds: dict[tuple[str, str, str], ServedKind] = {}
        self._named: dict[tuple[str, str], ServedKind] = {}
        self._collections: dict[CollectionId, ServedKind] = {}
        self._selectable: dict[CollectionId, tuple[str, ...]] = {}
        for kind in kinds:
            self._add(kind)

    def serve(self, identity: CollectionId, kinds: Iterable[ServedKind], selectable: tuple[str, ...] = ()) -> None:
        """Serve exactly these versions of a kind; `selectable` are its selectable fields."""
        self.withdraw(identity)
        self._selectable[identity] = selectable
        for kind in kinds:
            self._add(kind)

    def withdraw(self, identity: CollectionId) -> None:
        """Stop serving a kind."""
        self._selectable.pop(identity, None)
        self._collections.pop(identity, None)
        for place, kind in list(self._kinds.items()):
            if collection_id(kind.resource) == identity:
                del self._kinds[place]
                del self._named[kind.resource.api_version, kind.resource.kind]

    def find(self, resource: Resource) -> ServedKind:
        """Return the kind of a resource; `NotFound` if it is not served."""
        kind = self._kinds.get((resource.group, resource.version, resource.plural))
        if kind is None:
            raise no_such_resource()
        return kind

    def of_kind(self, api_version: str, kind: str) -> ServedKind | None:
        """Return the kind of an object or a reference; None if it is not served."""
        return self._named.get((api_version, kind))

    def of_collection(self, identity: CollectionId) -> ServedKind | None:
        """Return the kind of a collection, in its storage version if that is served."""
        return self._collections.get(identity)

    def stored(self) -> tuple[ServedKind, ...]:
        """Return each kind once, by group and plural."""
        return tuple(self._collections[identity] for identity in sorted(self._collections))

    def all(self) -> tuple[ServedKind, ...]:
        """Return all versions of all kinds, by group, version and plural."""
        return tuple(self._kinds[place] for place in sorted(self._kinds))

    def selectable(self, kind: ServedKind) -> tuple[str, ...]:
        """Return the selectable fields that a CRD declares."""
        return self._selectable.get(collection_id(kind.resource), ())

    def _add(self, kind: ServedKind) -> None:
        self._kinds[_place(kind)] = kind
        self._named[kind.resource.api_version, kind.resource.kind] = kind
        identity = collection_id(kind.resource)
        if identity not in self._collections or kind.stored_version in ("", kind.resource.version):
            self._collections[identity] = kind


def collection_id(resource: Resource) -> CollectionId:
    """Return the collection that holds the objects of a resource."""
    return CollectionId(resource.group, resource.plural)


def _place(kind: ServedKind) -> tuple[str, str, str]:
    resource = kind.resource
    return resource.group, resource.version, resource.plural
