"""Time, nodes, cost, certified bound and gap of the solvers, on the problems that the plans are measured by."""

from __future__ import annotations

import importlib
import random
import time
from collections.abc import Callable

import numpy as np

from springtide.packing.bounds import relax
from springtide.packing.greedy import greedy
from springtide.packing.patterns import THOROUGH, best_of
from springtide.packing.problem import UNLIMITED, NodeTypes, Packing, PodDemand

_MI = 2**20
_GI = 2**30


def binpacking_estimate() -> tuple[PodDemand, NodeTypes]:
    """Cluster Autoscaler's BinpackingEstimate: 50,000 small pods and 1,000 that are nearly twice as large, one type."""
    demand = PodDemand(
        requests=np.array([[50, 100, 0, 1], [95, 190, 0, 1]], dtype=np.int64),
        counts=np.array([50_000, 1_000], dtype=np.int64),
        per_node=np.full(2, UNLIMITED, dtype=np.int64),
        allowed=np.ones((2, 1), dtype=np.bool_),
    )
    types = NodeTypes(
        capacity=np.array([[1_000, 5_000 * _MI, 0, 100]], dtype=np.int64),
        price=np.array([10**9], dtype=np.int64),
        available=np.array([UNLIMITED], dtype=np.int64),
    )
    return demand, types


def mixed_families(seed: int) -> tuple[PodDemand, NodeTypes]:
    """50,000 pods in 200 shapes, some with GPUs, and 20 types of four families."""
    draw = random.Random(seed)
    requests, counts = [], [draw.randint(1, 40) for _ in range(200)]
    for shape in range(200):
        cpu = int(100 * 80 ** draw.random())
        memory = int(256 * 128 ** draw.random()) * _MI
        requests.append([cpu, memory, 0, 1, draw.choice((1, 1, 2, 4)) if shape % 40 == 0 else 0])
    total = sum(counts)
    counts = [count * 50_000 // total for count in counts]
    counts[-1] += 50_000 - sum(counts)
    capacity, price = [], []
    for gib, gpus, family in ((2, 0, 1.0), (4, 0, 1.12), (8, 0, 1.42), (8, 1, 6.0)):
        noise = family * draw.uniform(0.95, 1.05)
        for volume, cpu in enumerate((8, 16, 32, 64, 96)):
            capacity.append([cpu * 970, int(cpu * gib * 0.95 * _GI), 0, 110, gpus * cpu // 8])
            hourly = cpu * 0.0425 * noise * (1.01 - 0.01 * volume) * draw.uniform(0.997, 1.003)
            price.append(int(hourly * 10**9))
    return _problem(requests, counts, capacity, price)


def distinct_shapes(seed: int = 1) -> tuple[PodDemand, NodeTypes]:
    """10,000 pods, each with other requests, and 400 types in families, generations and sizes."""
    draw = random.Random(seed)
    requests = [
        [int(100 * 80 ** draw.random()), int(128 * 256 ** draw.random()) * _MI + draw.randint(0, _MI), 0, 1]
        for _ in range(10_000)
    ]
    capacity, price = [], []
    for generation in range(4):
        for gib in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16):
            for cpu in (1, 2, 4, 8, 12, 16, 24, 32, 48, 64):
                capacity.append([cpu * 1_000 - min(400, cpu * 50), int(cpu * gib * 0.95 * _GI), 0, 110])
                hourly = cpu * (0.024 + 0.0045 * gib) * (1 - 0.03 * generation) * draw.uniform(0.95, 1.05)
                price.append(int(hourly * 10**9))
    return _problem(requests, [1] * len(requests), capacity, price)


def large_pods(seed: int = 1) -> tuple[PodDemand, NodeTypes]:
    """2,000 pods of 1 to 6 cpu and 2 to 24 GiB in 40 shapes, on nodes of 4 to 16 cpu."""
    draw = random.Random(seed)
    requests = [[draw.randint(10, 60) * 100, draw.randint(8, 96) * 256 * _MI, 0, 1] for _ in range(40)]
    capacity, price = [], []
    for gib, family in ((2, 1.0), (4, 1.13), (8, 1.45)):
        for cpu in (4, 8, 16):
            capacity.append([cpu * 1_000 - 200, cpu * gib * _GI - _GI, 0, 110])
            price.append(int(cpu * 0.0425 * family * draw.uniform(0.97, 1.03) * 10**9))
    return _problem(requests, [50] * 40, capacity, price)


def _problem(
    requests: list[list[int]], counts: list[int], capacity: list[list[int]], price: list[int]
) -> tuple[PodDemand, NodeTypes]:
    demand = PodDemand(
        requests=np.array(requests, dtype=np.int64),
        counts=np.array(counts, dtype=np.int64),
        per_node=np.full(len(counts), UNLIMITED, dtype=np.int64),
        allowed=np.ones((len(counts), len(price)), dtype=np.bool_),
    )
    types = NodeTypes(
        capacity=np.array(capacity, dtype=np.int64),
        price=np.array(price, dtype=np.int64),
        available=np.full(len(price), UNLIMITED, dtype=np.int64),
    )
    return demand, types


def _measured(name: str, solver: Callable[[], tuple[Packing, int]], ceiling: str) -> None:
    start = time.process_time()
    packing, bound = solver()
    seconds = time.process_time() - start
    gap = 100 * (packing.cost / bound - 1) if bound else 0.0
    print(
        f"{name:42} {1000 * seconds:8.1f} ms {packing.nodes:6} nodes {packing.cost / 1e9:12.3f} $/h"
        f" {bound / 1e9:12.3f} bound {gap:6.2f} % above  ({ceiling})"
    )


def main() -> None:
    """CPU seconds of one process; bounds of (h) are those of the thorough grid, which is exact for its amounts."""
    start = time.process_time()
    importlib.import_module("highspy")
    print(f"import of highspy: {1000 * (time.process_time() - start):.0f} ms")
    relax(*large_pods())
    demand, types = binpacking_estimate()
    for _ in range(2):
        _measured("(b) BinpackingEstimate, greedy", lambda: (greedy(demand, types), 0), "2,595 nodes, < 5 ms")
    _measured("(b) BinpackingEstimate, best", lambda: best_of(demand, types), "2,595 nodes")
    for seed in range(3):
        distinct = distinct_shapes(seed)
        _measured(f"(e) 10,000 shapes x 400 types, seed {seed}", lambda: best_of(*distinct), "< 1.5 s, <= 2.5 %")  # noqa: B023
    for seed in range(20):
        mixed = mixed_families(seed)
        _measured(f"(g) 50,000 pods, 20 types, seed {seed}", lambda: best_of(*mixed), "< 0.4 s, <= 1.5 %")  # noqa: B023
    for seed in range(4):
        large = large_pods(seed)
        exact = best_of(*large, grid=THOROUGH)[1]
        _measured(f"(h) large pods, fast, seed {seed}", lambda: (best_of(*large)[0], exact), "< 0.5 s, <= 2.5 %")  # noqa: B023
        _measured(f"(h) large pods, thorough, seed {seed}", lambda: best_of(*large, grid=THOROUGH), "< 5 s, <= 0.7 %")  # noqa: B023


if __name__ == "__main__":
    main()
