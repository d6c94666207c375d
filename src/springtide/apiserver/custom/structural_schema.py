"""The schema of a custom resource as a tree, which pruning, defaulting, validation and rules walk.

A `SchemaNode` has the keywords that shape an object (types, fields, defaults, list types) as attributes; those that
only validate values stay in `checks`. The nodes in `all_of`, `any_of`, `one_of` and `none_of` only validate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from springtide.apiserver.kinds import ListType, StructureNode, ValueType

ABSENT: Any = object()
"""The default of a node without one, because null is a valid default."""

META_FIELDS = ("apiVersion", "kind", "metadata")
"""The fields of every resource, whether its schema declares them or not."""


@dataclass(frozen=True, slots=True)
class ValidationRule:
    """A rule in CEL: an entry of `x-kubernetes-validations`."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool | None = None

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> ValidationRule:
        """Read a rule from a schema."""
        return cls(
            rule=written.get("rule") or "",
            message=written.get("message") or "",
            message_expression=written.get("messageExpression") or "",
            reason=written.get("reason") or "",
            field_path=written.get("fieldPath") or "",
            optional_old_self=written.get("optionalOldSelf"),
        )

    @property
    def shown(self) -> str:
        """The rule as messages name it."""
        return (self.message or self.rule).strip()


@dataclass(slots=True, eq=False)
class SchemaNode:
    """The schema of a value."""

    type: str = ""
    nullable: bool = False
    int_or_string: bool = False
    open: bool = False
    """Whether undeclared fields are kept."""
    embedded: bool = False
    """Whether the value is a resource, with a type and metadata."""
    properties: dict[str, SchemaNode] = field(default_factory=dict)
    values: SchemaNode | None = None
    """The schema of the values of a map."""
    untyped_values: bool | None = None
    """`additionalProperties`, if it is `true` or `false`."""
    items: SchemaNode | None = None
    default: Any = ABSENT
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    map_type: str = ""
    rules: tuple[ValidationRule, ...] = ()
    checks: Mapping[str, Any] = field(default_factory=dict)
    """All keywords as written, for those that validate values."""
    all_of: tuple[SchemaNode, ...] = ()
    any_of: tuple[SchemaNode, ...] = ()
    one_of: tuple[SchemaNode, ...] = ()
    none_of: SchemaNode | None = None
    has_defaults: bool = False
    """Whether there is a default here or below."""
    unique: bool = False
    """Whether there is a set or a keyed list here or below."""
    has_embedded: bool = False
    """Whether there is an embedded resource here or below."""

    @property
    def types(self) -> tuple[str, ...]:
        """The JSON types that a value may have; empty for any."""
        if self.int_or_string:
            return ("integer", "string")
        return (self.type,) if self.type else ()

    @property
    def format(self) -> str:
        """The format of a string or number."""
        return self.checks.get("format") or ""

    def child(self, name: str) -> SchemaNode | None:
        """Return the schema of a field or map value, if there is one."""
        return self.properties.get(name) or self.values

    def children(self) -> Iterator[SchemaNode]:
        """Yield the nodes below that shape the object."""
        yield from self.properties.values()
        if self.values is not None:
            yield self.values
        if self.items is not None:
            yield self.items


def read_schema(written: Mapping[str, Any]) -> SchemaNode:
    """Read a schema, valid or not."""
    additional = written.get("additionalProperties")
    items = written.get("items")
    node = SchemaNode(
        type=written.get("type") or "",
        nullable=written.get("nullable") is True,
        int_or_string=written.get("x-kubernetes-int-or-string") is True,
        open=written.get("x-kubernetes-preserve-unknown-fields") is True,
        embedded=written.get("x-kubernetes-embedded-resource") is True,
        properties={name: read_schema(part) for name, part in (written.get("properties") or {}).items()},
        values=read_schema(additional) if isinstance(additional, Mapping) else None,
        untyped_values=additional if isinstance(additional, bool) else None,
        items=read_schema(items) if isinstance(items, Mapping) else None,
        default=ABSENT if written.get("default") is None else written["default"],
        list_type=written.get("x-kubernetes-list-type") or "",
        list_keys=tuple(written.get("x-kubernetes-list-map-keys") or ()),
        map_type=written.get("x-kubernetes-map-type") or "",
        rules=tuple(ValidationRule.read(rule) for rule in written.get("x-kubernetes-validations") or ()),
        checks=written,
        all_of=tuple(read_schema(part) for part in written.get("allOf") or ()),
        any_of=tuple(read_schema(part) for part in written.get("anyOf") or ()),
        one_of=tuple(read_schema(part) for part in written.get("oneOf") or ()),
        none_of=read_schema(written["not"]) if written.get("not") is not None else None,
    )
    below = [*node.children()]
    node.has_defaults = node.default is not ABSENT or any(child.has_defaults for child in below)
    node.unique = node.list_type in ("set", "map") or any(child.unique for child in below)
    node.has_embedded = node.embedded or any(child.has_embedded for child in below)
    return node


_TYPES = {
    "object": ValueType.OBJECT,
    "array": ValueType.LIST,
    "string": ValueType.STRING,
    "integer": ValueType.INTEGER,
    "number": ValueType.NUMBER,
    "boolean": ValueType.BOOLEAN,
}
_STRINGS = (
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
"""The fields of metadata that are strings or numbers."""
_LIST_KINDS = {"set": ListType.SET, "map": ListType.MAP}


def merge_structure(node: SchemaNode) -> StructureNode:
    """Return the structure that patches and managed fields use, including type and metadata."""
    root = _node(node)
    root.fields = _with_identity(root.fields)
    return root


def _with_identity(fields: dict[str, StructureNode]) -> dict[str, StructureNode]:
    identity = {
        "apiVersion": StructureNode(type=ValueType.STRING),
        "kind": StructureNode(type=ValueType.STRING),
        "metadata": _metadata(),
    }
    return identity | {name: child for name, child in fields.items() if name not in identity}


def _node(node: SchemaNode) -> StructureNode:
    entries = node.items.properties if node.items is not None else {}
    fields = {name: _node(part) for name, part in node.properties.items()}
    return StructureNode(
        type=ValueType.INT_OR_STRING if node.int_or_string else _TYPES.get(node.type, ValueType.ANY),
        fields=_with_identity(fields) if node.embedded else fields,
        values=_node(node.values) if node.values is not None else None,
        items=_node(node.items) if node.items is not None else None,
        required=tuple(node.checks.get("required") or ()),
        list_kind=_LIST_KINDS.get(node.list_type, ListType.ATOMIC),
        keys=node.list_keys,
        key_defaults={
            name: entries[name].default
            for name in node.list_keys
            if name in entries and entries[name].default is not ABSENT
        },
        atomic=node.map_type == "atomic",
        nullable=node.nullable,
        open=node.open,
    )


def _metadata() -> StructureNode:
    text = StructureNode(type=ValueType.STRING)
    owner = StructureNode(
        type=ValueType.OBJECT,
        fields=dict.fromkeys(("apiVersion", "kind", "name", "uid"), text)
        | {name: StructureNode(type=ValueType.BOOLEAN) for name in ("blockOwnerDeletion", "controller")},
        required=("apiVersion", "kind", "name", "uid"),
        atomic=True,
    )
    return StructureNode(
        type=ValueType.OBJECT,
        fields={
            "annotations": StructureNode(type=ValueType.OBJECT, values=text),
            "finalizers": StructureNode(type=ValueType.LIST, items=text, list_kind=ListType.SET),
            "labels": StructureNode(type=ValueType.OBJECT, values=text),
            "ownerReferences": StructureNode(type=ValueType.LIST, items=owner, list_kind=ListType.MAP, keys=("uid",)),
            "managedFields": StructureNode(),
        }
        | dict.fromkeys(_STRINGS, text)
        | dict.fromkeys(_NUMBERS, StructureNode(type=ValueType.INTEGER)),
    )
