"""Time of building, changing and forking a snapshot of 150,000 pods in 400 shapes on 5,000 nodes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import msgspec

from springtide.apis.core.nodes import NodeRecord, NodeView, node_record
from springtide.apis.core.pod_record import PodRecord, PodView, pod_record
from springtide.packing.snapshot import PodKey, Snapshot

_ZONE, _HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_NODES = 5_000
_PODS = 150_000
_SHAPES = 400
_CHANGED = 1_500
Pods = list[tuple[PodKey, PodRecord]]


def nodes(count: int = _NODES) -> list[NodeRecord]:
    """Nodes of 16 cpu in three zones."""
    amounts = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    made = []
    for number in range(count):
        name = f"node-{number}"
        labels = {_HOSTNAME: name, _ZONE: f"zone-{number % 3}", "node.kubernetes.io/instance-type": "m"}
        manifest = {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts}}
        made.append(node_record(msgspec.convert(manifest, NodeView)))
    return made


def pods(count: int = _PODS, shapes: int = _SHAPES, on: int = _NODES) -> Pods:
    """Pods of as many workloads as shapes, some of which spread or keep apart; one in eight is pending."""
    rng = random.Random(42)
    specs = [_spec(number, rng) for number in range(shapes)]
    found: Pods = []
    for number in range(count):
        app = number % shapes
        pending = number % 8 == 0
        spec = specs[app] if pending else {**specs[app], "nodeName": f"node-{rng.randrange(on)}"}
        name = f"app-{app}-{number}"
        manifest = {
            "metadata": {"name": name, "namespace": "default", "labels": {"app": f"app-{app}"}},
            "spec": spec,
            "status": {"phase": "Pending" if pending else "Running"},
        }
        found.append((("default", name), pod_record(msgspec.convert(manifest, PodView))))
    return found


def _spec(number: int, rng: random.Random) -> dict[str, object]:
    requests = {"cpu": f"{rng.choice([50, 100, 250, 500])}m", "memory": f"{64 + number}Mi"}
    spec: dict[str, object] = {"containers": [{"name": "main", "resources": {"requests": requests}}]}
    selector = {"matchLabels": {"app": f"app-{number}"}}
    if number % 10 == 0:
        constraint = {"maxSkew": 1, "topologyKey": _ZONE, "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [{**constraint, "labelSelector": selector}]
    elif number % 10 == 1:
        terms = [{"topologyKey": _HOSTNAME, "labelSelector": selector}]
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return spec


def filled(nodes_: list[NodeRecord], pods_: Pods) -> Snapshot:
    """Build a snapshot."""
    snapshot = Snapshot()
    for node in nodes_:
        snapshot.put_node(node)
    for key, record in pods_:
        snapshot.put_pod(key, record)
    snapshot.flush()
    return snapshot


def timed(what: str, action: Callable[[], object], times: int = 5) -> None:
    """Print the CPU time of an action, the least of several."""
    best = min(_seconds(action) for _ in range(times))
    print(f"{what:<60} {best * 1000:9.2f} ms")


def _seconds(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


def main() -> None:
    """Measure."""
    present, running = nodes(), pods()
    timed(f"{_NODES:,} nodes", lambda: filled(present, []), 3)
    timed(f"{_NODES:,} nodes and {_PODS:,} pods", lambda: filled(present, running), 3)
    snapshot = filled(present, running)
    by_shape = running[:: len(running) // _CHANGED][:_CHANGED]
    moved = [
        (key, msgspec.structs.replace(record, node=f"node-{number}")) for number, (key, record) in enumerate(by_shape)
    ]

    def change(changes: Pods) -> None:
        for key, record in changes:
            snapshot.put_pod(key, record)
        snapshot.flush()

    def there_and_back() -> None:
        change(moved)
        change(by_shape)

    timed(f"{_CHANGED:,} pods moved, and back", there_and_back)

    def with_node_updates() -> None:
        for node in present[:500]:
            snapshot.put_node(node)
        change(moved)
        change(by_shape)

    timed("the same with 500 updates of nodes", with_node_updates)
    timed("demand after no change", snapshot.demand)
    timed("fork", snapshot.fork)
    timed("fork without ten nodes", lambda: snapshot.fork(without=[f"node-{number}" for number in range(10)]))

    def fork_after_a_node() -> None:
        snapshot.remove_node("node-7")
        snapshot.put_node(present[7])
        snapshot.fork()

    timed("a node removed and added, and a fork", fork_after_a_node)


if __name__ == "__main__":
    main()
