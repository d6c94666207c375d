"""Stored objects in the requested version, under the definition that is in force.

A CRD may change while objects of its kind exist. Stored objects stay as they were written. Reads add the defaults and
drop the fields of the current definition, and the next write stores the result. Defaults come from the storage version;
other versions only drop the fields that they do not have.

`convert` is the conversion between versions without a webhook, for Springtide's kinds and the built-in ones.
"""

from __future__ import annotations

from collections.abc import Callable

from springtide.apis import scheme
from springtide.apiserver import builtin
from springtide.apiserver.kinds import Catalogue, ServedKind, collection_id
from springtide.apiserver.patches import managed
from springtide.apiserver.storage import CollectionId
from springtide.apiserver.values import deep_copy, share_unchanged
from springtide.cluster.errors import BadRequest
from springtide.cluster.resources import Object

_CACHE_SIZE = 20_000
"""How many converted objects are cached, so that a second read is cheap and returns the same instance."""


class ObjectVersions:
    """Converts stored objects, and knows since which revision each definition is in force."""

    def __init__(self, catalogue: Catalogue, converter: Callable[[Object, str], Object] | None) -> None:
        self._catalogue = catalogue
        self._converter = converter
        self._kinds: dict[CollectionId, tuple[ServedKind, ...]] = {}
        self._since: dict[tuple[str, str], int] = {}
        self._cache: dict[tuple[str, str, str, str], Object] = {}

    def defined(self, identity: CollectionId, kinds: tuple[ServedKind, ...], revision: int) -> None:
        """Record what a CRD defines; objects up to a revision were written under the definition before."""
        before, self._kinds[identity] = self._kinds.get(identity), kinds
        if before is not None and before is not kinds:
            self._since[identity] = revision
            self._cache.clear()

    def restored(self, identity: CollectionId, kinds: tuple[ServedKind, ...], revision: int) -> None:
        """Record a CRD from a restored storage; earlier definitions are unknown."""
        self._kinds[identity] = kinds
        self._since[identity] = revision

    def served(self, kind: ServedKind, item: Object) -> Object:
        """Return a stored object in the version of a kind; itself where it already is."""
        resource = kind.resource
        version = resource.api_version
        if item["apiVersion"] == version:
            since = 0 if kind.strategic else self._since.get((resource.group, resource.plural), 0)
            if not since or int(item["metadata"]["resourceVersion"]) > since:
                return item
        elif kind.strategic:
            return self._converted(item, version)
        return self._cached(kind, item)

    def converted(self, kind: ServedKind, item: Object) -> Object:
        """Return an object that is not stored in the version of a kind; the caller owns the result."""
        return kind.apply_defaults(deep_copy(self._converted(item, kind.resource.api_version)))

    def serving(self, kind: ServedKind) -> Callable[[Object], Object] | None:
        """Return the function that converts objects to this version; None where all are stored in it."""
        if kind.stored_version in ("", kind.resource.version) and kind.strategic:
            return None
        return lambda item: self.served(kind, item)

    def renewed(self, kind: ServedKind, item: Object) -> Object:
        """Return a stored object as it would be stored now; itself where nothing changes."""
        storage = None if kind.strategic else self._storage(kind)
        return item if storage is None else self.served(storage, item)

    def stored(self, kind: ServedKind, item: Object) -> Object:
        """Return an object in the storage version of its kind, with the fields of that version."""
        if kind.stored_version in ("", kind.resource.version):
            return item
        group = kind.resource.group
        converted = self._converted(item, f"{group}/{kind.stored_version}" if group else kind.stored_version)
        storage = None if kind.strategic else self._storage(kind)
        return converted if storage is None else storage.apply_defaults(deep_copy(converted))

    def fits(self, item: Object, version: str) -> bool:
        """Return whether another version of a custom kind declares all fields of an object, where that version is
        served.
        """
        kind = self._catalogue.of_kind(version, item["kind"])
        return kind is None or managed.conforms(self._converted(item, version), kind.structure)

    def _storage(self, kind: ServedKind) -> ServedKind | None:
        """Return the storage version of a kind, if it is served."""
        found = self._catalogue.of_collection(collection_id(kind.resource))
        return found if found is not None and found.resource.version == kind.stored_version else None

    def _cached(self, kind: ServedKind, item: Object) -> Object:
        version, metadata = kind.resource.api_version, item["metadata"]
        place = version, item["apiVersion"], metadata["uid"], metadata["resourceVersion"]
        cached = self._cache.get(place)
        if cached is None:
            cached = self._completed(kind, item)
            if len(self._cache) >= _CACHE_SIZE:
                self._cache.clear()
            self._cache[place] = cached
        return cached

    def _completed(self, kind: ServedKind, item: Object) -> Object:
        source = self._catalogue.of_kind(item["apiVersion"], item["kind"])
        present: Object = item if source is None else share_unchanged(source.apply_defaults(deep_copy(item)), item)
        if item["apiVersion"] == kind.resource.api_version:
            return present
        converted = self._converted(present, kind.resource.api_version)
        pruned: Object = share_unchanged(kind.prune(deep_copy(converted)), converted)
        return pruned

    def _converted(self, item: Object, version: str) -> Object:
        return {**item, "apiVersion": version} if self._converter is None else self._converter(item, version)


def convert(item: Object, api_version: str) -> Object:
    """Return an object in another version of its kind, without changing the original."""
    if api_version.rpartition("/")[0] in scheme.CONVERTED_GROUPS:
        try:
            return scheme.convert(item, api_version)
        except scheme.ConversionError as failure:
            raise BadRequest(f"conversion for {item.get('kind')} failed: {failure}") from failure
    return builtin.convert(item, api_version)
