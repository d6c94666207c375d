"""Pauses: people stop us from touching one object, or anything at all.

One object is paused by an annotation of its own, everything by a ConfigMap. Both are levels, not commands: as long as
they are there nothing is reconciled, and when they go everything they held back is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from springtide.cluster.controller import Cached, Permission
from springtide.cluster.errors import NotSent
from springtide.cluster.resources import Key, Resource, Selection, version_of
from springtide.cluster.store import Delta, Store
from springtide.cluster.transport import ObjectVersion

ANNOTATION = "springtide.dev/paused"
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SWITCH_NAME = "springtide-pause"
PERMISSIONS = (Permission(CONFIG_MAPS, ("list", "watch"), names=(SWITCH_NAME,), own_namespace=True),)


class PausedObjects:
    """Which objects of one cache are paused, whatever their records keep.

    Records are made to be small and need not hold annotations, so the mark is taken when a record is made. A view must
    have `metadata.annotations` for that; objects seen through one that has not cannot be paused one by one.
    """

    def __init__(self) -> None:
        self._paused: dict[Key, ObjectVersion] = {}
        self._store: Store[Any] | None = None
        self._listeners: list[Callable[[Key], None]] = []

    def __contains__(self, key: Key) -> bool:
        return key in self._paused

    @property
    def count(self) -> int:
        """How many objects are paused."""
        return len(self._paused)

    def version(self, key: Key) -> ObjectVersion:
        """Give the paused object as it was read."""
        return self._paused[key]

    def listen(self, resumed: Callable[[Key], None]) -> None:
        """Tell somebody of every object whose pause is over."""
        self._listeners.append(resumed)

    def attach(self, store: Store[Any]) -> None:
        """Follow the store whose records are made here."""
        self._store = store
        store.listen(self._changed)

    def noting(self, record: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Make records as before, and take marks of the objects that they are made from."""

        def note_and_record(item: Any) -> Any:
            # As the store does: what is not newer than its version is known, or comes from a server that lags behind.
            if self._store is None or version_of(item) > self._store.version:
                self._note(item)
            return record(item)

        return note_and_record

    def _note(self, item: Any) -> None:
        origin = ObjectVersion.of(item)
        if _annotations(item).get(ANNOTATION) == "true":
            self._paused[origin.key] = origin
        elif self._paused.pop(origin.key, None) is not None:
            for listener in self._listeners:
                listener(origin.key)

    def _changed(self, delta: Delta[Any]) -> None:
        # What cannot be read counts as absent, but its pause is not over.
        if delta.new is not None or (self._store is not None and delta.key in self._store.unreadable):
            return
        if self._paused.pop(delta.key, None) is not None:
            for listener in self._listeners:
                listener(delta.key)


@dataclass(frozen=True, slots=True)
class _Setting:
    on: bool
    origin: ObjectVersion


class GlobalPause:
    """The ConfigMap that pauses everything at once: `data.paused: "true"`."""

    def __init__(self, namespace: str) -> None:
        self.key = Key(namespace, SWITCH_NAME)
        self.cached = Cached(Selection(CONFIG_MAPS, namespace, fields=f"metadata.name={SWITCH_NAME}"), record=_setting)
        self.on = False
        """Whether everything is paused."""
        self._turned: Callable[[ObjectVersion], None] = _ignore

    def attach(self, store: Store[_Setting], turned: Callable[[ObjectVersion], None]) -> None:
        """Follow the store of the ConfigMap, and tell somebody whenever the switch is turned."""
        self._turned = turned
        store.listen(self._changed)

    def permit(self) -> None:
        """Hold writes back while everything is paused, also those of a reconcile that had begun before."""
        if self.on:
            msg = f"everything is paused by the ConfigMap {self.key}"
            raise NotSent(msg)

    def _changed(self, delta: Delta[_Setting]) -> None:
        setting = delta.new or delta.old
        on = delta.new is not None and delta.new.on
        if setting is not None and on is not self.on:
            self.on = on
            self._turned(setting.origin)


def _setting(item: Any) -> _Setting:
    return _Setting((item.get("data") or {}).get("paused") == "true", ObjectVersion.of(item))


def _ignore(origin: ObjectVersion) -> None:
    """Tell nobody."""


def _annotations(item: Any) -> dict[str, str]:
    metadata = item["metadata"] if isinstance(item, dict) else item.metadata
    if isinstance(metadata, dict):
        return metadata.get("annotations") or {}
    return getattr(metadata, "annotations", None) or {}
