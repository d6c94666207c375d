"""Aliases of fields of this group, and repairs by `springtide convert`.

Older drafts of ProvisioningRequest named some fields differently; these names are read as aliases. Misspelt names of
resources are errors, because any name could be meant; `springtide convert` repairs the most likely ones.
"""

from __future__ import annotations

from typing import Any

from springtide.apis.core.resources import is_known, meant_resource
from springtide.apis.kinds import NormalizedTree
from springtide.apis.meta.repair import TreeRepair
from springtide.apis.problems import Path

_FORMER_FIELDS = (
    (("spec",), "provisioningClass", "provisioningClassName"),
    (("spec",), "Parameters", "parameters"),
    (("status",), "statuses", "provisioningClassDetails"),
)
_FORMER_CLASS_FIELDS = (((), "Parameters", "parameters"),)
_CERTAIN = ("cpu", "memory")


def read_request(value: dict[str, Any]) -> NormalizedTree:
    """Read a ProvisioningRequest with the field names of older drafts."""
    return _with_renamed(value, _FORMER_FIELDS, "is a former name of `{new}`, and is read as that")


def read_class(value: dict[str, Any]) -> NormalizedTree:
    """Read a ProvisioningClass with the field names of older drafts."""
    return _with_renamed(value, _FORMER_CLASS_FIELDS, "is a former name of `{new}`, and is read as that")


def fixes(value: dict[str, Any]) -> NormalizedTree:
    """Repair mistakes with only one possible meaning."""
    match value.get("kind"):
        case "ProvisioningRequest":
            return _with_renamed(value, _FORMER_FIELDS, "was renamed to `{new}`")
        case "ProvisioningClass":
            return _with_renamed(value, _FORMER_CLASS_FIELDS, "was renamed to `{new}`")
        case "CapacityBuffer":
            return _with_renamed(value, _resource_renames(value), "was renamed to `{new}`")
    return NormalizedTree(value)


def _resource_renames(value: dict[str, Any]) -> tuple[tuple[Path, str, str], ...]:
    limits = TreeRepair(value).at(("spec", "limits"))
    repairs: list[tuple[Path, str, str]] = []
    for name in limits if isinstance(limits, dict) else ():
        intended = None if is_known(name) else meant_resource(name)
        if intended in _CERTAIN:
            repairs.append((("spec", "limits"), name, intended))
    return tuple(repairs)


def _with_renamed(value: dict[str, Any], renames: tuple[tuple[Path, str, str], ...], words: str) -> NormalizedTree:
    repair = TreeRepair(value)
    for place, old, new in renames:
        repair.rename(place, old, new, f"`{old}` {words.format(new=new)}")
    return repair.result()
