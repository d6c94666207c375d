"""Small objects in a storage that a journal keeps."""

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
    """Store a thing; gives its version."""
    return storage.write(storage.collection(THINGS), Key("default", name), thing(name, **content)).revision


def remove(storage: Storage, name: str) -> int:
    """Remove a thing; gives the version at which it went."""
    return storage.write(storage.collection(THINGS), Key("default", name), None).revision


def names(storage: Storage, version: int | None = None) -> list[str]:
    """Give the names of all things, now or at a version."""
    at = storage.revision if version is None else version
    return [key.name for key, _ in storage.listed(storage.collection(THINGS), at)]


def reopened(path: Path, *, history: int = HISTORY) -> tuple[FileJournal, Storage]:
    """Open a journal and give what it holds; the caller closes it."""
    journal = open_journal(path)
    try:
        return journal, restore_storage(journal, history=history)
    except BaseException:
        journal.close()
        raise
