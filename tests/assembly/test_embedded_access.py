"""Access to an embedded cluster: stored credentials, and where the kubeconfig is written and removed."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from springtide.assembly.embedded_access import kubeconfig_file, load_credentials

NOW = 1_800_000_000
DAY = 86_400


class MemoryStore:
    """Stores values in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def get(self, name: str) -> bytes | None:
        """Return a value."""
        return self.kept.get(name)

    def set(self, name: str, value: bytes) -> None:
        """Store a value."""
        self.kept[name] = value


@pytest.mark.parametrize(
    ("later", "same"),
    [
        pytest.param(0, True, id="at once"),
        pytest.param(3649 * DAY, True, id="after years"),
        pytest.param(3651 * DAY, False, id="after the certificate has expired"),
        pytest.param(-DAY, False, id="before the certificate is valid"),
    ],
)
def test_stored_credentials_are_used_while_they_are_valid(
    later: int, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawer = MemoryStore()
    monkeypatch.setattr("springtide.assembly.embedded_access.time.time", lambda: NOW)
    first = load_credentials(drawer)
    monkeypatch.setattr("springtide.assembly.embedded_access.time.time", lambda: NOW + later)

    assert (load_credentials(drawer) == first) is same


def test_without_a_store_credentials_are_new_each_time() -> None:
    assert load_credentials(None) != load_credentials(None)


def test_the_token_is_not_in_the_repr() -> None:
    made = load_credentials(None)

    assert made.token not in repr(made)
    assert "PRIVATE KEY" not in repr(made)


THEIRS = "apiVersion: v1\nkind: Config\nclusters: []\n"
OURS = "apiVersion: v1\nkind: Config\ncurrent-context: springtide\n"


def test_a_requested_kubeconfig_is_removed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "kubeconfig"
    with kubeconfig_file(path, None) as file:
        assert not path.exists()
        file.write(OURS)
        assert path.read_text().endswith(OURS)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()


def test_a_file_of_the_user_is_neither_replaced_nor_removed(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(THEIRS)
    with pytest.raises(OSError, match="choose another"), kubeconfig_file(path, None):
        pytest.fail("it is begun")
    assert path.read_text() == THEIRS


def test_a_cluster_that_does_not_start_removes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.touch()
    with pytest.raises(RuntimeError), kubeconfig_file(path, None):
        raise RuntimeError
    assert path.exists()


@pytest.mark.parametrize("left", ["", OURS], ids=["an empty file of mktemp", "one that a killed process left"])
def test_an_empty_or_earlier_kubeconfig_is_replaced(left: str, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.touch()
    if left:
        path.unlink()
        with kubeconfig_file(path, None) as file:
            file.write(left)
            killed = path.read_text()
        path.write_text(killed)
    with kubeconfig_file(path, None) as file:
        file.write(OURS + "# new\n")
        assert path.read_text().endswith("# new\n")


def test_a_kubeconfig_that_another_cluster_has_written_since_stays(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    with kubeconfig_file(path, None) as first:
        first.write(OURS)
        path.write_text(THEIRS)
    assert path.read_text() == THEIRS


def test_a_kubeconfig_in_the_data_folder_stays(tmp_path: Path) -> None:
    for _ in range(2):
        with kubeconfig_file(None, tmp_path) as file:
            file.write(OURS)
        assert (tmp_path / "kubeconfig").read_text().endswith(OURS)


def test_a_temporary_kubeconfig_is_removed_with_its_folder() -> None:
    with kubeconfig_file(None, None) as file:
        file.write(OURS)
        assert file.path.exists()
    assert not file.path.parent.exists()
