"""Scores of nodes: compared with a plain implementation over raw objects, and kept up to date while pods are placed.

The plain implementation has been compared with the score plugins of kube-scheduler 1.36.3 on the same clusters.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pytest
from tests.packing import clusters, oracle
from tests.packing.adapter import snapshot_of
from tests.packing.oracle import Cluster, labels_of, name_of, spec_of

from springtide.packing.columns import CPU, MEMORY
from springtide.packing.predicates import NAMES
from springtide.packing.scoring import SCORES, ScoreBoard, logarithm, scores

Json: TypeAlias = dict[str, Any]

FEATURES = clusters.FEATURES - {"nominated", "gates", "resource-claims"}
MIXES = {
    "everything": FEATURES,
    "other-pods": FEATURES & {"spread", "affinity", "anti-affinity", "namespaces", "label-keys", "terminating"},
    "preferences-of-nodes": FEATURES & {"taints", "node-affinity", "init", "priorities"},
}
DEFAULTS = {"cpu": Fraction(100), "memory": Fraction(200 << 20)}


def random_cluster(seed: int, features: frozenset[str]) -> Json:
    rng = random.Random(seed)
    sizes = {"nodes": rng.randint(2, 9), "bound": rng.randint(0, 16), "pending": rng.randint(3, 8)}
    return clusters.random_cluster(rng, **sizes, features=features)


# The plain implementation: one pod, and one node after the other.


def plain_scores(cluster: Cluster, pod: Json) -> dict[str, int]:
    """Return the scores of all nodes that fit a pod, by name."""
    nodes = [cluster.node(name) for name in oracle.feasible_nodes(cluster, pod)]
    if not nodes:
        return {}
    taints = in_proportion([len(avoided(pod, node)) for node in nodes])
    preferences = in_proportion([preferred_weight(pod, node) for node in nodes])
    spread, affinity = spread_points(cluster, pod, nodes), affinity_points(cluster, pod, nodes)
    return {
        name_of(node): 3 * (100 - taints[row])
        + 2 * preferences[row]
        + 2 * spread[row]
        + 2 * affinity[row]
        + least_allocated(cluster, pod, node)
        + balanced(cluster, pod, node)
        for row, node in enumerate(nodes)
    }


def in_proportion(points: list[int]) -> list[int]:
    most = max(points)
    return [100 * each // most if most else 0 for each in points]


def avoided(pod: Json, node: Json) -> list[Json]:
    tolerations = spec_of(pod).get("tolerations") or ()
    return [
        taint
        for taint in spec_of(node).get("taints") or ()
        if taint["effect"] == "PreferNoSchedule" and not any(oracle.tolerates(each, taint) for each in tolerations)
    ]


def preferred_weight(pod: Json, node: Json) -> int:
    affinity = (spec_of(pod).get("affinity") or {}).get("nodeAffinity") or {}
    return sum(
        each["weight"]
        for each in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        if oracle.terms_match([each["preference"]], labels_of(node), name_of(node))
    )


def milli_and_bytes(pod: Json, *, defaults: bool) -> dict[str, Fraction]:
    requests = oracle.requests_of(pod, use_status=bool(spec_of(pod).get("nodeName")))
    found = {name: Fraction(requests.get(name, 0)) for name in DEFAULTS}
    return {name: amount or (DEFAULTS[name] if defaults else Fraction(0)) for name, amount in found.items()}


def shares(cluster: Cluster, node: Json, pods: Iterable[Json], *, defaults: bool) -> list[Fraction]:
    """Return the allocated shares of cpu and memory, without resources that the node lacks."""
    found = []
    requests = [milli_and_bytes(pod, defaults=defaults) for pod in pods]
    for name in DEFAULTS:
        text = (node.get("status") or {}).get("allocatable", {}).get(name, 0)
        capacity = math.ceil(oracle.amount(text) * (1000 if name == "cpu" else 1))
        if capacity:
            found.append(min(Fraction(1), sum((each[name] for each in requests), Fraction(0)) / capacity))
    return found


def least_allocated(cluster: Cluster, pod: Json, node: Json) -> int:
    allocated = shares(cluster, node, [*cluster.pods_on(node), pod], defaults=True)
    return sum(math.floor((1 - share) * 100) for share in allocated) // max(1, len(allocated))


def balanced(cluster: Cluster, pod: Json, node: Json) -> int:
    if not any(milli_and_bytes(pod, defaults=False).values()):
        return 0

    def evenness(pods: list[Json]) -> int:
        allocated = shares(cluster, node, pods, defaults=False)
        apart = abs(allocated[0] - allocated[1]) / 2 if len(allocated) == 2 else 0
        return math.floor((1 - apart) * 100)

    others = cluster.pods_on(node)
    return 50 + (50 + evenness([*others, pod]) - evenness(others)) // 2


def spread_points(cluster: Cluster, pod: Json, nodes: list[Json]) -> list[int]:
    every = spec_of(pod).get("topologySpreadConstraints") or ()
    constraints = [each for each in every if each.get("whenUnsatisfiable") == "ScheduleAnyway"]
    keys = [each["topologyKey"] for each in constraints]
    raw: dict[str, int] = {}
    scored = [node for node in nodes if constraints and all(key in labels_of(node) for key in keys)]
    for node in scored:
        total = Decimal(0)
        for each in constraints:
            key = each["topologyKey"]
            domain = labels_of(node)[key]
            number = len(scored) if key == oracle.HOSTNAME else len({labels_of(other)[key] for other in scored})
            count = sum(
                oracle._spread_count(oracle._spread_selector(each, pod), pod, cluster.pods_on(other))
                for other in cluster.nodes
                if labels_of(other).get(key) == domain
                and all(one in labels_of(other) for one in keys)
                and oracle._is_included(cluster, each, pod, other)
            )
            with localcontext() as context:
                context.prec = 30
                total += count * Decimal(number + 2).ln() + int(each["maxSkew"]) - 1
        raw[name_of(node)] = int(total + Decimal("0.5"))
    least, most = min(raw.values(), default=0), max(raw.values(), default=0)
    return [
        0 if name_of(node) not in raw else 100 * (most + least - raw[name_of(node)]) // most if most else 100
        for node in nodes
    ]


def weighted_terms(pod: Json, *, required: bool) -> list[tuple[int, Json]]:
    """Return the preferred terms with their weights; required affinity terms have weight 1."""
    found = []
    for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
        part = (spec_of(pod).get("affinity") or {}).get(kind) or {}
        preferred = part.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        as_required = {
            "requiredDuringSchedulingIgnoredDuringExecution": [each["podAffinityTerm"] for each in preferred]
        }
        own = {**pod, "spec": {**pod["spec"], "affinity": {kind: as_required}}}
        terms = oracle._required_terms(own, kind)
        found += [(sign * each["weight"], term) for each, term in zip(preferred, terms, strict=True)]
        if required and kind == "podAffinity":
            found += [(1, term) for term in oracle._required_terms(pod, kind)]
    return found


def affinity_points(cluster: Cluster, pod: Json, nodes: list[Json]) -> list[int]:
    values: dict[tuple[str, str], int] = {}
    for node in cluster.nodes:
        for other in cluster.pods_on(node):
            for weight, term in weighted_terms(pod, required=False):
                if oracle._affinity_term_matches(cluster, term, pod, other, listed=True):
                    domain = (term["topologyKey"], labels_of(node).get(term["topologyKey"], ""))
                    values[domain] = values.get(domain, 0) + weight
            for weight, term in weighted_terms(other, required=True):
                if oracle._affinity_term_matches(cluster, term, other, pod, listed=False):
                    domain = (term["topologyKey"], labels_of(node).get(term["topologyKey"], ""))
                    values[domain] = values.get(domain, 0) + weight
    sums = [
        sum(
            value
            for (key, domain), value in values.items()
            if key in labels_of(node) and labels_of(node)[key] == domain
        )
        for node in nodes
    ]
    least, most = min(sums), max(sums)
    return [100 * (each - least) // (most - least) if most > least else 0 for each in sums]


@pytest.mark.parametrize("features", MIXES.values(), ids=MIXES.keys())
def test_scores_are_those_of_a_plain_implementation(features: frozenset[str]) -> None:
    compared = 0
    for seed in range(60):
        given = random_cluster(seed, features)
        snapshot, plain = snapshot_of(given), Cluster.from_json(given)
        space = snapshot.fork()
        for pod in plain.pending():
            shape = snapshot.shape_at((oracle.namespace_of(pod), name_of(pod)))
            found = zip(space.names(), scores(space, shape).tolist(), strict=True)
            ours = {name: score for name, score in found if score >= 0}
            assert ours == plain_scores(plain, pod), f"seed {seed}, pod {name_of(pod)}"
            compared += len(ours)
    assert compared > 500


@pytest.mark.parametrize("features", MIXES.values(), ids=MIXES.keys())
def test_a_board_that_pods_were_placed_on_scores_like_a_new_one(features: frozenset[str]) -> None:
    for seed in range(40):
        rng = random.Random(seed)
        snapshot = snapshot_of(random_cluster(seed, features))
        space = snapshot.fork()
        shapes = [snapshot.shapes[number] for number in snapshot.demand()]
        board = ScoreBoard.of(space)
        for _ in range(12):
            shape = rng.choice(shapes)
            rows = board.best(shape)
            if not len(rows):
                continue
            row = int(rng.choice(rows.tolist()))
            board.add(shape, row)
            if rng.random() < 0.3:
                board.add(shape, row, -1)
            else:
                space.take(shape, np.array([row]), np.array([1]))
            new = ScoreBoard.of(space)
            for each in shapes:
                feasible = new.feasible(each)
                assert (board.feasible(each) == feasible).all()
                assert (board.scores(each, feasible) == new.scores(each, feasible)).all()
                assert (board.best(each) == new.best(each)).all()


def only_node(cpu: str, memory: str, name: str = "a") -> Json:
    status = {"allocatable": {"cpu": cpu, "memory": memory, "pods": "10"}, "conditions": READY}
    return {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}, "spec": {}, "status": status}


READY = [{"type": "Ready", "status": "True"}]


def pod_with(requests: Json, name: str = "p", node: str = "") -> Json:
    metadata = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": clusters.TIME}
    spec: Json = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    return {"metadata": metadata, "spec": {**spec, "nodeName": node} if node else spec}


@pytest.mark.parametrize(
    ("node", "bound", "requests", "expected"),
    [
        pytest.param(("4", "8Gi"), {}, {"cpu": "1", "memory": "2Gi"}, 75 + 75, id="a-quarter-of-both"),
        pytest.param(("4", "8Gi"), {}, {"cpu": "4", "memory": "8Gi"}, 0 + 75, id="all-of-it"),
        pytest.param(("4", "8Gi"), {}, {"cpu": "2"}, (50 + 97) // 2 + 62, id="memory-by-default"),
        pytest.param(("4", "8Gi"), {}, {}, (97 + 97) // 2, id="no-requests-no-balance"),
        pytest.param(("4", "8Gi"), {"cpu": "2"}, {"memory": "4Gi"}, (47 + 47) // 2 + 87, id="evens-out"),
        pytest.param(("4", "0"), {}, {"cpu": "1"}, 75 + 75, id="a-resource-that-the-node-lacks"),
        pytest.param(("10m", "36028797018963968"), {}, {"cpu": "5m", "memory": "1"}, 74 + 62, id="beyond-63-bits"),
    ],
)
def test_points_for_resources(node: tuple[str, str], bound: Json, requests: Json, expected: int) -> None:
    pods = [pod_with(bound, "bound", "a")] if bound else []
    snapshot = snapshot_of({"nodes": [only_node(*node)], "pods": pods, "pending": [pod_with(requests)]})
    assert scores(snapshot.fork(), snapshot.shape_at(("default", "p"))).tolist() == [300 + expected]


def test_pods_without_requests_count_with_defaults_wherever_they_are_placed() -> None:
    snapshot = snapshot_of({"nodes": [only_node("4", "8Gi"), only_node("4", "8Gi", "b")], "pending": [pod_with({})]})
    shape, space = snapshot.shape_at(("default", "p")), snapshot.fork()
    board = ScoreBoard.of(space)
    assert board.best(shape).tolist() == [0, 1]
    board.add(shape, 0)
    assert board.best(shape).tolist() == [1]
    space.take(shape, np.array([0]), np.array([1]))
    assert ScoreBoard.of(space).best(shape).tolist() == [1]


def test_a_board_leaves_its_space_alone() -> None:
    given = {"nodes": [only_node("4", "8Gi")], "pending": [pod_with({"cpu": "3"})]}
    snapshot = snapshot_of(given)
    shape, space = snapshot.shape_at(("default", "p")), snapshot.fork()
    board = ScoreBoard.of(space)
    board.add(shape, 0)
    assert not len(board.best(shape))
    assert space.free[[CPU, MEMORY], 0].tolist() == [4000, 8 << 30]


def test_the_table_has_a_rule_or_says_what_is_not_modelled() -> None:
    assert all(score.rule or score.not_modelled for score in SCORES)
    assert len({score.name for score in SCORES}) == len(SCORES)
    assert sum(score.name in NAMES for score in SCORES) == 5


@pytest.mark.parametrize("number", [2, 3, 10, 5002])
def test_logarithms_are_exact(number: int) -> None:
    assert abs(logarithm(number) / 2**40 - math.log(number)) < 1e-11
