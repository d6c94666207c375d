"""Runs the tests of one folder against mutants, in processes that are forked after the tests were collected.

Collecting takes seconds, and most mutants fail a test within milliseconds. So a folder is collected once. Forked copies
run the tests without a mutant first and note which tests reach which mutant; then one copy for each mutant replaces the
code of the function and runs the tests that reach it, until one fails. Code that runs while modules are imported cannot
be replaced afterwards: such a mutant gets a new process, whose import of the file is changed. Files are never written.
"""

from __future__ import annotations

import ast
import builtins
import gc
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import pytest
from tools.mutants.operators import Mutant, own_lines

OPTIONS = ("-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not soak and not e2e and not exhaustive", "-s")
_NEEDS_IMPORT = 77
"""The exit code of a copy that cannot replace the code of a function."""
_PROBE = "__springtide_mutant_reached__"
_MEMORY = 6 << 30


@dataclass(slots=True)
class Baseline:
    """What the tests do without a mutant."""

    seconds: dict[str, float] = field(default_factory=dict)
    """How much CPU time each test takes; tests that fail are missing."""
    failed: list[str] = field(default_factory=list)
    reached: dict[Mutant, set[str]] = field(default_factory=dict)
    """The tests that run the statement of each mutant."""


@dataclass(frozen=True, slots=True)
class MutantResult:
    """What became of a mutant."""

    mutant: Mutant
    status: str
    """killed, timeout, survived, or unreached where no test runs the line."""
    tests: int
    """How many tests could notice it."""
    seconds: float

    @property
    def is_killed(self) -> bool:
        """Return whether a test notices the mutant; an endless loop is noticed by its time limit."""
        return self.status in ("killed", "timeout")


class _ImportTracer:
    """Notes which functions of some files are called while modules are imported and tests are collected."""

    def __init__(self, paths: set[str]) -> None:
        self.called: set[tuple[str, str]] = set()
        self._paths = paths

    def start(self) -> None:
        sys.settrace(self._called)

    def stop(self) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, _event: str, _argument: Any) -> None:
        code = frame.f_code
        if code.co_filename in self._paths:
            self.called.add((code.co_filename, code.co_qualname))


class FolderRun:
    """A pytest plugin: instead of running the tests once, it runs them against mutants."""

    def __init__(
        self, root: Path, mutants: Sequence[Mutant], jobs: int, report: Callable[[MutantResult], None]
    ) -> None:
        self.baseline = Baseline()
        self._root = root
        self._mutants = mutants
        self._jobs = jobs
        self._report = report
        self._tracer = _ImportTracer({str(root / mutant.path) for mutant in mutants})
        self._tracer.start()

    def pytest_configure(self) -> None:
        """Import what is changed; not earlier, since pytest rewrites plugins that are imported among it."""
        for path in dict.fromkeys(mutant.path for mutant in self._mutants):
            importlib.import_module(_module_of(path))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the baseline, and then each mutant."""
        self._tracer.stop()
        if session.testsfailed:
            msg = "the tests cannot be collected"
            raise pytest.UsageError(msg)
        with tempfile.TemporaryDirectory(prefix="springtide-mutants-") as folder:
            self._run_baseline(session, Path(folder))
            self._run_mutants(session, Path(folder))
        return True

    def _run_baseline(self, session: pytest.Session, folder: Path) -> None:
        by_file: dict[Path, list[pytest.Item]] = {}
        for item in session.items:
            by_file.setdefault(item.path, []).append(item)
        parts: list[list[pytest.Item]] = [[] for _ in range(self._jobs)]
        for items in by_file.values():
            min(parts, key=len).extend(items)
        processes = _Processes()
        for number, part in enumerate(parts):
            if part:
                processes.fork(partial(self._baseline_part, part, folder / f"{number}.json"))
        for _ in processes.finished():
            pass
        for number, part in enumerate(parts):
            if part:
                self._merge(json.loads((folder / f"{number}.json").read_text()))

    def _baseline_part(self, items: list[pytest.Item], output: Path) -> int:
        seconds: dict[str, float] = {}
        failed: list[str] = []
        reached: dict[int, list[str]] = {}
        current: set[int] = set()
        add_probes(self._root, self._mutants, current.add)

        def end(item: pytest.Item, passed: bool, used: float) -> bool:
            if passed:
                seconds[item.nodeid] = used
            else:
                failed.append(item.nodeid)
            for number in current:
                reached.setdefault(number, []).append(item.nodeid)
            current.clear()
            return True

        run_items(items, end)
        output.write_text(json.dumps({"seconds": seconds, "failed": failed, "reached": reached}))
        return 0

    def _merge(self, part: dict[str, Any]) -> None:
        self.baseline.seconds.update(part["seconds"])
        self.baseline.failed.extend(part["failed"])
        for number, tests in part["reached"].items():
            self.baseline.reached.setdefault(self._mutants[int(number)], set()).update(tests)

    def _run_mutants(self, session: pytest.Session, folder: Path) -> None:
        processes = _Processes()
        order = [item.nodeid for item in session.items]
        waiting = [(mutant, False) for mutant in reversed(self._mutants)]
        running: dict[int, tuple[Mutant, bool, int, float]] = {}
        while waiting or running:
            while waiting and len(running) < self._jobs:
                mutant, anew = waiting.pop()
                called = (str(self._root / mutant.path), mutant.outermost) in self._tracer.called
                anew = anew or not mutant.outermost or called
                chosen = select_tests(mutant, self.baseline, order, needs_import=anew)
                if not chosen:
                    self._report(MutantResult(mutant, "unreached", 0, 0.0))
                    continue
                cpu = sum(self.baseline.seconds[one] for one in chosen)
                base = folder / f"{mutant.start}-{mutant.end}-{time.monotonic_ns()}"
                run = partial(self._run_anew, mutant, chosen, base)
                if not anew:
                    run = partial(self._run_replaced, session, mutant, chosen)
                pid = processes.fork(run, cpu=5 * cpu + (60 if anew else 5), wall=30 * cpu + 180)
                running[pid] = (mutant, anew, len(chosen), time.monotonic())
            for pid, status in processes.finished(one=True):
                mutant, anew, tests, began = running.pop(pid)
                if status == _NEEDS_IMPORT:
                    waiting.append((mutant, True))
                    continue
                name = {0: "survived", 1: "killed", 2: "killed", 4: "killed", -1: "timeout"}.get(status, "killed")
                self._report(MutantResult(mutant, name, tests, round(time.monotonic() - began, 2)))

    def _run_replaced(self, session: pytest.Session, mutant: Mutant, chosen: list[str]) -> int:
        if not replace_function(self._root, mutant):
            return _NEEDS_IMPORT
        places = {nodeid: place for place, nodeid in enumerate(chosen)}
        items = sorted((item for item in session.items if item.nodeid in places), key=lambda one: places[one.nodeid])
        killed = False

        def end(_item: pytest.Item, passed: bool, _used: float) -> bool:
            nonlocal killed
            killed = killed or not passed
            return passed

        run_items(items, end)
        return int(killed)

    def _run_anew(self, mutant: Mutant, chosen: list[str], base: Path) -> int:
        task = {
            "path": str(self._root / mutant.path),
            "source": mutant.applied_to((self._root / mutant.path).read_bytes()).decode(),
            "tests": chosen,
        }
        base.with_suffix(".task").write_text(json.dumps(task))
        os.execv(sys.executable, [sys.executable, "-m", "tools.mutants.runs", str(base.with_suffix(".task"))])  # noqa: S606


def select_tests(mutant: Mutant, baseline: Baseline, order: list[str], *, needs_import: bool) -> list[str]:
    """Return the tests that may notice a mutant: those that name its module first, then those of the quickest files."""
    reaching = baseline.reached.get(mutant, set())
    known = baseline.seconds
    chosen = [one for one in order if one in known and (needs_import or one in reaching)]
    costs: dict[str, float] = {}
    for one in chosen:
        file = one.partition("::")[0]
        costs[file] = costs.get(file, 0.0) + known[one]
    module = _module_of(mutant.path)
    names = {file: module in Path(file).read_text() for file in costs} if needs_import else dict.fromkeys(costs, True)

    def rank(nodeid: str) -> tuple[bool, float, str]:
        file = nodeid.partition("::")[0]
        return not names[file], costs[file], file

    return sorted(chosen, key=rank)


def _module_of(path: str) -> str:
    parts = Path(path).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def replace_function(root: Path, mutant: Mutant) -> bool:
    """Replace the code of the function that a mutant changes; False where that is not possible."""
    path = root / mutant.path
    source = path.read_bytes()
    changed = compile(mutant.applied_to(source), str(path), "exec", dont_inherit=True)
    return _replace_codes({path: changed}, {(str(path), mutant.outermost)}) > 0


def add_probes(root: Path, mutants: Sequence[Mutant], reached: Callable[[int], None]) -> None:
    """Let the statements of mutants call a function with the number of the mutant before they run."""
    setattr(builtins, _PROBE, reached)
    codes: dict[Path, CodeType] = {}
    wanted: dict[str, dict[tuple[int, int], list[int]]] = {}
    for number, mutant in enumerate(mutants):
        wanted.setdefault(mutant.path, {}).setdefault(mutant.reach, []).append(number)
    for path, places in wanted.items():
        tree = ast.parse((root / path).read_bytes())
        for node in ast.walk(tree):
            for part in ("body", "orelse", "finalbody"):
                statements = getattr(node, part, None)
                if isinstance(statements, list) and not isinstance(node, ast.Module | ast.ClassDef):
                    setattr(node, part, _with_probes(statements, places))
        codes[root / path] = compile(ast.fix_missing_locations(tree), str(root / path), "exec", dont_inherit=True)
    _replace_codes(codes, {(str(root / mutant.path), mutant.outermost) for mutant in mutants if mutant.outermost})


def _with_probes(statements: list[ast.stmt], places: dict[tuple[int, int], list[int]]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for statement in statements:
        for number in places.get(own_lines(statement), ()):
            call = ast.Call(ast.Name(_PROBE, ast.Load()), [ast.Constant(number)], [])
            found.append(ast.copy_location(ast.Expr(call), statement))
        found.append(statement)
    return found


def _replace_codes(codes: dict[Path, CodeType], functions: set[tuple[str, str]]) -> int:
    """Give functions their code from changed modules; functions whose variables would differ are left as they are."""
    changed: dict[tuple[str, str], list[CodeType]] = {}
    for code in codes.values():
        for inner in _codes_of(code):
            changed.setdefault((inner.co_filename, inner.co_qualname), []).append(inner)
    replaced = 0
    for function in gc.get_objects():
        if type(function) is not FunctionType:
            continue
        place = (function.__code__.co_filename, function.__code__.co_qualname)
        if place in functions:
            # Several functions have one name where a property has a setter, or a function has overloads.
            fitting = [
                one
                for one in changed.get(place, ())
                if one.co_firstlineno == function.__code__.co_firstlineno
                and one.co_freevars == function.__code__.co_freevars
            ]
            if len(fitting) == 1:
                function.__code__ = fitting[0]
                replaced += 1
    return replaced


def _codes_of(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes_of(constant)


def run_items(items: list[pytest.Item], end: Callable[[pytest.Item, bool, float], bool]) -> None:
    """Run tests in this order; `end` is given what came of each, and returns whether to go on."""
    failures: list[str] = []

    class Listener:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failures.append(report.nodeid)

    if not items:
        return
    manager = items[0].config.pluginmanager
    listener = Listener()
    manager.register(listener)
    for position, item in enumerate(items):
        following = items[position + 1] if position + 1 < len(items) else None
        failures.clear()
        started = time.process_time()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if not end(item, not failures, time.process_time() - started):
            break
    manager.unregister(listener)


class _Processes:
    """Forked copies of this process, each with limits of its time."""

    def __init__(self) -> None:
        self._deadlines: dict[int, float] = {}

    def fork(self, run: Callable[[], int], cpu: float | None = None, wall: float | None = None) -> int:
        """Start a copy that runs a function and exits with its result."""
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.setsid()
                with open(os.devnull, "w") as nowhere:
                    os.dup2(nowhere.fileno(), 1)
                    os.dup2(nowhere.fileno(), 2)
                if cpu is not None:
                    resource.setrlimit(resource.RLIMIT_CPU, (int(cpu) + 1, int(cpu) + 1))
                    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
                status = run()
            except BaseException:
                status = 1
            finally:
                os._exit(status)
        self._deadlines[pid] = time.monotonic() + wall if wall is not None else float("inf")
        return pid

    def finished(self, *, one: bool = False) -> Iterator[tuple[int, int]]:
        """Yield each copy that has ended, with its exit code; -1 for a copy that took too long."""
        while self._deadlines:
            for pid in list(self._deadlines):
                done, status = os.waitpid(pid, os.WNOHANG)
                code = os.waitstatus_to_exitcode(status) if done else 0
                if not done and time.monotonic() > self._deadlines[pid]:
                    _kill_group(pid)
                    os.waitpid(pid, 0)
                    done, code = pid, -1
                if done:
                    _kill_group(pid)
                    del self._deadlines[pid]
                    yield pid, -1 if code in (-signal.SIGXCPU, -signal.SIGKILL) else code
                    if one:
                        return
            time.sleep(0.02)


def _kill_group(pid: int) -> None:
    """Kill a copy together with the processes that its tests have left behind."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


class _ChangedImport(importlib.abc.MetaPathFinder):
    """Imports one file from a changed text; nothing is written beside it."""

    def __init__(self, path: str, source: str) -> None:
        self._path = path
        self._source = source

    def find_spec(
        self, name: str, path: Any, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin != self._path:
            return None
        spec.loader = _ChangedLoader(name, self._path, self._source)
        return spec


class _ChangedLoader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, source: str) -> None:
        super().__init__(name, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        return compile(self._source, self.path, "exec", dont_inherit=True)


class _Chosen:
    """A pytest plugin: only some tests, in a given order."""

    def __init__(self, tests: list[str]) -> None:
        self._places = {nodeid: place for place, nodeid in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._places), key=lambda one: self._places[one.nodeid]
        )


def main(task: Path) -> int:
    """Run the tests of a task with a changed import: 0 where all pass."""
    given = json.loads(task.read_text())
    sys.meta_path.insert(0, _ChangedImport(given["path"], given["source"]))
    files = list(dict.fromkeys(nodeid.partition("::")[0] for nodeid in given["tests"]))
    return int(pytest.main([*OPTIONS, "-x", *files], plugins=[_Chosen(given["tests"])]))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
