"""Write the files in `requirements/`: what the image installs, in pinned versions with the hashes of their wheels.

    python tools/requirements.py
    python tools/requirements.py --lower-bounds     print NAME==VERSION for each lower bound in pyproject.toml

`runtime.txt` has what the package needs with the extras of the image, `build.txt` what builds it. Versions are those of
`constraints.txt`, for the Python and the machines of the image, which `Containerfile` names. pip asks its own index for
the wheels; the files contain no addresses, so any index with the same wheels will do. This needs the network; the
tests check the files without it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "requirements"
IMAGE_EXTRAS = ("aws", "holidays")
MACHINES = ("x86_64", "aarch64")
_GLIBC = range(5, 42)
"""Wheels for glibc 2.5 to 2.41 can be installed: the image has Debian's."""
_HEADER = """\
# Written by `make requirements` from pyproject.toml and constraints.txt. Do not edit.
# For Python {python} on Linux ({machines}). No addresses: any index with these files will do.
"""


class RequirementsError(Exception):
    """The files cannot be written; the message says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """A Python on a machine."""

    python: str
    machine: str

    def environment(self) -> dict[str, str]:
        """Return the values of environment markers."""
        return {
            "implementation_name": "cpython",
            "implementation_version": f"{self.python}.0",
            "os_name": "posix",
            "platform_machine": self.machine,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": "Linux",
            "platform_version": "",
            "python_full_version": f"{self.python}.0",
            "python_version": self.python,
            "sys_platform": "linux",
            "extra": "",
        }

    def wheels(self, requirements: Iterable[str]) -> list[dict[str, Any]]:
        """Ask pip which wheels it would install; returns its report of each."""
        platforms = [f"manylinux_2_{minor}_{self.machine}" for minor in reversed(_GLIBC)]
        platforms += [f"manylinux{name}_{self.machine}" for name in ("2014", "2010", "1")]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(  # noqa: S603 - the interpreter that runs this
                [
                    *(sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"),
                    *("--dry-run", "--no-deps", "--ignore-installed", "--report=-", f"--target={folder}"),
                    *("--only-binary=:all:", "--implementation=cp", f"--python-version={self.python}"),
                    *(f"--platform={platform}" for platform in platforms),
                    *requirements,
                ],
                capture_output=True,
                text=True,
                check=False,
            )
        if done.returncode:
            raise RequirementsError(f"pip found no wheels for Python {self.python} on {self.machine}:\n{done.stderr}")
        found: list[dict[str, Any]] = json.loads(done.stdout)["install"]
        return found


def python_of_image() -> str:
    """Return the Python version of the image, such as `3.13`."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    found = re.search(r"^ARG BASE=python:(\d+\.\d+)", text, re.MULTILINE)
    if found is None:
        raise RequirementsError("Containerfile has no line ARG BASE=python:VERSION")
    return found[1]


def pinned_versions() -> dict[NormalizedName, str]:
    """Read the lines NAME==VERSION of `constraints.txt`; the names as they are written there."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(pin.partition("==")[0]): pin for pin in pins}


def wanted() -> dict[str, list[Requirement]]:
    """List the direct requirements of each file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    runtime = [*project["project"]["dependencies"], *(each for name in IMAGE_EXTRAS for each in extras[name])]
    return {
        "runtime.txt": [Requirement(each) for each in runtime],
        "build.txt": [Requirement(each) for each in project["build-system"]["requires"]],
    }


def lower_bounds() -> list[str]:
    """List the oldest versions that pyproject.toml allows, as pins."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [project["project"]["dependencies"], *project["project"]["optional-dependencies"].values()]
    return sorted(
        f"{requirement.name}=={bound.version}"
        for group in (*groups, project["build-system"]["requires"])
        for requirement in map(Requirement, group)
        for bound in requirement.specifier
        if bound.operator == ">="
    )


def needed_by(requirements: Iterable[str], target: Target, extras: Iterable[str] = ()) -> Iterator[Requirement]:
    """Select the requirements of a package that apply to a target."""
    for requirement in map(Requirement, requirements):
        marker = requirement.marker
        environments = [{**target.environment(), "extra": extra} for extra in ("", *extras)]
        if marker is None or any(marker.evaluate(environment) for environment in environments):
            yield requirement


def hashes_of(
    requirements: Iterable[Requirement], pins: Mapping[NormalizedName, str], target: Target
) -> dict[str, str]:
    """Find the wheels of requirements, and of all that these need; returns their hashes by pin."""
    found: dict[str, str] = {}
    pending = list(requirements)
    while pending:
        names = {canonicalize_name(each.name): sorted(each.extras) for each in pending}
        if missing := [name for name in names if name not in pins]:
            raise RequirementsError(f"constraints.txt has no version of {', '.join(sorted(missing))}")
        new = sorted(pins[name] for name in names if pins[name] not in found)
        pending = []
        for wheel in target.wheels(new) if new else ():
            name = canonicalize_name(wheel["metadata"]["name"])
            found[pins[name]] = wheel["download_info"]["archive_info"]["hashes"]["sha256"]
            pending += needed_by(wheel["metadata"].get("requires_dist", ()), target, names[name])
    return found


def file_text(requirements: Iterable[Requirement], pins: Mapping[NormalizedName, str], python: str) -> str:
    """Write a file: every pin with the hashes of its wheels for all machines."""
    hashes: dict[str, set[str]] = {}
    for machine in MACHINES:
        for pin, digest in hashes_of(requirements, pins, Target(python, machine)).items():
            hashes.setdefault(pin, set()).add(digest)
    lines = [
        f"{pin} \\\n" + " \\\n".join(f"    --hash=sha256:{digest}" for digest in sorted(digests)) + "\n"
        for pin, digests in sorted(hashes.items(), key=lambda entry: canonicalize_name(entry[0].partition("==")[0]))
    ]
    return _HEADER.format(python=python, machines=", ".join(MACHINES)) + "".join(lines)


def main(*arguments: str) -> int:
    """Write the files, or print the lower bounds."""
    if arguments == ("--lower-bounds",):
        print("\n".join(lower_bounds()))
        return 0
    try:
        python, pins = python_of_image(), pinned_versions()
        texts = {name: file_text(requirements, pins, python) for name, requirements in wanted().items()}
    except RequirementsError as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        print(f"{FOLDER.name}/{name}: {text.count('==')} packages, {text.count('--hash')} hashes")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
