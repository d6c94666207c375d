"""The cluster port: everything that the rest of Springtide may ask of a cluster, and nothing more.

Two transports implement it: HTTP, for live clusters, and direct calls into the store of the embedded one. Both have
the semantics of the Kubernetes API for resourceVersions, conflicts, watches and subresources; a suite of tests holds
them together. Controllers do not use it directly: they hold a `springtide.cluster.client.Client`, which adds
leadership, modes and read-your-writes.

There is no PUT. Objects are read through views that know only some fields, and whoever writes such an object back as a
whole deletes the others; so the port has patches only.

Which state of which object a write was computed from.

The API server has no fencing token, so a write that is late (from a leader that is one no more, or from a cache that
has fallen behind) can only be recognised by what it was computed from. Whoever writes therefore names the object that
was read, and the write takes effect only as long as that is still what the server has.

A transport around another one, for whoever looks at requests and need not know them all: meters, guards, tests.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from springtide.cluster.resources import Key, Object, Resource, Selection, key_of


class WatchEventType(StrEnum):
    """What a watch tells about an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    """Nothing else happened up to this version: the object is a dict with a resourceVersion and little else."""


INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends the initial events of a WatchList."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch; the object is of the type that the selection's view names, but for bookmarks."""

    change: WatchEventType
    object: Any


@dataclass(frozen=True, slots=True)
class ListPage:
    """A part of a list; all pages of one list show the same version."""

    items: Sequence[Any]
    version: str
    continue_: str = ""
    remaining: int | None = None


class PatchType(StrEnum):
    """How the body of a patch is read, by its media type."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Patch:
    """A change to one object."""

    type: PatchType
    body: Any
    force: bool = False
    """For apply: take fields over that others own."""

    @classmethod
    def merge(cls, body: Object) -> Patch:
        """Merge maps, replace everything else, delete what is null."""
        return cls(PatchType.MERGE, body)

    @classmethod
    def json(cls, *operations: Object) -> Patch:
        """Do these operations in this order, or none of them."""
        return cls(PatchType.JSON, list(operations))

    @classmethod
    def apply(cls, body: Object, *, force: bool = False) -> Patch:
        """Own exactly the fields of this body; what we owned before and is not in it goes."""
        return cls(PatchType.APPLY, body, force)


class Propagation(StrEnum):
    """What happens to the objects that a deleted one owns."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


def _always() -> None:
    """Let every write pass."""


@dataclass(frozen=True, slots=True)
class Write:
    """What goes with a write besides the object.

    `permit` is called by the transport immediately before the request leaves, with no await in between. It raises
    `NotSent` to hold the write back; that is how a leader whose lease has run out is stopped.
    """

    manager: str
    """The field manager: who writes, for managed fields, traces and audit logs."""
    because: str = ""
    """The reason, in words for people; traces show it."""
    dry_run: bool = False
    permit: Callable[[], None] = field(default=_always, compare=False)


@dataclass(frozen=True, slots=True)
class Precondition:
    """What the object must still be for a write to take effect; else the server answers with a conflict.

    An apply that is to change an object and never to make one names the uid: a version alone does not keep a server
    from making it.
    """

    version: str = ""
    uid: str = ""


UNCONDITIONAL = Precondition()


class Transport(Protocol):
    """A connection to one cluster. Every method raises `springtide.cluster.errors.ClusterError` and nothing else."""

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Object:
        """Read one object, or its `scale`."""
        ...

    async def list(
        self, selection: Selection, *, limit: int = 0, continue_: str = "", version: str = "", exact: bool = False
    ) -> ListPage:
        """Read a page of objects, in the order of their keys.

        Without a version the list is the newest there is. With one, it is not older than that, or, if `exact`, just
        that one; version `0` means any, however old. `Gone` where the version, or that of `continue_`, is compacted.
        """
        ...

    def watch(
        self,
        selection: Selection,
        *,
        version: str = "",
        initial_events: bool = False,
        timeout: float | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Tell what happens after a version, in order, with bookmarks.

        With `initial_events` (WatchList) the objects that exist come first, as ADDED, then a bookmark with the
        annotation `INITIAL_EVENTS_END`; the version then means "not older than". The stream ends normally after
        `timeout` seconds or when the server wants it to; it raises `Gone` where the version is compacted. Close it
        with `contextlib.aclosing`.
        """
        ...

    async def create(
        self,
        resource: Resource,
        body: Object,
        write: Write,
        *,
        namespace: str = "",
        name: str = "",
        subresource: str = "",
    ) -> Object:
        """Create an object; with a name and a subresource, an eviction or a binding of that object."""
        ...

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Patch,
        write: Write,
        *,
        subresource: str = "",
        precondition: Precondition = UNCONDITIONAL,
    ) -> Object:
        """Change one object; an apply creates it where it is not there."""
        ...

    async def delete(
        self,
        resource: Resource,
        key: Key,
        write: Write,
        *,
        precondition: Precondition = UNCONDITIONAL,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        """Ask an object to go; it stays as long as it has finalizers, or as its grace period lasts."""
        ...


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """An object as it was read: its identity over time, and its version. Projected records keep one of these."""

    key: Key
    uid: str
    version: str

    @classmethod
    def of(cls, item: Any) -> ObjectVersion:
        """Take the origin from a whole object or a view of one; an origin is its own."""
        if isinstance(item, ObjectVersion):
            return item
        metadata = item["metadata"] if isinstance(item, dict) else item.metadata
        if isinstance(metadata, dict):
            uid, version = metadata.get("uid"), metadata.get("resourceVersion")
        else:
            uid, version = metadata.uid, metadata.resource_version
        return cls(key_of(item), uid or "", version or "")

    def changed_by(self, patch: Patch) -> Object:
        """Show as much of the changed object as the patch itself says, for those who must go on without an answer."""
        body: Object = patch.body if isinstance(patch.body, dict) else {}
        identity = {
            "namespace": self.key.namespace,
            "name": self.key.name,
            "uid": self.uid,
            "resourceVersion": self.version,
        }
        known = {name: value for name, value in identity.items() if value}
        return body | {"metadata": (body.get("metadata") or {}) | known}

    def precondition(self, *, exact: bool = True) -> Precondition:
        """Demand this very version, or (not `exact`) only that it is still the same object under that name."""
        if not self.uid or (exact and not self.version):
            wanted = "uid and resourceVersion" if exact else "uid"
            msg = f"{self.key}: an object without {wanted} was never read from a cluster, expected one that was"
            raise ValueError(msg)
        return Precondition(self.version if exact else "", self.uid)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request, in the words of the API."""

    verb: str
    resource: Resource
    key: Key
    """What its path is about; without a name where that is several, or one that is yet to be created."""
    subresource: str = ""
    fields: str = ""
    """The field selector of a list or a watch."""
    patch: Patch | None = None
    body: Object | None = None
    """What is to be created."""


class WrappingTransport:
    """Passes everything on; those who inherit from it override `through`, and `streaming` for watches."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner

    async def through(self, request: ApiRequest, send: Callable[[], Awaitable[T]]) -> T:  # noqa: ARG002
        """Let a request pass, by calling `send` for its answer."""
        return await send()

    async def streaming(
        self,
        request: ApiRequest,  # noqa: ARG002
        events: AsyncGenerator[WatchEvent, None],
    ) -> AsyncGenerator[WatchEvent, None]:
        """Let a watch pass."""
        async with aclosing(events) as told:
            async for event in told:
                yield event

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Object:
        """Read one object, or its scale."""
        request = ApiRequest("get", resource, key, subresource)
        return await self.through(request, lambda: self.inner.get(resource, key, subresource=subresource))

    async def list(
        self, selection: Selection, *, limit: int = 0, continue_: str = "", version: str = "", exact: bool = False
    ) -> ListPage:
        """Read a page of objects."""
        return await self.through(
            _of_many("list", selection),
            lambda: self.inner.list(selection, limit=limit, continue_=continue_, version=version, exact=exact),
        )

    def watch(
        self, selection: Selection, *, version: str = "", initial_events: bool = False, timeout: float | None = None
    ) -> AsyncGenerator[WatchEvent, None]:
        """Tell what happens after a version."""
        events = self.inner.watch(selection, version=version, initial_events=initial_events, timeout=timeout)
        return self.streaming(_of_many("watch", selection), events)

    async def create(
        self,
        resource: Resource,
        body: Object,
        write: Write,
        *,
        namespace: str = "",
        name: str = "",
        subresource: str = "",
    ) -> Object:
        """Create an object; with a name and a subresource, an eviction or a binding of that object."""
        return await self.through(
            ApiRequest("create", resource, Key(namespace, name), subresource, body=body),
            lambda: self.inner.create(resource, body, write, namespace=namespace, name=name, subresource=subresource),
        )

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Patch,
        write: Write,
        *,
        subresource: str = "",
        precondition: Precondition = UNCONDITIONAL,
    ) -> Object:
        """Change one object; an apply creates it where it is not there."""
        return await self.through(
            ApiRequest("patch", resource, key, subresource, patch=patch),
            lambda: self.inner.patch(resource, key, patch, write, subresource=subresource, precondition=precondition),
        )

    async def delete(
        self,
        resource: Resource,
        key: Key,
        write: Write,
        *,
        precondition: Precondition = UNCONDITIONAL,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        """Ask an object to go."""
        await self.through(
            ApiRequest("delete", resource, key),
            lambda: self.inner.delete(
                resource, key, write, precondition=precondition, propagation=propagation, grace_seconds=grace_seconds
            ),
        )


def _of_many(verb: str, selection: Selection) -> ApiRequest:
    return ApiRequest(verb, selection.resource, Key(selection.namespace, ""), fields=selection.fields)
