"""Pods fit the same nodes by kube-scheduler's own filter plugins as by what is tested here, in random clusters."""

from __future__ import annotations

import json
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import pytest
from tests.e2e.assets import Assets, AssetsMissing, find_filters
from tests.packing.adapter import answers_of_packer
from tests.packing.clusters import FEATURES, random_cluster
from tests.packing.oracle import PREDICATES, Cluster, name_of, namespace_of, refusals

Json: TypeAlias = dict[str, Any]
Answers: TypeAlias = Mapping[tuple[str, str], frozenset[str]]
"""The names of the predicates that refuse a pod (`namespace/name`) on a node; none where it fits."""

_CLUSTERS = 2100
_MIXES = (
    FEATURES,
    FEATURES,
    FEATURES & {"spread", "affinity", "anti-affinity", "namespaces", "label-keys", "node-affinity", "taints"}
    | {"cordon", "terminating", "finished", "priorities", "nominated"},
    FEATURES & {"volumes", "rwop", "csi-limits", "node-selector", "host-ports", "resize", "priorities", "nominated"},
)
"""What clusters have in them: everything, or more of what depends on other pods, on volumes and on the status."""
_GATES = "TaintTolerationComparisonOperators=true"
"""Off by default in Kubernetes 1.36; without it tolerations with `Lt` and `Gt` match no taint."""
_NEVER = {"NodeName"}
"""Pending pods have no node."""


def _by_oracle(given: Json) -> Answers:
    cluster = Cluster.from_json(given)
    return {
        (f"{namespace_of(pod)}/{name_of(pod)}", name_of(node)): frozenset(refusals(cluster, pod, node))
        for pod in cluster.pending()
        for node in cluster.nodes
    }


def _by_packer(given: Json) -> Answers:
    return {pair: frozenset(names) for pair, names in answers_of_packer(given).items()}


@pytest.mark.parametrize(
    ("answers_of", "all_names"),
    [
        pytest.param(_by_oracle, True, id="oracle"),
        pytest.param(_by_packer, False, id="packer"),
    ],
)
def test_kube_scheduler_gives_the_same_answers(
    clusters: list[Json], scheduler: list[Answers], answers_of: Callable[[Json], Answers], all_names: bool
) -> None:
    """Without `all_names` one of the plugins that refuse a pod on a node is enough, as long as it is named rightly."""
    differences = Counter[str]()
    examples: list[str] = []
    for seed, (cluster, theirs) in enumerate(zip(clusters, scheduler, strict=True)):
        for kind, example in _differences(answers_of(cluster), theirs, all_names):
            differences[kind] += 1
            if differences[kind] < 3:
                examples.append(f"seed {seed}, {example}")

    assert not differences, "\n".join([f"{dict(differences)}", *examples])


def test_the_clusters_have_every_refusal(scheduler: list[Answers]) -> None:
    """So that the agreement is about something: 100,000 answers, a fifth of which are that the pod fits."""
    answers = [refused for answers in scheduler for refused in answers.values()]
    named = Counter(name for refused in answers for name in refused)

    assert len(answers) >= 100_000
    assert sum(not refused for refused in answers) > len(answers) / 5
    assert set(named) == set(PREDICATES) - _NEVER
    assert min(named.values()) > 500


def _differences(ours: Answers, theirs: Answers, all_names: bool) -> Iterator[tuple[str, str]]:
    assert ours.keys() == theirs.keys()
    for (pod, node), expected in theirs.items():
        found = ours[pod, node]
        if found == expected or (not all_names and bool(found) == bool(expected) and found <= expected):
            continue
        kind = "feasibility" if bool(found) != bool(expected) else "names"
        yield kind, f"{pod} on {node}: kube-scheduler {sorted(expected)}, ours {sorted(found)}"


@pytest.fixture(scope="module")
def clusters() -> list[Json]:
    """Return random clusters with more than 100,000 pairs of a pending pod and a node."""
    return [_cluster(random.Random(seed), _MIXES[seed % len(_MIXES)]) for seed in range(_CLUSTERS)]


def _cluster(rng: random.Random, features: frozenset[str]) -> Json:
    nodes, bound, pending = rng.randint(1, 12), rng.randint(0, 20), rng.randint(4, 12)
    return random_cluster(rng, nodes=nodes, bound=bound, pending=pending, features=features)


@pytest.fixture(scope="module")
def scheduler(assets: Assets, clusters: list[Json]) -> list[Answers]:
    """Return what kube-scheduler's plugins say about each cluster."""
    try:
        program = find_filters()
    except AssetsMissing as missing:
        pytest.skip(str(missing))
    lines = "".join(f"{json.dumps(cluster)}\n" for cluster in clusters)
    command = [str(program), "-feature-gates", _GATES]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False, timeout=300)

    assert not done.returncode, done.stderr
    return [_read(line) for line in done.stdout.splitlines()]


def _read(line: str) -> Answers:
    answers = json.loads(line)["answers"]
    return {(answer["pod"], answer["node"]): frozenset(answer["refused"]) for answer in answers}
