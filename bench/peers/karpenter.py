"""Builds and runs the Go programs: Karpenter's scheduler on our pods, and Karpenter's own benchmark of it.

Both are built once and kept in the user's cache. Times are CPU seconds of all threads, and seconds of the clock.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

from bench.peers.replay import Plan

_SOURCES: Final = Path(__file__).parent
_SCHEDULING: Final = "sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
_OWN_BENCHMARK: Final = ("-tags", "test_performance", _SCHEDULING)

Preferences = Literal["Respect", "Ignore"]


class NoGo(Exception):
    """There is no Go that is new enough; the message says what is needed."""


@dataclass(frozen=True, slots=True)
class OwnResult:
    """What a run of Karpenter's own benchmark printed, and the CPU time of its process."""

    seconds: float
    cpu_seconds: float
    nodes: int


class Karpenter:
    """The two programs. Making one builds them where that has not been done before."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        go = _go(environment)
        files = sorted([*_SOURCES.glob("*.go"), _SOURCES / "go.mod", _SOURCES / "go.sum"])
        digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:12]
        folder = _cache(environment) / f"peers-{digest}"
        folder.mkdir(parents=True, exist_ok=True)
        self._solve = folder / "solve"
        self._benchmark = folder / "benchmark"
        _build(go, environment, self._solve, "build", ".")
        _build(go, environment, self._benchmark, "test", "-c", *_OWN_BENCHMARK)

    def types(self) -> list[dict[str, Any]]:
        """Return the instance types of Karpenter's fake provider, as a document for `plan --types`."""
        return cast("list[dict[str, Any]]", self._run("types", ""))

    def plan(self, pods: Sequence[Mapping[str, Any]], preferences: Preferences = "Respect") -> Plan:
        """Return the plan of Karpenter's scheduler; `SystemExit` if it leaves pods without a node."""
        answer = self._run("solve", json.dumps({"pods": pods, "preferences": preferences}))
        if answer["unplaceable"]:
            raise SystemExit(f"Karpenter found no node for {answer['unplaceable']} pods")
        return cast("Plan", answer)

    def own_benchmark(self, name: str) -> OwnResult:
        """Run one of Karpenter's own benchmarks, once: a second iteration would fill the nodes of the first."""
        flags = ("-test.run=^$", f"-test.bench=^{name}$", "-test.benchtime=1x")
        before = _children_cpu()
        done = subprocess.run([self._benchmark, *flags], capture_output=True, text=True, check=False)
        found = re.search(rf"^{name}\S*\s+1\s+(\d+) ns/op\s+([\d.]+) nodes", done.stdout, re.MULTILINE)
        if done.returncode or found is None:
            raise SystemExit(f"{name} failed:\n{done.stdout}{done.stderr}")
        return OwnResult(int(found[1]) / 1e9, _children_cpu() - before, round(float(found[2])))

    def _run(self, command: str, given: str) -> Any:
        done = subprocess.run([self._solve, command], input=given, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"Karpenter's scheduler failed:\n{done.stderr}")
        return json.loads(done.stdout)


def _build(go: str, environment: Mapping[str, str], program: Path, *command: str) -> None:
    if program.exists():
        return
    print(f"building {program.name} (once for each version of it) ... ", end="", file=sys.stderr, flush=True)
    began = time.monotonic()
    unfinished = program.with_name(f"{program.name}.{os.getpid()}")
    done = subprocess.run(
        [go, *command[:-1], "-trimpath", "-o", unfinished, command[-1]],
        cwd=_SOURCES,
        env=_go_environment(environment),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"failed\n{done.stderr}")
    unfinished.rename(program)
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)


def _go(environment: Mapping[str, str]) -> str:
    """Return the path of a Go that is new enough."""
    wanted = re.search(r"^go ([\d.]+)$", (_SOURCES / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    assert wanted is not None
    needed = f"the comparison with Karpenter needs Go {wanted[1]} or newer"
    go = shutil.which("go", path=environment.get("PATH"))
    if go is None:
        msg = f"{needed}, and there is none"
        raise NoGo(msg)
    reported = subprocess.run(
        [go, "env", "GOVERSION"], env=_go_environment(environment), capture_output=True, text=True, check=False
    )
    version = re.match(r"go([\d.]+)", reported.stdout)
    if version is None or _numbers(version[1]) < _numbers(wanted[1]):
        msg = f"{needed}, and this one is {reported.stdout.strip() or 'broken'}"
        raise NoGo(msg)
    return go


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.strip(".").split("."))


def _go_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Keep what says where modules come from; drop what would change how programs are built."""
    fixed = {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    return {**environment, **fixed}


def _cache(environment: Mapping[str, str]) -> Path:
    named = environment.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "springtide"


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
