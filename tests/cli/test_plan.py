"""`springtide plan`: what it prints for small inputs, its data, its exit codes, and its pictures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema_rs
import pytest
from tests.cli.api_server import served_objects
from tests.cli.conftest import Run

from springtide.packing.catalogue import read_types
from springtide.packing.predicates import PREDICATES

Write = Callable[[str, str], Path]
EXAMPLES = Path(__file__).parents[2] / "examples" / "plan"

TYPES = """
- name: small
  capacity: {cpu: "4", memory: 16Gi, pods: "58"}
  offerings:
  - {zone: zone-a, capacityType: on-demand, price: 0.2}
  - {zone: zone-a, capacityType: spot, price: 0.07}
"""
POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: springtide.dev, kind: NodeClass, name: default}
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: old, labels: {topology.kubernetes.io/zone: zone-a}}
status: {capacity: {cpu: "2", memory: 8Gi, pods: "110"}}
"""


def pod(name: str, cpu: str = "3", *, namespace: str = "default", more: str = "") -> str:
    container = f"{{name: main, image: pause, resources: {{requests: {{cpu: '{cpu}', memory: 1Gi}}}}}}"
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{containers: [{container}]{more}}}
"""


def several(*documents: str) -> str:
    return "---".join(documents)


@pytest.fixture
def types(write: Write) -> Path:
    """Write a file with one instance type."""
    return write("types.yml", TYPES)


def test_the_document_of_a_small_plan(run: Run, write: Write, types: Path) -> None:
    given = write("all.yaml", several(POOL, NODE, pod("a"), pod("b", "1"), pod("c", "9"), pod("d")))

    result = run("plan", "-f", given, "--types", types, "-o", "json")

    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert document.pop("seconds") >= 0
    (left_out,) = document.pop("unplaceable")
    assert (left_out["pod"], left_out["reasons"]) == (
        "default/c",
        [{"constraint": "NodeResourcesFit", "count": 1}],
    )
    assert 0 < len(left_out["because"]) <= 300
    node = {"pool": "general", "type": "small", "zone": "zone-a", "capacityType": "on-demand", "pricePerHour": 0.2}
    assert document.pop("lowerBoundPerHour") <= 0.4
    assert document == {
        "strategy": "least-cost",
        "nodes": [
            {"id": "new-1", **node, "pods": ["default/a"]},
            {"id": "new-2", **node, "pods": ["default/d"]},
        ],
        "placed": [{"pod": "default/b", "node": "old"}],
        "costPerHour": 0.4,
        "alternatives": [
            {"strategy": strategy, "nodes": 2, "costPerHour": 0.4}
            for strategy in ("least-waste", "least-nodes", "most-pods", "priority")
        ],
        "rollout": {"costPerHour": 0.4, "stranded": 0},
    }


_DOLLARS = {"type": "number", "minimum": 0}


def _fields(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


_STRATEGY = {"enum": ["least-cost", "least-waste", "least-nodes", "most-pods", "priority"]}
_POD = {"type": "string", "pattern": "^[^/]+/[^/]+$"}
_TEXT = {"type": "string", "minLength": 1}
_REASON = _fields(constraint={"enum": [each.name for each in PREDICATES]}, count={"type": "integer", "minimum": 1})
SCHEMA = _fields(
    strategy=_STRATEGY,
    nodes={
        "type": "array",
        "items": _fields(
            id={"type": "string", "pattern": "^new-[1-9][0-9]*$"},
            pool=_TEXT,
            type=_TEXT,
            zone=_TEXT,
            capacityType={"enum": ["on-demand", "spot", "reserved"]},
            pricePerHour=_DOLLARS,
            pods={"type": "array", "minItems": 1, "items": _POD},
        ),
    },
    placed={"type": "array", "items": _fields(pod=_POD, node=_TEXT)},
    unplaceable={
        "type": "array",
        "items": _fields(
            pod=_POD,
            because={"type": "string", "minLength": 1, "maxLength": 300},
            reasons={"type": "array", "items": _REASON},
        ),
    },
    costPerHour=_DOLLARS,
    lowerBoundPerHour=_DOLLARS,
    alternatives={
        "type": "array",
        "minItems": 4,
        "maxItems": 4,
        "items": _fields(strategy=_STRATEGY, nodes={"type": "integer"}, costPerHour=_DOLLARS),
    },
    rollout=_fields(costPerHour=_DOLLARS, stranded={"type": "integer", "minimum": 0}),
    seconds={"type": "number", "minimum": 0},
)


@pytest.mark.parametrize(
    "strategy", [*_STRATEGY["enum"], pytest.param("price", id="the-name-that-cluster-autoscaler-uses")]
)
def test_the_document_of_the_example_has_the_promised_form(run: Run, strategy: str) -> None:
    result = run("plan", EXAMPLES, "-o", "json", "--strategy", strategy)

    document = json.loads(result.stdout)
    assert [str(error) for error in jsonschema_rs.Draft202012Validator(SCHEMA).iter_errors(document)] == []
    assert document["strategy"] == ("least-cost" if strategy == "price" else strategy)
    pods = [pod for node in document["nodes"] for pod in node["pods"]]
    pods += [each["pod"] for each in (*document["placed"], *document["unplaceable"])]
    assert sorted(pods) == sorted(
        [
            *(f"default/web-{number}" for number in range(1, 31)),
            *(f"default/search-{number}" for number in range(1, 7)),
            *(f"default/training-{number}" for number in range(1, 4)),
            "default/archive",
            "default/report",
        ]
    )
    left_out = [each["pod"] for each in document["unplaceable"]]
    assert sorted(left_out) == ["default/archive", "default/report", "default/training-3"]


def test_the_example_of_the_documents_is_true(run: Run) -> None:
    """Run `springtide plan -f examples/plan` in 80 columns for a new one."""
    page = (EXAMPLES.parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("$ springtide plan -f examples/plan\n")

    assert rest.partition("\n```")[0] == run("plan", "-f", EXAMPLES).stdout.rstrip("\n")


def test_types_of_the_documents_are_valid() -> None:
    page = (EXAMPLES.parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("```yaml\n- name: small")

    assert len(read_types("- name: small" + rest.partition("```")[0], name="docs")) == 1


def test_the_example_in_a_terminal(run: Run) -> None:
    result = run("plan", "-f", EXAMPLES)

    assert result.exit_code == 0
    assert "new nodes for 41 pending pods: $" in result.stdout
    assert "35 on new nodes, 3 on existing nodes, 3 cannot be placed" in result.stdout
    for heading in ("New nodes", "Existing nodes that get pods", "Strategies", "Cannot be placed"):
        assert f"\n{heading}\n" in result.stdout
    assert "Deployment web: 30 pods counted as pending, made from its template" in result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("text", "arguments", "code", "said"),
    [
        pytest.param(several(POOL, pod("a")), [], 0, "", id="placed"),
        pytest.param(several(POOL, pod("a", "9")), [], 0, "", id="not-placed"),
        pytest.param(several(POOL, pod("a", "9")), ["--strict"], 1, "", id="not-placed-strict"),
        pytest.param(several(POOL, NODE, pod("a", more=", nodeName: old")), ["--strict"], 0, "", id="nothing-pending"),
        pytest.param(pod("a"), [], 1, "there is no NodePool in these files", id="no-pool"),
        pytest.param(
            several(POOL.replace("spec:\n  template", "spec:\n  replicas: 2\n  template"), pod("a")),
            [],
            1,
            "there is no NodePool to which nodes could be added",
            id="only-static-pools",
        ),
        pytest.param(POOL, [], 1, "there are no pods and no workloads in these files", id="no-pods"),
        pytest.param(several(POOL, pod("a"), pod("b", "much")), [], 1, "much", id="errors-do-not-stop-the-others"),
        pytest.param(several(POOL, pod("a"), "\na: [\n"), [], 2, "error", id="unreadable"),
    ],
)
def test_exit_codes(run: Run, write: Write, types: Path, text: str, arguments: list[str], code: int, said: str) -> None:
    result = run("plan", write("all.yaml", text), "--types", types, *arguments)

    assert result.exit_code == code, result.output
    assert said in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param([], "name files or folders with -f", id="nothing-named"),
        pytest.param(["-", "--strategy", "cheapest"], "'least-cost', 'least-waste'", id="unknown-strategy"),
        pytest.param(["-", "-o", "json", "--title", "x"], "has no title", id="title-of-data"),
        pytest.param(["nowhere.yaml"], "nowhere.yaml: error: no such file", id="no-such-file"),
        pytest.param(["-", "--types", "nowhere.yml"], "nowhere.yml: no such file", id="no-such-types"),
    ],
)
def test_mistakes_of_the_command_line(run: Run, arguments: list[str], said: str) -> None:
    result = run("plan", *arguments, input=several(POOL, pod("a")))

    assert result.exit_code == 2
    assert said in result.stderr


def test_problems_of_types_have_their_place(run: Run, write: Write) -> None:
    broken = write("types.yml", TYPES.replace("price: 0.2", "price: free").replace("spot", "spott"))

    result = run("plan", "-", "--types", broken, input=several(POOL, pod("a")))

    assert result.exit_code == 1
    assert f'{broken}:5:45: error: [0].offerings[0].price: "free" is not a price' in result.stderr
    assert f"{broken}:6:" in result.stderr
    assert "did you mean spot?" in result.stderr


def test_the_printed_types_are_a_file_of_types(run: Run, write: Write) -> None:
    printed = run("plan", "--print-types")
    given = write("types.yml", printed.stdout)

    result = run("plan", "-", "--types", given, "-o", "json", input=several(POOL, pod("a")))

    (node,) = json.loads(result.stdout)["nodes"]
    assert printed.exit_code == result.exit_code == 0
    assert node["pods"] == ["default/a"]


@pytest.mark.parametrize("output", ["list", "documents"])
def test_standard_input(run: Run, types: Path, output: str) -> None:
    text = several(POOL, pod("a"), pod("b"))
    if output == "list":
        from springtide.apis.yaml import Document, read

        items = [each.value for each in read(text) if isinstance(each, Document)]
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})

    result = run("plan", "-", "--types", types, "-o", "json", input=text)

    assert [node["pods"] for node in json.loads(result.stdout)["nodes"]] == [["default/a"], ["default/b"]]


def test_a_pool_that_no_type_fits_is_named(run: Run, write: Write) -> None:
    other = POOL.replace("on-demand", "reserved")

    result = run("plan", write("all.yaml", several(other, pod("a"))))

    assert "no instance type meets the requirements of NodePool general" in result.stderr
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("preferences", "nodes"), [pytest.param("respect", 1, id="respect"), pytest.param("required", 2, id="required")]
)
def test_preferences_add_nodes_only_if_required(
    run: Run, write: Write, types: Path, preferences: str, nodes: int
) -> None:
    apart = (
        ", affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1,"
        " podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {}}}]}}"
    )
    given = write("all.yaml", several(POOL, pod("a", "1", more=apart), pod("b", "1", more=apart)))

    result = run("plan", given, "--types", types, "--preferences", preferences, "-o", "json")

    assert len(json.loads(result.stdout)["nodes"]) == nodes


def test_required_preferences_that_cannot_be_had_are_not_required(run: Run, write: Write, types: Path) -> None:
    wish = (
        ", affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference:"
        " {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [zone-z]}]}}]}}"
    )
    given = write("all.yaml", several(POOL, pod("a", more=wish)))

    result = run("plan", given, "--types", types, "--preferences", "required", "-o", "json")

    document = json.loads(result.stdout)
    assert (len(document["nodes"]), document["unplaceable"]) == (1, [])


@pytest.mark.parametrize("title", [None, "Machines <of> the shop"])
def test_a_picture_is_valid_xml(run: Run, title: str | None) -> None:
    result = run("plan", EXAMPLES, "-o", "svg", *(["--title", title] if title else []))

    root = ElementTree.fromstring(result.stdout)
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert result.exit_code == 0
    assert texts[0] == (title or texts[0])
    assert any("training" in text for text in texts)


def test_a_page_loads_nothing(run: Run) -> None:
    page = run("plan", EXAMPLES, "-o", "html").stdout

    assert page.startswith("<!doctype html>")
    assert "default-src 'none'" in page.replace("&#39;", "'")
    assert "<script" not in page
    assert "New nodes" in page


def test_a_cluster_with_a_manifest_that_is_not_applied_yet(run: Run, tmp_path: Path, write: Write, types: Path) -> None:
    bound = pod("c", "1", namespace="other", more=", nodeName: old")
    there = several("\napiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n", NODE, pod("a"), bound)
    # Nothing has removed the taint that an API server gives to a new node.
    given = write("new.yaml", several(POOL, pod("b", "1", more=", tolerations: [{operator: Exists}]")))
    with served_objects(tmp_path, there) as kubeconfig:
        arguments = ("plan", "--kubeconfig", kubeconfig, "--types", types)
        alone = run(*arguments)
        together = run(*arguments, "-f", given, "-o", "json")
        limited = run(*arguments, "-n", "other", "-f", given, "-o", "json")
        missing = run(*arguments, "-n", "nowhere")

    assert alone.exit_code == 1
    assert "there is no NodePool in the cluster" in alone.stderr
    document = json.loads(together.stdout)
    assert [node["pods"] for node in document["nodes"]] == [["default/a"]]
    assert document["placed"] == [{"pod": "default/b", "node": "old"}]
    assert json.loads(limited.stdout)["nodes"] == []
    assert "2 pending pods of other namespaces left out" in limited.stderr
    assert missing.exit_code == 2
    assert "there is no namespace `nowhere`" in missing.stderr
