"""How many manifests are checked in a second, compared with parsing them with PyYAML's safe loader."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import yaml

from springtide.apis.kinds import ValidationContext
from springtide.apis.yaml import read
from springtide.assembly.manifests import ManifestSource, check_sources

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.yaml"))
ROUNDS = 5


def best(work: Callable[[str], object], texts: list[str]) -> float:
    """Return the shortest time that the work on all texts took."""
    times: list[float] = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for text in texts:
            work(text)
        times.append(time.perf_counter() - begin)
    return min(times)


POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: dense}
spec:
  template:
    spec:
      nodeClassRef: {group: springtide.dev, kind: NodeClass, name: a}
      requirements: []
  disruption:
    budgets:
"""
DENSE = POOL + "".join(
    f'    - {{nodes: "{n}", reasons: [Drifted], schedule: "{n} */2 * * *", duration: 30m}}\n' for n in range(1, 50)
)
"""Fifty budgets with different windows: each is compared with every other over a year."""


def main() -> None:
    texts = [path.read_text(encoding="utf-8") for path in EXAMPLES]
    objects = sum(len(read(text)) for text in texts)
    context = ValidationContext(now=1_795_000_000)
    subjects: dict[str, Callable[[str], object]] = {
        "PyYAML, safe_load_all": lambda text: list(yaml.safe_load_all(text)),
        "ours, read with positions": read,
        "ours, everything check does": lambda text: check_sources([ManifestSource("x", text)], [], context),
    }
    base = best(subjects["PyYAML, safe_load_all"], texts)
    for name, work in subjects.items():
        seconds = best(work, texts)
        print(f"{name:30} {objects / seconds:9,.0f} objects/s   {seconds / base:5.2f}x the time of PyYAML")
    single = best(lambda text: check_sources([ManifestSource("x", text)], [], context), [DENSE])
    print(f"{'a pool of fifty budgets':30} {1000 * single:9.1f} ms to check")


if __name__ == "__main__":
    main()
