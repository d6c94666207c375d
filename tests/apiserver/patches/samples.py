"""Structures of made-up kinds with all types of maps and lists, and strategies for tests of managed fields."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from springtide.apiserver.kinds import ListType, StructureNode, ValueType
from springtide.apiserver.patches import managed
from springtide.cluster.resources import Object

STRING = StructureNode(ValueType.STRING)
NUMBER = StructureNode(ValueType.NUMBER)
STRINGS = StructureNode(ValueType.OBJECT, values=STRING)
ATOMIC_STRINGS = StructureNode(ValueType.OBJECT, values=STRING, atomic=True)
ANY = StructureNode(ValueType.ANY, open=True)
ATOMIC_LIST = StructureNode(ValueType.LIST, items=ANY)
SET = StructureNode(ValueType.LIST, items=STRING, list_kind=ListType.SET)
PORTS = StructureNode(
    ValueType.LIST,
    items=StructureNode(ValueType.OBJECT, fields={"port": NUMBER, "protocol": STRING, "text": STRING}),
    list_kind=ListType.MAP,
    keys=("port", "protocol"),
    key_defaults={"protocol": "TCP"},
)
CONTAINERS = StructureNode(
    ValueType.LIST,
    items=StructureNode(
        ValueType.OBJECT, fields={"name": STRING, "image": STRING, "ports": PORTS, "set": SET, "labels": STRINGS}
    ),
    list_kind=ListType.MAP,
    keys=("name",),
)
METADATA = StructureNode(
    ValueType.OBJECT,
    fields={"name": STRING, "uid": STRING, "labels": STRINGS, "finalizers": SET, "managedFields": ATOMIC_LIST},
)
SPEC = StructureNode(ValueType.OBJECT)
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
    groups=StructureNode(ValueType.OBJECT, values=SPEC),
)
THING = StructureNode(
    ValueType.OBJECT, fields={"apiVersion": STRING, "kind": STRING, "metadata": METADATA, "spec": SPEC}
)
"""A kind with granular and atomic fields, for managed fields."""

ENTRY = StructureNode(ValueType.OBJECT)
ENTRIES = StructureNode(ValueType.LIST, items=ENTRY, patch_merge=True, patch_key="name")
INNER = StructureNode(ValueType.OBJECT, patch_retain_keys=True)
ENTRY.fields.update(
    name=STRING,
    image=STRING,
    labels=STRINGS,
    set=StructureNode(ValueType.LIST, items=STRING, patch_merge=True),
    plain=StructureNode(ValueType.LIST, items=STRING),
    items=ENTRIES,
    inner=INNER,
)
INNER.fields.update(
    text=STRING,
    number=NUMBER,
    labels=STRINGS,
    items=ENTRIES,
    loose=StructureNode(ValueType.LIST, items=ENTRY),
    inner=INNER,
)
DOCUMENT = INNER
"""A kind with lists that are merged, for strategic merge patches."""


def thing(spec: Any = None, **metadata: Any) -> Object:
    """Return an object of the kind with the given fields."""
    head = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t", **metadata}}
    return head if spec is None else {**head, "spec": spec}


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}Z"


def update(old: Object | None, new: Object, *, by: str = "editor", second: int = 1, subresource: str = "") -> Object:
    """Update or create an object."""
    return managed.after_update(old, new, manager=by, node=THING, now=at(second), subresource=subresource)


def apply(
    live: Object | None, config: Object, *, by: str, force: bool = False, second: int = 1, subresource: str = ""
) -> Object:
    """Apply a configuration."""
    return managed.apply(live, config, manager=by, force=force, node=THING, now=at(second), subresource=subresource)


def owners(item: Object) -> dict[str, Any]:
    """Return the field sets by manager, operation and subresource."""
    return {
        " ".join(filter(None, (entry["manager"], entry["operation"], entry.get("subresource")))): entry["fieldsV1"]
        for entry in item["metadata"].get("managedFields", [])
    }


def times(item: Object) -> dict[str, str | None]:
    """Return the time of each manager's last change."""
    return {entry["manager"]: entry.get("time") for entry in item["metadata"].get("managedFields", [])}


def _unique(names: str, part: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[list[dict[str, Any]]]:
    picked = st.lists(st.sampled_from(names), unique=True, max_size=3)
    return picked.flatmap(
        lambda chosen: st.tuples(*(part for _ in chosen)).map(
            lambda parts: [{"name": name, **rest} for name, rest in zip(chosen, parts, strict=True)]
        )
    )


SAMPLE_STRINGS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
SETS = st.lists(st.sampled_from("defg"), unique=True, max_size=3)
SAMPLE_CONTAINERS = _unique(
    "abc", st.fixed_dictionaries({}, optional={"image": st.sampled_from("xy"), "set": SETS, "labels": SAMPLE_STRINGS})
)
_FLAT = {
    "replicas": st.integers(1, 3),
    "text": st.sampled_from("uv"),
    "labels": SAMPLE_STRINGS,
    "selector": SAMPLE_STRINGS,
    "args": st.lists(st.sampled_from("mn"), max_size=2),
    "set": SETS,
    "containers": SAMPLE_CONTAINERS,
    "any": st.sampled_from([1, "s", [1], {"k": 1}, {"k": {"l": 2}}]),
}
SPECS = st.fixed_dictionaries(
    {},
    optional={
        **_FLAT,
        "nested": st.fixed_dictionaries({}, optional=_FLAT),
        "groups": st.dictionaries(st.sampled_from("gh"), st.fixed_dictionaries({}, optional=_FLAT), max_size=2),
    },
)
THINGS = SPECS.map(thing)
