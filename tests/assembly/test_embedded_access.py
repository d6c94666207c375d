"""What clients of an embedded cluster need is kept with it, for as long as anybody believes it.

The kubeconfig that `springtide up` hands out: where it is, who can read it, and whose file it never touches.
"""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from springtide.assembly.embedded_access import kubeconfig_file, load_credentials

NOW = 1_800_000_000
DAY = 86_400


class Drawer:
    """Keeps things by name."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def get(self, name: str) -> bytes | None:
        """Give what is kept under a name."""
        return self.kept.get(name)

    def set(self, name: str, value: bytes) -> None:
        """Keep something."""
        self.kept[name] = value


@pytest.mark.parametrize(
    ("later", "same"),
    [
        pytest.param(0, True, id="at once"),
        pytest.param(3649 * DAY, True, id="after years"),
        pytest.param(3651 * DAY, False, id="when they have ended"),
        pytest.param(-DAY, False, id="when the clock was wrong before"),
    ],
)
def test_they_stay_the_same_while_they_are_good(later: int, same: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    drawer = Drawer()
    monkeypatch.setattr("springtide.assembly.embedded_access.time.time", lambda: NOW)
    first = load_credentials(drawer)
    monkeypatch.setattr("springtide.assembly.embedded_access.time.time", lambda: NOW + later)

    assert (load_credentials(drawer) == first) is same


def test_without_a_place_they_are_new_each_time() -> None:
    assert load_credentials(None) != load_credentials(None)


def test_they_are_shown_to_nobody_who_prints_them() -> None:
    made = load_credentials(None)

    assert made.token not in repr(made)
    assert "PRIVATE KEY" not in repr(made)


THEIRS = "apiVersion: v1\nkind: Config\nclusters: []\n"
OURS = "apiVersion: v1\nkind: Config\ncurrent-context: springtide\n"


def test_one_that_was_asked_for_is_there_once_it_is_written_and_gone_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "kubeconfig"
    with kubeconfig_file(path, None) as file:
        assert not path.exists()
        file.write(OURS)
        assert path.read_text().endswith(OURS)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()


def test_the_file_of_somebody_else_is_neither_replaced_nor_removed(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(THEIRS)
    with pytest.raises(OSError, match="choose another"), kubeconfig_file(path, None):
        pytest.fail("it is begun")
    assert path.read_text() == THEIRS


def test_a_cluster_that_does_not_come_up_removes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.touch()
    with pytest.raises(RuntimeError), kubeconfig_file(path, None):
        raise RuntimeError
    assert path.exists()


@pytest.mark.parametrize("left", ["", OURS], ids=["an empty file of mktemp", "one that a killed process left"])
def test_what_nobody_needs_is_replaced(left: str, tmp_path: Path) -> None:
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


def test_one_that_another_cluster_has_written_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    with kubeconfig_file(path, None) as first:
        first.write(OURS)
        path.write_text(THEIRS)
    assert path.read_text() == THEIRS


def test_one_that_belongs_to_kept_data_stays(tmp_path: Path) -> None:
    for _ in range(2):
        with kubeconfig_file(None, tmp_path) as file:
            file.write(OURS)
        assert (tmp_path / "kubeconfig").read_text().endswith(OURS)


def test_one_that_nobody_asked_for_goes_with_its_folder() -> None:
    with kubeconfig_file(None, None) as file:
        file.write(OURS)
        assert file.path.exists()
    assert not file.path.parent.exists()
