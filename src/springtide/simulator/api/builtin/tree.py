"""The types of built-in kinds as trees of nodes, the shape in which patches, managed fields and checks read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import msgspec

from springtide.simulator.api.builtin.data import Place, TypeData, place_of
from springtide.simulator.api.structure import ListKind, Node, Type


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
    "any": Node(atomic=True, open=True),
    "boolean": Node(Type.BOOLEAN),
    "int-or-string": Node(Type.INT_OR_STRING),
    "integer": Node(Type.INTEGER),
    "number": Node(Type.NUMBER),
    "quantity": QUANTITY,
    "string": Node(Type.STRING),
}

_ZERO: dict[str, object] = {"boolean": False, "integer": 0, "number": 0, "string": ""}

_REQUIRED_TOO = {"core.v1.Container": ("image",), "core.v1.EphemeralContainer": ("image",)}
"""Fields that a server insists on although its documents do not say so."""
_OPTIONAL_AFTER_ALL = {
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

_INSTANTS = {
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
_ALWAYS_TOO = {
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
        instants = (field for field in places if field in _INSTANTS)
        node.always = frozenset((*structs, *data.required, *instants, *_ALWAYS_TOO.get(name, ())))
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
            if place.retain or place.replace:
                node = replace(node, patch_retain_keys=place.retain, patch_replace=place.replace)
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
            data = self._types[entry.type[1:]]
            for key in place.keys:
                field = place_of(data.fields[key])
                # What is required is never absent in Go: what nobody writes is empty there.
                default = _ZERO.get(field.type) if key in data.required else None
                default = default if field.default is None else field.default
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
