"""Change the code at random places, and see whether a test notices.

    python -m tools.mutants --seed 1 --count 200
    python -m tools.mutants --path src/springtide/cluster/lease.py --count 50 -o json

A mutant is one small change of the code: a comparison swapped, a guard removed, a number off by one. A sample that the
seed determines is drawn from all mutants, and each is run against those tests of its folder that reach its lines. A
mutant that no test notices has survived: it shows a test that is missing, or code that is not needed. Survivors are
listed; the exit code is 1 where fewer than 90 % are killed.

mutmut and cosmic-ray do the same, and neither fits. mutmut writes changed copies of the sources and has them imported
by their place in `sys.path`, where tests in import mode `importlib` find the installed package; it changes functions
only, and here half of the rules are declarations of fields. cosmic-ray writes each mutant into the working tree and
starts a new pytest for it with all tests: with this number of tests 200 mutants would take most of a day.

Changes that no test can notice, as they make no difference, are listed in `equivalent.toml` beside this file, each with
the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random

import pytest
from tools.mutants.operators import Mutant, mutants_below
from tools.mutants.runs import OPTIONS, FolderRun, MutantResult

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
SOURCE = "src/springtide"
LEFT_OUT = (f"{SOURCE}/apiserver/",)
GOAL = 90
_ALSO = {
    "apis": ("cluster/admission", "charts", "cli/test_convert.py"),
    "assembly": ("cli",),
    "simulator": ("scenarios",),
}
"""Packages whose behaviour is tested in other folders too: the CRDs of the types are in the chart."""


def folders_for(path: str, root: Path = ROOT) -> tuple[str, ...]:
    """Return the folders and files with the tests of a source file."""
    package = Path(path).relative_to(SOURCE).parts[0].removesuffix(".py")
    places = [f"tests/{name}" for name in (package, *_ALSO.get(package, ()))]
    return tuple(name for place in places for name in (place, f"tests/test_{package}.py") if (root / name).exists())


def equivalent_changes(file: Path = EQUIVALENT) -> set[tuple[str, str, str]]:
    """Return path, function and change of the mutants that make no difference."""
    listed = tomllib.loads(file.read_text()).get("equivalent", [])
    return {(one["path"], one["function"], one["change"]) for one in listed}


def sample(mutants: Iterable[Mutant], seed: int, count: int) -> list[Mutant]:
    """Draw mutants, in the order of the files."""
    known = equivalent_changes()
    candidates = [one for one in mutants if (one.path, one.function, one.change) not in known]
    drawn = Random(seed).sample(range(len(candidates)), min(count, len(candidates)))  # noqa: S311
    return [candidates[position] for position in sorted(drawn)]


def run(mutants: Sequence[Mutant], jobs: int) -> list[MutantResult]:
    """Run the tests against each mutant, folder by folder, and show the progress."""
    by_folders: dict[tuple[str, ...], list[Mutant]] = {}
    for mutant in mutants:
        by_folders.setdefault(folders_for(mutant.path), []).append(mutant)
    results: list[MutantResult] = []
    for folders, group in by_folders.items():
        print(f"{', '.join(folders) or 'no tests'}: {len(group)} mutants", file=sys.stderr)
        if not folders:
            results += [MutantResult(mutant, "unreached", 0, 0.0) for mutant in group]
            continue
        for result in _run_folder(folders, group, jobs):
            results.append(result)
            print(f"{len(results):4}/{len(mutants)} {result.status:9} {result.mutant}", file=sys.stderr)
    return results


def _run_folder(folders: Sequence[str], mutants: Sequence[Mutant], jobs: int) -> Iterable[MutantResult]:
    """Run pytest for some folders in a process of its own, and yield what it reports."""
    reading, writing = os.pipe()
    by_place = {(one.path, one.start, one.end, one.after): one for one in mutants}
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as pipe, open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)

            def report(result: MutantResult) -> None:
                print(json.dumps(_as_data(result)), file=pipe, flush=True)

            plugin = FolderRun(ROOT, mutants, jobs, report)
            status = pytest.main([*OPTIONS, *folders], plugins=[plugin])
            if plugin.baseline.failed:
                print(f"left out, as they fail without a mutant: {', '.join(plugin.baseline.failed)}", file=sys.stderr)
            sys.stderr.flush()
            pipe.flush()
            os._exit(int(status))
    os.close(writing)
    with os.fdopen(reading) as pipe:
        for line in pipe:
            one = json.loads(line)
            mutant = by_place.pop((one["path"], one["start"], one["end"], one["after"]))
            yield MutantResult(mutant, one["status"], one["tests"], one["seconds"])
    os.waitpid(pid, 0)
    if by_place:
        print(f"{', '.join(folders)}: pytest has ended, and {len(by_place)} mutants were not run", file=sys.stderr)


def _as_data(result: MutantResult) -> dict[str, object]:
    return asdict(result.mutant) | {"status": result.status, "tests": result.tests, "seconds": result.seconds}


def main() -> int:
    """Draw a sample, run it and show what survived."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="determines the sample (default: 1)")
    parser.add_argument("--count", type=int, default=200, help="how many mutants (default: 200)")
    parser.add_argument("--path", action="append", help="a folder or file of the sources, may be repeated")
    parser.add_argument("--jobs", "-j", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--output", "-o", choices=["text", "json"], default="text")
    given = parser.parse_args()
    paths = [one.rstrip("/") for one in given.path or [SOURCE]]
    chosen = sample(mutants_below(ROOT, paths, LEFT_OUT), given.seed, given.count)
    if not chosen:
        parser.error(f"no mutants below {', '.join(paths)}")
    results = run(chosen, given.jobs)
    killed = sum(one.is_killed for one in results)
    survivors = [one for one in results if not one.is_killed]
    if given.output == "json":
        summary = {"seed": given.seed, "count": len(results), "killed": killed}
        print(json.dumps(summary | {"mutants": [_as_data(one) for one in results]}, indent=2))
    else:
        for one in survivors:
            print(f"{one.status:9} {one.mutant}")
        if len(results) < len(chosen):
            print(f"{len(chosen) - len(results)} mutants were not run: see the errors above")
        print(f"seed {given.seed}: {killed} of {len(results)} mutants killed ({100 * killed / len(results):.1f} %)")
    return 0 if len(results) == len(chosen) and killed * 100 >= GOAL * len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
