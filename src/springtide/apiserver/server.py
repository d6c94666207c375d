"""The API server: each verb of the Kubernetes API as a synchronous, atomic method.

It uses no network, no event loop and no clock but the one that it is given; transports are thin shells around it. A
verb either takes effect as a whole, with the events queued for all watches when it returns, or raises and changes
nothing. Returned objects are the stored ones: copy them before changing them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random
from typing import Any

from springtide.apiserver import builtin, list_watch
from springtide.apiserver.admission import WHOLE, AdmissionChain, AdmissionContext, AdmissionView
from springtide.apiserver.admission_plugins import BuiltinAdmission, bootstrap
from springtide.apiserver.conversion import ObjectVersions
from springtide.apiserver.definitions import DefinitionRegistry, recover
from springtide.apiserver.deletion import check_delete, is_deletion_blocked, mark_deleted
from springtide.apiserver.errors import already_exists, conflict, method_not_allowed, no_such_resource, not_found
from springtide.apiserver.kinds import Catalogue, ServedKind, collection_id
from springtide.apiserver.list_watch import WatchSubscription
from springtide.apiserver.names import name_suffix
from springtide.apiserver.patches import managed
from springtide.apiserver.patching import apply_patch, check_manager, server_side_apply, without_server_fields
from springtide.apiserver.scale import owned_by_scale, scale_read, scale_view
from springtide.apiserver.storage import Collection, CollectionId, Storage
from springtide.apiserver.strategy import (
    ServerMetadata,
    WritePart,
    allows_create_on_update,
    check_name,
    check_precondition,
    check_replacement,
    prepare_create,
    prepare_update,
    replacement_precondition,
    with_initial_status,
    without_resource_version,
)
from springtide.apiserver.subresources import Subresources
from springtide.apiserver.values import share_unchanged, timestamp
from springtide.cluster.resources import Key, Object, Resource, Selection, key_of
from springtide.cluster.transport import UNCONDITIONAL, ListPage, Patch, PatchType, Precondition, Propagation, Write

_NAME_ATTEMPTS = 8
"""How often a generated name is drawn again when it exists."""

DEFAULT_HISTORY = 100_000
"""How many changes the history keeps by default; older versions are compacted."""


@dataclass(frozen=True, slots=True)
class CommittedWrite:
    """One write that took effect."""

    at: int
    revision: int
    write: Write
    verb: str
    """create, update, patch or delete, with the subresource after a slash."""
    resource: Resource
    key: Key
    old: Object | None
    new: Object | None


class ApiServer:
    """The Kubernetes API in memory."""

    def __init__(
        self,
        *,
        now: Callable[[], int],
        random: Random,
        kinds: Iterable[ServedKind] | None = None,
        storage: Storage | None = None,
        history: int = DEFAULT_HISTORY,
        converter: Callable[[Object, str], Object] | None = None,
    ) -> None:
        """Start with what a storage holds, and complete what was interrupted; without a storage, start an empty
        cluster.
        """
        self.storage = Storage(history=history) if storage is None else storage
        self.catalogue = Catalogue(builtin.kinds() if kinds is None else kinds)
        self.versions = ObjectVersions(self.catalogue, converter)
        self.observers: list[Callable[[CommittedWrite], None]] = []
        """Called for each write that took effect, in order, before the verb returns."""
        self._now = now
        self._random = random
        self._admission_chain = AdmissionChain()
        self._plugins = BuiltinAdmission(self)
        self._definitions = DefinitionRegistry(self)
        self._subresources = Subresources(self)
        bootstrap(self)
        recover(self, self._definitions)

    @property
    def revision(self) -> int:
        """The version of the latest change."""
        return self.storage.revision

    def now(self) -> int:
        """Return the current time, from which timestamps are taken."""
        context = self._admission_chain.context
        return self._now() if context is None else context.now

    def admitting(self, context: AdmissionContext) -> AbstractContextManager[None]:
        """Run admission webhooks, through the context, for the one verb that is called within the block."""
        return self._admission_chain.using(context)

    # Reads

    def get(self, resource: Resource, key: Key, *, subresource: str = "") -> Object:
        """Read one object, or a subresource of it."""
        if subresource not in ("", "scale", "status"):
            raise method_not_allowed(resource, "get")
        kind = self._kind(resource, "get", subresource)
        item = self.versions.served(kind, self._live(kind, key))
        return scale_read(kind, item) if subresource == "scale" else item

    def list(
        self, selection: Selection, *, limit: int = 0, continue_: str = "", version: str = "", exact: bool = False
    ) -> ListPage:
        """Read a page of objects in key order; see `Transport.list` for the meaning of versions."""
        kind = self._kind(selection.resource, "list")
        matches = list_watch.selection_filter(selection, self.catalogue.selectable(kind))
        return list_watch.list_page(
            self.storage,
            self._collection(kind),
            selection,
            matches,
            self.versions.serving(kind),
            limit=limit,
            continue_=continue_,
            version=version,
            exact=exact,
        )

    def watch(self, selection: Selection, *, version: str = "", initial_events: bool = False) -> WatchSubscription:
        """Open a watch; see `Transport.watch` for the meaning of versions."""
        kind = self._kind(selection.resource, "watch")
        matches = list_watch.selection_filter(selection, self.catalogue.selectable(kind))
        return list_watch.open_watch(
            self.storage,
            self._collection(kind),
            selection,
            matches,
            self.versions.serving(kind),
            version=version,
            initial_events=initial_events,
        )

    def at(self, resource: Resource, key: Key, revision: int) -> Object | None:
        """Return an object as it was at a version; None where it did not exist."""
        kind = self.catalogue.find(resource)
        item = self.storage.at(self._collection(kind), key, revision)
        return None if item is None else self.versions.served(kind, item)

    def objects(self, identity: CollectionId, namespace: str = "") -> Iterator[tuple[Key, Object]]:
        """Iterate over the stored objects of a collection, in key order."""
        return self.storage.listed(self.storage.collection(identity), self.revision, namespace=namespace)

    def find(self, identity: CollectionId, key: Key) -> Object | None:
        """Return a stored object, or None."""
        return self.storage.collection(identity).live.get(key)

    # Writes

    def create(
        self, resource: Resource, body: Any, write: Write, *, namespace: str = "", name: str = "", subresource: str = ""
    ) -> Object:
        """Create an object; with a name and a subresource, an eviction or a binding of that object."""
        kind = self._kind(resource, "create", subresource)
        check_manager(write.manager, "Create")
        if subresource:
            key = Key(namespace, name)
            given = self._subresources.body(key, body, subresource)
            admitted = self._admission_chain.admit_subresource(kind, key, given, write, subresource)
            return self._subresources.create(kind, key, admitted, write, subresource)
        live = self._collection(kind).live
        for _ in range(_NAME_ATTEMPTS):
            server_metadata = self._server_metadata()
            prepared = prepare_create(kind, body, namespace, server_metadata, self._admission_chain.early_check())
            if "generateName" not in prepared["metadata"] or key_of(prepared) not in live:
                break
        return self._create(
            kind, self._with_author_fields(kind, prepared, body, write), server_metadata, write, "create"
        )

    def update(
        self,
        resource: Resource,
        key: Key,
        body: Any,
        write: Write,
        *,
        subresource: str = "",
        precondition: Precondition = UNCONDITIONAL,
    ) -> Object:
        """Replace one object."""
        kind = self._kind(resource, "update", subresource)
        check_manager(write.manager, "Update")
        check_name(key, body)
        expected = replacement_precondition(body, precondition)
        if key not in self._collection(kind).live:
            if subresource or not allows_create_on_update(kind):
                raise not_found(kind.resource, key.name)
            return self._create_by_update(kind, key, body, write, expected)
        check_replacement(kind, key, body)
        return self._subresources.change(kind, key, lambda _: body, write, "update", subresource, expected)

    def patch(
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
        kind = self._kind(resource, "patch", subresource)
        check_manager(write.manager, "Patch")
        if patch.type is PatchType.APPLY and subresource in ("", "scale", "status"):
            return self._apply(kind, key, patch, write, subresource, precondition)
        structure = self._subresources.structure(kind, subresource)
        return self._subresources.change(
            kind, key, lambda old: apply_patch(kind, old, patch, structure), write, "patch", subresource, precondition
        )

    def delete(
        self,
        resource: Resource,
        key: Key,
        write: Write,
        *,
        precondition: Precondition = UNCONDITIONAL,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> Object:
        """Delete an object; returns it as it is now, or as it was last."""
        kind = self._kind(resource, "delete")
        old = self._live(kind, key)
        check_delete(old, precondition, kind.resource)
        self._plugins.admit_delete(kind, key)
        served = (self.versions.served(kind, old),)
        self._admission_chain.admit_deletes(kind, served, write, propagation, grace_seconds, name=key.name)
        present = self.versions.renewed(kind, old)
        marked = mark_deleted(present, kind.resource, self._now(), propagation=propagation, grace_seconds=grace_seconds)
        current = old if marked is present else self._commit(kind, key, old, marked, write, "delete")
        if not is_deletion_blocked(marked):
            current = self._commit(kind, key, current, None, write, "delete")
        return self.versions.served(kind, current)

    def deletecollection(
        self,
        selection: Selection,
        write: Write,
        *,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> Sequence[Object]:
        """Delete all objects of a selection, one after the other."""
        kind = self._kind(selection.resource, "deletecollection")
        items = self.list(selection).items
        self._admission_chain.admit_deletes(kind, items, write, propagation, grace_seconds)
        return [
            self.delete(selection.resource, key_of(item), write, propagation=propagation, grace_seconds=grace_seconds)
            for item in items
        ]

    def modify(
        self,
        kind: ServedKind,
        key: Key,
        change: Callable[[Object], Any],
        write: Write,
        verb: str,
        *,
        part: WritePart = WritePart.MAIN,
        precondition: Precondition = UNCONDITIONAL,
        owned: bool = False,
        view: AdmissionView = WHOLE,
    ) -> Object:
        """Update an existing object: `change` makes the new object from the old one, without modifying that.

        With `owned`, the change has already updated the managed fields; `view` is what webhooks see.
        """
        stored = self._live(kind, key)
        old = self.versions.served(kind, stored)
        check_precondition(kind, old, precondition)
        new = prepare_update(kind, change(old), old, part, self._admission_chain.early_check())
        if new is not old and not owned:
            new = self._with_managed_fields(kind, old, new, write, verb)
        new = self._admission_chain.admit_update(kind, old, new, write, verb.partition("/")[2], part, view)
        if new is not old:
            new = share_unchanged(self._definitions.with_status(kind, new), old)
        # An object written under an earlier definition is stored again even if nothing changes.
        if new is old and self.versions.renewed(kind, stored) is stored:
            return old
        self._plugins.admit_change(kind, new)
        if "deletionTimestamp" in new["metadata"] and not is_deletion_blocked(new):
            # When the last finalizer is removed, the object is removed as it was, without another update.
            self._commit(kind, key, stored, None, write, verb)
            return new
        return self.versions.served(kind, self._commit(kind, key, stored, self.versions.stored(kind, new), write, verb))

    # Versions and watches

    def bookmark(self) -> None:
        """Send a bookmark with the current version to all watches."""
        for _, collection in self.storage.collections():
            for subscription in collection.subscriptions:
                subscription.bookmark(self.revision)

    def compact(self, to: int | None = None) -> None:
        """Drop the history before a version, or all of it."""
        self.storage.compact(self.revision if to is None else to)

    # Internals

    def _kind(self, resource: Resource, verb: str, subresource: str = "") -> ServedKind:
        kind = self.catalogue.find(resource)
        if subresource:
            if subresource not in kind.subresources:
                raise no_such_resource()
        elif verb not in kind.verbs:
            raise method_not_allowed(kind.resource, verb)
        return kind

    def _collection(self, kind: ServedKind) -> Collection:
        return self.storage.collection(collection_id(kind.resource))

    def _live(self, kind: ServedKind, key: Key) -> Object:
        item = self._collection(kind).live.get(key)
        if item is None:
            raise not_found(kind.resource, key.name)
        return item

    def _create(
        self, kind: ServedKind, prepared: Object, server_metadata: ServerMetadata, write: Write, verb: str
    ) -> Object:
        self._definitions.admit(kind)
        self._plugins.admit_namespace(kind, key_of(prepared))
        item = self._admission_chain.admit_create(kind, prepared, server_metadata, write, self._plugins.complete)
        item = self._definitions.with_status(kind, with_initial_status(kind, item))
        self._admission_chain.validate_create(kind, item, write)
        charges = self._plugins.admit_new(kind, item)
        key = key_of(item)
        if key in self._collection(kind).live:
            raise already_exists(kind.resource, key.name)
        if charges and not write.dry_run:
            self._admission_chain.finish()
            self._plugins.charge(charges, f"{kind.resource.kind} {key.name} is new")
        return self.versions.served(kind, self._commit(kind, key, None, self.versions.stored(kind, item), write, verb))

    def _create_by_update(self, kind: ServedKind, key: Key, body: Any, write: Write, expected: Precondition) -> Object:
        if expected != UNCONDITIONAL:
            why = f"Precondition failed: UID in precondition: {expected.uid}, UID in object meta: "
            raise conflict(kind.resource, key.name, why)
        server_metadata = self._server_metadata()
        prepared = prepare_create(
            kind, without_resource_version(body), key.namespace, server_metadata, self._admission_chain.early_check()
        )
        return self._create(
            kind, self._with_author_fields(kind, prepared, body, write), server_metadata, write, "create"
        )

    def _apply(
        self, kind: ServedKind, key: Key, patch: Patch, write: Write, subresource: str, precondition: Precondition
    ) -> Object:
        now = timestamp(self.now())
        verb = f"patch/{subresource}" if subresource else "patch"

        def apply(live: Object | None) -> Object:
            return server_side_apply(kind, key, live, patch, manager=write.manager, now=now, subresource=subresource)

        if key in self._collection(kind).live:
            if subresource == "scale":
                precondition = replacement_precondition(patch.body, precondition)
            part = WritePart.STATUS if subresource == "status" else WritePart.MAIN
            view = scale_view(kind) if subresource == "scale" else WHOLE
            item = self.modify(
                kind, key, apply, write, verb, part=part, precondition=precondition, owned=True, view=view
            )
            return view.of(item)
        if subresource:
            raise not_found(kind.resource, key.name)
        body = without_resource_version(apply(None))
        if precondition != UNCONDITIONAL:
            raise not_found(kind.resource, key.name)
        if uid := body["metadata"].get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(kind.resource, key.name, why)
        server_metadata = self._server_metadata()
        prepared = prepare_create(kind, body, key.namespace, server_metadata, self._admission_chain.early_check())
        return self._create(kind, prepared, server_metadata, write, verb)

    def _with_author_fields(self, kind: ServedKind, prepared: Object, body: Object, write: Write) -> Object:
        """Return a new object with its author as the owner of the fields that they wrote."""
        owned = self._with_managed_fields(kind, None, without_server_fields(kind, prepared, body), write, "create")
        return managed.with_owners(prepared, managed.owners_of(owned))

    def _with_managed_fields(
        self, kind: ServedKind, old: Object | None, new: Object, write: Write, verb: str
    ) -> Object:
        subresource = verb.partition("/")[2]
        owned = managed.after_update(
            old,
            owned_by_scale(kind, new) if subresource == "scale" else new,
            manager=write.manager,
            node=kind.structure,
            now=timestamp(self.now()),
            subresource=subresource,
            fits=None if kind.strategic else self.versions.fits,
        )
        return managed.with_owners(new, managed.owners_of(owned)) if subresource == "scale" else owned

    def _commit(
        self, kind: ServedKind, key: Key, old: Object | None, new: Object | None, write: Write, verb: str
    ) -> Object:
        """Commit a write and notify watches and observers; returns the object as it is now, or as it was last."""
        self._admission_chain.finish()
        if write.dry_run:
            return new or old or {}
        collection = self._collection(kind)
        change = self.storage.write(collection, key, new)
        for subscription in collection.subscriptions:
            subscription.deliver(change)
        if self.observers:
            written = CommittedWrite(self._now(), change.revision, write, verb, kind.resource, key, old, change.new)
            for observer in tuple(self.observers):
                observer(written)
        self._definitions.object_written(kind, key, change.new, write)
        item: Object = change.event.object
        return item

    def _server_metadata(self) -> ServerMetadata:
        return self._admission_chain.server_metadata(
            lambda: ServerMetadata(_uid(self._random), timestamp(self.now()), lambda: name_suffix(self._random))
        )


def _uid(random: Random) -> str:
    digits = f"{random.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
