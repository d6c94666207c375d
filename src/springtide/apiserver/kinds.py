"""The structure of kinds, as merging and validating need it: types, required fields, keys of lists.

Built-in kinds are read from data (`springtide.simulator.api.builtin`), custom ones from the schema of their CRD. Both
become the same tree of `Node`, so that patches, managed fields and pruning know no difference between them.

What the API server knows about a kind that it serves, built in or defined by a CRD.

What is served: the kinds, by every name under which a request may ask for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from springtide.apiserver.errors import no_such_resource
from springtide.apiserver.storage import CollectionId
from springtide.cluster.errors import StatusCause
from springtide.cluster.resources import Object, Resource


class ValueType(StrEnum):
    """The type of a value, as far as the API tells them apart."""

    OBJECT = "object"
    """Fields with names that are declared, or (with `values`) a map from any name."""
    LIST = "array"
    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    INT_OR_STRING = "int-or-string"
    ANY = "any"


class ListType(StrEnum):
    """What a list is to those who own parts of it."""

    ATOMIC = "atomic"
    """One value: owned and replaced as a whole."""
    SET = "set"
    """Scalars, each owned by itself."""
    MAP = "map"
    """Objects told apart by the keys of the list, each owned by itself."""


@dataclass(slots=True, eq=False)
class StructureNode:
    """One place in the tree of a kind. Identity is equality: trees may refer back to themselves."""

    type: ValueType = ValueType.ANY
    fields: dict[str, StructureNode] = field(default_factory=dict)
    values: StructureNode | None = None
    items: StructureNode | None = None
    required: tuple[str, ...] = ()
    always: frozenset[str] = frozenset()
    """Fields that a value has even when nobody writes them: they are empty then, and need not be written down."""
    list_kind: ListType = ListType.ATOMIC
    keys: tuple[str, ...] = ()
    """The fields that tell entries of a MAP list apart."""
    key_defaults: dict[str, object] = field(default_factory=dict)
    """What stands for a key that an entry does not write, such as TCP for the protocol of a port."""
    atomic: bool = False
    """An object that is owned and replaced as a whole."""
    patch_merge: bool = False
    """A strategic merge patch merges this list (by `patch_key`, or as a set of scalars) instead of replacing it."""
    patch_key: str = ""
    patch_retain_keys: bool = False
    """A strategic merge patch of this object drops the fields that `$retainKeys` does not list."""
    patch_replace: bool = False
    """A strategic merge patch replaces this object instead of merging it."""
    nullable: bool = False
    open: bool = False
    """Fields that are not declared are kept as they are."""

    def child(self, name: str) -> StructureNode:
        """Give the node of a field or of a value of a map; what is not declared may be anything."""
        found = self.fields.get(name)
        return found or self.values or ANYTHING


ANYTHING = StructureNode(open=True)


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where the scale subresource finds its numbers, as dotted paths (`.spec.replicas`)."""

    spec: str
    status: str
    selector: str = ""


def _as_it_is(value: Object) -> Object:
    return value


def _no_causes(value: Object, old: Object | None) -> tuple[StatusCause, ...]:  # noqa: ARG001
    return ()


@dataclass(frozen=True, slots=True)
class ServedKind:
    """One version of one kind, and everything that the verbs need to know about it."""

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
    """Whether `metadata.generation` counts the changes of this kind."""
    strategic: bool = True
    """Whether strategic merge patches are understood: by built-in kinds only."""
    apply_defaults: Callable[[Object], Object] = _as_it_is
    """Fills in defaults and drops what the kind does not have; may change and return what it is given."""
    prune: Callable[[Object], Object] = _as_it_is
    """Drops what the kind does not have, and fills in nothing; may change and return what it is given."""
    validate: Callable[[Object, Object | None], tuple[StatusCause, ...]] = _no_causes
    """Finds what is wrong with an object, given what it was before; an empty result lets it pass."""
    stored_version: str = ""
    """The version that the kind is stored in; empty: this one."""


class Catalogue:
    """The kinds that are served now; CRDs add to them and take away."""

    def __init__(self, kinds: Iterable[ServedKind]) -> None:
        self._kinds: dict[tuple[str, str, str], ServedKind] = {}
        self._named: dict[tuple[str, str], ServedKind] = {}
        self._collections: dict[CollectionId, ServedKind] = {}
        self._selectable: dict[CollectionId, tuple[str, ...]] = {}
        for kind in kinds:
            self._add(kind)

    def serve(self, identity: CollectionId, kinds: Iterable[ServedKind], selectable: tuple[str, ...] = ()) -> None:
        """Serve these versions of one kind, and no others of it; `selectable` are fields that lists select by."""
        self.withdraw(identity)
        self._selectable[identity] = selectable
        for kind in kinds:
            self._add(kind)

    def withdraw(self, identity: CollectionId) -> None:
        """Serve a kind no longer."""
        self._selectable.pop(identity, None)
        self._collections.pop(identity, None)
        for place, kind in list(self._kinds.items()):
            if collection_id(kind.resource) == identity:
                del self._kinds[place]
                del self._named[kind.resource.api_version, kind.resource.kind]

    def find(self, resource: Resource) -> ServedKind:
        """Find what a request is about; `NotFound` where it is not served."""
        kind = self._kinds.get((resource.group, resource.version, resource.plural))
        if kind is None:
            raise no_such_resource()
        return kind

    def of_kind(self, api_version: str, kind: str) -> ServedKind | None:
        """Find what an object or a reference names; None where it is not served."""
        return self._named.get((api_version, kind))

    def of_collection(self, identity: CollectionId) -> ServedKind | None:
        """Find the kind of stored objects, in the version that they are stored in if that is served."""
        return self._collections.get(identity)

    def stored(self) -> tuple[ServedKind, ...]:
        """Give every kind once, by group and plural."""
        return tuple(self._collections[identity] for identity in sorted(self._collections))

    def all(self) -> tuple[ServedKind, ...]:
        """Give everything that is served, by group, version and plural."""
        return tuple(self._kinds[place] for place in sorted(self._kinds))

    def selectable(self, kind: ServedKind) -> tuple[str, ...]:
        """Give the fields that a CRD lets lists select by."""
        return self._selectable.get(collection_id(kind.resource), ())

    def _add(self, kind: ServedKind) -> None:
        self._kinds[_place(kind)] = kind
        self._named[kind.resource.api_version, kind.resource.kind] = kind
        identity = collection_id(kind.resource)
        if identity not in self._collections or kind.stored_version in ("", kind.resource.version):
            self._collections[identity] = kind


def collection_id(resource: Resource) -> CollectionId:
    """Tell where the objects of a resource are stored."""
    return CollectionId(resource.group, resource.plural)


def _place(kind: ServedKind) -> tuple[str, str, str]:
    resource = kind.resource
    return resource.group, resource.version, resource.plural
