"""Objects as a journal holds them: JSON, with a checksum that also covers whose it is.

SQLite finds damage to the shape of its file. A checksum finds damage to what stands in it, so that what is read is what
was stored, or an error.

The journal: every change is in a file before anybody learns of it.

One change is one transaction. `kill -9` at any moment therefore leaves every change that was acknowledged, and at most
one that was not yet. The loss of power is another matter: unless `Sync.FULL` asks for it, nobody waits for the disk,
and the last changes may be missing. Then the numbers of their versions must not be given out again, or somebody who
has seen a lost object would take it for the one that came after. So numbers are reserved in advance, and on disk. After
an end that was not orderly the count goes on behind what was reserved, and the numbers between are a `Gap`, which
answers whoever asks for one of them that it is compacted.

What is compacted is removed by and by, together with the next reservation.

From a folder to a storage: the journal is opened, and what it holds is repeated in memory.
"""

from __future__ import annotations

import gc
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Self
from zlib import crc32

import msgspec

from springtide.apiserver.journal.files import (
    JournalError,
    JournalFolder,
    damaged_journal,
    explaining_errors,
    lock_folder,
    open_database,
)
from springtide.apiserver.storage import CollectionId, RevisionGap, Storage, StoredChange
from springtide.cluster.errors import BadRequest, ServerError
from springtide.cluster.resources import Key, Object, version_of

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(dict)


class JournalRow(NamedTuple):
    """One change, as the table `versions` has it."""

    revision: int
    group: str
    plural: str
    namespace: str
    name: str
    before: int | None
    checksum: int
    object: bytes | None

    def whole(self) -> bool:
        """Tell whether it is as it was written."""
        return self.checksum == _checksum(self.revision, self.identity, self.key, self.object)

    @property
    def identity(self) -> CollectionId:
        """Where the object belongs."""
        return CollectionId(self.group, self.plural)

    @property
    def key(self) -> Key:
        """Which object it is."""
        return Key(self.namespace, self.name)

    def decoded(self, old: Object | None) -> Object | None:
        """Give what the object became; None where it went. What is as it was before is taken from the old one."""
        if self.object is None:
            return None
        new: Object = _DECODER.decode(self.object)
        if old is not None:
            _share(new["metadata"], old["metadata"])
            _share(new, old)
        return new


def encode_row(revision: int, identity: CollectionId, key: Key, before: int | None, item: Object | None) -> JournalRow:
    """Write a change; `BadRequest` for an object that JSON cannot hold."""
    try:
        encoded = None if item is None else _ENCODER.encode(item)
    except (UnicodeEncodeError, RecursionError, TypeError) as problem:
        raise BadRequest(f"the object cannot be stored: {problem}") from problem
    checksum = _checksum(revision, identity, key, encoded)
    return JournalRow(revision, *identity, *key, before, checksum, encoded)


def _share(new: Object, old: Object) -> None:
    """Keep once what is the same in both, field by field: a long history then takes little room."""
    for name, value in new.items():
        before = old.get(name)
        # To compare what they encode to takes less time than to look, and does not take true for 1.
        if type(value) in (dict, list) and before is not None and _ENCODER.encode(value) == _ENCODER.encode(before):
            new[name] = before


def _checksum(revision: int, identity: CollectionId, key: Key, encoded: bytes | None) -> int:
    head = crc32("\0".join((str(revision), *identity, *key)).encode())
    return crc32(encoded, head) if encoded is not None else ~head & 0xFFFFFFFF


_RESERVED = 1000
"""How many versions are reserved at a time: a crash skips so many at most, and so often the disk is waited for."""

_SELECT = """SELECT revision, api_group, plural, namespace, name, before, checksum, object FROM versions
    ORDER BY revision"""
_INSERT = "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

_PRUNE = (
    """DELETE FROM versions WHERE revision IN (
        SELECT before FROM versions WHERE revision > ? AND revision <= ? AND before IS NOT NULL)""",
    "DELETE FROM versions WHERE revision > ? AND revision <= ? AND object IS NULL",
)

_LOG = logging.getLogger(__name__)


class JournalSync(StrEnum):
    """When a write waits for the disk."""

    NORMAL = "normal"
    """Now and then: survives the end of the process, and of the system all but the last writes (a thousand at most)."""
    FULL = "full"
    """Every time: survives the loss of power, at a fraction of the speed."""


class FileJournal:
    """A journal in a folder that this process holds; `opening.open_journal` makes one."""

    def __init__(self, folder: JournalFolder, connection: sqlite3.Connection, sync: JournalSync) -> None:
        self._folder = folder
        self._connection = connection
        self._sync = sync
        self._closed = False
        self._revision: int | None = None
        self._compacted: int
        self._reserved: int
        self._compacted, self._reserved = connection.execute("SELECT compacted, reserved FROM marks").fetchone()
        connection.execute(f"PRAGMA synchronous = {sync}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The file that it is in."""
        return self._folder.database

    @property
    def compacted(self) -> int:
        """The oldest version that can be asked for."""
        return self._compacted

    def rows(self) -> Iterator[JournalRow]:
        """Give all changes that are here, in their order."""
        return map(JournalRow._make, self._connection.execute(_SELECT))

    def begin(self, last: int) -> tuple[int, tuple[RevisionGap, ...]]:
        """Start a new life after the last change that is here; gives the version to go on from, and the gaps."""
        with explaining_errors(self.path):
            gaps = [
                RevisionGap(*found)
                for found in self._connection.execute("SELECT after, before FROM gaps ORDER BY before")
            ]
        last = max([last, self._compacted, *(gap.before for gap in gaps)])
        if self._reserved > last:
            gaps.append(RevisionGap(last, self._reserved + 1))
            last = self._reserved + 1
        with self._transaction(JournalSync.FULL):
            for gap in gaps[-1:]:
                self._connection.execute("INSERT OR REPLACE INTO gaps VALUES (?, ?)", (gap.after, gap.before))
            self._mark(self._compacted, last + _RESERVED)
        self._revision, self._reserved = last, last + _RESERVED
        return last, tuple(gaps)

    def record(self, identity: CollectionId, change: StoredChange, compacted: int) -> None:
        """Keep a change; `ServerError` where it cannot be kept."""
        before = None if change.old is None else version_of(change.old)
        written = encode_row(change.revision, identity, change.key, before, change.new)
        if change.revision > self._reserved:
            self._advance(compacted, change.revision + _RESERVED, JournalSync.FULL)
        with _storing():
            self._connection.execute(_INSERT, written)
        self._revision = change.revision

    def compact(self, compacted: int) -> None:
        """Remove what was before a version; `ServerError` where that fails."""
        if compacted > self._compacted:
            self._advance(compacted, self._reserved, self._sync)

    def get(self, name: str) -> bytes | None:
        """Give what is kept under a name besides objects, if anything is."""
        with explaining_errors(self.path):
            found = self._connection.execute("SELECT value FROM kept WHERE name = ?", (name,)).fetchone()
        return None if found is None else bytes(found[0])

    def set(self, name: str, value: bytes) -> None:
        """Keep something under a name besides objects; it is on the disk when this returns."""
        with self._transaction(JournalSync.FULL):
            self._connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (name, value))

    def close(self) -> None:
        """Bring everything to the disk, and let others have the folder; a second time does nothing."""
        if self._closed:
            return
        try:
            if self._revision is not None:
                with self._transaction(JournalSync.FULL):
                    self._mark(self._compacted, self._revision)
        except ServerError as problem:
            # Everything is kept all the same: the next life only skips some versions.
            _LOG.warning("%s", problem)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the folder without an orderly end, as a crash does."""
        if not self._closed:
            self._closed = True
            self._connection.close()
            self._folder.release()

    def _advance(self, compacted: int, reserved: int, sync: JournalSync) -> None:
        with self._transaction(sync):
            self._prune(compacted)
            self._mark(compacted, reserved)
        self._compacted, self._reserved = compacted, reserved

    def _mark(self, compacted: int, reserved: int) -> None:
        self._connection.execute("UPDATE marks SET compacted = ?, reserved = ?", (compacted, reserved))

    def _prune(self, compacted: int) -> None:
        """Remove what was replaced up to a version, and the notes of what went; what is still there stays."""
        span = (self._compacted, compacted)
        for statement in _PRUNE:
            self._connection.execute(statement, span)
        self._connection.execute("DELETE FROM gaps WHERE before <= ?", (compacted,))

    @contextmanager
    def _transaction(self, sync: JournalSync) -> Iterator[None]:
        """Do several things at once or not at all, and wait for the disk as asked."""
        connection = self._connection
        with _storing():
            connection.execute(f"PRAGMA synchronous = {sync}")
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                connection.execute(f"PRAGMA synchronous = {self._sync}")


@contextmanager
def _storing() -> Iterator[None]:
    """Say in words that nothing was kept, and why."""
    try:
        yield
    except sqlite3.Error as problem:
        raise ServerError(f"Internal error occurred: the journal cannot be written: {problem}") from problem


def open_journal(path: Path, *, sync: JournalSync = JournalSync.NORMAL) -> FileJournal:
    """Open the journal of a folder, both made where they are not there; `JournalError` where it cannot be used.

    Nobody else can open it until it is closed.
    """
    folder = lock_folder(path)
    with ExitStack() as undo:
        undo.callback(folder.release)
        connection = undo.enter_context(closing(open_database(folder.database)))
        with explaining_errors(folder.database):
            journal = FileJournal(folder, connection, sync)
        undo.pop_all()
        return journal


def restore_storage(journal: FileJournal, *, history: int) -> Storage:
    """Give the storage that a journal describes, and let it go on there; to be called once.

    `JournalError` where the journal is damaged, or cannot be written.
    """
    storage = Storage(history=history, journal=journal)
    with explaining_errors(journal.path), _without_collecting():
        for row in journal.rows():
            _repeat(row, storage, journal)
    try:
        revision, gaps = journal.begin(storage.revision)
        storage.resume(revision, journal.compacted, gaps)
    except ServerError as problem:
        raise JournalError(f'cannot use the journal "{journal.path}": {problem}') from problem
    return storage


def _repeat(row: JournalRow, storage: Storage, journal: FileJournal) -> None:
    try:
        identity, key = row.identity, row.key
        old = storage.collection(identity).live.get(key)
        if not row.whole() or (row.revision > journal.compacted and row.before != _version(old)):
            raise ValueError("it is not what was written")
        storage.restore(identity, key, row.revision, row.decoded(old))
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        raise damaged_journal(journal.path, f"version {row.revision}: {problem}") from problem


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
