"""From a folder to a storage: the journal is opened, and what it holds is repeated in memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from springtide.cluster.errors import ServerError
from springtide.cluster.resources import Object, version_of
from springtide.simulator.api.storage import Storage
from springtide.simulator.durable.database import damaged, open_database, reading
from springtide.simulator.durable.encoding import Row
from springtide.simulator.durable.errors import JournalError
from springtide.simulator.durable.folder import hold
from springtide.simulator.durable.journal import FileJournal, Sync


def open_journal(path: Path, *, sync: Sync = Sync.NORMAL) -> FileJournal:
    """Open the journal of a folder, both made where they are not there; `JournalError` where it cannot be used.

    Nobody else can open it until it is closed.
    """
    folder = hold(path)
    with ExitStack() as undo:
        undo.callback(folder.release)
        connection = undo.enter_context(closing(open_database(folder.database)))
        with reading(folder.database):
            journal = FileJournal(folder, connection, sync)
        undo.pop_all()
        return journal


def restored(journal: FileJournal, *, history: int) -> Storage:
    """Give the storage that a journal describes, and let it go on there; to be called once.

    `JournalError` where the journal is damaged, or cannot be written.
    """
    storage = Storage(history=history, journal=journal)
    with reading(journal.path), _without_collecting():
        for row in journal.rows():
            _repeat(row, storage, journal)
    try:
        revision, gaps = journal.begin(storage.revision)
        storage.resume(revision, journal.compacted, gaps)
    except ServerError as problem:
        raise JournalError(f'cannot use the journal "{journal.path}": {problem}') from problem
    return storage


def _repeat(row: Row, storage: Storage, journal: FileJournal) -> None:
    try:
        identity, key = row.identity, row.key
        old = storage.collection(identity).live.get(key)
        if not row.whole() or (row.revision > journal.compacted and row.before != _version(old)):
            raise ValueError("it is not what was written")
        storage.restore(identity, key, row.revision, row.decoded(old))
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        raise damaged(journal.path, f"version {row.revision}: {problem}") from problem


def _version(item: Object | None) -> int | None:
    return None if item is None else version_of(item)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Keep the garbage collector from looking through all objects again and again while they only become more."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
