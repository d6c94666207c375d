"""The shape of a controller.

A controller watches some resources, maps every change to keys of objects of its kind, and reconciles one key at a
time: observe, decide, act. It never learns which event enqueued a key; it reads the present state from its caches.
A `SingletonController` does the same for the cluster as a whole: it has no keys, and changes are batched. The manager
does the rest: caches, shared state, queues, retries, leader election, modes and pauses.
`docs/writing-a-controller.md` tells how to write one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar

from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.store import NO_INDEXES, whole_object

if TYPE_CHECKING:
    from springtide.cluster.context import ControllerContext
    from springtide.cluster.state import SharedState, StateWatch


@dataclass(frozen=True, slots=True)
class Cached:
    """What an informer cache keeps of a selection: a record of every object, and indexes.

    Controllers that name the same selection and record share one cache.
    """

    selection: Selection
    record: Callable[[Any], Any] = whole_object
    """Makes the record from the decoded item; pure. Keep in it only what is needed."""
    indexes: Mapping[str, Callable[[Any], Iterable[Hashable]]] = field(
        default_factory=lambda: NO_INDEXES, compare=False
    )
    """Indexes by name, each with the function that gives the values under which a record is found."""
    trial: Callable[[Object, int, str], object] | None = field(default=None, compare=False)
    """Computes of an item alone, at an instant and with a default zone, what records and reconciles compute; pure,
    and importable by name. A large item is used only after this has run in a child: `springtide.cluster.trials`."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A cache that a controller needs, and the keys that a change in it enqueues."""

    cached: Cached
    keys: Callable[[Key, Any], Iterable[Key]] | None = None
    """Maps a changed record, under its key, to the keys to reconcile; None: to its own key.

    It is called for the record before and for the one after a change, so that a key that only the old record refers to
    is reconciled as well.
    """
    optional: bool = False
    """Whether the controller works where the kind is not installed; when it is installed, its objects appear."""


def cache_only(*change: Any) -> Iterable[Key]:  # noqa: ARG001
    """Map a change to no keys: the controller reads the cache, and changes enqueue nothing."""
    return ()


@dataclass(frozen=True, slots=True)
class Permission:
    """Verbs that a controller needs on a resource; roles are generated from these."""

    resource: Resource
    verbs: tuple[str, ...]
    subresource: str = ""
    names: tuple[str, ...] = ()
    """The only objects that the verbs are needed on; empty: all of them. `create` cannot be limited to names; `list`
    and `watch` must select one object by its name."""
    own_namespace: bool = False
    """Whether they are needed only in the namespace that the process itself uses."""


@dataclass(frozen=True, slots=True)
class Result:
    """When to reconcile a key again although nothing may have changed: at an instant, or after some seconds."""

    requeue_at: int | None = None
    requeue_after: float | None = None


class Urgency(IntEnum):
    """Which objects come first when all are reconciled: at the start of a term, or after a step of the clock."""

    DUE = 0
    """By its status, something is to be done now; also whatever changes or becomes due later."""
    UNKNOWN = 1
    """Its status does not tell: it is new."""
    LATER = 2
    """By its status, nothing is to be done yet."""


class Controller(ABC):
    """A controller of one kind of object, to which the first of its watches belongs."""

    name: ClassVar[str]
    """Lower case with dashes; field manager, log name and metric label come from it."""
    watches: ClassVar[tuple[Watch, ...]]
    states: ClassVar[tuple[type[SharedState[Any]] | StateWatch[Any], ...]] = ()
    """Shared state that the controller reads; it starts when all of it is complete. A `StateWatch` enqueues keys."""
    provides: ClassVar[tuple[type[SharedState[Any]], ...]] = ()
    """Shared state that the controller writes: it is complete when every key of the initial list was attempted once."""
    needs: ClassVar[tuple[type, ...]] = ()
    """What the process must offer besides the cluster, by type; read it with `context.dependency`."""
    optional_needs: ClassVar[tuple[type, ...]] = ()
    """What the controller uses if the process offers it; read it with `context.optional_dependency`."""
    permissions: ClassVar[tuple[Permission, ...]]
    scales: ClassVar[bool] = False
    """Whether it sets the scale of objects of any kind: administrators grant the rights for that group by group."""
    independent: ClassVar[bool] = False
    """Whether the decision about one object depends on nothing that this controller wrote to others: then only its
    writes to the same object must be in the cache before it is reconciled."""
    skips_own_writes: ClassVar[bool] = False
    """Whether a reconcile that writes to its object has nothing left to do after that: then these do not enqueue its
    key again. All of them must have the version in the cache as their precondition."""
    workers: ClassVar[int] = 1
    """How many keys are reconciled side by side; one key never is."""

    def __init__(self, context: ControllerContext) -> None:
        self.context = context

    def owns(self, record: Any) -> bool:  # noqa: ARG002
        """Return whether this controller may write an object; objects that it does not own are never reconciled."""
        return True

    def urgency(self, record: Any, now: int) -> Urgency:  # noqa: ARG002
        """Return how soon an object is reconciled when all are; cheap, as it is called for every object at once."""
        return Urgency.DUE

    @abstractmethod
    async def reconcile(self, key: Key, now: int) -> Result | None:
        """Bring one object to its desired state, as of `now`; idempotent.

        The object may be gone: the cache says so. An exception requeues the key with backoff; returning resets the
        backoff. A `Result` requeues the key at a later time; a change enqueues it sooner in any case.
        """


CLUSTER = Key("", "cluster")
"""The only key of a singleton."""


class SingletonController(Controller):
    """A controller of the cluster as a whole, such as a scheduler: it has no keys, and is reconciled after any change.

    A change of one of its watches or states opens a batching window, and `reconcile_cluster` runs when it closes. A
    watch with `cache_only` opens none. Objects cannot be paused one by one; the pause of the whole process holds.
    """

    batch_idle: ClassVar[float] = 0.0
    """The window closes when no change has come for so many seconds; at 0, at once."""
    batch_max: ClassVar[float] = 0.0
    """The window closes so many seconds after the first change at the latest."""

    @abstractmethod
    async def reconcile_cluster(self, now: int) -> Result | None:
        """Bring the cluster to its desired state; exceptions and results mean what they mean for `reconcile`."""

    async def reconcile(self, key: Key, now: int) -> Result | None:  # noqa: ARG002
        """Reconcile the cluster under its only key."""
        return await self.reconcile_cluster(now)

    def trigger(self) -> None:
        """Open a batching window, because of something that is not in the cluster."""
        self.context.enqueue(CLUSTER)
