"""Plans come true on a real kube-scheduler: pods bind where they were promised to, and what has no place gets none.

Random clusters are created one after the other in a control plane without kubelets and controllers. Every pending pod
waits behind a scheduling gate. In the order of the plan each is released while all nodes but the promised one are
cordoned; planned nodes are created before the first pod that is to be on one of them. At the end all nodes are open,
and the pods without a place are released together: kube-scheduler has to say of each that it fits nowhere.

`SPRINGTIDE_E2E_CLUSTERS` says how many clusters there are: 120 by default, 500 in `make e2e-long`. What `random_case`
draws depends on the seed alone, and so does the plan: a cluster that disagrees does so again.
"""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.e2e.assets import Assets
from tests.e2e.control_plane import ControlPlane
from tests.packing.clusters import FEATURES, GATED
from tests.packing.replaying import Planned
from tests.packing.test_plans import random_case

from springtide.cluster.errors import ApiError
from springtide.cluster.http import HttpTransport, load_kubeconfig
from springtide.cluster.resources import NODES, PODS, Key, Object, Resource, Selection, key_of
from springtide.cluster.transport import Patch, WatchEventType, Write

Json: TypeAlias = dict[str, Any]

log = logging.getLogger(__name__)

_CLUSTERS = int(os.environ.get("SPRINGTIDE_E2E_CLUSTERS", "120"))
_LEFT_OUT = GATED | {"volumes", "rwop", "csi-limits", "gates", "resource-claims", "nominated"}
"""What needs controllers, and what keeps a pod from being released."""
_GATE = "springtide.dev/e2e"
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_PATIENCE = 5.0
"""Seconds in which a released pod gets an answer; a scheduler needs hundredths of one."""
_PAUSE = 0.5
"""Seconds between changes of nodes and the release of a pod when a cluster is played again."""
_OTHER_KINDS = {
    "namespaces": Resource("", "v1", "namespaces", "Namespace", namespaced=False),
    "priorityClasses": Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False),
    "runtimeClasses": Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False),
}
_WRITE = Write("e2e")


class Disagreement(Exception):
    """What kube-scheduler does is not what the plan says."""


@pytest.fixture(scope="module")
def bare_plane(assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Return a control plane without a controller-manager, in which nodes are ready and pods need no account."""
    plane = ControlPlane(
        assets,
        tmp_path_factory.mktemp("bare-plane"),
        server_flags=("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",),
    )
    plane.programs.remove(plane.controller_manager)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


def test_plans_come_true(bare_plane: ControlPlane, tmp_path: Path) -> None:
    """The clusters that disagree are written to files, with what was planned for each of their pods.

    The scheduler watches nodes and pods apart, so it may hear of a released pod before it hears that nodes were
    cordoned. A cluster that disagrees is therefore played again, with pauses that are long enough for it.
    """
    counts, faults = asyncio.run(_play_all(bare_plane, tmp_path))
    log.info("%s", dict(counts))

    assert not faults, "\n".join([f"{dict(counts)}; the clusters are in {tmp_path}", *faults])
    for answer in ("existing", "planned", "unplaceable"):
        assert counts[answer] >= _CLUSTERS / 2, "so that the agreement is about something"


async def _play_all(plane: ControlPlane, folder: Path) -> tuple[Counter[str], list[str]]:
    counts, faults = Counter[str](), []
    async with _theatre(plane) as theatre:
        for seed in range(_CLUSTERS):
            played = _planned(seed)
            try:
                counts.update(await _play(theatre, played))
            except Disagreement:
                counts["played again"] += 1
                try:
                    counts.update(await _play(theatre, played, pause=_PAUSE))
                except Disagreement as found:
                    faults.append(f"seed {seed}: {found}")
                    _keep(folder / f"cluster-{seed}.json", played)
    return counts, faults


def _planned(seed: int) -> Planned:
    """Plan for a random cluster, without the pods that can tell that nodes are cordoned."""
    rng = random.Random(seed)
    case = random_case(
        seed, nodes=rng.randint(1, 5), bound=rng.randint(0, 6), pending=rng.randint(6, 9), features=FEATURES - _LEFT_OUT
    )
    case.cluster["pending"] = [pod for pod in case.cluster["pending"] if not _sees_cordons(pod)]
    return case.plan()


def _sees_cordons(pod: Json) -> bool:
    spec = pod["spec"]
    return any(
        one.get("key", _UNSCHEDULABLE) == _UNSCHEDULABLE and one.get("effect", "NoSchedule") == "NoSchedule"
        for one in spec.get("tolerations") or ()
    ) or any(one.get("nodeTaintsPolicy") == "Honor" for one in spec.get("topologySpreadConstraints") or ())


def _keep(file: Path, played: Planned) -> None:
    existing, planned = ([(key_of(pod), node) for pod, node in steps] for steps in played.steps())
    content = {"steps": [*existing, *planned], "newNodes": played.new_nodes(), "cluster": played.cluster}
    file.write_text(json.dumps(content, indent=1), encoding="utf-8")


async def _play(theatre: Theatre, played: Planned, *, pause: float = 0) -> Counter[str]:
    """Play one cluster, and return how many pods got which answer."""
    cluster = played.cluster
    existing, planned = played.steps()
    promised = {key_of(pod) for pod, _ in [*existing, *planned]}
    rest = [key_of(pod) for pod in cluster["pending"] if key_of(pod) not in promised]
    try:
        await theatre.build(cluster)
        for steps, nodes in ((existing, []), (planned, played.new_nodes())):
            await theatre.add_nodes(nodes)
            for pod, node in steps:
                await theatre.cordon_all_but(node)
                await asyncio.sleep(pause)
                await theatre.release(key_of(pod))
                await theatre.expect(key_of(pod), node)
        await theatre.open_all()
        await asyncio.sleep(pause)
        await asyncio.gather(*(theatre.release(key) for key in rest))
        for key in rest:
            await theatre.expect(key, "")
        theatre.expect_pending(rest)
    finally:
        await theatre.clear()
    return Counter(clusters=1, existing=len(existing), planned=len(planned), unplaceable=len(rest))


class Theatre:
    """The nodes and pods of a control plane, as watches show them, and the writes of these tests."""

    def __init__(self, transport: HttpTransport) -> None:
        """Start without any nodes and pods."""
        self._transport = transport
        self._nodes: dict[Key, Object] = {}
        self._pods: dict[Key, Object] = {}
        self._news = asyncio.Event()
        self._closed: set[str] = set()
        """The nodes that are cordoned by themselves, and stay so."""

    async def follow(self, resource: Resource, into: dict[Key, Object]) -> None:
        """Watch a resource for ever."""
        while True:
            async with aclosing(self._transport.watch(Selection(resource), initial_events=True)) as events:
                async for event in events:
                    if event.change is WatchEventType.BOOKMARK:
                        continue
                    if event.change is WatchEventType.DELETED:
                        into.pop(key_of(event.object), None)
                    else:
                        into[key_of(event.object)] = event.object
                    self._news.set()

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch nodes and pods for as long as the block lasts."""
        watches = [
            asyncio.create_task(self.follow(NODES, self._nodes)),
            asyncio.create_task(self.follow(PODS, self._pods)),
        ]
        try:
            yield
        finally:
            for watch in watches:
                watch.cancel()
            await asyncio.gather(*watches, return_exceptions=True)

    async def prepare(self, cluster: Json) -> None:
        """Create what all clusters have in common; no pod of any class preempts others."""
        classes = [{**one, "preemptionPolicy": "Never"} for one in cluster["priorityClasses"]]
        usual = {**classes[0], "metadata": {"name": "usual"}, "value": 0, "globalDefault": True}
        given = {**cluster, "priorityClasses": [*classes, usual]}
        for kind, resource in _OTHER_KINDS.items():
            for thing in given[kind]:
                if thing["metadata"]["name"] != "default":
                    await self._transport.create(resource, _bare(thing), _WRITE)
        async with asyncio.timeout(30):
            for each in classes:
                while not await self._knows_class(each["metadata"]["name"]):
                    await asyncio.sleep(0.1)
            while not await self._knows_class(None):
                await asyncio.sleep(0.1)

    async def _knows_class(self, name: str | None) -> bool:
        """Whether the admission of pods has heard of a priority class; None is the usual one."""
        spec = {"containers": [{"name": "main", "image": "pause"}], "priorityClassName": name}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": "default"}, "spec": spec}
        try:
            made = await self._transport.create(PODS, pod, Write("e2e", dry_run=True), namespace="default")
        except ApiError:
            return False
        return bool(made["spec"]["preemptionPolicy"] == "Never")

    async def build(self, cluster: Json) -> None:
        """Create the nodes, the bound pods and, behind gates, the pending ones."""
        self._closed = {one["metadata"]["name"] for one in cluster["nodes"] if one["spec"].get("unschedulable")}
        await self.add_nodes(cluster["nodes"])
        await asyncio.gather(*(self._bind(pod) for pod in cluster["pods"]))
        await asyncio.gather(
            *(self._create_pod(pod, schedulingGates=[{"name": _GATE}]) for pod in cluster["pending"]),
        )
        await self._until(lambda: len(self._pods) == len(cluster["pods"]) + len(cluster["pending"]))

    async def add_nodes(self, nodes: Iterable[Json]) -> None:
        """Create nodes, cordoned, and wait until the watch shows them."""
        wanted = [_bare(one) for one in nodes]
        for one in wanted:
            one |= {"apiVersion": "v1", "kind": "Node", "spec": {**one["spec"], "unschedulable": True}}
            one["status"]["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        await asyncio.gather(*(self._transport.create(NODES, one, _WRITE) for one in wanted))
        await self._until(lambda: all(key_of(one) in self._nodes for one in wanted))

    async def _create_pod(self, pod: Json, **spec: Any) -> Object:
        body = _bare(pod)
        body["spec"] |= {"preemptionPolicy": "Never", **spec}
        del body["status"]
        return await self._transport.create(PODS, body, _WRITE, namespace=key_of(pod).namespace)

    async def _bind(self, pod: Json) -> None:
        """Create a pod that has a node, and bring it into the state that it is to be in."""
        key = key_of(pod)
        await self._create_pod(pod)
        if pod["status"] != {"phase": "Running"}:
            patch = Patch.merge({"status": pod["status"]})
            await self._transport.patch(PODS, key, patch, _WRITE, subresource="status")
        if "deletionTimestamp" in pod["metadata"]:
            await self._transport.delete(PODS, key, _WRITE, grace_seconds=30)

    async def cordon_all_but(self, name: str) -> None:
        """Cordon all nodes but one: first the open ones, so that never two are open."""
        for key, node in list(self._nodes.items()):
            if key.name != name and not _is_cordoned(node):
                await self._cordon(key, True)
        if _is_cordoned(self._nodes[Key("", name)]):
            await self._cordon(Key("", name), False)

    async def open_all(self) -> None:
        """Open all nodes but those that the cluster itself has cordoned."""
        closed = [key for key, node in self._nodes.items() if _is_cordoned(node) and key.name not in self._closed]
        await asyncio.gather(*(self._cordon(key, False) for key in closed))
        for key, node in list(self._nodes.items()):
            if key.name in self._closed and not _is_cordoned(node):
                await self._cordon(key, True)

    async def _cordon(self, key: Key, cordoned: bool) -> None:
        patch = Patch.merge({"spec": {"unschedulable": cordoned or None}})
        await self._transport.patch(NODES, key, patch, _WRITE)
        await self._until(lambda: _is_cordoned(self._nodes[key]) is cordoned)

    async def release(self, key: Key) -> None:
        """Let the scheduler have a pod."""
        await self._transport.patch(PODS, key, Patch.merge({"spec": {"schedulingGates": None}}), _WRITE)

    async def expect(self, key: Key, node: str) -> None:
        """Wait for a pod to be bound to a node or, without a node, to be called unschedulable."""
        try:
            await self._until(lambda: bool(_node_of(self._pods[key]) or (not node and self._refusal(key))))
        except TimeoutError:
            answer = self._refusal(key) or "nothing"
            raise Disagreement(f"{key} is not bound to {node or 'anything'}; the scheduler says: {answer}") from None
        if _node_of(self._pods[key]) != node:
            expected = f"to {node}" if node else "to no node"
            raise Disagreement(f"{key} is bound to {_node_of(self._pods[key])}, and was expected {expected}")

    def expect_pending(self, keys: Iterable[Key]) -> None:
        """Find the pods that were bound after they had been called unschedulable."""
        bound = [f"{key} on {_node_of(self._pods[key])}" for key in keys if _node_of(self._pods[key])]
        if bound:
            raise Disagreement(f"bound after all: {', '.join(bound)}")

    def _refusal(self, key: Key) -> str:
        """What the scheduler has against a pod, if it has tried to place it."""
        for condition in self._pods[key]["status"].get("conditions") or ():
            if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
                return str(condition.get("message") or "it is unschedulable")
        return ""

    async def clear(self) -> None:
        """Delete all pods and all nodes."""
        await asyncio.gather(*(self._delete_pod(key, pod) for key, pod in list(self._pods.items())))
        await asyncio.gather(*(self._transport.delete(NODES, key, _WRITE) for key in list(self._nodes)))
        await self._until(lambda: not self._pods and not self._nodes)

    async def _delete_pod(self, key: Key, pod: Object) -> None:
        await self._transport.delete(PODS, key, _WRITE, grace_seconds=0)
        if pod["metadata"].get("finalizers"):
            await self._transport.patch(PODS, key, Patch.merge({"metadata": {"finalizers": None}}), _WRITE)

    async def _until(self, reached: Callable[[], bool]) -> None:
        """Wait until the watches have shown a state."""
        async with asyncio.timeout(_PATIENCE):
            while not reached():
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def _theatre(plane: ControlPlane) -> AsyncIterator[Theatre]:
    async with HttpTransport(load_kubeconfig(plane.admin), random=random.Random(1)) as transport:
        theatre = Theatre(transport)
        await theatre.prepare(random_case(0).cluster)
        async with theatre.watching():
            yield theatre


def _bare(thing: Json) -> Json:
    """An object without what the server itself sets."""
    made = copy.deepcopy(thing)
    kept = ("name", "namespace", "labels", "annotations", "finalizers")
    made["metadata"] = {key: value for key, value in made["metadata"].items() if key in kept}
    return made


def _is_cordoned(node: Object) -> bool:
    return bool(node["spec"].get("unschedulable"))


def _node_of(pod: Object) -> str:
    return str(pod["spec"].get("nodeName") or "")
