"""How objects are addressed: a resource of the API, the key of one object, or a selection of objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

Object: TypeAlias = dict[str, Any]
"""A Kubernetes object as its JSON has it. Objects of a transport or a cache are shared: copy before you change one."""


class Key(NamedTuple):
    """One object of a resource; the namespace is empty where the resource has none."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind, as the API addresses it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Group and version as objects write them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects of a resource that a list or a watch returns, and how much of each is decoded.

    Selectors use the syntax of the API. `view` is the type that items are decoded as: the whole object, or a msgspec
    struct with the fields that are needed, which takes a fifth of the time and memory. A struct must have
    `metadata` with `name`, `namespace`, `uid` and `resource_version`.
    """

    resource: Resource
    namespace: str = ""
    labels: str = ""
    fields: str = ""
    view: type[Any] = dict

    def __str__(self) -> str:
        marks = [part for part in (self.namespace, self.labels, self.fields) if part]
        return f"{self.resource}[{', '.join(marks)}]" if marks else str(self.resource)


def key_of(item: Any) -> Key:
    """Return the key of an object; `item` is a whole object or a view of one."""
    if isinstance(item, dict):
        metadata = item["metadata"]
        return Key(metadata.get("namespace", ""), metadata["name"])
    return Key(item.metadata.namespace or "", item.metadata.name)


def version_of(item: Any) -> int:
    """Return the resourceVersion; servers since 1.35 guarantee that it is a growing number."""
    metadata = item["metadata"] if isinstance(item, dict) else item.metadata
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else metadata.resource_version
    return int(version or 0)
