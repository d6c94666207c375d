"""The data file of built-in kinds, decoded: what `tools/builtin_kinds.py` has taken from a kube-apiserver.

The types of built-in kinds as trees of nodes, the shape in which patches, managed fields and checks read them.
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
    """What stands in a field, in the entries of a list or in the values of a map."""

    type: str
    """A scalar, `@` and the name of a type, `list` or `map`."""
    of: str | FieldType = "any"
    present: bool = False
    """A plain struct: it is there even when nobody writes it."""
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
    """A kind, and what can be done with it."""

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
    """The whole file."""

    kubernetes: str
    """The version of the server that the kinds were taken from."""
    kinds: tuple[KindData, ...]
    types: dict[str, TypeData]


def field_type(given: str | FieldType) -> FieldType:
    """Read the short form of a place, a name alone, as the long one."""
    return FieldType(given) if isinstance(given, str) else given


@cache
def load_builtin_data() -> BuiltinData:
    """Read the file."""
    return msgspec.json.decode(Path(__file__).with_name("kinds.json").read_bytes(), type=BuiltinData)


@dataclass(slots=True, eq=False)
class TypeNode(StructureNode):
    """A node of a type with fields; what the type does not declare is kept."""

    present: tuple[str, ...] = ()
    """Fields that are there even when nobody writes them, and require something that is then asked for."""


@dataclass(slots=True, eq=False)
class EnumNode(StructureNode):
    """A text that is one of a few."""

    supported: tuple[str, ...] = ()


STATUS = "status"
"""The field that is written bit by bit by those who look after an object: nothing is required of it."""
QUANTITY = StructureNode(ValueType.INT_OR_STRING)
"""An amount; unlike other nodes of its type it may be a number with a fraction."""
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
"""Fields that a server insists on although its documents do not say so."""
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
"""Fields whose empty value means something: Go cannot tell it from none, and a server lets both pass, or says in a rule
of its own what is wrong with them."""

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
"""Times that are null where nobody writes them: in Go they are plain structs, wherever they occur."""
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
"""Fields that a server always writes although they are not required."""


@cache
def _enums() -> dict[str, dict[str, tuple[str, ...]]]:
    """Read the table of texts that are one of a few, by type and field, in the order in which messages list them."""
    table = dict[str, dict[str, tuple[str, ...]]]
    return msgspec.json.decode(Path(__file__).with_name("enums.json").read_bytes(), type=table)


class TypeTrees:
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
        places = {field: field_type(given) for field, given in data.fields.items()}
        structs = tuple(field for field, place in places.items() if place.present)
        spared = (*structs, *_NOT_REQUIRED.get(name, ()))
        required = tuple(field for field in data.required if field not in spared) + _ALSO_REQUIRED.get(name, ())
        node = TypeNode(ValueType.OBJECT, required=required, atomic=data.atomic, open=True)
        self._nodes[name] = node
        instants = (field for field in places if field in _TIMES)
        node.always = frozenset((*structs, *data.required, *instants, *_ALSO_ALWAYS_WRITTEN.get(name, ())))
        # Filled only now: a type whose fields lead back to it finds the node above.
        for field, place in places.items():
            node.fields[field] = self._place(place)
        for field, supported in _enums().get(name, {}).items():
            node.fields[field] = EnumNode(ValueType.STRING, supported=supported)
        node.present = tuple(field for field in structs if field != STATUS and _requires_fields(node.fields[field]))
        return node

    def _place(self, place: FieldType) -> StructureNode:
        if place.type == "list":
            return self._list(place)
        if place.type == "map":
            values = self._place(field_type(place.of))
            return StructureNode(
                ValueType.OBJECT, values=values, atomic=bool(place.atomic), open=True, nullable=place.nullable
            )
        if place.type.startswith("@"):
            node: StructureNode = self.type(place.type[1:])
            if place.retain or place.replace:
                node = replace(node, patch_retain_keys=place.retain, patch_replace=place.replace)
            if place.atomic is not None:
                node = replace(node, atomic=place.atomic)
        else:
            node = _SCALARS[place.type]
        return replace(node, nullable=True) if place.nullable else node

    def _list(self, place: FieldType) -> StructureNode:
        entry = field_type(place.of)
        items = self._place(entry)
        key_defaults: dict[str, object] = {}
        if entry.type.startswith("@"):
            data = self._types[entry.type[1:]]
            for key in place.keys:
                field = field_type(data.fields[key])
                # What is required is never absent in Go: what nobody writes is empty there.
                default = _ZERO.get(field.type) if key in data.required else None
                default = default if field.default is None else field.default
                if default is not None:
                    key_defaults[key] = default
        return StructureNode(
            ValueType.LIST,
            items=replace(items, patch_retain_keys=True) if place.retain else items,
            list_kind=ListType(place.list),
            keys=place.keys,
            key_defaults=key_defaults,
            patch_merge=place.merge,
            patch_key=place.key,
            nullable=place.nullable,
        )


def _requires_fields(node: StructureNode) -> bool:
    """Tell whether a struct that nobody writes lacks something."""
    return isinstance(node, TypeNode) and bool(node.required or node.present)
