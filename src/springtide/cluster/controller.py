"""The shape of a controller.

A controller watches some resources, maps every change to keys of the objects it looks after, and reconciles one key at
a time: observe, decide, act. It never learns which event woke it; it reads the present state from its stores. All
controllers have this one shape, and the manager does the rest: caches, queues, retries, leadership, modes and pauses.
`docs/writing-a-controller.md` tells how to write one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from springtide.cluster.resources import Key, Resource, Selection

if TYPE_CHECKING:
    from springtide.cluster.context import ControllerContext


def _whole(item: Any) -> Any:
    """Keep an item as it is."""
    return item


_NO_INDEXES: Mapping[str, Callable[[Any], Iterable[Hashable]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Cached:
    """What is kept in memory of a selection: a record of every object, and ways to look records up.

    Controllers that name the same selection and record share one cache.
    """

    selection: Selection
    record: Callable[[Any], Any] = _whole
    """Makes the record from the item as it was decoded; pure. Keep in it only what is needed."""
    indexes: Mapping[str, Callable[[Any], Iterable[Hashable]]] = field(
        default_factory=lambda: _NO_INDEXES, compare=False
    )
    """Names of look-ups, each with the values under which a record is found."""


@dataclass(frozen=True, slots=True)
class Watch:
    """What a controller watches, and whose business a change of it is."""

    cached: Cached
    keys: Callable[[Key, Any], Iterable[Key]] | None = None
    """Maps a changed record, under its key, to the keys to reconcile; None: to its own key.

    It is asked about the record before and after a change, so that whoever was concerned before is told as well.
    """
    optional: bool = False
    """Whether the controller works without it where the kind is not installed; when it is, it shows by itself."""


def cache_only(key: Key, record: Any) -> Iterable[Key]:  # noqa: ARG001
    """Let a change wake nobody: what is watched is only read, or followed."""
    return ()


@dataclass(frozen=True, slots=True)
class Permission:
    """Verbs that a controller needs on a resource; roles are generated from these."""

    resource: Resource
    verbs: tuple[str, ...]
    subresource: str = ""
    names: tuple[str, ...] = ()
    """The only objects that the verbs are needed on; empty: all of them. `create` knows no names; `list` and `watch`
    must select one object by its name."""
    own_namespace: bool = False
    """Whether they are needed only in the namespace that the process itself uses."""


@dataclass(frozen=True, slots=True)
class Result:
    """When to reconcile a key again although nothing may have changed: at an instant, or after some seconds."""

    at: int | None = None
    after: float | None = None


class Controller(ABC):
    """One controller; the first of its watches is of the objects that it looks after."""

    name: ClassVar[str]
    """Lower case with dashes; field manager, log name and metric label come from it."""
    watches: ClassVar[tuple[Watch, ...]]
    permissions: ClassVar[tuple[Permission, ...]]
    scales: ClassVar[bool] = False
    """Whether it sets the scale of whatever objects name: the rights for that are given group by group, by people."""
    independent: ClassVar[bool] = False
    """Whether what is done about one object depends on nothing that was done about others of the same controller: then
    its writes to those are not waited for."""
    workers: ClassVar[int] = 1
    """How many keys are reconciled side by side; one key never is."""

    def __init__(self, context: ControllerContext) -> None:
        self.context = context

    def owns(self, record: Any) -> bool:  # noqa: ARG002
        """Tell whether an object is ours to write; others are read at most, and never reconciled."""
        return True

    @abstractmethod
    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Bring one object to where it should be, as of `now`.

        The object may be gone: the store says so. Raising means trying again with growing delays; returning forgets
        the failures. `Again` asks to be called at a later time; a change calls sooner in any case.
        """
