"""The journal: what it records, versions after a crash, and failing writes."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.journal.objects import HISTORY, THINGS, names, put, remove, reopened, thing

from springtide.apiserver.journal import JournalError, JournalSync, open_journal, restore_storage
from springtide.cluster.errors import BadRequest, Gone, ServerError
from springtide.cluster.resources import Key

_A = Key("default", "a")


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(0, id="zero"),
        pytest.param(True, id="true is not 1"),
        pytest.param(1.0, id="a float is not an int"),
        pytest.param(0.1, id="fraction"),
        pytest.param(5e-324, id="the smallest fraction"),
        pytest.param(-(2**63), id="the smallest int of 64 bits"),
        pytest.param(2**64, id="an int of more than 64 bits"),
        pytest.param(10**40, id="a large int"),
        pytest.param(None, id="null"),
        pytest.param("", id="lone surrogate"),
        pytest.param("Grüße 🌊 \u2028 \x00 \\ \"'", id="unicode text"),
        pytest.param({"z": 1, "a": {"y": [], "b": {}}}, id="the order of fields"),
        pytest.param([[], [None, False], {}], id="lists"),
        pytest.param("x" * 3_000_000, id="large"),
    ],
)
def test_objects_are_restored_exactly(tmp_path: Path, value: Any) -> None:
    journal, storage = reopened(tmp_path)
    with journal:
        put(storage, "a", value=value)
    journal, storage = reopened(tmp_path)
    with journal:
        found = storage.collection(THINGS).live[_A]
        assert repr(found) == repr({**thing("a", value=value), "metadata": {**found["metadata"]}})


@pytest.mark.parametrize(
    "value", [pytest.param("\ud800", id="half a surrogate pair"), pytest.param(object(), id="not a JSON type")]
)
def test_an_object_that_cannot_be_encoded_is_refused(tmp_path: Path, value: Any) -> None:
    journal, storage = reopened(tmp_path)
    with journal:
        with pytest.raises(BadRequest, match="the object cannot be stored"):
            put(storage, "a", value=value)
        assert (storage.revision, names(storage)) == (0, [])
        assert put(storage, "b") == 1


def test_the_history_is_restored_with_shared_parts(tmp_path: Path) -> None:
    journal, storage = reopened(tmp_path)
    with journal:
        put(storage, "a", spec={"n": 1}, status={"n": 1})
        put(storage, "a", spec={"n": 1}, status={"n": True})
        remove(storage, "a")
    journal, storage = reopened(tmp_path)
    with journal:
        first, second, third = storage.collection(THINGS).since(0)
        assert [change.event.change for change in (first, second, third)] == ["ADDED", "MODIFIED", "DELETED"]
        assert (second.old, third.old, third.new) == (first.new, second.new, None)
        assert first.new is not None
        assert second.new is not None
        assert second.new["spec"] is first.new["spec"]
        assert (second.new["status"], first.new["status"]["n"]) == ({"n": True}, 1)
        assert second.new["status"]["n"] is True


def test_a_clean_shutdown_leaves_no_gap(tmp_path: Path) -> None:
    for expected in range(1, 4):
        journal, storage = reopened(tmp_path)
        with journal:
            assert put(storage, "a") == expected


def test_after_a_crash_versions_continue_behind_the_reservation(tmp_path: Path) -> None:
    journal, storage = reopened(tmp_path)
    put(storage, "a")
    last = put(storage, "b")
    journal.abandon()

    journal, storage = reopened(tmp_path)
    first = storage.revision
    assert first > last + 1
    assert put(storage, "c") == first + 1
    assert [change.key.name for change in storage.collection(THINGS).since(last)] == ["c"]
    assert (names(storage, last), names(storage, first)) == (["a", "b"], ["a", "b"])
    storage.check(last)
    storage.check(first)
    for version in (last + 1, first - 1):
        with pytest.raises(Gone, match=f"too old resource version: {version}"):
            storage.check(version)
    journal.close()

    journal, storage = reopened(tmp_path)
    with journal:
        assert storage.revision == first + 1
        with pytest.raises(Gone):
            storage.check(last + 1)


def test_a_restart_without_writes_does_not_extend_a_gap(tmp_path: Path) -> None:
    """A client that listed at the first version after a restart without writes can watch from there."""
    firsts = []
    for _ in range(3):
        journal, storage = reopened(tmp_path)
        firsts.append(storage.revision)
        journal.abandon()
    journal, storage = reopened(tmp_path)
    with journal:
        assert sorted(set(firsts)) == firsts
        for version in firsts:
            storage.check(version)


def test_versions_lost_with_power_are_not_assigned_again(tmp_path: Path) -> None:
    """The disk has the state of some writes ago."""
    data, disk = tmp_path / "data", tmp_path / "disk"
    journal, storage = reopened(data)
    kept = put(storage, "kept")
    shutil.copytree(data, disk)
    lost = [put(storage, f"lost-{n}") for n in range(500)]
    journal.abandon()

    journal, storage = reopened(disk)
    with journal:
        assert names(storage) == ["kept"]
        assert storage.revision > lost[-1]
        storage.check(kept)
        for version in (lost[0], lost[-1]):
            with pytest.raises(Gone):
                storage.check(version)


def test_reservations_are_extended(tmp_path: Path) -> None:
    journal, storage = reopened(tmp_path)
    for n in range(2500):
        put(storage, f"n{n % 7}")
    journal.abandon()
    journal, storage = reopened(tmp_path)
    with journal:
        assert storage.revision > 2500
        assert len(storage.collection(THINGS).since(0)) == 2500


@pytest.mark.parametrize(
    ("sync", "expected"),
    [
        pytest.param(JournalSync.NORMAL, ["full", "normal"], id="reservation only"),
        pytest.param(JournalSync.FULL, ["full", "full"], id="all changes"),
    ],
)
def test_versions_are_reserved_on_disk_before_use(tmp_path: Path, sync: JournalSync, expected: list[str]) -> None:
    """Waiting for the disk is not observable from outside, so the SQL statements are checked."""
    with open_journal(tmp_path, sync=sync) as journal:
        storage = restore_storage(journal, history=HISTORY)
        for _ in range(1000):
            put(storage, "a")
        statements: list[str] = []
        journal._connection.set_trace_callback(statements.append)
        assert put(storage, "a") == 1001
        journal._connection.set_trace_callback(None)
    modes, waiting = [], ""
    for statement in statements:
        if statement.startswith("PRAGMA synchronous"):
            waiting = statement.rpartition(" ")[2]
        elif statement.startswith(("UPDATE marks", "INSERT INTO versions")):
            modes.append(waiting)
    assert modes == expected


def test_compacted_changes_are_removed_from_the_file(tmp_path: Path) -> None:
    journal, storage = reopened(tmp_path, history=100)
    with journal:
        put(storage, "still there")
        sizes = []
        for n in range(12_000):
            put(storage, f"n{n % 10}", text="x" * 500)
            if n % 3000 == 2999:
                remove(storage, f"n{n % 10}")
                sizes.append(len(list(journal.rows())))
        assert max(sizes) < 1200
    journal, storage = reopened(tmp_path, history=100)
    with journal:
        assert names(storage) == [*(f"n{n}" for n in range(9)), "still there"]
        assert storage.compacted == storage.revision - 100


def test_a_compaction_survives_a_restart(tmp_path: Path) -> None:
    journal, storage = reopened(tmp_path)
    put(storage, "a")
    put(storage, "b")
    version = remove(storage, "a")
    storage.compact(version)
    assert [row.name for row in journal.rows()] == ["b"]
    journal.abandon()
    journal, storage = reopened(tmp_path)
    with journal:
        assert (storage.compacted, names(storage, version)) == (version, ["b"])
        with pytest.raises(Gone):
            storage.check(version - 1)


def test_a_shorter_history_compacts(tmp_path: Path) -> None:
    for history, expected in ((HISTORY, 0), (10, 90), (HISTORY, 90)):
        journal, storage = reopened(tmp_path, history=history)
        with journal:
            while storage.revision < 100:
                put(storage, "a")
            assert storage.compacted == expected


@contextmanager
def _full_disk(path: Path) -> Iterator[None]:
    """Limit the size of files to that of the current log."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((path / "journal.db-wal").stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_cannot_be_recorded_has_no_effect(tmp_path: Path) -> None:
    """It fails with a server error, and writes succeed again when there is room."""
    journal, storage = reopened(tmp_path)
    put(storage, "a", n=1)
    with _full_disk(tmp_path):
        for act in (
            lambda: put(storage, "a", n=2),
            lambda: put(storage, "b"),
            lambda: remove(storage, "a"),
            lambda: storage.compact(1),
            lambda: journal.set("token", b"t"),
        ):
            with pytest.raises(ServerError, match="Internal error occurred: the journal cannot be written: "):
                act()
        assert (storage.revision, storage.compacted, names(storage)) == (1, 0, ["a"])
        assert storage.collection(THINGS).live[_A]["n"] == 1
        assert journal.get("token") is None
    assert put(storage, "b") == 2
    journal.close()

    journal, storage = reopened(tmp_path)
    with journal:
        assert (storage.revision, names(storage)) == (2, ["a", "b"])


def test_writes_resume_after_a_full_disk_at_a_reservation(tmp_path: Path) -> None:
    journal, storage = reopened(tmp_path)
    with journal:
        for n in range(1000):
            put(storage, f"n{n % 7}")
        with _full_disk(tmp_path), pytest.raises(ServerError):
            put(storage, "a")
        assert put(storage, "a") == 1001


def test_a_full_disk_prevents_the_start(tmp_path: Path) -> None:
    reopened(tmp_path)[0].close()
    with open_journal(tmp_path) as journal:
        journal.set("token", b"t" * 100_000)
        with _full_disk(tmp_path), pytest.raises(JournalError, match="cannot be written"):
            restore_storage(journal, history=HISTORY)


def test_a_full_disk_does_not_prevent_the_shutdown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal, storage = reopened(tmp_path)
    put(storage, "a")
    with _full_disk(tmp_path):
        journal.close()
    assert "the journal cannot be written" in caplog.text
    journal, storage = reopened(tmp_path)
    with journal:
        assert names(storage) == ["a"]


def test_values_besides_objects_are_kept(tmp_path: Path) -> None:
    with open_journal(tmp_path) as journal:
        assert journal.get("token") is None
        journal.set("token", b"first")
        journal.set("token", b"\x00second")
    with open_journal(tmp_path) as journal:
        assert journal.get("token") == b"\x00second"
        assert restore_storage(journal, history=HISTORY).revision == 0


def test_full_sync_waits_for_the_disk(tmp_path: Path) -> None:
    with open_journal(tmp_path, sync=JournalSync.FULL) as journal:
        storage = restore_storage(journal, history=HISTORY)
        put(storage, "a")
        assert names(storage) == ["a"]


def test_closing_is_idempotent_and_final(tmp_path: Path) -> None:
    journal, storage = reopened(tmp_path)
    journal.close()
    journal.close()
    with pytest.raises(ServerError, match="closed"):
        put(storage, "a")
    assert storage.revision == 0


def test_the_log_is_moved_into_the_database_as_it_grows(tmp_path: Path) -> None:
    journal, storage = reopened(tmp_path)
    with journal:
        for n in range(60):
            put(storage, f"n{n % 3}", text="x" * 1_000_000)
        assert (tmp_path / "journal.db-wal").stat().st_size < 40_000_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal.db", "lock"]
