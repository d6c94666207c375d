"""Builds etcd, Kubernetes, helm and `filters/` from source with the Go modules in `controlplane/`, once.

A build that is interrupted goes on where it stopped. The folder appears under its name only when all programs are in
it, and a lock keeps two builders from doing the same work.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parent / "controlplane"
PROGRAMS: Final = {
    "etcd": (".", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": (".", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-controller-manager": (".", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    "kube-scheduler": (".", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kubectl": (".", "k8s.io/kubernetes/cmd/kubectl"),
    "helm": ("helm", "helm.sh/helm/v4/cmd/helm"),
}
"""Every program with its module and its package."""
FILTERS: Final = Path(__file__).parent / "filters" / "main.go"
"""A program of ours that runs kube-scheduler's plugins; it is built in the module that has kube-scheduler."""
_STAMPED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
"""Programs with a version set at link time: kubectl and helm refuse a server whose version they cannot parse."""


class CannotBuild(Exception):
    """The machine lacks what a build needs; the message says what."""


def build(folder: Path) -> None:
    """Make a folder with all programs, unless it is there; raises `CannotBuild` where there is no Go for it."""
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    go = _go()
    with _alone(folder.with_suffix(".lock")):
        if folder.is_dir():
            return
        unfinished = folder.with_suffix(".unfinished")
        unfinished.mkdir(exist_ok=True)
        for number, name in enumerate(PROGRAMS, start=1):
            if not (unfinished / name).exists():
                _build_one(go, *PROGRAMS[name], unfinished / name, f"{number} of {len(PROGRAMS)}, only this once")
        unfinished.rename(folder)


def build_filters(path: Path) -> None:
    """Build the program that runs kube-scheduler's plugins, unless it is there; raises `CannotBuild`.

    It has a file of its own, so that a change in it does not build the control plane again.
    """
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    go = _go()
    with _alone(path.with_suffix(".lock")):
        if not path.exists():
            _build_one(go, ".", str(FILTERS), path, "once for each version of it")


def kubernetes_version() -> str:
    """Return the version of Kubernetes that is built, such as `v1.36.3`."""
    found = re.search(r"^\s*k8s\.io/kubernetes (v\S+)", _text("go.mod"), re.MULTILINE)
    assert found is not None
    return found[1]


def flags() -> tuple[str, ...]:
    """Return the flags that every program is built with."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    linked = [f"-X {package}.{name}={value}" for package in _STAMPED for name, value in stamps.items()]
    return "-trimpath", "-buildvcs=false", f"-ldflags=-s -w {' '.join(linked)}"


def _build_one(go: str, module: str, package: str, program: Path, remark: str) -> None:
    _tell(f"building {program.name} ({remark}) ... ", end="")
    began = time.monotonic()
    torn = program.with_name(f"{program.name}.new")
    command = [go, "build", *flags(), "-o", str(torn), package]
    done = subprocess.run(
        command, cwd=SOURCES / module, env=_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        _tell("failed")
        msg = f"{program.name} does not build:\n{done.stderr}"
        raise RuntimeError(msg)
    torn.rename(program)
    _tell(f"{time.monotonic() - began:.0f} s")


def _go() -> str:
    """Return the path of a Go that is new enough."""
    wanted = re.search(r"^go (\d+)\.(\d+)", _text("go.mod"), re.MULTILINE)
    assert wanted is not None
    needed = f"building the control plane needs Go {wanted[1]}.{wanted[2]} or newer"
    go = shutil.which("go")
    if go is None:
        msg = f"{needed}, and there is none"
        raise CannotBuild(msg)
    reported = subprocess.run([go, "env", "GOVERSION"], env=_environment(), capture_output=True, text=True, check=False)
    version = re.match(r"go(\d+)\.(\d+)", reported.stdout)
    if version is None or (int(version[1]), int(version[2])) < (int(wanted[1]), int(wanted[2])):
        msg = f"{needed}, and this one is {reported.stdout.strip() or 'broken'}"
        raise CannotBuild(msg)
    return go


def _environment() -> dict[str, str]:
    """Keep what says where modules come from; drop what would change how they are built."""
    return {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GOTOOLCHAIN": "local", "GOWORK": "off"}


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _tell("another process builds the control plane: waiting")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _text(file: str) -> str:
    return (SOURCES / file).read_text(encoding="utf-8")


def _tell(words: str, *, end: str = "\n") -> None:
    sys.stderr.write(words + end)
    sys.stderr.flush()
