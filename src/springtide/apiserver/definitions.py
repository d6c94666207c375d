"""CustomResourceDefinitions: which custom kinds are served.

A definition is accepted or refused by the write that brings it, and an accepted one is served at once. Deleting a
definition deletes the objects of its kind; the definition stays, held by a finalizer, until the last of them is gone.

`recover` runs when a server starts on a restored storage. Each change is stored atomically, but some requests make
several: the deletion of an object that nothing blocks, and the deletion of a CRD with its objects, are completed here.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from springtide.apiserver import custom
from springtide.apiserver.deletion import is_deletion_blocked
from springtide.apiserver.kinds import ServedKind
from springtide.apiserver.storage import CollectionId
from springtide.apiserver.strategy import DEFINITION_FINALIZER, WritePart
from springtide.apiserver.values import with_metadata
from springtide.cluster.errors import Invalid, MethodNotAllowed
from springtide.cluster.resources import Key, Object, Selection, version_of
from springtide.cluster.transport import Write

if TYPE_CHECKING:
    from springtide.apiserver.server import ApiServer


DEFINITIONS = CollectionId("apiextensions.k8s.io", "customresourcedefinitions")

_LOG = logging.getLogger(__name__)

_WRITE = Write("kube-apiserver", "a restart interrupted its deletion")


class DefinitionRegistry:
    """Keeps the served kinds in step with the stored CRDs."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def restore(self) -> None:
        """Serve the kinds of all stored CRDs."""
        for key, item in self._server.objects(DEFINITIONS):
            try:
                kinds = custom.served_kinds(item)
            except Invalid as problem:
                # It was accepted under less strict rules; its author can still correct it.
                _LOG.warning("%s is invalid and not served: %s", key.name, problem)
                continue
            identity = _identity(item)
            self._server.catalogue.serve(identity, kinds, _selectable(item))
            self._server.versions.restored(identity, kinds, version_of(item))

    def resume(self, write: Write) -> None:
        """Continue the deletion of CRDs."""
        kind = self._server.catalogue.of_collection(DEFINITIONS)
        for key, item in list(self._server.objects(DEFINITIONS)):
            if kind is not None and "deletionTimestamp" in item["metadata"]:
                self._definition_written(kind, key, item, write)

    def admit(self, kind: ServedKind) -> None:
        """Refuse a new object of a kind whose CRD is being deleted."""
        if kind.strategic:
            return
        definition = self._server.find(DEFINITIONS, _definition_key(kind))
        if definition is not None and "deletionTimestamp" in definition["metadata"]:
            raise MethodNotAllowed("create not allowed while custom resource definition is terminating")

    def with_status(self, kind: ServedKind, item: Object) -> Object:
        """Return a CRD with the status of an established one; other objects unchanged."""
        if not _is_definition(kind):
            return item
        custom.served_kinds(item)
        accepted: Object = custom.with_accepted_status(item)
        return accepted

    def object_written(self, kind: ServedKind, key: Key, new: Object | None, write: Write) -> None:
        """Act on a write to a CRD, or on the deletion of the last object of a CRD that is being deleted."""
        if _is_definition(kind):
            self._definition_written(kind, key, new, write)
        elif new is None and not kind.strategic:
            name = _definition_key(kind)
            definition = self._server.find(DEFINITIONS, name)
            if definition is not None and "deletionTimestamp" in definition["metadata"]:
                self._release(name, definition, write)

    def _definition_written(self, kind: ServedKind, key: Key, new: Object | None, write: Write) -> None:
        if new is None:
            plural, _, group = key.name.partition(".")
            identity = CollectionId(group, plural)
            self._server.catalogue.withdraw(identity)
            for subscription in list(self._server.storage.collection(identity).subscriptions):
                subscription.end()
        elif "deletionTimestamp" not in new["metadata"]:
            identity, kinds = _identity(new), custom.served_kinds(new)
            self._server.catalogue.serve(identity, kinds, _selectable(new))
            self._server.versions.defined(identity, kinds, self._server.revision)
        elif DEFINITION_FINALIZER in new["metadata"].get("finalizers", ()):
            served = self._server.catalogue.of_collection(_identity(new))
            if served is not None:
                self._server.deletecollection(Selection(served.resource), write)
            self._release(key, new, write, kind)

    def _release(self, key: Key, definition: Object, write: Write, kind: ServedKind | None = None) -> None:
        """Remove the finalizer of a CRD when no object of its kind is left."""
        if self._server.storage.collection(_identity(definition)).live:
            return
        kind = kind or self._server.catalogue.of_kind(definition["apiVersion"], definition["kind"])
        held = self._server.find(DEFINITIONS, key)
        if kind is None or held is None or DEFINITION_FINALIZER not in held["metadata"].get("finalizers", ()):
            return

        def released(old: Object) -> Object:
            finalizers = [each for each in old["metadata"]["finalizers"] if each != DEFINITION_FINALIZER]
            return with_metadata(old, finalizers=finalizers or None)

        self._server.modify(kind, key, released, write, "update", part=WritePart.MAIN)


def _is_definition(kind: ServedKind) -> bool:
    return kind.resource.plural == DEFINITIONS.plural and kind.resource.group == DEFINITIONS.group


def _definition_key(kind: ServedKind) -> Key:
    return Key("", f"{kind.resource.plural}.{kind.resource.group}")


def _identity(definition: Object) -> CollectionId:
    spec = definition["spec"]
    return CollectionId(spec["group"], spec["names"]["plural"])


def _selectable(definition: Object) -> tuple[str, ...]:
    """Return the selectable fields of all versions."""
    paths = [
        field["jsonPath"].removeprefix(".")
        for version in definition["spec"]["versions"]
        for field in version.get("selectableFields") or ()
        if field is not None
    ]
    return tuple(dict.fromkeys(paths))


def recover(server: ApiServer, definitions: DefinitionRegistry) -> None:
    """Serve the stored CRDs, complete deletions that nothing blocks, and continue the deletion of CRDs."""
    definitions.restore()
    for identity, collection in server.storage.collections():
        kind = server.catalogue.of_collection(identity)
        for key, item in list(collection.live.items()):
            if kind is not None and "deletionTimestamp" in item["metadata"] and not is_deletion_blocked(item):
                server.delete(kind.resource, key, _WRITE)
    definitions.resume(_WRITE)
