"""`make mutants`: which mutants a file has, which tests are run against them, and what survives."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tools.mutants.__main__ import (
    LEFT_OUT,
    ROOT,
    SOURCE,
    equivalent_changes,
    folders_for,
    sample,
)
from tools.mutants.operators import mutants_below, mutants_of
from tools.mutants.runs import Baseline, select_tests


def changes(source: str) -> list[str]:
    return [mutant.change for mutant in mutants_of("a.py", source.encode())]


def inside(body: str) -> str:
    return "def f(a, b, c):\n" + "".join(f"    {line}\n" for line in body.splitlines())


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("x = a < b", ["a < b -> (a <= b)"], id="comparison"),
        pytest.param("x = a is not b", ["a is not b -> (a is b)"], id="identity"),
        pytest.param("x = a <= b < c", ["a <= b < c -> (a < b < c)", "a <= b < c -> (a <= b <= c)"], id="chain"),
        pytest.param("x = a and b", ["a and b -> (a or b)"], id="and"),
        pytest.param("x = not a", ["not a -> (a)"], id="not"),
        pytest.param("x = a + b", ["a + b -> (a - b)"], id="arithmetic"),
        pytest.param("x = 5", ["5 -> (4)", "5 -> (6)"], id="boundary"),
        pytest.param("x = 0", ["0 -> (1)"], id="zero"),
        pytest.param("x = True", ["True -> False"], id="constant"),
        pytest.param("x = a if b else c", ["b -> (not (b))"], id="conditional-expression"),
        pytest.param("x = [y for y in a if b]", ["b -> (not (b))"], id="comprehension"),
        pytest.param(inside("a.x = b"), ["a.x = b -> pass"], id="assignment-to-an-attribute"),
        pytest.param(inside("a += b"), ["a += b -> a -= b", "a += b -> pass"], id="augmented-assignment"),
        pytest.param(inside("a.run()"), ["a.run() -> pass"], id="call"),
        pytest.param(inside("return a"), ["return a -> return None"], id="return-value"),
        pytest.param(
            inside("if a:\n    return\nb()"),
            ["if a: return -> pass", "a -> (not (a))", "b() -> pass"],
            id="guard",
        ),
        pytest.param(
            inside("for x in a:\n    if b:\n        continue"),
            ["if b: continue -> pass", "b -> (not (b))", "continue -> pass"],
            id="continue",
        ),
        pytest.param(
            "class A:\n    x: Annotated[int, Range(0, b)] = c", ["0 -> (1)"], id="metadata-of-an-annotated-field"
        ),
    ],
)
def test_code_has_mutants(source: str, expected: list[str]) -> None:
    assert changes(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        pytest.param('"""Text with 5."""', id="docstring"),
        pytest.param('x = f"{a + b}"', id="text-for-people"),
        pytest.param('log.info("%d", 5)', id="log-call"),
        pytest.param("x: Annotated[int, doc(a)]\ny: tuple[Literal[5], ...]", id="types"),
        pytest.param("if TYPE_CHECKING:\n    x = 5", id="type-checking-block"),
        pytest.param("@dataclass(frozen=True)\nclass A(Struct, gc=False):\n    pass", id="options-of-a-class"),
        pytest.param("def __repr__(self):\n    return a + b", id="representation"),
        pytest.param("@overload\ndef f(a=b):\n    return 5", id="overload"),
        pytest.param("@lru_cache(maxsize=5)\ndef f():\n    pass", id="size-of-a-cache"),
        pytest.param("assert a < b", id="assertion"),
        pytest.param("x = isinstance(a, A | B)", id="union-of-classes"),
        pytest.param("while True:\n    pass", id="endless-loop"),
        pytest.param(inside("if a:\n    return None").replace("if a", "while True"), id="return-of-none"),
    ],
)
def test_what_no_test_should_notice_has_no_mutants(source: str) -> None:
    assert changes(source) == []


def test_a_mutant_changes_one_place_of_the_text() -> None:
    source = 'x = "ü" if a < 5 else b\n'.encode()
    changed = {mutant.change: mutant.applied_to(source).decode() for mutant in mutants_of("a.py", source)}

    assert changed["a < 5 -> (a <= 5)"] == 'x = "ü" if (a <= 5) else b\n'
    assert changed["5 -> (6)"] == 'x = "ü" if a < (6) else b\n'


def test_every_mutant_of_the_sources_can_be_parsed() -> None:
    """A sample of them: a mutant that is no Python would count as killed by every test."""
    for mutant in sample(mutants_below(ROOT, [SOURCE], LEFT_OUT), seed=3, count=300):
        ast.parse(mutant.applied_to((ROOT / mutant.path).read_bytes()))


def test_a_sample_depends_on_its_seed_only() -> None:
    mutants = list(mutants_below(ROOT, [f"{SOURCE}/scaling"], LEFT_OUT))

    assert sample(mutants, 1, 20) == sample(mutants, 1, 20) != sample(mutants, 2, 20)
    assert len(sample(mutants, 1, 20)) == 20


def test_the_api_server_is_left_out() -> None:
    paths = {mutant.path for mutant in mutants_below(ROOT, [f"{SOURCE}/apiserver", f"{SOURCE}/quantity.py"], LEFT_OUT)}

    assert paths == {f"{SOURCE}/quantity.py"}


def test_every_package_has_tests() -> None:
    paths = {file.relative_to(ROOT).as_posix() for file in (ROOT / SOURCE).rglob("*.py") if file.name != "__init__.py"}

    assert [path for path in sorted(paths) if not folders_for(path)] == []
    assert folders_for(f"{SOURCE}/quantity.py") == ("tests/test_quantity.py",)


def test_listed_equivalent_changes_exist() -> None:
    """An entry that matches no mutant is out of date."""
    present = {
        (mutant.path, mutant.function, mutant.change)
        for path in {path for path, _, _ in equivalent_changes()}
        for mutant in mutants_of(path, (ROOT / path).read_bytes())
    }
    assert equivalent_changes() - present == set()


def test_tests_that_reach_a_mutant_are_chosen_and_quick_files_come_first() -> None:
    (mutant,) = mutants_of("src/springtide/a.py", inside("return a").encode())
    baseline = Baseline(
        seconds={"tests/slow.py::one": 5.0, "tests/quick.py::one": 0.1, "tests/quick.py::two": 0.1, "tests/x.py::y": 1},
        reached={mutant: {"tests/slow.py::one", "tests/quick.py::two", "tests/fails.py::one"}},
    )
    order = ["tests/fails.py::one", "tests/slow.py::one", "tests/quick.py::one", "tests/quick.py::two", "tests/x.py::y"]

    chosen = select_tests(mutant, baseline, order, needs_import=False)

    assert chosen == ["tests/quick.py::two", "tests/slow.py::one"]


RULES = """
LIMIT = 3


def allows(number):
    if number > LIMIT:
        return False
    return number > 0


def unused():
    return 1
"""
TESTS = """
from springtide_rules.rules import allows


def test_limit():
    assert (allows(3), allows(4)) == (True, False)
"""
DRIVER = """
import json, sys
from pathlib import Path
from tools.mutants.__main__ import _run_folder
from tools.mutants import __main__ as mutants
from tools.mutants.operators import mutants_of

root = Path(sys.argv[1])
mutants.ROOT = root
path = "src/springtide_rules/rules.py"
found = mutants_of(path, (root / path).read_bytes())
results = _run_folder([str(root / "tests")], found, 1)
json.dump({one.mutant.change: one.status for one in results}, sys.stdout)
"""


def test_mutants_are_run_and_survivors_found(tmp_path: Path) -> None:
    """In a small project: changed functions, a constant that is read during the import, and code without a test."""
    package = tmp_path / "src" / "springtide_rules"
    package.mkdir(parents=True)
    (package / "rules.py").write_text(RULES)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_rules.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = soak\n e2e\n exhaustive\n")
    driver = tmp_path / "driver.py"
    driver.write_text(DRIVER)
    paths = f"{tmp_path / 'src'}:{ROOT}"

    command = [sys.executable, str(driver), str(tmp_path)]
    ran = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": paths, "PATH": "/bin"}, check=True, stdout=subprocess.PIPE
    )

    assert json.loads(ran.stdout) == {
        "3 -> (2)": "killed",
        "3 -> (4)": "killed",
        "if number > LIMIT: return False -> pass": "killed",
        "number > LIMIT -> (number >= LIMIT)": "killed",
        "number > LIMIT -> (not (number > LIMIT))": "killed",
        "False -> True": "killed",
        "return number > 0 -> return None": "killed",
        "number > 0 -> (number >= 0)": "survived",
        "0 -> (1)": "survived",
        "return 1 -> return None": "unreached",
        "1 -> (0)": "unreached",
        "1 -> (2)": "unreached",
    }
    assert (package / "rules.py").read_text() == RULES
