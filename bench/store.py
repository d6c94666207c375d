"""Measures stores: memory per pod of a large cluster, and the time from a write to the last of its watchers."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

import msgspec

from springtide.apis.core.interning import intern_labels
from springtide.apiserver.direct import DirectTransport
from springtide.apiserver.server import ApiServer
from springtide.cluster.reflector import Reflector
from springtide.cluster.resources import Object, Resource, Selection
from springtide.cluster.store import Store
from springtide.cluster.transport import WatchEvent, WatchEventType, Write
from springtide.simulator.virtual_time import VirtualClock, run

PODS = 150_000
NODES = 5_000
SETS_OF_LABELS = 400
WRITES = 100_000
WATCHERS = 3
NODE = Resource("", "v1", "nodes", "Node", namespaced=False)


class PodRecord(msgspec.Struct, frozen=True, gc=False):
    """A compact record of a pod."""

    node: str
    cpu: int
    memory: int
    labels: Mapping[str, str]


def record(pod: Object) -> PodRecord:
    """Make the record of a pod."""
    metadata, spec = pod["metadata"], pod["spec"]
    return PodRecord(spec["nodeName"], spec["cpu"], spec["memory"], intern_labels(metadata["labels"]))


def pods(count: int, version: int = 1) -> Iterator[Object]:
    """Make pods one by one, with strings of their own, as a decoder does."""
    for n in range(count):
        labels = {"app": f"app-{n % SETS_OF_LABELS}", "pod-template-hash": f"{n % SETS_OF_LABELS:010x}"}
        metadata: dict[str, Any] = {"namespace": f"team-{n % 50}", "name": f"app-{n % SETS_OF_LABELS}-{n:010x}-x7k2p"}
        metadata |= {"labels": labels, "resourceVersion": str(version)}
        yield {"metadata": metadata, "spec": {"nodeName": f"node-{n % NODES}", "cpu": 250, "memory": 1 << 28}}


def filled() -> Store[PodRecord]:
    """Make a store of all pods, with an index by node."""
    store = Store(record, {"node": lambda pod: (pod.node,)})
    store.replace(pods(PODS), 1)
    return store


def memory() -> None:
    """Print the memory per pod in a store."""
    gc.collect()
    tracemalloc.start()
    store = filled()
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"{'memory':28} {len(store):9,} pods, {held / 1e6:6.0f} MB   {held / len(store) / 1024:6.2f} KB a pod")


def apply(store: Store[PodRecord], events: list[WatchEvent]) -> None:
    """Apply events to a store."""
    for event in events:
        store.apply(event)


def operations() -> None:
    """Print the rates of the most frequent operations."""
    store = filled()
    prepared = [WatchEvent(WatchEventType.MODIFIED, pod) for pod in pods(PODS, version=2)]
    for n, event in enumerate(prepared):
        event.object["metadata"]["resourceVersion"] = str(2 + n)
        event.object["spec"]["cpu"] = 500
    rate("changes applied", PODS, lambda: apply(store, prepared))
    rate("changes replayed", PODS, lambda: apply(store, prepared))
    items = [event.object for event in prepared]
    rate("relist without changes", PODS, lambda: store.replace(items, store.version))
    rate("look-ups by node", NODES, lambda: [store.by("node", f"node-{n}") for n in range(NODES)])


def rate(name: str, count: int, work: Callable[[], object]) -> None:
    """Time some work, and print its rate."""
    gc.collect()
    begin = time.perf_counter()
    work()
    print(f"{name:28} {count / (time.perf_counter() - begin):9,.0f}/s")


async def deliveries(clock: VirtualClock) -> None:
    """Print the rate of writes until the last store has them: server, transport and reflectors."""
    server = ApiServer(now=clock.now, random=Random(0))
    transport = DirectTransport(server)
    stores: list[Store[Any]] = [Store() for _ in range(WATCHERS)]
    reflectors = [
        Reflector(transport, Selection(NODE), store, clock=clock, random=Random(n)) for n, store in enumerate(stores)
    ]
    running = [asyncio.create_task(reflector.run()) for reflector in reflectors]
    for store in stores:
        await store.wait_synced()
    gc.collect()
    begin = time.perf_counter()
    for n in range(WRITES):
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{n}", "labels": {"pool": "a"}}}
        await transport.create(NODE, body, Write("bench"))
    for store in stores:
        await store.wait_for_version(server.revision)
    seconds = time.perf_counter() - begin
    for task in running:
        task.cancel()
    count = sum(map(len, stores))
    print(f"{'writes, all in':28} {WRITES / seconds:9,.0f}/s   {WRITES:,} objects")
    print(f"{'deliveries, all in':28} {count / seconds:9,.0f}/s   {WATCHERS} watchers")


def main() -> None:
    memory()
    operations()
    run(deliveries)


if __name__ == "__main__":
    main()
