"""Small objects in a storage with a journal."""

from __future__ import annotations

from pathlib import Path

from springtide.apiserver.journal import FileJournal, open_journal, restore_storage
from springtide.apiserver.storage import CollectionId, Storage
from springtide.cluster.resources import Key, Object

THINGS = CollectionId("example.com", "things")
HISTORY = 10_000


def thing(name: str, **content: object) -> Object:
    return {"metadata": {"name": name, "namespace": "default"}, **content}


def put(storage: Storage, name: str, **content: object) -> int:
    """Store an object; returns its version."""
    return storage.write(storage.collection(THINGS), Key("default", name), thing(name, **content)).revision


def remove(storage: Storage, name: str) -> int:
    """Remove an object; returns the version of the removal."""
    return storage.write(storage.collection(THINGS), Key("default", name), None).revision


def names(storage: Storage, version: int | None = None) -> list[str]:
    """Return the names of all objects, now or at a version."""
    at = storage.revision if version is None else version
    return [key.name for key, _ in storage.listed(storage.collection(THINGS), at)]


def reopened(path: Path, *, history: int = HISTORY) -> tuple[FileJournal, Storage]:
    """Open a journal and restore its storage; the caller closes it."""
    journal = open_journal(path)
    try:
        return journal, restore_storage(journal, history=history)
    except BaseException:
        journal.close()
        raise
