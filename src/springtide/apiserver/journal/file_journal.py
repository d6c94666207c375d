"""The journal: each change is in an SQLite file before it becomes visible.

One change is one transaction, so a `kill -9` at any time leaves every acknowledged change, and at most one that was not
acknowledged. After a loss of power the latest changes may be missing, unless `JournalSync.FULL` waits for the disk on
each write. Their versions must not be assigned again: a client that has seen a lost object would take the next one for
it. Versions are therefore reserved in advance, on disk. After a crash the counter continues behind the reservation, and
the versions in between are a `RevisionGap` that counts as compacted. Compacted changes are removed together with the
next reservation.

SQLite detects damage to the structure of its file; a checksum per row detects damage to the content.
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
    converting_errors,
    damaged_journal,
    lock_folder,
    open_database,
)
from springtide.apiserver.storage import CollectionId, RevisionGap, Storage, StoredChange
from springtide.cluster.errors import BadRequest, ServerError
from springtide.cluster.resources import Key, Object, version_of

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(dict)

_RESERVED = 1000
"""How many versions are reserved at a time: a crash skips at most this many."""

_SELECT = """SELECT revision, api_group, plural, namespace, name, before, checksum, object FROM versions
    ORDER BY revision"""
_INSERT = "INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

_PRUNE = (
    """DELETE FROM versions WHERE revision IN (
        SELECT before FROM versions WHERE revision > ? AND revision <= ? AND before IS NOT NULL)""",
    "DELETE FROM versions WHERE revision > ? AND revision <= ? AND object IS NULL",
)

_LOG = logging.getLogger(__name__)


class JournalRow(NamedTuple):
    """One row of the table `versions`."""

    revision: int
    group: str
    plural: str
    namespace: str
    name: str
    before: int | None
    checksum: int
    object: bytes | None

    def is_intact(self) -> bool:
        """Return whether the checksum matches."""
        return self.checksum == _checksum(self.revision, self.identity, self.key, self.object)

    @property
    def identity(self) -> CollectionId:
        """The collection of the object."""
        return CollectionId(self.group, self.plural)

    @property
    def key(self) -> Key:
        """The key of the object."""
        return Key(self.namespace, self.name)

    def decoded(self, old: Object | None) -> Object | None:
        """Return the object after the change; None where it was removed. Unchanged parts are those of the old one."""
        if self.object is None:
            return None
        new: Object = _DECODER.decode(self.object)
        if old is not None:
            _share(new["metadata"], old["metadata"])
            _share(new, old)
        return new


def encode_row(revision: int, identity: CollectionId, key: Key, before: int | None, item: Object | None) -> JournalRow:
    """Encode a change; `BadRequest` for an object that JSON cannot represent."""
    try:
        encoded = None if item is None else _ENCODER.encode(item)
    except (UnicodeEncodeError, RecursionError, TypeError) as problem:
        raise BadRequest(f"the object cannot be stored: {problem}") from problem
    checksum = _checksum(revision, identity, key, encoded)
    return JournalRow(revision, *identity, *key, before, checksum, encoded)


def _share(new: Object, old: Object) -> None:
    """Share unchanged fields with the old object: a long history then needs little memory."""
    for name, value in new.items():
        before = old.get(name)
        # Comparing the encoded fields is faster than comparing values, and distinguishes true from 1.
        if type(value) in (dict, list) and before is not None and _ENCODER.encode(value) == _ENCODER.encode(before):
            new[name] = before


def _checksum(revision: int, identity: CollectionId, key: Key, encoded: bytes | None) -> int:
    head = crc32("\0".join((str(revision), *identity, *key)).encode())
    return crc32(encoded, head) if encoded is not None else ~head & 0xFFFFFFFF


class JournalSync(StrEnum):
    """When a write waits for the disk."""

    NORMAL = "normal"
    """Occasionally: all writes survive the end of the process; a loss of power may lose the last (at most a thousand).
    """
    FULL = "full"
    """On each write: survives a loss of power, at a fraction of the speed."""


class FileJournal:
    """A journal in a folder that this process has locked; made by `open_journal`."""

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
        """The database file."""
        return self._folder.database

    @property
    def compacted(self) -> int:
        """The oldest version that can be requested."""
        return self._compacted

    def rows(self) -> Iterator[JournalRow]:
        """Iterate over all recorded changes, in order."""
        return map(JournalRow._make, self._connection.execute(_SELECT))

    def begin(self, last: int) -> tuple[int, tuple[RevisionGap, ...]]:
        """Continue after the last recorded change; returns the version to continue from, and the gaps."""
        with converting_errors(self.path):
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
        """Record a change; `ServerError` where that fails."""
        before = None if change.old is None else version_of(change.old)
        written = encode_row(change.revision, identity, change.key, before, change.new)
        if change.revision > self._reserved:
            self._advance(compacted, change.revision + _RESERVED, JournalSync.FULL)
        with _converting_write_errors():
            self._connection.execute(_INSERT, written)
        self._revision = change.revision

    def compact(self, compacted: int) -> None:
        """Remove changes before a version; `ServerError` where that fails."""
        if compacted > self._compacted:
            self._advance(compacted, self._reserved, self._sync)

    def get(self, name: str) -> bytes | None:
        """Return a value that is kept besides objects, if there is one."""
        with converting_errors(self.path):
            found = self._connection.execute("SELECT value FROM kept WHERE name = ?", (name,)).fetchone()
        return None if found is None else bytes(found[0])

    def set(self, name: str, value: bytes, sync: JournalSync = JournalSync.FULL) -> None:
        """Keep a value besides objects; unless `sync` says otherwise, it is on disk when this returns."""
        with self._transaction(sync):
            self._connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (name, value))

    def close(self) -> None:
        """Sync to disk and release the folder; a second call does nothing."""
        if self._closed:
            return
        try:
            if self._revision is not None:
                with self._transaction(JournalSync.FULL):
                    self._mark(self._compacted, self._revision)
        except ServerError as problem:
            # All changes are recorded nevertheless; the next start only skips some versions.
            _LOG.warning("%s", problem)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Release the folder without a clean shutdown, as a crash does."""
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
        """Remove replaced changes up to a version, and deletions; the last change of each existing object stays."""
        span = (self._compacted, compacted)
        for statement in _PRUNE:
            self._connection.execute(statement, span)
        self._connection.execute("DELETE FROM gaps WHERE before <= ?", (compacted,))

    @contextmanager
    def _transaction(self, sync: JournalSync) -> Iterator[None]:
        """Run a transaction with the given sync mode."""
        connection = self._connection
        with _converting_write_errors():
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
def _converting_write_errors() -> Iterator[None]:
    """Convert errors of SQLite: the change was not recorded."""
    try:
        yield
    except sqlite3.Error as problem:
        raise ServerError(f"Internal error occurred: the journal cannot be written: {problem}") from problem


def open_journal(path: Path, *, sync: JournalSync = JournalSync.NORMAL) -> FileJournal:
    """Open the journal in a folder, creating both as needed; `JournalError` where it cannot be used.

    The folder is locked until the journal is closed.
    """
    folder = lock_folder(path)
    with ExitStack() as undo:
        undo.callback(folder.release)
        connection = undo.enter_context(closing(open_database(folder.database)))
        with converting_errors(folder.database):
            journal = FileJournal(folder, connection, sync)
        undo.pop_all()
        return journal


def restore_storage(journal: FileJournal, *, history: int) -> Storage:
    """Return the storage that a journal describes, which continues to record there; call it once.

    `JournalError` where the journal is damaged or cannot be written.
    """
    storage = Storage(history=history, journal=journal)
    with converting_errors(journal.path), _without_gc():
        for row in journal.rows():
            _restore_row(row, storage, journal)
    try:
        revision, gaps = journal.begin(storage.revision)
        storage.resume(revision, journal.compacted, gaps)
    except ServerError as problem:
        raise JournalError(f'cannot use the journal "{journal.path}": {problem}') from problem
    return storage


def _restore_row(row: JournalRow, storage: Storage, journal: FileJournal) -> None:
    try:
        identity, key = row.identity, row.key
        old = storage.collection(identity).live.get(key)
        if not row.is_intact() or (row.revision > journal.compacted and row.before != _version(old)):
            raise ValueError("the checksum or the replaced version does not match")
        storage.restore(identity, key, row.revision, row.decoded(old))
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        raise damaged_journal(journal.path, f"version {row.revision}: {problem}") from problem


def _version(item: Object | None) -> int | None:
    return None if item is None else version_of(item)


@contextmanager
def _without_gc() -> Iterator[None]:
    """Disable Python's garbage collection while millions of objects are created and none is dropped."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
