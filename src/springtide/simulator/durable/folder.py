"""The folder of a journal: made for it, closed to others, and held by one process at a time.

The lock is the kernel's. It goes with the process however that ends, so a lock file that is left over means nothing.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from springtide.simulator.durable.errors import JournalError

DATABASE = "journal.db"
LOCK = "lock"

_NOT_IN_THE_WAY = (LOCK, "lost+found")
"""What a folder may hold and still count as new: a lock that is left over, and what file systems put at their root."""


class Folder:
    """A folder that this process holds."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @property
    def database(self) -> Path:
        """Where the journal is, or is to be."""
        return self.path / DATABASE

    def release(self) -> None:
        """Let others have it."""
        os.close(self._lock)


def hold(path: Path) -> Folder:
    """Take a folder for a journal, made where there is none; `JournalError` where it is in use, or somebody else's."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_ours(path)
        return Folder(path, _locked(path))
    except OSError as problem:
        why = problem.strerror or str(problem)
        msg = f'cannot use "{path}" for data: {why}: expected a folder that can be read and written'
        raise JournalError(msg) from problem


def _locked(path: Path) -> int:
    # No link is followed: what it leads to would be emptied.
    lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError as problem:
        holder = _holder(lock)
        os.close(lock)
        msg = f'"{path}" is in use by another process{holder}: stop that one, or choose another folder for data'
        raise JournalError(msg) from problem
    except BaseException:
        os.close(lock)
        raise
    return lock


def _check_ours(path: Path) -> None:
    """Refuse a folder in which somebody keeps something else; an empty one is taken over and closed to others."""
    names = {entry.name for entry in path.iterdir()}
    if any(name.startswith(DATABASE) for name in names):
        _check_owner(path / DATABASE)
        return
    foreign = sorted(names.difference(_NOT_IN_THE_WAY))
    if foreign:
        msg = (
            f'"{path}" holds "{foreign[0]}" and no journal: expected a folder that is new, empty or made by springtide'
        )
        raise JournalError(msg)
    with suppress(PermissionError):  # The root of a volume may belong to somebody else who lets us write.
        path.chmod(0o700)


def _check_owner(database: Path) -> None:
    """Refuse a journal that somebody else has made: it also says who may do everything in the cluster."""
    with suppress(FileNotFoundError):
        if database.lstat().st_uid != os.geteuid():
            raise JournalError(f'"{database}" belongs to another user: expected a journal of your own')


def _holder(lock: int) -> str:
    written = os.pread(lock, 32, 0).decode(errors="replace").strip()
    return f" ({written})" if written.isdigit() else ""
