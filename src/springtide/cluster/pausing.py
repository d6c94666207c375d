"""Pauses: users stop the reconciles of one object, or of everything.

One object is paused by an annotation, everything by a ConfigMap. As long as they exist nothing is reconciled; when they
are removed, the paused objects are enqueued again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from springtide.apis.meta.types import PAUSED_ANNOTATION
from springtide.cluster.controller import Cached, Permission
from springtide.cluster.errors import NotSent
from springtide.cluster.resources import Key, Resource, Selection, version_of
from springtide.cluster.store import Delta, Store
from springtide.cluster.transport import ObjectVersion

ANNOTATION = PAUSED_ANNOTATION
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SWITCH_NAME = "springtide-pause"
PERMISSIONS = (Permission(CONFIG_MAPS, ("list", "watch"), names=(SWITCH_NAME,), own_namespace=True),)


class PausedObjects:
    """The objects of one cache that are paused by their annotation.

    Records need not hold annotations, so the annotation is noted when a record is made. A view must have
    `metadata.annotations` for that, as a mapping or with this annotation as a field; objects of a view without it
    cannot be paused one by one.
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
        """Return the paused object as it was read."""
        return self._paused[key]

    def listen(self, resumed: Callable[[Key], None]) -> None:
        """Call a function for every object whose pause is over."""
        self._listeners.append(resumed)

    def attach(self, store: Store[Any]) -> None:
        """Follow the store of the records."""
        self._store = store
        store.listen(self._changed)

    def noting(self, record: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Wrap the function that makes records: it also notes the annotation of the object."""

        def note_and_record(item: Any) -> Any:
            # As in the store: an event that is not newer than its version is stale.
            if self._store is None or version_of(item) > self._store.version:
                self._note(item)
            return record(item)

        return note_and_record

    def _note(self, item: Any) -> None:
        version = ObjectVersion.of(item)
        if means_paused(_annotations(item).get(ANNOTATION)):
            self._paused[version.key] = version
        elif self._paused.pop(version.key, None) is not None:
            for listener in self._listeners:
                listener(version.key)

    def _changed(self, delta: Delta[Any]) -> None:
        # An unreadable object counts as absent in the store, but its pause is not over.
        if delta.new is not None or (self._store is not None and delta.key in self._store.unreadable):
            return
        if self._paused.pop(delta.key, None) is not None:
            for listener in self._listeners:
                listener(delta.key)


@dataclass(frozen=True, slots=True)
class _Setting:
    on: bool
    version: ObjectVersion


class GlobalPause:
    """The ConfigMap that pauses everything at once: `data.paused: "true"`."""

    def __init__(self, namespace: str) -> None:
        self.key = Key(namespace, SWITCH_NAME)
        self.cached = Cached(Selection(CONFIG_MAPS, namespace, fields=f"metadata.name={SWITCH_NAME}"), record=_setting)
        self.on = False
        """Whether everything is paused."""
        self._on_change: Callable[[ObjectVersion], None] = _ignore

    def attach(self, store: Store[_Setting], changed: Callable[[ObjectVersion], None]) -> None:
        """Follow the store of the ConfigMap, and call a function when the pause begins or ends."""
        self._on_change = changed
        store.listen(self._changed)

    def permit(self) -> None:
        """Withhold writes while everything is paused, also of a reconcile that began before."""
        if self.on:
            msg = f"everything is paused by the ConfigMap {self.key}"
            raise NotSent(msg)

    def _changed(self, delta: Delta[_Setting]) -> None:
        setting = delta.new or delta.old
        on = delta.new is not None and delta.new.on
        if setting is not None and on is not self.on:
            self.on = on
            self._on_change(setting.version)


def _setting(item: Any) -> _Setting:
    return _Setting(means_paused((item.get("data") or {}).get("paused")), ObjectVersion.of(item))


def means_paused(value: str | None) -> bool:
    """Return whether a value of the annotation, or of the ConfigMap, pauses: any but `false` and its synonyms.

    A pause that is written as `yes` or `True` must not be without effect.
    """
    return value is not None and value.strip().lower() not in ("", "false", "no", "off", "0")


def _ignore(version: ObjectVersion) -> None:
    """Do nothing."""


def _annotations(item: Any) -> dict[str, str]:
    metadata = item["metadata"] if isinstance(item, dict) else item.metadata
    if isinstance(metadata, dict):
        return metadata.get("annotations") or {}
    annotations = getattr(metadata, "annotations", None)
    # Views of large collections name the few annotations that they keep, as fields.
    named: dict[str, str] = msgspec.to_builtins(annotations or {})
    return named
