"""The data file of built-in kinds, decoded: what `tools/builtin_kinds.py` has taken from a kube-apiserver."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec


class Place(msgspec.Struct, frozen=True, gc=False):
    """What stands in a field, in the entries of a list or in the values of a map."""

    type: str
    """A scalar, `@` and the name of a type, `list` or `map`."""
    of: str | Place = "any"
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

    fields: dict[str, str | Place] = {}
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


class Data(msgspec.Struct, frozen=True):
    """The whole file."""

    kubernetes: str
    """The version of the server that the kinds were taken from."""
    kinds: tuple[KindData, ...]
    types: dict[str, TypeData]


def place_of(given: str | Place) -> Place:
    """Read the short form of a place, a name alone, as the long one."""
    return Place(given) if isinstance(given, str) else given


@cache
def load() -> Data:
    """Read the file."""
    return msgspec.json.decode(Path(__file__).with_name("kinds.json").read_bytes(), type=Data)
