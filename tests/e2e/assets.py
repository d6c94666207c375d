"""Where the programs of a real control plane come from.

In this order: a folder that the environment names, the user's cache, or a build from source into that cache, which
takes minutes and happens once for each set of versions. `python -m tests.e2e.assets` prints the folder, and builds what
is missing.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tests.e2e.building import FILTERS, PROGRAMS, SOURCES, CannotBuild, build, build_filters, flags

VARIABLES = ("SPRINGTIDE_ASSETS", "KUBEBUILDER_ASSETS")
"""Folders that hold the programs already; the first that is set counts."""


class AssetsMissing(Exception):
    """There is no such program, and none can be made; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Assets:
    """A folder with programs."""

    folder: Path
    origin: str
    """Who named the folder, in words."""

    def path(self, name: str) -> Path:
        """Return the path of a program; raises `AssetsMissing`."""
        path = self.folder / name
        if not os.access(path, os.X_OK):
            msg = f"{self.origin} has no {name} in {self.folder}, expected one that can be run"
            raise AssetsMissing(msg)
        return path


def find(environment: Mapping[str, str] = os.environ) -> Assets:
    """Return the programs, and build them if necessary; raises `AssetsMissing`."""
    for variable in VARIABLES:
        if named := environment.get(variable):
            return Assets(Path(named), variable)
    folder = cache(environment) / f"controlplane-{fingerprint()}"
    try:
        build(folder)
    except CannotBuild as failure:
        msg = f"{failure}; or name a folder that has {', '.join(PROGRAMS)} in {VARIABLES[0]}"
        raise AssetsMissing(msg) from None
    return Assets(folder, "the cache")


def find_filters(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the program that runs kube-scheduler's plugins, and build it if necessary; raises `AssetsMissing`."""
    digest = sha256(fingerprint().encode() + FILTERS.read_bytes()).hexdigest()[:12]
    path = cache(environment) / f"filters-{digest}"
    try:
        build_filters(path)
    except CannotBuild as failure:
        msg = f"no agreement with kube-scheduler is tested: {failure}"
        raise AssetsMissing(msg) from None
    return path


def cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder in which this user keeps what can be made again."""
    named = environment.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "springtide"


def fingerprint() -> str:
    """Name everything that decides what a build comes to: the versions of all modules, the flags and the machine."""
    digest = sha256()
    for part in (platform.system(), platform.machine(), *flags()):
        digest.update(part.encode() + b"\0")
    for file in ("go.mod", "go.sum", "helm/go.mod", "helm/go.sum"):
        digest.update((SOURCES / file).read_bytes())
    return digest.hexdigest()[:12]


def main() -> int:
    """Print the folder of the programs, or with `filters` that program; both are built where it must be."""
    try:
        found = find_filters() if sys.argv[1:] == ["filters"] else find().folder
        sys.stdout.write(f"{found}\n")
    except AssetsMissing as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
