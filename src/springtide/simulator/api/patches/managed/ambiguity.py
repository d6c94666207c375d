"""Entries of lists that cannot be told apart: an applied configuration must have none."""

from __future__ import annotations

from typing import Any

from springtide.cluster.errors import ServerError
from springtide.cluster.resources import Object
from springtide.simulator.api.patches.managed.elements import Unidentifiable, shown
from springtide.simulator.api.patches.managed.shape import element_of, is_list, is_map, item_node
from springtide.simulator.api.structure import Node


def refuse_ambiguity(applied: Object, node: Node) -> None:
    """Raise what the API server answers to a configuration whose entries cannot be told apart: an internal error."""
    problems = _problems(node, applied, "")
    if not problems:
        return
    text = problems[0] if len(problems) == 1 else "errors:\n" + "\n".join("  " + problem for problem in problems)
    raise ServerError(f"failed to create typed patch object ({described(applied)}): {text}")


def described(item: Object) -> str:
    """Name an object as the API server's internal errors do."""
    metadata = item.get("metadata") or {}
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    return f"{name}; {item.get('apiVersion', '')}, Kind={item.get('kind', '')}"


def _problems(node: Node, value: Any, path: str) -> list[str]:
    found: list[str] = []
    if is_map(node, value):
        for name, part in value.items():
            if isinstance(part, dict | list):
                found += _problems(node.child(name), part, f"{path}.{name}")
    elif is_list(node, value):
        seen = set()
        for index, item in enumerate(value):
            try:
                element = element_of(node, item)
            except Unidentifiable as error:
                found.append(f"{path}: element {index}: {error}")
                continue
            if element in seen:
                found.append(f"{path}: duplicate entries for key {shown(element)}")
            seen.add(element)
            found += _problems(item_node(node), item, path + shown(element))
    return found
