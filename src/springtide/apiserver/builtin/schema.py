"""The schemas of built-in kinds: the data file that `tools/builtin_kinds.py` takes from a kube-apiserver, and type
trees.

The trees are what patches, managed fields and validation walk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from springtide.apiserver.kinds import ListType, StructureNode, ValueType


class FieldType(msgspec.Struct, frozen=True, gc=False):
    """The type of a field, of the entries of a list or of the values of a map."""

    type: str
    """A scalar, `@` and the name of a type, `list` or `map`."""
    of: str | FieldType = "any"
    present: bool = False
    """Whether it is a Go struct without a pointer, which is there even if unset."""
    list: str = "atomic"
    keys: tuple[str, ...] = ()
    merge: bool = False
    key: str = ""
    retain: bool = False
    replace: bool = False
    atomic: bool | None = None
    default: Any = None
    nullable: bool = False


class TypeData(msgspec.Struct, frozen=True, gc=False):
    """A type with fields."""

    fields: dict[str, str | FieldType] = {}
    required: tuple[str, ...] = ()
    atomic: bool = False


class KindData(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A kind, with its names, verbs and subresources."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    subresources: tuple[str, ...]
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    type: str


class BuiltinData(msgspec.Struct, frozen=True):
    """The data file."""

    kubernetes: str
    """The version of the kube-apiserver that the data were taken from."""
    kinds: tuple[KindData, ...]
    types: dict[str, TypeData]


def field_type(given: str | FieldType) -> FieldType:
    """Return the full form of a type that may be given by its name alone."""
    return FieldType(given) if isinstance(given, str) else given


@cache
def load_builtin_data() -> BuiltinData:
    """Read the data file."""
    return msgspec.json.decode(Path(__file__).with_name("kinds.json").read_bytes(), type=BuiltinData)


@dataclass(slots=True, eq=False)
class TypeNode(StructureNode):
    """A node with fields. Fields that the type does not declare are kept."""

    present: tuple[str, ...] = ()
    """Struct fields that are there even if unset, and have required fields of their own."""


@dataclass(slots=True, eq=False)
class EnumNode(StructureNode):
    """A string with a fixed set of values."""

    supported: tuple[str, ...] = ()


STATUS = "status"
"""The field that controllers write in parts: nothing in it is required."""
QUANTITY = StructureNode(ValueType.INT_OR_STRING)
"""A quantity. Unlike other nodes of its type it may be a number with a fraction."""
_SCALARS = {
    "any": StructureNode(atomic=True, open=True),
    "boolean": StructureNode(ValueType.BOOLEAN),
    "int-or-string": StructureNode(ValueType.INT_OR_STRING),
    "integer": StructureNode(ValueType.INTEGER),
    "number": StructureNode(ValueType.NUMBER),
    "quantity": QUANTITY,
    "string": StructureNode(ValueType.STRING),
}

_ZERO: dict[str, object] = {"boolean": False, "integer": 0, "number": 0, "string": ""}

_ALSO_REQUIRED = {"core.v1.Container": ("image",), "core.v1.EphemeralContainer": ("image",)}
"""Fields that are required although the OpenAPI documents do not say so."""
_NOT_REQUIRED = {
    "apps.v1.ControllerRevision": ("revision",),
    "apiextensions.v1.CustomResourceDefinitionVersion": ("served", "storage"),
    "core.v1.HTTPHeader": ("value",),
    "core.v1.ISCSIPersistentVolumeSource": ("lun",),
    "core.v1.ISCSIVolumeSource": ("lun",),
    "core.v1.LimitRangeSpec": ("limits",),
    "core.v1.ServicePort": ("port",),
    "core.v1.SleepAction": ("seconds",),
    "core.v1.Sysctl": ("value",),
    "core.v1.Taint": ("effect", "key"),
    "meta.v1.OwnerReference": ("apiVersion", "kind", "name", "uid"),
    "storage.v1.CSINodeSpec": ("drivers",),
}
"""Fields that are not required although the documents say so: Go cannot tell an empty value from an unset one, and the
server accepts both or has a rule of its own."""

_TIMES = {
    "eventTime",
    "finishedAt",
    "firstTimestamp",
    "lastHeartbeatTime",
    "lastObservedTime",
    "lastProbeTime",
    "lastTimestamp",
    "lastTransitionTime",
    "lastUpdateTime",
    "startedAt",
}
"""Times that are Go structs without a pointer: null where unset, wherever they occur."""
_ALSO_ALWAYS_WRITTEN = {
    "apiextensions.v1.CustomResourceDefinitionStatus": ("acceptedNames", "conditions", "storedVersions"),
    "apps.v1.StatefulSetStatus": ("availableReplicas",),
    "autoscaling.v2.HorizontalPodAutoscalerStatus": ("currentMetrics",),
    "core.v1.Event": ("reportingComponent", "reportingInstance"),
    "core.v1.GRPCAction": ("service",),
    "core.v1.ProjectedVolumeSource": ("sources",),
    "policy.v1.PodDisruptionBudgetStatus": (
        "currentHealthy",
        "desiredHealthy",
        "disruptionsAllowed",
        "expectedPods",
    ),
}
"""Fields that are always written although they are not required."""


@cache
def _enums() -> dict[str, dict[str, tuple[str, ...]]]:
    """Read the table of enums, by type and field, in the order in which messages list the values."""
    table = dict[str, dict[str, tuple[str, ...]]]
    return msgspec.json.decode(Path(__file__).with_name("enums.json").read_bytes(), type=table)


class TypeTrees:
    """The trees of all types. A type is the same node everywhere, so that types may refer back to themselves."""

    def __init__(self, types: Mapping[str, TypeData]) -> None:
        self._types = types
        self._nodes: dict[str, TypeNode] = {}

    def type(self, name: str) -> TypeNode:
        """Return the tree of a type."""
        known = self._nodes.get(name)
        if known is not None:
            return known
        data = self._types[name]
        types = {field: field_type(given) for field, given in data.fields.items()}
        structs = tuple(field for field, declared in types.items() if declared.present)
        spared = (*structs, *_NOT_REQUIRED.get(name, ()))
        required = tuple(field for field in data.required if field not in spared) + _ALSO_REQUIRED.get(name, ())
        node = TypeNode(ValueType.OBJECT, required=required, atomic=data.atomic, open=True)
        self._nodes[name] = node
        instants = (field for field in types if field in _TIMES)
        node.always = frozenset((*structs, *data.required, *instants, *_ALSO_ALWAYS_WRITTEN.get(name, ())))
        # Fields are filled in only now, because a type that refers back to this one must find its node.
        for field, declared in types.items():
            node.fields[field] = self._node(declared)
        for field, supported in _enums().get(name, {}).items():
            node.fields[field] = EnumNode(ValueType.STRING, supported=supported)
        node.present = tuple(field for field in structs if field != STATUS and _requires_fields(node.fields[field]))
        return node

    def _node(self, declared: FieldType) -> StructureNode:
        if declared.type == "list":
            return self._list(declared)
        if declared.type == "map":
            values = self._node(field_type(declared.of))
            return StructureNode(
                ValueType.OBJECT, values=values, atomic=bool(declared.atomic), open=True, nullable=declared.nullable
            )
        if declared.type.startswith("@"):
            node: StructureNode = self.type(declared.type[1:])
            if declared.retain or declared.replace:
                node = replace(node, patch_retain_keys=declared.retain, patch_replace=declared.replace)
            if declared.atomic is not None:
                node = replace(node, atomic=declared.atomic)
        else:
            node = _SCALARS[declared.type]
        return replace(node, nullable=True) if declared.nullable else node

    def _list(self, declared: FieldType) -> StructureNode:
        entry = field_type(declared.of)
        items = self._node(entry)
        key_defaults: dict[str, object] = {}
        if entry.type.startswith("@"):
            data = self._types[entry.type[1:]]
            for key in declared.keys:
                field = field_type(data.fields[key])
                # A required field is never unset in Go: its zero value takes part in the key.
                default = _ZERO.get(field.type) if key in data.required else None
                default = default if field.default is None else field.default
                if default is not None:
                    key_defaults[key] = default
        return StructureNode(
            ValueType.LIST,
            items=replace(items, patch_retain_keys=True) if declared.retain else items,
            list_kind=ListType(declared.list),
            keys=declared.keys,
            key_defaults=key_defaults,
            patch_merge=declared.merge,
            patch_key=declared.key,
            nullable=declared.nullable,
        )


def _requires_fields(node: StructureNode) -> bool:
    """Whether an unset struct misses required fields."""
    return isinstance(node, TypeNode) and bool(node.required or node.present)
