"""The transport: every request that Springtide sends to a cluster, and preconditions of writes.

`Transport` has two implementations: HTTP for live clusters, and direct calls into the API server of an embedded one.
Both have the semantics of the Kubernetes API for resourceVersions, conflicts, watches and subresources; conformance
tests compare them. Controllers use a `springtide.cluster.client.Client` instead, which adds leader election, modes and
read-your-writes.

There is no PUT. Objects are decoded as views with some of their fields, and writing such an object back as a whole
would delete the others; so there are only patches.

The API server has no fencing token: a late write (of a former leader, or based on a stale cache) can only be recognized
by the version it was computed from. So every write names an `ObjectVersion`, and its precondition is that the server
still has that version.

`WrappingTransport` is the base of transports around another one: metrics, guards, tests.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from springtide.cluster.resources import Key, Object, Resource, Selection, key_of


class WatchEventType(StrEnum):
    """The type of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    """There are no other events up to this version: the object is a dict with a resourceVersion and little else."""


INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends the initial events of a WatchList."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch; the object is of the type that the selection's view names, but for bookmarks."""

    change: WatchEventType
    object: Any


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of a list; all pages of a list have the same resourceVersion."""

    items: Sequence[Any]
    version: str
    continue_: str = ""
    remaining: int | None = None


class PatchType(StrEnum):
    """The type of a patch, by its media type."""

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
    """For apply: take over fields of other field managers."""

    @classmethod
    def merge(cls, body: Object) -> Patch:
        """A merge patch: merges maps, replaces everything else, deletes fields that are null."""
        return cls(PatchType.MERGE, body)

    @classmethod
    def json(cls, *operations: Object) -> Patch:
        """A JSON patch: all operations in this order, or none."""
        return cls(PatchType.JSON, list(operations))

    @classmethod
    def apply(cls, body: Object, *, force: bool = False) -> Patch:
        """A server-side apply: own exactly the fields of this body; fields that were owned before are removed."""
        return cls(PatchType.APPLY, body, force)


class Propagation(StrEnum):
    """What happens to the dependents of a deleted object."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


def _always() -> None:
    """Permit every write."""


@dataclass(frozen=True, slots=True)
class Write:
    """The context of a write.

    `permit` is called by the transport immediately before the request leaves, with no await in between. It raises
    `NotSent` to withhold the write; this stops a leader whose lease has expired.
    """

    manager: str
    """The field manager, for managed fields, traces and audit logs."""
    because: str = ""
    """The reason in plain words; traces show it."""
    dry_run: bool = False
    permit: Callable[[], None] = field(default=_always, compare=False)


@dataclass(frozen=True, slots=True)
class Precondition:
    """What the object must still be when a write takes effect; else the server answers with a conflict.

    An apply that must change an existing object and never create one names the uid: a version alone does not keep the
    server from creating it.
    """

    version: str = ""
    uid: str = ""


UNCONDITIONAL = Precondition()


class Transport(Protocol):
    """A connection to one cluster. Its methods raise only `springtide.cluster.errors.ClusterError`."""

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Object:
        """Read one object, or its `scale`."""
        ...

    async def list(
        self, selection: Selection, *, limit: int = 0, continue_: str = "", version: str = "", exact: bool = False
    ) -> ListPage:
        """List a page of objects, in the order of their keys.

        Without a version the list is the newest. With one, it is not older than that or, if `exact`, as of that
        version; version `0` means any version. `Gone` if the version, or that of `continue_`, is compacted.
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
        """Watch the events after a version, in order, with bookmarks.

        With `initial_events` (WatchList) the objects that exist come first, as ADDED, then a bookmark with the
        annotation `INITIAL_EVENTS_END`; the version then means "not older than". The stream ends normally after
        `timeout` seconds or when the server closes it; it raises `Gone` if the version is compacted. Close it
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
        """Patch one object; an apply creates it if it does not exist."""
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
        """Delete an object; it stays as long as it has finalizers, or until its grace period is over."""
        ...


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """The identity and version of an object as it was read; a record that is not the whole object keeps one."""

    key: Key
    uid: str
    version: str

    @classmethod
    def of(cls, item: Any) -> ObjectVersion:
        """Take it from a whole object or a view of one; an `ObjectVersion` is returned as it is."""
        if isinstance(item, ObjectVersion):
            return item
        metadata = item["metadata"] if isinstance(item, dict) else item.metadata
        if isinstance(metadata, dict):
            uid, version = metadata.get("uid"), metadata.get("resourceVersion")
        else:
            uid, version = metadata.uid, metadata.resource_version
        return cls(key_of(item), uid or "", version or "")

    def changed_by(self, patch: Patch) -> Object:
        """Return the part of the changed object that the patch itself says, for callers that get no answer."""
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
        """Require this very version, or (not `exact`) only the same uid under that name."""
        if not self.uid or (exact and not self.version):
            wanted = "uid and resourceVersion" if exact else "uid"
            msg = f"{self.key}: the object has no {wanted}, expected one that was read from a cluster"
            raise ValueError(msg)
        return Precondition(self.version if exact else "", self.uid)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request, in the terms of the API."""

    verb: str
    resource: Resource
    key: Key
    """The key in its path; without a name for several objects, or for one that is to be created."""
    subresource: str = ""
    fields: str = ""
    """The field selector of a list or a watch."""
    patch: Patch | None = None
    body: Object | None = None
    """The object to create."""


class WrappingTransport:
    """Passes every request on; subclasses override `intercept`, and `intercept_watch` for watches."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner

    async def intercept(self, request: ApiRequest, send: Callable[[], Awaitable[T]]) -> T:  # noqa: ARG002
        """Handle a request; `send` passes it on and gives the answer."""
        return await send()

    async def intercept_watch(
        self,
        request: ApiRequest,  # noqa: ARG002
        events: AsyncGenerator[WatchEvent, None],
    ) -> AsyncGenerator[WatchEvent, None]:
        """Handle a watch."""
        async with aclosing(events) as stream:
            async for event in stream:
                yield event

    async def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Object:
        """Read one object, or its scale."""
        request = ApiRequest("get", resource, key, subresource)
        return await self.intercept(request, lambda: self.inner.get(resource, key, subresource=subresource))

    async def list(
        self, selection: Selection, *, limit: int = 0, continue_: str = "", version: str = "", exact: bool = False
    ) -> ListPage:
        """List a page of objects."""
        return await self.intercept(
            _request_for("list", selection),
            lambda: self.inner.list(selection, limit=limit, continue_=continue_, version=version, exact=exact),
        )

    def watch(
        self, selection: Selection, *, version: str = "", initial_events: bool = False, timeout: float | None = None
    ) -> AsyncGenerator[WatchEvent, None]:
        """Watch the events after a version."""
        events = self.inner.watch(selection, version=version, initial_events=initial_events, timeout=timeout)
        return self.intercept_watch(_request_for("watch", selection), events)

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
        return await self.intercept(
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
        """Patch one object; an apply creates it if it does not exist."""
        return await self.intercept(
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
        """Delete an object."""
        await self.intercept(
            ApiRequest("delete", resource, key),
            lambda: self.inner.delete(
                resource, key, write, precondition=precondition, propagation=propagation, grace_seconds=grace_seconds
            ),
        )


def _request_for(verb: str, selection: Selection) -> ApiRequest:
    return ApiRequest(verb, selection.resource, Key(selection.namespace, ""), fields=selection.fields)
