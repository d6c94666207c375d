"""Opening a journal: locks, permissions and errors; a cluster never starts empty because its journal is unreadable."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from tests.apiserver.journal.objects import names, put, reopened

from springtide.apiserver.journal import JournalError, open_journal


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a folder with a journal of two objects."""
    path = tmp_path / "data"
    journal, storage = reopened(path)
    with journal:
        put(storage, "a", text="x" * 10_000)
        put(storage, "b")
    return path


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_are_private(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "data"
    journal, storage = reopened(path)
    with journal:
        put(storage, "a")
        found = {each.name: _mode(each) for each in path.iterdir()}

    assert _mode(path) == 0o700
    assert set(found) >= {"journal.db", "journal.db-wal", "lock"}
    assert set(found.values()) == {0o600}


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "lost+found").mkdir()
    open_journal(tmp_path).close()

    assert _mode(tmp_path) == 0o700


@pytest.mark.parametrize(
    ("name", "mode", "closed"),
    [
        pytest.param(".", 0o755, 0o700, id="folder-readable"),
        pytest.param(".", 0o777, 0o700, id="folder-writable"),
        pytest.param("journal.db", 0o644, 0o600, id="database"),
        pytest.param("lock", 0o666, 0o600, id="lock"),
        pytest.param("kubeconfig", 0o640, 0o600, id="kubeconfig-with-the-token"),
    ],
)
def test_loosened_permissions_are_removed_and_logged(
    data: Path, caplog: pytest.LogCaptureFixture, name: str, mode: int, closed: int
) -> None:
    (data / "kubeconfig").touch(0o600)
    (data / name).chmod(mode)
    open_journal(data).close()

    assert _mode(data / name) == closed
    assert [f"(mode {mode:04o})" in line.getMessage() for line in caplog.records] == [True]
    open_journal(data).close()
    assert len(caplog.records) == 1


def test_targets_of_links_keep_their_permissions(data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    outside = tmp_path / "outside"
    outside.touch(0o600)
    outside.chmod(0o644)
    (data / "link").symlink_to(outside)
    open_journal(data).close()

    assert _mode(outside) == 0o644
    assert not caplog.records


def test_one_process_at_a_time(data: Path) -> None:
    with open_journal(data), pytest.raises(JournalError, match=rf"in use by another process \({os.getpid()}\)"):
        open_journal(data)
    open_journal(data).close()


def test_a_journal_of_another_user_is_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It contains the token of the cluster, which its author would know."""
    monkeypatch.setattr("os.geteuid", lambda: data.stat().st_uid + 1)

    with pytest.raises(JournalError, match="belongs to another user"):
        open_journal(data)


def test_a_symbolic_link_as_lock_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "lock").symlink_to(precious)

    with pytest.raises(JournalError, match="cannot use"):
        open_journal(tmp_path / "data")
    assert precious.read_text() == "mine"


def test_a_leftover_lock_is_ignored(data: Path) -> None:
    program = (
        "import os, signal, sys; from pathlib import Path; from springtide.apiserver.journal import open_journal\n"
        "open_journal(Path(sys.argv[1])); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(data)], check=False).returncode == -9
    assert (data / "lock").exists()

    journal, storage = reopened(data)
    with journal:
        assert names(storage) == ["a", "b"]


def _emptied(data: Path) -> None:
    (data / "journal.db").write_bytes(b"")


def _of_another_user(data: Path) -> None:
    (data / "journal.db").unlink()
    with closing(sqlite3.connect(data / "journal.db")) as other:
        other.execute("CREATE TABLE versions (revision INTEGER)")


def _newer(data: Path) -> None:
    with closing(sqlite3.connect(data / "journal.db")) as journal:
        journal.execute("PRAGMA user_version = 2")


def _no_database(data: Path) -> None:
    (data / "journal.db").write_text("dear diary, " * 1000)


def _cut_short(data: Path) -> None:
    os.truncate(data / "journal.db", 3 * 4096)


def _lost(data: Path) -> None:
    (data / "journal.db").rename(data / "journal.db-wal")


def _without_a_table(data: Path) -> None:
    with closing(sqlite3.connect(data / "journal.db")) as journal:
        journal.execute("DROP TABLE gaps")


def _misspelt(data: Path) -> None:
    content = (data / "journal.db").read_bytes()
    assert b"gaps (after" in content
    (data / "journal.db").write_bytes(content.replace(b"gaps (after", b"gaps \xe4after"))


def _without_a_change(data: Path) -> None:
    journal, storage = reopened(data)
    with journal:
        put(storage, "a")
    with closing(sqlite3.connect(data / "journal.db")) as other, other:
        other.execute("DELETE FROM versions WHERE revision = 1")


def _of_another_object(data: Path) -> None:
    with closing(sqlite3.connect(data / "journal.db")) as journal, journal:
        journal.execute("UPDATE versions SET name = 'c' WHERE name = 'b'")


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        pytest.param(_emptied, "is not a journal of springtide", id="empty file"),
        pytest.param(_of_another_user, "is not a journal of springtide", id="another application's database"),
        pytest.param(_newer, "has format 2, and this version of springtide reads and writes 1", id="newer format"),
        pytest.param(_no_database, "is damaged: file is not a database", id="no database"),
        pytest.param(_cut_short, "is damaged: database disk image is malformed", id="cut short"),
        pytest.param(_lost, 'has lost its journal: "journal.db-wal" is there', id="log without database"),
        pytest.param(_without_a_table, "is damaged: no such table: gaps", id="a table is missing"),
        pytest.param(_misspelt, "is damaged: it contains invalid text", id="a table is misspelt"),
        pytest.param(
            _without_a_change,
            "is damaged: version 3: the checksum or the replaced version does not match",
            id="a change is missing",
        ),
        pytest.param(
            _of_another_object,
            "is damaged: version 2: the checksum or the replaced version does not match",
            id="content of another object",
        ),
    ],
)
def test_an_unusable_journal_is_refused_and_unchanged(
    data: Path, damage: Callable[[Path], None], expected: str
) -> None:
    damage(data)
    before = {path.name: path.read_bytes() for path in data.glob("journal.db*")}
    with pytest.raises(JournalError, match=re.escape(expected)):
        reopened(data)

    assert {path.name: path.read_bytes() for path in data.glob("journal.db*")} == before


@pytest.mark.parametrize("seed", range(40))
def test_damage_is_detected_or_harmless(data: Path, seed: int) -> None:
    """Any changed byte of the file causes an error, or has no effect."""
    rng = Random(seed)
    content = bytearray((data / "journal.db").read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    (data / "journal.db").write_bytes(content)
    try:
        journal, storage = reopened(data)
    except JournalError:
        return
    with journal:
        found = dict(storage.listed(next(held for _, held in storage.collections()), storage.revision))
        assert {key.name: len(item.get("text", "")) for key, item in found.items()} == {"a": 10_000, "b": 0}


def test_leftovers_of_an_interrupted_creation_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "journal.db.new").write_bytes(b"half of it")
    (tmp_path / "journal.db.new-journal").write_bytes(b"half of it")
    journal, storage = reopened(tmp_path)
    with journal:
        put(storage, "a")
        assert sorted(path.name for path in tmp_path.glob("*.new*")) == []


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(
            lambda path: (path / "letters").mkdir(parents=True),
            'contains "letters" and no journal',
            id="other contents",
        ),
        pytest.param(lambda path: path.write_text(""), "File exists", id="file"),
        pytest.param(lambda path: path.symlink_to("nowhere"), "File exists", id="dangling link"),
        pytest.param(lambda path: (path / "journal.db").mkdir(parents=True), "unable to open", id="folder for file"),
    ],
)
def test_an_unsuitable_folder_is_refused(tmp_path: Path, make: Callable[[Path], object], expected: str) -> None:
    path = tmp_path / "data"
    make(path)
    with pytest.raises(JournalError, match=expected):
        open_journal(path)


@pytest.fixture
def mine(data: Path) -> Iterator[Path]:
    """Return the folder to an unprivileged user, and run as that user."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as place:
        moved = Path(place) / "data"
        shutil.move(data, moved)
        if root:
            for path in (Path(place), moved, *moved.iterdir()):
                os.chown(path, 65534, 65534)
            os.seteuid(65534)
        try:
            yield moved
        finally:
            if root:
                os.seteuid(0)
            moved.chmod(0o700)


@pytest.mark.parametrize(
    ("name", "mode", "expected"),
    [
        pytest.param("journal.db", 0o400, "attempt to write a readonly database", id="file read only"),
        pytest.param("journal.db", 0o000, "unable to open database file", id="file closed"),
        pytest.param("lock", 0o400, "Permission denied", id="lock read only"),
        pytest.param(".", 0o500, "attempt to write a readonly database", id="folder read only"),
        pytest.param(".", 0o000, "Permission denied", id="folder closed"),
    ],
)
def test_missing_permissions_are_reported(mine: Path, name: str, mode: int, expected: str) -> None:
    (mine / name).chmod(mode)
    with pytest.raises(JournalError, match=expected):
        reopened(mine)
