"""The tree of places as the tree that patches and managed fields of all kinds share."""

from __future__ import annotations

from springtide.simulator.api.custom.places import ABSENT, Place
from springtide.simulator.api.structure import ListKind, Node, Type

_TYPES = {
    "object": Type.OBJECT,
    "array": Type.LIST,
    "string": Type.STRING,
    "integer": Type.INTEGER,
    "number": Type.NUMBER,
    "boolean": Type.BOOLEAN,
}
_TEXTS = (
    "creationTimestamp",
    "deletionTimestamp",
    "generateName",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
)
_NUMBERS = ("deletionGracePeriodSeconds", "generation")
"""The fields of metadata that are plain texts or numbers."""
_LIST_KINDS = {"set": ListKind.SET, "map": ListKind.MAP}


def structure_of(place: Place) -> Node:
    """Give the structure of a custom resource, with the fields that every resource has."""
    root = _node(place)
    root.fields = _with_identity(root.fields)
    return root


def _with_identity(fields: dict[str, Node]) -> dict[str, Node]:
    identity = {"apiVersion": Node(type=Type.STRING), "kind": Node(type=Type.STRING), "metadata": _metadata()}
    return identity | {name: node for name, node in fields.items() if name not in identity}


def _node(place: Place) -> Node:
    entries = place.items.properties if place.items is not None else {}
    fields = {name: _node(part) for name, part in place.properties.items()}
    return Node(
        type=Type.INT_OR_STRING if place.int_or_string else _TYPES.get(place.type, Type.ANY),
        fields=_with_identity(fields) if place.embedded else fields,
        values=_node(place.values) if place.values is not None else None,
        items=_node(place.items) if place.items is not None else None,
        required=tuple(place.checks.get("required") or ()),
        list_kind=_LIST_KINDS.get(place.list_type, ListKind.ATOMIC),
        keys=place.list_keys,
        key_defaults={
            name: entries[name].default
            for name in place.list_keys
            if name in entries and entries[name].default is not ABSENT
        },
        atomic=place.map_type == "atomic",
        nullable=place.nullable,
        open=place.open,
    )


def _metadata() -> Node:
    text = Node(type=Type.STRING)
    owner = Node(
        type=Type.OBJECT,
        fields=dict.fromkeys(("apiVersion", "kind", "name", "uid"), text)
        | {name: Node(type=Type.BOOLEAN) for name in ("blockOwnerDeletion", "controller")},
        required=("apiVersion", "kind", "name", "uid"),
        atomic=True,
    )
    return Node(
        type=Type.OBJECT,
        fields={
            "annotations": Node(type=Type.OBJECT, values=text),
            "finalizers": Node(type=Type.LIST, items=text, list_kind=ListKind.SET),
            "labels": Node(type=Type.OBJECT, values=text),
            "ownerReferences": Node(type=Type.LIST, items=owner, list_kind=ListKind.MAP, keys=("uid",)),
            "managedFields": Node(),
        }
        | dict.fromkeys(_TEXTS, text)
        | dict.fromkeys(_NUMBERS, Node(type=Type.INTEGER)),
    )
