"""Templates: what a stage writes into an object, with places that are filled in from it.

A string that begins with `$` is a place: `$now` is the instant of the stage, `$settings.NAME` a setting, `$item.PATH`
something of the entry that `$each` is at, and every other `$PATH` something of the object. A place that finds nothing
leaves its field out. A mapping whose first key begins with `$` is an operation:

* `{$first: [A, B, …]}`: the first that finds something
* `{$overlay: [A, B, …]}`: mappings put over one another, the last one on top
* `{$sum: [A, B, …]}`: whole numbers added up; what finds nothing counts as 0
* `{$each: PATH, $make: TEMPLATE}`: a list with an entry for every entry of another list
* `{$conditions: [TEMPLATE, …]}`: the conditions of the object with these brought in
* `{$address: TEMPLATE}`: an IPv4 address of the private network 10.0.0.0/8, the same for the same text
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from springtide.cluster.resources import Object
from springtide.simulator.behaviours.conditions import with_conditions
from springtide.simulator.behaviours.settings import Settings
from springtide.simulator.behaviours.stages.paths import compile_path


@dataclass(frozen=True, slots=True)
class Filling:
    """What a template is filled in from."""

    object: Object
    now: str
    settings: Settings
    item: Any = None


Template = Callable[[Filling], Any]
"""Makes the value; None where a place found nothing."""


def compile_template(written: Any) -> Template:
    """Make the function that fills a template in."""
    if isinstance(written, str) and written.startswith("$"):
        return _place(written[1:])
    if isinstance(written, dict):
        first = next(iter(written), "")
        return _operation(first, written) if first.startswith("$") else _mapping(written)
    if isinstance(written, list):
        entries = [compile_template(entry) for entry in written]
        return lambda filling: [entry(filling) for entry in entries]
    return lambda filling: written  # noqa: ARG005


def _place(name: str) -> Template:
    root, _, rest = name.partition(".")
    if name == "now":
        return lambda filling: filling.now
    if root == "settings":
        return lambda filling: getattr(filling.settings, rest)
    if root == "item":
        read_item = compile_path(rest)
        return lambda filling: read_item(filling.item)
    read = compile_path(name)
    return lambda filling: read(filling.object)


def _mapping(written: dict[str, Any]) -> Template:
    fields = {name: compile_template(value) for name, value in written.items()}
    removed = {name for name, value in written.items() if value is None}

    def make(filling: Filling) -> Object:
        made = {name: template(filling) for name, template in fields.items()}
        return {name: value for name, value in made.items() if value is not None or name in removed}

    return make


def _operation(name: str, written: dict[str, Any]) -> Template:
    if name == "$each":
        return _each(compile_path(written["$each"]), compile_template(written["$make"]))
    argument = written[name]
    if name == "$address":
        text = compile_template(argument)
        return lambda filling: address(str(text(filling)))
    parts = [compile_template(part) for part in argument]
    if name == "$first":
        return lambda filling: next((value for part in parts if (value := part(filling)) is not None), None)
    if name == "$overlay":
        return lambda filling: {name: value for part in parts for name, value in (part(filling) or {}).items()}
    if name == "$sum":
        return lambda filling: sum(int(part(filling) or 0) for part in parts)
    if name == "$conditions":
        return _conditions(parts)
    msg = f"`{name}` is not an operation of templates"
    raise ValueError(msg)


def _each(read: Callable[[Any], Any], make: Template) -> Template:
    def make_all(filling: Filling) -> list[Any] | None:
        entries = read(filling.object)
        return None if entries is None else [make(replace(filling, item=item)) for item in entries]

    return make_all


def _conditions(parts: list[Template]) -> Template:
    present = compile_path("status.conditions")
    return lambda filling: with_conditions(present(filling.object), [part(filling) for part in parts], filling.now)


def address(text: str) -> str:
    """Give an address to something by its name; two things may share one, as nothing here is ever reached by it."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"10.{digest[0]}.{digest[1]}.{1 + digest[2] % 254}"
