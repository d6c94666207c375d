"""The files of a journal: a locked folder with an SQLite database.

The folder is locked by the kernel for one process. The lock ends with the process, so a leftover lock file has no
effect.

Tables of the database:

    versions  all changes that can still be requested, and the last change of each object: the object, or nothing after
              a deletion, and the version that it replaced
    gaps      versions that may have been assigned and were lost, see `file_journal`
    marks     the oldest version that can be requested, and the newest that may have been assigned
    kept      what the cluster needs again besides objects, such as its keys

There is no table of current objects, since the changes determine them; so a write appends one row to one table.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

DATABASE = "journal.db"
LOCK = "lock"

_IGNORED = (LOCK, "lost+found")
"""What a folder may contain and still count as new: a leftover lock, and what file systems create at their root."""

_OTHER_USERS = stat.S_IRWXG | stat.S_IRWXO

_APPLICATION = 0x53505247
"""The application id of the SQLite file: the letters SPRG."""

FORMAT = 1
"""The version of the schema; other versions are refused."""

_SCHEMA = """
BEGIN;
CREATE TABLE versions (
    revision INTEGER PRIMARY KEY, api_group TEXT NOT NULL, plural TEXT NOT NULL, namespace TEXT NOT NULL,
    name TEXT NOT NULL, before INTEGER, checksum INTEGER NOT NULL, object BLOB
);
CREATE TABLE gaps (after INTEGER NOT NULL, before INTEGER PRIMARY KEY);
CREATE TABLE marks (compacted INTEGER NOT NULL, reserved INTEGER NOT NULL);
CREATE TABLE kept (name TEXT PRIMARY KEY, value BLOB NOT NULL);
INSERT INTO marks VALUES (0, 0);
COMMIT;
"""

_CHECKPOINT_PAGES = 4096
"""16 MiB: the size of the log at which it is moved to the database, which takes some 10 ms."""

_LOG_BYTES = 64 << 20
"""The size to which the log is truncated after a long transaction."""

_PRIMARY = 0xFF
"""The bits of an SQLite error code that hold the primary code."""

_ACCESS_ERRORS = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
)
"""Errors that say nothing about the content of the file."""


log = logging.getLogger(__name__)


class JournalError(Exception):
    """A folder has no usable journal; the message names the folder, the reason and what is expected.

    Nothing has been changed. A cluster never starts empty because its journal cannot be read.
    """


class JournalFolder:
    """A folder that this process has locked."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @property
    def database(self) -> Path:
        """The path of the database, which may not exist yet."""
        return self.path / DATABASE

    def release(self) -> None:
        """Release the lock."""
        os.close(self._lock)


def lock_folder(path: Path) -> JournalFolder:
    """Lock a folder for a journal, creating it as needed; `JournalError` where it is in use or has other contents."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_contents(path)
        folder = JournalFolder(path, _locked(path))
        _close_to_other_users(path)
        return folder
    except OSError as problem:
        why = problem.strerror or str(problem)
        msg = f'cannot use "{path}" for data: {why}: expected a folder that can be read and written'
        raise JournalError(msg) from problem


def _locked(path: Path) -> int:
    # Symbolic links are not followed: their target would be truncated.
    lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError as problem:
        holder = _holder_pid(lock)
        os.close(lock)
        msg = f'"{path}" is in use by another process{holder}: stop that one, or choose another folder for data'
        raise JournalError(msg) from problem
    except BaseException:
        os.close(lock)
        raise
    return lock


def _check_contents(path: Path) -> None:
    """Refuse a folder with other contents; restrict the permissions of an empty one."""
    names = {entry.name for entry in path.iterdir()}
    if any(name.startswith(DATABASE) for name in names):
        _check_owner(path / DATABASE)
        return
    foreign = sorted(names.difference(_IGNORED))
    if foreign:
        msg = f'"{path}" contains "{foreign[0]}" and no journal: expected a new or empty folder, or that of a journal'
        raise JournalError(msg)
    with suppress(PermissionError):  # The root of a volume may belong to another user.
        path.chmod(0o700)


def _close_to_other_users(path: Path) -> None:
    """Take the permissions of other users from the folder and its files, which contain keys, and log what was open.

    What belongs to another user is left as it is: a volume may do, and its owner decides.
    """
    opened: list[str] = []
    # The folder first: within a closed one, other users cannot replace files.
    for place in (path, *sorted(path.iterdir())):
        found = place.lstat()
        mode = stat.S_IMODE(found.st_mode)
        ours = found.st_uid == os.geteuid() and (place == path or stat.S_ISREG(found.st_mode))
        if ours and mode & _OTHER_USERS:
            place.chmod(mode & ~_OTHER_USERS)
            opened.append(f'"{place if place == path else place.name}" (mode {mode:04o})')
    if opened:
        log.warning(
            "other users had access to the data in %s, which contain keys of the cluster: their access was removed;"
            " use another folder if another user may have read them",
            ", ".join(opened),
        )


def _check_owner(database: Path) -> None:
    """Refuse a journal of another user: it also contains the credentials of the cluster."""
    with suppress(FileNotFoundError):
        if database.lstat().st_uid != os.geteuid():
            raise JournalError(f'"{database}" belongs to another user: expected a journal of your own')


def _holder_pid(lock: int) -> str:
    written = os.pread(lock, 32, 0).decode(errors="replace").strip()
    return f" ({written})" if written.isdigit() else ""


def open_database(path: Path) -> sqlite3.Connection:
    """Open the database of a journal, creating it as needed; `JournalError` where it cannot be used."""
    if not path.exists():
        _check_not_lost(path)
        _create(path)
    with converting_errors(path):
        connection = _connect(path)
        try:
            _check_format(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
            connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def converting_errors(path: Path) -> Iterator[None]:
    """Convert errors of SQLite to `JournalError`."""
    try:
        yield
    except UnicodeDecodeError as problem:  # SQLite quotes what it cannot read, and sqlite3 expects text.
        raise damaged_journal(path, "it contains invalid text") from problem
    except sqlite3.Error as problem:
        if (getattr(problem, "sqlite_errorcode", 0) & _PRIMARY) not in _ACCESS_ERRORS:
            raise damaged_journal(path, str(problem)) from problem
        msg = f'cannot use the journal "{path}": {problem}: expected a file that can be read and written'
        raise JournalError(msg) from problem


def damaged_journal(path: Path, why: str) -> JournalError:
    """Return the error for a damaged journal."""
    return JournalError(
        f'the journal "{path}" is damaged: {why}: restore it from a copy, or choose another folder for data'
    )


def _connect(path: Path) -> sqlite3.Connection:
    # One thread at a time uses it, but not always the one that opened it: opening takes seconds for a large cluster.
    return sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)


def _check_not_lost(path: Path) -> None:
    """Refuse to start anew where a journal has lost its database; leftovers of an interrupted creation are fine."""
    log = path.with_name(f"{path.name}-wal")
    if log.exists():
        msg = f'"{path.parent}" has lost its journal: "{log.name}" is there, and "{path.name}" is not'
        raise JournalError(msg)


def _create(path: Path) -> None:
    """Create the database under a temporary name, so that the file under its final name is always complete."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            path.with_name(f"{new.name}-journal").unlink()
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(_connect(new)) as connection:
            connection.executescript(_SCHEMA)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        new.rename(path)
        _sync_folder(path.parent)
    except (OSError, sqlite3.DatabaseError) as problem:
        msg = f'cannot create a journal in "{path.parent}": {problem}'
        raise JournalError(msg) from problem


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != _APPLICATION:
        msg = f'"{path}" is not a journal of springtide: expected one, or a folder without that file'
        raise JournalError(msg)
    written = connection.execute("PRAGMA user_version").fetchone()[0]
    if written != FORMAT:
        msg = f'the journal "{path}" has format {written}, and this version of springtide reads and writes {FORMAT}'
        raise JournalError(msg)
