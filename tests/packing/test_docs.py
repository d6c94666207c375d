"""docs/packing.md and the README say what the code does: tables of predicates and scores, and the output of a plan."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from springtide.cli.main import main
from springtide.packing.planning import STRATEGIES
from springtide.packing.predicates import PREDICATES
from springtide.packing.scoring import SCORES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "packing.md"
OUR_OWN = ("Limits", "MinValues", "Offering")
"""Predicates about nodes that do not exist yet, of which kube-scheduler knows nothing."""


def predicates_table() -> str:
    """Return the table of predicates in Markdown."""
    lines = ["| predicate | message | rule | beside kube-scheduler |", "|---|---|---|---|"]
    for each in PREDICATES:
        beside = "our own" if each.name in OUR_OWN else compared(each.not_modelled)
        lines.append(f"| `{each.name}` | {each.refusal} | {each.rule} | {beside} |")
    return "\n".join(lines)


def scores_table() -> str:
    """Return the table of scores in Markdown."""
    lines = ["| score | weight | rule | beside kube-scheduler |", "|---|---|---|---|"]
    lines += [
        f"| `{each.name}` | {each.weight} | {each.rule or 'none'} | {compared(each.not_modelled)} |" for each in SCORES
    ]
    return "\n".join(lines)


def compared(not_modelled: str) -> str:
    """Return how faithful a rule is."""
    return f"not modelled: {not_modelled[0].lower()}{not_modelled[1:]}" if not_modelled else "the same"


def table_of(page: str, name: str) -> str:
    """Return the table between the marks of a name."""
    found = re.search(rf"<!-- {name}: .*? -->\n(?P<table>.*?)\n<!-- end -->", page, re.DOTALL)
    return found["table"] if found else ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("predicates", predicates_table, id="predicates"),
        pytest.param("scores", scores_table, id="scores"),
    ],
)
def test_tables_are_those_of_the_code(name: str, expected: Callable[[], str]) -> None:
    """After a change of the code, put the table that the failure shows into the page."""
    assert table_of(PAGE.read_text(encoding="utf-8"), name) == expected()


def test_all_our_own_predicates_exist() -> None:
    assert set(OUR_OWN) <= {each.name for each in PREDICATES}


def test_a_table_that_differs_is_found() -> None:
    page = f"<!-- scores: made of the code -->\n{scores_table().replace('TaintToleration', 'Taints')}\n<!-- end -->"

    assert table_of(page, "scores")
    assert table_of(page, "scores") != scores_table()


def test_every_strategy_is_described() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Strategies\n")[2].partition("\n## ")[0]

    assert tuple(re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE)) == STRATEGIES


def test_the_plan_in_the_readme_is_real_output() -> None:
    """All lines of the excerpt are there, in this order; `…` stands for lines that are left out."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"\$ springtide plan -f examples/plan\n(?P<output>.*?)```", readme, re.DOTALL)
    assert found is not None
    result = CliRunner().invoke(main, ["plan", "-f", str(ROOT / "examples" / "plan")], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    rest = result.output

    for excerpt in found["output"].split("…\n"):
        assert excerpt in rest
        rest = rest.partition(excerpt)[2]
