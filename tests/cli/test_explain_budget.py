"""`springtide explain-budget`: numbers, data for scripts, and text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.api_server import served_objects
from tests.cli.conftest import Run

from springtide.assembly.cluster_reader import ReadableCluster
from springtide.cluster.errors import Forbidden

EXAMPLES = Path(__file__).parents[2] / "examples"
BY_REASON = EXAMPLES / "budgets-by-reason.yaml"
AT = ("--at", "2026-06-05T12:00:00Z", "--nodes", "100")


def allowed(run: Run, *arguments: object) -> dict[str, Any]:
    result = run("explain-budget", BY_REASON, *AT, *arguments, "-o", "json")
    (pool,) = json.loads(result.stdout)["pools"]
    return {reason: found["allowed"] for reason, found in pool["reasons"].items()}


DISRUPTING = ("--disrupting", "drifted=3,underutilized=6,expiration=3,empty=2")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param((), (5, 10, 15, 5), id="nothing is disrupted"),
        pytest.param((*DISRUPTING, "--equation", "1"), (0, 7, 9, 0), id="counted per reason"),
        pytest.param(DISRUPTING, (0, 0, 1, 0), id="counted in total"),
        pytest.param((*DISRUPTING, "--reading", "floor"), (0, 0, 0, 0), id="default budgets as a floor"),
        pytest.param(
            ("--disrupting", "drift=4", "--reading", "floor"),
            (1, 1, 1, 1),
            id="default budgets as a floor, fewer disrupted",
        ),
        pytest.param(("--unhealthy", "2", "--disrupting", "drifted=2"), (1, 6, 11, 1), id="unhealthy nodes count"),
    ],
)
def test_allowed_numbers(run: Run, arguments: tuple[str, ...], expected: tuple[int, ...]) -> None:
    reasons = ("Empty", "Drifted", "Underutilized", "Expired")
    assert allowed(run, *arguments) == dict(zip(reasons, expected, strict=True))


def test_json_has_every_key_of_the_contract(run: Run) -> None:
    result = run("explain-budget", EXAMPLES / "budgets-business-hours.yaml", *AT, "-o", "json")
    (pool,) = json.loads(result.stdout)["pools"]
    drifted = pool["reasons"]["Drifted"]
    assert {key: pool[key] for key in ("name", "reading", "equation", "nodes")} == {
        "name": "business-hours",
        "reading": "Floor",
        "equation": 2,
        "nodes": 100,
    }
    assert drifted.pop("because").startswith("budget 0 allows 20% of 100 nodes = 20 in its window")
    assert drifted == {
        "limit": 20,
        "consuming": 0,
        "allowed": 20,
        "budget": 0,
        "next": {"at": "2026-06-05T15:00:00Z", "limit": 0},
    }


def test_a_budget_that_cannot_be_evaluated_blocks_the_reasons_it_names(run: Run) -> None:
    text = BY_REASON.read_text(encoding="utf-8").replace(
        "reasons: [Drifted]", "reasons: [Drifted]\n        timeZone: Mars"
    )
    result = run("explain-budget", "-", *AT, "-o", "json", input=text)
    assert result.exit_code == 1
    (pool,) = json.loads(result.stdout)["pools"]
    assert {reason: found["limit"] for reason, found in pool["reasons"].items()} == {
        "Empty": 5,
        "Drifted": 0,
        "Underutilized": 15,
        "Expired": 5,
    }


def test_text_has_a_row_and_a_sentence_for_each_reason(run: Run) -> None:
    result = run("explain-budget", BY_REASON, *AT)
    assert result.exit_code == 0
    defaults = "budgets without reasons apply to reasons that no active budget names; all disrupted nodes count"
    assert defaults in " ".join(result.stdout.split())
    for reason in ("Empty", "Drifted", "Underutilized", "Expired"):
        assert f"  {reason}: budget " in result.stdout
        assert any(line.startswith(f"  {reason} ") for line in result.stdout.splitlines())


@pytest.mark.parametrize("columns", [50, 80, 120])
def test_sentences_are_wrapped_to_the_terminal(run: Run, columns: int) -> None:
    """The table has a width of its own; sentences go on with an indentation on the next line."""
    result = run("explain-budget", BY_REASON, *AT, "--unhealthy", "1", env={"COLUMNS": str(columns)})
    _, _, sentences = result.stdout.rstrip().rpartition("\n\n")
    lines = sentences.splitlines()
    assert max(len(line) for line in lines) <= columns
    assert len(lines) > len([line for line in lines if not line.startswith("    ")]) or columns == 120
    expired = "Expired: budget 2 allows 5, as no active budget names Expired; expiry is forceful"
    assert expired in " ".join(sentences.split())


REPAIRED = """apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: repaired}
spec:
  template:
    spec:
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
      nodeClassRef: {group: springtide.dev, kind: NodeClass, name: default}
  disruption:
    repair: {after: 30m, maxUnhealthy: 20%}
    disruptAfter: {Drifted: 2h}
    budgets:
    - nodes: "10"
    - {nodes: "2", reasons: [repair]}
"""


def test_unhealthy_is_shown_for_a_pool_that_repairs_its_nodes(run: Run) -> None:
    """Nodes that are not ready use up every budget but that of their repair; disrupted ones use up all."""
    arguments = (*AT, "--unhealthy", "3", "--disrupting", "repair=1")
    result = run("explain-budget", "-", *arguments, "-o", "json", input=REPAIRED)
    (pool,) = json.loads(result.stdout)["pools"]
    assert list(pool["reasons"]) == ["Empty", "Drifted", "Underutilized", "Unhealthy", "Expired"]
    unhealthy, drifted = pool["reasons"]["Unhealthy"], pool["reasons"]["Drifted"]
    assert {key: unhealthy[key] for key in ("limit", "consuming", "allowed", "budget")} == {
        "limit": 2,
        "consuming": 1,
        "allowed": 1,
        "budget": 1,
    }
    assert (drifted["consuming"], drifted["allowed"]) == (4, 6)
    text = " ".join(run("explain-budget", "-", *arguments, input=REPAIRED).stdout.split())
    assert "Unhealthy 2 1 1 1 -" in text
    assert "3 nodes are not ready and not counted" in text
    assert "a node waits 2h after it drifted (`disruptAfter.Drifted`)" in text


@pytest.mark.parametrize(
    ("value", "message"),
    [("rusty=3", "'rusty' is not a reason"), ("drifted", "reason=number"), ("drifted=x", "reason=number")],
)
def test_invalid_counts(run: Run, value: str, message: str) -> None:
    result = run("explain-budget", BY_REASON, *AT, "--disrupting", value)
    assert result.exit_code == 2
    assert message in result.stderr


def test_files_without_a_pool(run: Run) -> None:
    result = run("explain-budget", EXAMPLES / "cron-deployment.yaml", *AT)
    assert result.exit_code == 2
    assert "there is no NodePool in these files" in result.stderr


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("Nodes:", "nodes:"),
        ("budgts:", "budgets:"),
        ("disuption:", "disruption:"),
        ("specs:", "spec:"),
        ("apiversion:", "apiVersion:"),
    ],
)
def test_a_misspelled_field_is_read_as_it_was_meant(run: Run, wrong: str, right: str) -> None:
    """The numbers agree with the hint about the field, and are never more permissive than what was meant."""
    text = BY_REASON.read_text(encoding="utf-8")
    meant = run("explain-budget", "-", *AT, "-o", "json", input=text)
    result = run("explain-budget", "-", *AT, "-o", "json", input=text.replace(right, wrong))
    assert result.exit_code == 1
    assert result.stdout == meant.stdout


@pytest.mark.parametrize("disruption", ["x", "[1]", "5"])
def test_a_disruption_of_another_type_blocks(run: Run, disruption: str) -> None:
    text = f"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: a}}\nspec:\n  disruption: {disruption}\n"
    result = run("explain-budget", "-", *AT, "-o", "json", input=text)
    (pool,) = json.loads(result.stdout)["pools"]
    assert {found["limit"] for found in pool["reasons"].values()} == {0}


POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: NAME}
spec:
  template: {spec: {requirements: [], nodeClassRef: {group: springtide.dev, kind: NodeClass, name: a}}}
  disruption: {budgets: [{nodes: "50%", calendars: [{name: freeze, mode: Only}]}, {nodes: "60%"}]}
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: NAME, labels: {karpenter.sh/nodepool: spot, karpenter.sh/initialized: "true"}}
spec: {taints: TAINTS}
status: {conditions: [{type: Ready, status: "READY"}]}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: NAME}
spec: {requirements: [], nodeClassRef: {group: springtide.dev, kind: NodeClass, name: a}}
status:
  nodeName: NAME
  conditions:
  - {type: DisruptionReason, status: "True", reason: Drifted, lastTransitionTime: "2026-11-16T11:00:00Z", message: ""}
"""
FREEZE = """
apiVersion: springtide.dev/v1alpha1
kind: Calendar
metadata: {name: freeze}
spec: {dates: ["2026-11-17"]}
"""


def machine(name: str, taints: str = "[]", ready: str = "True") -> str:
    return NODE.replace("NAME", name).replace("TAINTS", taints).replace("READY", ready)


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    tainted = "[{key: karpenter.sh/disrupted, effect: NoSchedule}]"
    objects = [
        POOL.replace("NAME", "spot"),
        POOL.replace("NAME", "other"),
        FREEZE,
        *(machine(f"fine-{number}") for number in range(8)),
        machine("drifted", tainted),
        machine("broken", ready="False"),
    ]
    with served_objects(tmp_path_factory.mktemp("cluster"), "---".join(objects)) as path:
        yield path


def test_nodes_of_a_cluster_are_counted(run: Run, kubeconfig: Path) -> None:
    now = ("--at", "2026-11-16T12:00:00Z")
    result = run("explain-budget", "nodepool/spot", "--kubeconfig", kubeconfig, *now, "-o", "json")
    (pool,) = json.loads(result.stdout)["pools"]
    assert result.exit_code == 0
    assert (pool["name"], pool["nodes"]) == ("spot", 10)
    drifted = pool["reasons"]["Drifted"]
    assert [drifted[key] for key in ("limit", "consuming", "allowed", "budget")] == [6, 2, 4, 1]
    assert "1 disrupted, 1 not ready" in drifted["because"]
    # The calendar is that of the cluster.
    assert drifted["next"] == {"at": "2026-11-17T00:00:00Z", "limit": 5}


def test_all_pools_of_a_cluster_are_explained(run: Run, kubeconfig: Path) -> None:
    result = run("explain-budget", "--kubeconfig", kubeconfig, "--disrupting", "empty=3", "-o", "json")
    pools = json.loads(result.stdout)["pools"]
    assert [(pool["name"], pool["nodes"]) for pool in pools] == [("other", 0), ("spot", 10)]
    assert [pool["reasons"]["Empty"]["consuming"] for pool in pools] == [3, 4]


def test_nothing_is_counted_where_nodes_are_given(run: Run, kubeconfig: Path) -> None:
    result = run("explain-budget", "nodepool/spot", "--kubeconfig", kubeconfig, "--nodes", "20", "-o", "json")
    (pool,) = json.loads(result.stdout)["pools"]
    assert (pool["nodes"], pool["reasons"]["Empty"]["consuming"]) == (20, 0)


def test_a_pool_that_the_cluster_does_not_have(run: Run, kubeconfig: Path) -> None:
    result = run("explain-budget", "nodepool/sport", "--kubeconfig", kubeconfig)
    assert result.exit_code == 2
    assert "did you mean spot?" in result.stderr


def test_nodes_that_may_not_be_read(run: Run, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = ReadableCluster.list

    async def refused(self: ReadableCluster, resource: Any, *more: Any, **options: Any) -> Any:
        if resource.kind == "Node":
            raise Forbidden("nodes is forbidden")
        return await listed(self, resource, *more, **options)

    monkeypatch.setattr(ReadableCluster, "list", refused)
    result = run("explain-budget", "nodepool/spot", "--kubeconfig", kubeconfig)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the nodes cannot be counted: nodes is forbidden; --nodes says how many there are" in result.stderr


def test_files_need_a_number_of_nodes(run: Run) -> None:
    result = run("explain-budget", BY_REASON)
    assert result.exit_code == 2
    assert "--nodes is missing" in result.stderr
