"""What is installed: the files of the image agree with pyproject.toml and constraints.txt, and have hashes only."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from importlib.metadata import requires
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from tools.requirements import (
    FOLDER,
    MACHINES,
    ROOT,
    RequirementsError,
    Target,
    hashes_of,
    lower_bounds,
    needed_by,
    pinned_versions,
    python_of_image,
    wanted,
)

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = pinned_versions()
FILES = ("build.txt", "runtime.txt")
TARGETS = [Target(python_of_image(), machine) for machine in MACHINES]
_PIN = re.compile(r"([A-Za-z0-9_.-]+)==([0-9][A-Za-z0-9.]*) \\")
_HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def read(name: str) -> dict[str, list[str]]:
    """Read a file: the hashes by pin."""
    found: dict[str, list[str]] = {}
    continued = False
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        if continued and (match := _HASH.fullmatch(line)):
            found[list(found)[-1]].append(line.strip(" \\"))
            continued = bool(match[1])
            continue
        assert not continued, line
        match = _PIN.fullmatch(line)
        assert match is not None, line
        found[line.removesuffix(" \\")] = []
        continued = True
    assert not continued
    return found


@pytest.mark.parametrize("name", FILES)
def test_every_package_has_its_pinned_version_and_hashes(name: str) -> None:
    """`make requirements` writes the files anew."""
    pins = read(name)

    assert {canonicalize_name(pin.partition("==")[0]): pin for pin in pins}.items() <= PINS.items()
    hashes = [digest for digests in pins.values() for digest in digests]
    assert len(hashes) == len(set(hashes))
    assert all(1 <= len(digests) <= len(MACHINES) for digests in pins.values())


@pytest.mark.parametrize("path", ["constraints.txt", *(f"requirements/{name}" for name in FILES)])
def test_no_file_contains_an_address(path: str) -> None:
    """Only what is to be installed is recorded, not where it comes from."""
    text = (ROOT / path).read_text(encoding="utf-8")

    assert "://" not in text
    assert not re.search(r"--(?:extra-)?index-url|--find-links|@|\.(?:org|com|io|net)\b", text)


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_for_the_python_of_the_image(name: str) -> None:
    python = python_of_image()

    assert f"# For Python {python} on Linux" in (FOLDER / name).read_text(encoding="utf-8")
    assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]


@pytest.mark.parametrize("name", FILES)
def test_direct_requirements_are_listed(name: str) -> None:
    listed = {canonicalize_name(pin.partition("==")[0]) for pin in read(name)}

    assert {canonicalize_name(requirement.name) for requirement in wanted()[name]} <= listed


def test_the_image_has_exactly_what_its_packages_need() -> None:
    """By the metadata of what is installed here, for the Python of the image."""
    found, pending = set(), list(wanted()["runtime.txt"])
    while pending:
        requirement = pending.pop()
        name = canonicalize_name(requirement.name)
        if name not in found:
            found.add(name)
            for target in TARGETS:
                pending += needed_by(requires(name) or (), target, requirement.extras)

    assert {canonicalize_name(pin.partition("==")[0]) for pin in read("runtime.txt")} == found


@pytest.mark.parametrize(
    "requirement",
    [
        pytest.param(requirement, id=f"{group}-{Requirement(requirement).name}")
        for group, requirements in {
            "runtime": PROJECT["dependencies"],
            **PROJECT["optional-dependencies"],
            "build": [str(each) for each in wanted()["build.txt"]],
        }.items()
        for requirement in requirements
        if not requirement.startswith("springtide")
    ],
)
def test_pinned_versions_meet_the_bounds(requirement: str) -> None:
    wants = Requirement(requirement)
    pin = PINS[canonicalize_name(wants.name)]

    assert Version(pin.partition("==")[2]) in wants.specifier


def test_every_requirement_of_users_has_a_lower_bound() -> None:
    """`make audit` asks for advisories of these versions."""
    extras = {name: group for name, group in PROJECT["optional-dependencies"].items() if name not in ("dev", "bench")}
    names = {Requirement(each).name for group in (PROJECT["dependencies"], *extras.values()) for each in group}

    assert names <= {bound.partition("==")[0] for bound in lower_bounds()}
    assert "aiohttp==3.14.4" in lower_bounds()


def test_the_image_is_built_from_a_base_that_can_be_named_by_digest() -> None:
    """Both stages, and every installation is by hash, or of what was built here."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", "")

    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert re.findall(r"^(ARG|FROM)", text, re.MULTILINE) == ["ARG", "FROM", "FROM"]
    installs = re.findall(r"pip (?:install|wheel) [^&\n]*", text)
    assert len(installs) == 4
    assert all("--no-deps" in install for install in installs)
    assert ["--require-hashes" in install for install in installs] == [True, True, False, False]
    assert "--no-build-isolation" in installs[2]
    assert "--no-index" in installs[3]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_a_missing_python_of_the_image_is_named() -> None:
    done = subprocess.run(
        ["make", "test-image", "IMAGE_PYTHON="], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode
    assert f"There is no Python {python_of_image()} here, which the image has: install it" in done.stdout


class ScriptedTarget(Target):
    """An index with a few packages."""

    def wheels(self, requirements: Any) -> list[dict[str, Any]]:
        """Return what the packages need."""
        needs = {
            "a==1": ["b>=1; python_version < '3.14'", "c; sys_platform == 'win32'", "d[fast]"],
            "b==2": ["a"],
            "d==3": ["e; extra == 'fast'", "f; extra == 'slow'"],
            "e==4": [],
        }
        return [
            {
                "metadata": {"name": pin.partition("==")[0].upper(), "requires_dist": needs[pin]},
                "download_info": {"archive_info": {"hashes": {"sha256": f"{pin} for {self.machine}"}}},
            }
            for pin in requirements
        ]


def test_hashes_are_of_all_that_the_target_needs() -> None:
    pins = {canonicalize_name(pin.partition("==")[0]): pin for pin in ("a==1", "b==2", "d==3", "e==4")}
    target = ScriptedTarget("3.13", "x86_64")

    found = hashes_of([Requirement("a")], pins, target)
    assert found == {pin: f"{pin} for x86_64" for pin in pins.values()}
    assert "b==2" not in hashes_of([Requirement("a")], pins, ScriptedTarget("3.14", "x86_64"))
    del pins[canonicalize_name("e")]
    with pytest.raises(RequirementsError, match=r"constraints\.txt has no version of e$"):
        hashes_of([Requirement("a")], pins, target)
