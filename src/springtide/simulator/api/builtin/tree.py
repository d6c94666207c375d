"""The types of built-in kinds as trees of nodes, the shape in which patches, managed fields and checks read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import msgspec

from springtide.simulator.api.builtin.data import Place, TypeData, place_of
from springtide.simulator.api.structure import ANYTHING, ListKind, Node, Type


@dataclass(slots=True, eq=False)
class TypeNode(Node):
    """A node of a type with fields; what the type does not declare is kept."""

    present: tuple[str, ...] = ()
    """Fields that are there even when nobody writes them, and require something that is then asked for."""


@dataclass(slots=True, eq=False)
class Choice(Node):
    """A text that is one of a few."""

    supported: tuple[str, ...] = ()


STATUS = "status"
"""The field that is written bit by bit by those who look after an object: nothing is required of it."""
QUANTITY = Node(Type.INT_OR_STRING)
"""An amount; unlike other nodes of its type it may be a number with a fraction."""
_SCALARS = {
    "any": ANYTHING,
    "boolean": Node(Type.BOOLEAN),
    "int-or-string": Node(Type.INT_OR_STRING),
    "integer": Node(Type.INTEGER),
    "number": Node(Type.NUMBER),
    "quantity": QUANTITY,
    "string": Node(Type.STRING),
}

_REQUIRED_TOO = {"core.v1.Container": ("image",), "core.v1.EphemeralContainer": ("image",)}
"""Fields that a server insists on although its documents do not say so."""
_OPTIONAL_AFTER_ALL = {
    "apps.v1.ControllerRevision": ("revision",),
    "apiextensions.v1.CustomResourceDefinitionVersion": ("served", "storage"),
    "core.v1.HTTPHeader": ("value",),
    "core.v1.ISCSIPersistentVolumeSource": ("lun",),
    "core.v1.ISCSIVolumeSource": ("lun",),
    "core.v1.LimitRangeSpec": ("limits",),
    "core.v1.SleepAction": ("seconds",),
    "core.v1.Sysctl": ("value",),
    "storage.v1.CSINodeSpec": ("drivers",),
}
"""Fields whose empty value means something: Go cannot tell it from none, and a server lets both pass."""


@cache
def _choices() -> dict[str, dict[str, tuple[str, ...]]]:
    """Read the table of texts that are one of a few, by type and field, in the order in which messages list them."""
    table = dict[str, dict[str, tuple[str, ...]]]
    return msgspec.json.decode(Path(__file__).with_name("enums.json").read_bytes(), type=table)


class Forest:
    """The trees of all types; equal types are the same node, so that types may refer back to themselves."""

    def __init__(self, types: Mapping[str, TypeData]) -> None:
        self._types = types
        self._nodes: dict[str, TypeNode] = {}

    def type(self, name: str) -> TypeNode:
        """Give the tree of a type."""
        known = self._nodes.get(name)
        if known is not None:
            return known
        data = self._types[name]
        places = {field: place_of(given) for field, given in data.fields.items()}
        structs = tuple(field for field, place in places.items() if place.present)
        spared = (*structs, *_OPTIONAL_AFTER_ALL.get(name, ()))
        required = tuple(field for field in data.required if field not in spared) + _REQUIRED_TOO.get(name, ())
        node = TypeNode(Type.OBJECT, required=required, atomic=data.atomic, open=True)
        self._nodes[name] = node
        # Filled only now: a type whose fields lead back to it finds the node above.
        for field, place in places.items():
            node.fields[field] = self._place(place)
        for field, supported in _choices().get(name, {}).items():
            node.fields[field] = Choice(Type.STRING, supported=supported)
        node.present = tuple(field for field in structs if field != STATUS and _asks(node.fields[field]))
        return node

    def _place(self, place: Place) -> Node:
        if place.type == "list":
            return self._list(place)
        if place.type == "map":
            values = self._place(place_of(place.of))
            return Node(Type.OBJECT, values=values, atomic=bool(place.atomic), open=True, nullable=place.nullable)
        if place.type.startswith("@"):
            node: Node = self.type(place.type[1:])
            if place.retain:
                node = replace(node, patch_retain_keys=True)
            if place.atomic is not None:
                node = replace(node, atomic=place.atomic)
        else:
            node = _SCALARS[place.type]
        return replace(node, nullable=True) if place.nullable else node

    def _list(self, place: Place) -> Node:
        entry = place_of(place.of)
        items = self._place(entry)
        key_defaults: dict[str, object] = {}
        if entry.type.startswith("@"):
            fields = self._types[entry.type[1:]].fields
            for key in place.keys:
                default = place_of(fields[key]).default
                if default is not None:
                    key_defaults[key] = default
        return Node(
            Type.LIST,
            items=replace(items, patch_retain_keys=True) if place.retain else items,
            list_kind=ListKind(place.list),
            keys=place.keys,
            key_defaults=key_defaults,
            patch_merge=place.merge,
            patch_key=place.key,
            nullable=place.nullable,
        )


def _asks(node: Node) -> bool:
    """Tell whether a struct that nobody writes lacks something."""
    return isinstance(node, TypeNode) and bool(node.required or node.present)
