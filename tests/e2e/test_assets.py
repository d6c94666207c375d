"""Where the programs come from, and how they are built: with a compiler of the test's own, so nothing is built here."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from tests.e2e.assets import Assets, AssetsMissing, find
from tests.e2e.building import PROGRAMS, SOURCES, build, flags, kubernetes_version

_COMPILER = """#!/bin/sh
case "$1" in
env) echo {version} ;;
build)
    echo "$PWD" "$@" >> {log}
    while [ "$1" != -o ]; do shift; done
    {before}
    echo program > "$2"; chmod +x "$2" ;;
esac
"""


class Compiler:
    """A `go` that writes down what it is asked to build."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "log"

    def install(self, *, version: str = "go1.26.3", before: str = ":") -> None:
        """Put it where it is found; `before` is done before a program is written."""
        path = self._folder / "go"
        path.write_text(_COMPILER.format(version=version, log=self._log, before=before))
        path.chmod(0o755)

    def built(self) -> list[str]:
        """List the packages that were built, in order."""
        return [line.split()[-1] for line in self.lines()]

    def lines(self) -> list[str]:
        """List the calls, each after the folder in which it was made."""
        return self._log.read_text().splitlines() if self._log.exists() else []


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    """Return a compiler, and let no other be found."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return Compiler(folder)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        pytest.param({"SPRINGTIDE_ASSETS": "/a", "KUBEBUILDER_ASSETS": "/b"}, "/a", id="ours-first"),
        pytest.param({"KUBEBUILDER_ASSETS": "/b"}, "/b", id="kubebuilder"),
        pytest.param({"SPRINGTIDE_ASSETS": "", "KUBEBUILDER_ASSETS": "/b"}, "/b", id="empty-is-unset"),
    ],
)
def test_a_named_folder_is_used(environment: dict[str, str], expected: str) -> None:
    assert str(find(environment).folder) == expected


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssetsMissing, match=f"SPRINGTIDE_ASSETS has no helm in {tmp_path}"):
        Assets(tmp_path, "SPRINGTIDE_ASSETS").path("helm")


@pytest.mark.parametrize(
    ("version", "words"),
    [
        pytest.param("go1.25.9", "needs Go 1.26 or newer, and this one is go1.25.9", id="old"),
        pytest.param("", "and this one is broken", id="broken"),
    ],
)
def test_an_unsuitable_compiler_is_reported_with_a_remedy(
    compiler: Compiler, tmp_path: Path, version: str, words: str
) -> None:
    compiler.install(version=version)
    with pytest.raises(AssetsMissing, match=words) as missing:
        find({"XDG_CACHE_HOME": str(tmp_path)})

    assert "SPRINGTIDE_ASSETS" in str(missing.value)


def test_a_missing_compiler_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AssetsMissing, match=r"needs Go 1\.26 or newer, and there is none"):
        find({"XDG_CACHE_HOME": str(tmp_path)})


def test_everything_is_built_once(compiler: Compiler, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line tells of each program, and the second run finds them."""
    compiler.install()
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    first, second = find(environment), find(environment)

    assert first == second
    assert [package for _, package in PROGRAMS.values()] == compiler.built()
    assert all(os.access(first.path(name), os.X_OK) for name in PROGRAMS)
    assert len(PROGRAMS) == len(capsys.readouterr().err.splitlines())


def test_helm_is_built_in_its_own_module_and_the_rest_in_one(compiler: Compiler, tmp_path: Path) -> None:
    compiler.install()
    build(tmp_path / "programs")
    folders = {line.split()[-1]: line.split()[0] for line in compiler.lines()}

    assert folders.pop(PROGRAMS["helm"][1]) == str(SOURCES / "helm")
    assert set(folders.values()) == {str(SOURCES)}


def test_an_interrupted_build_resumes(compiler: Compiler, tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    compiler.install(before='case "$2" in *scheduler*) echo torn > "$2"; exit 1;; esac')
    with pytest.raises(RuntimeError, match="kube-scheduler does not build"):
        build(folder)
    finished = compiler.built()[:-1]
    assert not folder.exists()
    compiler.install()
    build(folder)

    assert sorted(PROGRAMS) == sorted(path.name for path in folder.iterdir())
    assert all((folder / name).read_text() == "program\n" for name in PROGRAMS)
    assert all(compiler.built().count(package) == 1 for package in finished)


def test_concurrent_builders_build_once(compiler: Compiler, tmp_path: Path) -> None:
    compiler.install(before="sleep 0.02")
    folder = tmp_path / "programs"
    builders = [threading.Thread(target=build, args=(folder,)) for _ in range(3)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()

    assert len(PROGRAMS) == len(compiler.built())


def test_programs_are_linked_with_their_version() -> None:
    """Else kubectl cannot parse it."""
    linked = flags()[-1]

    assert f"-X k8s.io/component-base/version.gitVersion={kubernetes_version()} " in linked
    assert kubernetes_version().startswith("v1.36.")


def test_the_staging_modules_match_kubernetes() -> None:
    staging = kubernetes_version().replace("v1.", "v0.", 1)
    lines = [line for line in (SOURCES / "go.mod").read_text().splitlines() if " => k8s.io/" in line]

    assert len(lines) > 20
    assert all(line.endswith(f" {staging}") for line in lines)
