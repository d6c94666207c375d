"""`make bench`: run every benchmark; each measures its subjects one after the other in one run."""

from __future__ import annotations

import importlib

BENCHMARKS = (
    "bench.startup",
    "bench.manifests",
    "bench.almanac.cron",
    "bench.virtual_time",
    "bench.workqueue",
    "bench.store",
    "bench.scenarios",
    "bench.packing.snapshot",
    "bench.packing.solvers",
    "bench.packing.plans",
    "bench.http.sync",
    "bench.scaling.on_time",
)


def main() -> None:
    for name in BENCHMARKS:
        print(f"\n== {name}")
        importlib.import_module(name).main()


if __name__ == "__main__":
    main()
