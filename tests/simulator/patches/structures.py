"""Structures of made-up kinds with every sort of map and list, for tests and for recorded cases."""

from __future__ import annotations

from springtide.simulator.api.structure import ListKind, Node, Type

STRING = Node(Type.STRING)
NUMBER = Node(Type.NUMBER)
STRINGS = Node(Type.OBJECT, values=STRING)
ATOMIC_STRINGS = Node(Type.OBJECT, values=STRING, atomic=True)
ANY = Node(Type.ANY, open=True)
ATOMIC_LIST = Node(Type.LIST, items=ANY)
SET = Node(Type.LIST, items=STRING, list_kind=ListKind.SET)
PORTS = Node(
    Type.LIST,
    items=Node(Type.OBJECT, fields={"port": NUMBER, "protocol": STRING, "text": STRING}),
    list_kind=ListKind.MAP,
    keys=("port", "protocol"),
    key_defaults={"protocol": "TCP"},
)
CONTAINERS = Node(
    Type.LIST,
    items=Node(Type.OBJECT, fields={"name": STRING, "image": STRING, "ports": PORTS, "set": SET, "labels": STRINGS}),
    list_kind=ListKind.MAP,
    keys=("name",),
)
METADATA = Node(
    Type.OBJECT,
    fields={"name": STRING, "uid": STRING, "labels": STRINGS, "finalizers": SET, "managedFields": ATOMIC_LIST},
)
SPEC = Node(Type.OBJECT)
SPEC.fields.update(
    replicas=NUMBER,
    text=STRING,
    labels=STRINGS,
    selector=ATOMIC_STRINGS,
    args=ATOMIC_LIST,
    set=SET,
    containers=CONTAINERS,
    any=ANY,
    nested=SPEC,
    groups=Node(Type.OBJECT, values=SPEC),
)
THING = Node(Type.OBJECT, fields={"apiVersion": STRING, "kind": STRING, "metadata": METADATA, "spec": SPEC})
"""A kind of which parts are owned apart, for managed fields."""

ENTRY = Node(Type.OBJECT)
ENTRIES = Node(Type.LIST, items=ENTRY, patch_merge=True, patch_key="name")
INNER = Node(Type.OBJECT, patch_retain_keys=True)
ENTRY.fields.update(
    name=STRING,
    image=STRING,
    labels=STRINGS,
    set=Node(Type.LIST, items=STRING, patch_merge=True),
    plain=Node(Type.LIST, items=STRING),
    items=ENTRIES,
    inner=INNER,
)
INNER.fields.update(
    text=STRING, number=NUMBER, labels=STRINGS, items=ENTRIES, loose=Node(Type.LIST, items=ENTRY), inner=INNER
)
DOCUMENT = INNER
"""A kind with lists that are merged, for strategic merge patches."""
