"""The journal: every change is in a file before anybody learns of it.

One change is one transaction. `kill -9` at any moment therefore leaves every change that was acknowledged, and at most
one that was not yet. The loss of power is another matter: unless `Sync.FULL` asks for it, nobody waits for the disk,
and the last changes may be missing. Then the numbers of their versions must not be given out again, or somebody who
has seen a lost object would take it for the one that came after. So numbers are reserved in advance, and on disk. After
an end that was not orderly the count goes on behind what was reserved, and the numbers between are a `Gap`, which
answers whoever asks for one of them that it is compacted.

What is compacted is removed by and by, together with the next reservation.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Self

from springtide.cluster.errors import ServerError
from springtide.cluster.resources import version_of
from springtide.simulator.api.storage import CollectionId, Gap, Stored
from springtide.simulator.durable.database import reading
from springtide.simulator.durable.encoding import Row, row
from springtide.simulator.durable.folder import Folder

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


class Sync(StrEnum):
    """When a write waits for the disk."""

    NORMAL = "normal"
    """Now and then: survives the end of the process, and of the system all but the last writes (a thousand at most)."""
    FULL = "full"
    """Every time: survives the loss of power, at a fraction of the speed."""


class FileJournal:
    """A journal in a folder that this process holds; `opening.open_journal` makes one."""

    def __init__(self, folder: Folder, connection: sqlite3.Connection, sync: Sync) -> None:
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

    def rows(self) -> Iterator[Row]:
        """Give all changes that are here, in their order."""
        return map(Row._make, self._connection.execute(_SELECT))

    def begin(self, last: int) -> tuple[int, tuple[Gap, ...]]:
        """Start a new life after the last change that is here; gives the version to go on from, and the gaps."""
        with reading(self.path):
            gaps = [Gap(*found) for found in self._connection.execute("SELECT after, before FROM gaps ORDER BY before")]
        last = max([last, self._compacted, *(gap.before for gap in gaps)])
        if self._reserved > last:
            gaps.append(Gap(last, self._reserved + 1))
            last = self._reserved + 1
        with self._transaction(Sync.FULL):
            for gap in gaps[-1:]:
                self._connection.execute("INSERT OR REPLACE INTO gaps VALUES (?, ?)", (gap.after, gap.before))
            self._mark(self._compacted, last + _RESERVED)
        self._revision, self._reserved = last, last + _RESERVED
        return last, tuple(gaps)

    def record(self, identity: CollectionId, change: Stored, compacted: int) -> None:
        """Keep a change; `ServerError` where it cannot be kept."""
        before = None if change.old is None else version_of(change.old)
        written = row(change.revision, identity, change.key, before, change.new)
        if change.revision > self._reserved:
            self._advance(compacted, change.revision + _RESERVED, Sync.FULL)
        with _storing():
            self._connection.execute(_INSERT, written)
        self._revision = change.revision

    def compact(self, compacted: int) -> None:
        """Remove what was before a version; `ServerError` where that fails."""
        if compacted > self._compacted:
            self._advance(compacted, self._reserved, self._sync)

    def get(self, name: str) -> bytes | None:
        """Give what is kept under a name besides objects, if anything is."""
        with reading(self.path):
            found = self._connection.execute("SELECT value FROM kept WHERE name = ?", (name,)).fetchone()
        return None if found is None else bytes(found[0])

    def set(self, name: str, value: bytes) -> None:
        """Keep something under a name besides objects; it is on the disk when this returns."""
        with self._transaction(Sync.FULL):
            self._connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (name, value))

    def close(self) -> None:
        """Bring everything to the disk, and let others have the folder; a second time does nothing."""
        if self._closed:
            return
        try:
            if self._revision is not None:
                with self._transaction(Sync.FULL):
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

    def _advance(self, compacted: int, reserved: int, sync: Sync) -> None:
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
    def _transaction(self, sync: Sync) -> Iterator[None]:
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
