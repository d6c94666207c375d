"""Stored objects in the version that they are asked for, and as the definition in force would have them.

A CRD may change while objects of its kind exist. What is stored stays as it was written; whoever reads it sees it with
the defaults of today and without the fields that are gone, and the next write makes that last. Defaults are those of
the version that the object is stored in: another version only leaves out what it does not have.

Objects of one version as another, in a server that needs no webhook for it: our kinds, and the built-in ones.
"""

from __future__ import annotations

from collections.abc import Callable

from springtide.apis import scheme as conversion
from springtide.apiserver import builtin
from springtide.apiserver.kinds import Catalogue, ServedKind, collection_id
from springtide.apiserver.patches import managed
from springtide.apiserver.storage import CollectionId
from springtide.apiserver.values import deep_copy, share_unchanged
from springtide.cluster.errors import BadRequest
from springtide.cluster.resources import Object

_MOST_REMEMBERED = 20_000
"""How many readings are kept, so that reading the same object again costs nothing and gives the same object."""


class ObjectVersions:
    """Knows since when each kind is what it is."""

    def __init__(self, catalogue: Catalogue, converter: Callable[[Object, str], Object] | None) -> None:
        self._catalogue = catalogue
        self._converter = converter
        self._kinds: dict[CollectionId, tuple[ServedKind, ...]] = {}
        self._since: dict[tuple[str, str], int] = {}
        self._readings: dict[tuple[str, str, str, str], Object] = {}

    def defined(self, identity: CollectionId, kinds: tuple[ServedKind, ...], revision: int) -> None:
        """Take note of what a CRD defines; objects up to a version were written under what it said before."""
        before, self._kinds[identity] = self._kinds.get(identity), kinds
        if before is not None and before is not kinds:
            self._since[identity] = revision
            self._readings.clear()

    def restored(self, identity: CollectionId, kinds: tuple[ServedKind, ...], revision: int) -> None:
        """Take note of a CRD of an earlier life; what it said before its present version is not known any more."""
        self._kinds[identity] = kinds
        self._since[identity] = revision

    def served(self, kind: ServedKind, item: Object) -> Object:
        """Give a stored object in the version of a kind; itself where it is that already."""
        resource = kind.resource
        version = resource.api_version
        if item["apiVersion"] == version:
            since = 0 if kind.strategic else self._since.get((resource.group, resource.plural), 0)
            if not since or int(item["metadata"]["resourceVersion"]) > since:
                return item
        elif kind.strategic:
            return self._converted(item, version)
        return self._read(kind, item)

    def converted(self, kind: ServedKind, item: Object) -> Object:
        """Give an object that is not stored, or not yet, in the version of a kind; it is the caller's own."""
        return kind.apply_defaults(deep_copy(self._converted(item, kind.resource.api_version)))

    def serving(self, kind: ServedKind) -> Callable[[Object], Object] | None:
        """Give what makes objects of this version, where not all of them are stored in it."""
        if kind.stored_version in ("", kind.resource.version) and kind.strategic:
            return None
        return lambda item: self.served(kind, item)

    def renewed(self, kind: ServedKind, item: Object) -> Object:
        """Give a stored object as it would be stored today; itself where nothing has changed."""
        storage = None if kind.strategic else self._storage(kind)
        return item if storage is None else self.served(storage, item)

    def stored(self, kind: ServedKind, item: Object) -> Object:
        """Give an object in the version that its kind is stored in, with what that version has."""
        if kind.stored_version in ("", kind.resource.version):
            return item
        group = kind.resource.group
        converted = self._converted(item, f"{group}/{kind.stored_version}" if group else kind.stored_version)
        storage = None if kind.strategic else self._storage(kind)
        return converted if storage is None else storage.apply_defaults(deep_copy(converted))

    def fits(self, item: Object, version: str) -> bool:
        """Tell whether another version of a custom kind, where it is served, declares all that an object has."""
        kind = self._catalogue.of_kind(version, item["kind"])
        return kind is None or managed.conforms(self._converted(item, version), kind.structure)

    def _storage(self, kind: ServedKind) -> ServedKind | None:
        """Find the version that a kind is stored in, if that is served."""
        found = self._catalogue.of_collection(collection_id(kind.resource))
        return found if found is not None and found.resource.version == kind.stored_version else None

    def _read(self, kind: ServedKind, item: Object) -> Object:
        version, metadata = kind.resource.api_version, item["metadata"]
        place = version, item["apiVersion"], metadata["uid"], metadata["resourceVersion"]
        reading = self._readings.get(place)
        if reading is None:
            reading = self._completed(kind, item)
            if len(self._readings) >= _MOST_REMEMBERED:
                self._readings.clear()
            self._readings[place] = reading
        return reading

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
    """Give an object in another version of its kind; what it is made from stays as it is."""
    if api_version.rpartition("/")[0] in conversion.CONVERTED_GROUPS:
        try:
            return conversion.convert(item, api_version)
        except conversion.ConversionError as failure:
            raise BadRequest(f"conversion for {item.get('kind')} failed: {failure}") from failure
    return builtin.convert(item, api_version)
