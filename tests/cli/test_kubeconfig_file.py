"""The kubeconfig that `springtide up` hands out: where it is, who can read it, and whose file it never touches."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from springtide.cli.kubeconfig_file import kubeconfig_file

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
