"""How kinds that are named in a reference are called in the API: for whoever reads or sets the scale of another."""

from __future__ import annotations

from springtide.cluster.kinds import DEFINITIONS as ALL_DEFINITIONS
from springtide.cluster.kinds import Kinds
from springtide.cluster.resources import Object, Resource
from springtide.cluster.tools import Tools

__all__ = ["ALL_DEFINITIONS", "resource_of"]


def resource_of(tools: Tools, reference: Object) -> Resource | None:
    """Find the resource that a reference with `apiVersion` and `kind` means; None where there is no such kind.

    To be asked by those who watch `ALL_DEFINITIONS`.
    """
    found = Kinds(tools.store(ALL_DEFINITIONS)).find(str(reference.get("apiVersion", "")), reference["kind"])
    return found.resource if found is not None else None
