"""What the API server knows about a kind that it serves, built in or defined by a CRD."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object, Resource
from springtide.simulator.api.structure import Node


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where the scale subresource finds its numbers, as dotted paths (`.spec.replicas`)."""

    spec: str
    status: str
    selector: str = ""


def _as_it_is(value: Object) -> Object:
    return value


def _no_causes(value: Object, old: Object | None) -> tuple[Cause, ...]:  # noqa: ARG001
    return ()


@dataclass(frozen=True, slots=True)
class ServedKind:
    """One version of one kind, and everything that the verbs need to know about it."""

    resource: Resource
    structure: Node
    singular: str
    list_kind: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    subresources: tuple[str, ...] = ()
    """Of `status`, `scale`, `eviction`, `binding`, `finalize`."""
    scale: ScalePaths | None = None
    generation: bool = True
    """Whether `metadata.generation` counts the changes of this kind."""
    strategic: bool = True
    """Whether strategic merge patches are understood: by built-in kinds only."""
    complete: Callable[[Object], Object] = _as_it_is
    """Fills in defaults and drops what the kind does not have; may change and return what it is given."""
    prune: Callable[[Object], Object] = _as_it_is
    """Drops what the kind does not have, and fills in nothing; may change and return what it is given."""
    judge: Callable[[Object, Object | None], tuple[Cause, ...]] = _no_causes
    """Finds what is wrong with an object, given what it was before; an empty result lets it pass."""
    stored_version: str = ""
    """The version that the kind is stored in; empty: this one."""
