"""Equal input gives equal output: whatever the order of objects and of dicts, hash seeds, and the CPU's features."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from tests.packing.adapter import answers_of_packer, deltas_of, put_all
from tests.packing.clusters import FEATURES, ZONE, random_cluster

from springtide.packing.catalogue import ARCH_LABEL, OS_LABEL, InstanceType, Offering
from springtide.packing.offerings import Offerings, Pool
from springtide.packing.planning import plan
from springtide.packing.shapes import Shape
from springtide.packing.snapshot import Snapshot
from springtide.packing.space import Ask
from springtide.quantity import Quantity

Json: TypeAlias = dict[str, Any]

_ROOT = Path(__file__).parents[2]
_CLUSTERS = 12
_LARGE = 3
"""How many more clusters have many pods that are packed by the solvers."""


def digest(order: int) -> str:
    """The digest of all answers and plans; `order` shuffles objects, dicts, types and deltas."""
    rng = random.Random(order)
    found = hashlib.sha256()
    for seed in range(_CLUSTERS + _LARGE):
        cluster = _cluster(random.Random(seed), large=seed >= _CLUSTERS)
        if order:
            cluster = shuffled(cluster, rng)
        if seed < _CLUSTERS:
            answers = {pair: sorted(names) for pair, names in answers_of_packer(cluster).items()}
            found.update(repr(sorted(answers.items())).encode())
        found.update(repr(described_plan(cluster, rng)).encode())
    return found.hexdigest()


def _cluster(rng: random.Random, *, large: bool) -> Json:
    if not large:
        return random_cluster(rng, nodes=6, bound=10, pending=12)
    cluster = random_cluster(rng, nodes=4, bound=6, pending=30, features=FEATURES - {"volumes", "gates"})
    shapes = [pod for pod in cluster["pending"] if not pod["status"].get("nominatedNodeName")]
    for pod in shapes:
        for number in range(rng.choice([0, 5, 40])):
            replica = {**pod, "metadata": {**pod["metadata"], "name": f"{pod['metadata']['name']}-{number}"}}
            cluster["pending"].append(replica)
    return cluster


def shuffled(value: Any, rng: random.Random, key: str = "") -> Any:
    """The same JSON with lists of objects whose order means nothing, and all dicts, in another order."""
    if isinstance(value, dict):
        items = [(name, shuffled(one, rng, name)) for name, one in value.items()]
        rng.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        made = [shuffled(one, rng) for one in value]
        if key not in ("initContainers", "conditions"):
            rng.shuffle(made)
        return made
    return value


def described_plan(cluster: Json, rng: random.Random) -> object:
    """Everything that a plan says, in terms of names and amounts."""
    snapshot = Snapshot()
    deltas = deltas_of(cluster)
    rng.shuffle(deltas)
    put_all(snapshot, deltas)
    types, pools = _types(), _pools()
    rng.shuffle(types)
    rng.shuffle(pools)
    offerings = Offerings(snapshot, pools, types)
    demand = list(snapshot.demand().items())
    rng.shuffle(demand)
    made = plan(snapshot, [Ask(snapshot.shapes[number], count) for number, count in demand], offerings)
    pending = snapshot.pending()

    def name(shape: Shape) -> object:
        return pending[shape.number][0]

    def offered(number: int) -> object:
        offering = offerings.offering[number]
        kind, pool = offerings.types[offerings.type[number]].name, offerings.pools[offerings.pool[number]].name
        return kind, pool, offering.zone, offering.capacity_type

    nodes = made.space.names()
    return (
        (made.method, made.cost, made.nodes, made.lower_bound),
        [(name(step.shape), nodes[step.node], step.pods) for step in made.placed],
        [
            (offered(group.offering), group.nodes, [(name(shape), count) for shape, count in group.pods])
            for group in made.groups
        ],
        [(name(step.shape), step.node, step.pods) for step in made.sequence()],
        [(name(each.ask.shape), each.ask.count, each.because) for each in made.unplaced],
        sorted(
            (key, count)
            for key, count in (
                (name(shape), len(pending[shape.number])) for shape in snapshot.shapes if shape.number in pending
            )
        ),
    )


def _types() -> list[InstanceType]:
    """Types some of which cost the same."""
    return [
        InstanceType(
            name=f"{family}-{cpu}",
            labels={ARCH_LABEL: "amd64", OS_LABEL: "linux", "disk": disk},
            capacity={
                "cpu": Quantity.parse(cpu),
                "memory": Quantity.parse(f"{cpu * memory}Gi"),
                "ephemeral-storage": Quantity.parse("100Gi"),
                "pods": Quantity.parse(30),
                "example.com/gpu": Quantity.parse(2 if family == "g" else 0),
            },
            overhead={"cpu": Quantity.parse("100m")},
            offerings=tuple(
                Offering(zone, kind, cpu * price if kind == "on-demand" else cpu * price // 2)
                for zone in ("zone-a", "zone-b", "zone-c")
                for kind in ("on-demand", "spot")
            ),
        )
        for family, memory, price, disk in (
            ("c", 2, 90, "ssd"),
            ("m", 4, 100, "ssd"),
            ("n", 4, 100, "hdd"),
            ("g", 8, 400, "ssd"),
        )
        for cpu in (2, 4, 8, 16)
    ]


def _pools() -> list[Pool]:
    """Pools of the same weight, one of which has limits."""
    return [
        Pool("one", limits={"cpu": Quantity.parse(40)}),
        Pool("two", requirements=((ZONE, "In", ("zone-a", "zone-b")),)),
        Pool("three"),
    ]


# The tests start processes, because the seed of hashes and the features are those of a process.


def _run(order: int, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.packing.test_determinism", str(order)],
        cwd=_ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert not done.returncode, done.stderr
    return done.stdout.strip()


def dispatched() -> str:
    """The features of this CPU for which numpy has code of its own, beyond what it always uses."""
    umath = np._core._multiarray_umath  # type: ignore[attr-defined]
    return " ".join(name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name))


@pytest.fixture(scope="module")
def expected() -> str:
    """Return the digest of one process."""
    return _run(0, PYTHONHASHSEED="0")


@pytest.mark.parametrize(
    ("order", "environment"),
    [
        pytest.param(0, {"PYTHONHASHSEED": "1"}, id="another-hash-seed"),
        pytest.param(0, {"PYTHONHASHSEED": "0", "NPY_DISABLE_CPU_FEATURES": dispatched()}, id="without-cpu-features"),
        pytest.param(1, {"PYTHONHASHSEED": "2"}, id="another-order"),
        pytest.param(2, {"PYTHONHASHSEED": "3", "NPY_DISABLE_CPU_FEATURES": dispatched()}, id="everything-else"),
    ],
)
def test_equal_input_gives_equal_output(expected: str, order: int, environment: dict[str, str]) -> None:
    assert _run(order, **environment) == expected


if __name__ == "__main__":
    sys.stdout.write(digest(int(sys.argv[1])) + "\n")
