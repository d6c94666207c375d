"""A small simulated cluster for tests: an API server and all behaviours on virtual time, and builders of objects."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

from springtide.apiserver.direct import DirectTransport
from springtide.apiserver.garbage_collection import GarbageCollector
from springtide.apiserver.server import ApiServer, CommittedWrite
from springtide.cluster.controller import Controller
from springtide.cluster.errors import Conflict, NotFound
from springtide.cluster.manager import Manager, ManagerSettings
from springtide.cluster.resources import PODS, Key, Object, Resource, Selection
from springtide.cluster.transport import Patch, Propagation, Transport, Write
from springtide.simulator import behaviours
from springtide.simulator.virtual_time import VirtualClock, run

START = 1_800_000_000
USER = Write("user", "the test wants it")


class Cluster:
    """A simulated cluster, and what a test does to it and reads from it."""

    def __init__(
        self,
        clock: VirtualClock,
        controllers: Sequence[type[Controller]],
        connect: Callable[[ApiServer], Transport] = DirectTransport,
    ) -> None:
        self.clock = clock
        self.server = ApiServer(now=clock.now, random=Random(1))
        self.written: list[CommittedWrite] = []
        self.server.observers.append(self.written.append)
        self.manager = Manager(
            connect(self.server),
            clock,
            controllers,
            random=Random(2),
            settings=ManagerSettings(pausable=False),
        )

    async def passes(self, seconds: float) -> None:
        await self.clock.sleep(seconds)

    def create(self, resource: Resource, body: Object) -> Object:
        namespace = "default" if resource.namespaced else ""
        full = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        return self.server.create(resource, full, USER, namespace=namespace)

    def patch(self, resource: Resource, name: str, body: Object) -> Object:
        return self.server.patch(resource, self._key(resource, name), Patch.merge(body), USER)

    def delete(self, resource: Resource, name: str, propagation: Propagation | None = None) -> None:
        self.server.delete(resource, self._key(resource, name), USER, propagation=propagation)

    def get(self, resource: Resource, name: str) -> Object:
        return self.server.get(resource, self._key(resource, name))

    def exists(self, resource: Resource, name: str) -> bool:
        try:
            self.get(resource, name)
        except NotFound:
            return False
        return True

    def all(self, resource: Resource) -> list[Object]:
        return list(self.server.list(Selection(resource)).items)

    def running(self) -> list[Object]:
        return [pod for pod in self.all(PODS) if is_up(pod)]

    @staticmethod
    def _key(resource: Resource, name: str) -> Key:
        return Key("default" if resource.namespaced else "", name)


def is_up(pod: Object) -> bool:
    status = pod.get("status") or {}
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ())
    return status.get("phase") == "Running" and ready and "deletionTimestamp" not in pod["metadata"]


class NeedlessConflicts(DirectTransport):
    """Answers each conditional write with a conflict three times, although the object has not changed."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server)
        self._refused: Counter[object] = Counter()

    async def patch(self, resource: Resource, key: Key, patch: Patch, write: Write, **options: Any) -> Object:
        attempt = (write.manager, resource, key, options["precondition"].version)
        if attempt[-1] and self._refused[attempt] < 3:
            self._refused[attempt] += 1
            msg = "the object has been modified"
            raise Conflict(msg)
        return await super().patch(resource, key, patch, write, **options)


def play(
    story: Callable[[Cluster], Coroutine[Any, Any, None]],
    *,
    controllers: Sequence[type[Controller]] = behaviours.ALL,
    failing: bool = False,
    connect: Callable[[ApiServer], Transport] = DirectTransport,
) -> Cluster:
    """Let a story happen to a fresh cluster; only a story in which something is `failing` may have errors."""

    async def main(clock: VirtualClock) -> Cluster:
        cluster = Cluster(clock, controllers, connect)
        tasks = [
            asyncio.ensure_future(cluster.manager.run()),
            asyncio.ensure_future(GarbageCollector(cluster.server).run(clock)),
        ]
        await story(cluster)
        errors = [health.last_error for health in cluster.manager.health() if health.errors]
        await cluster.manager.stop()
        for task in tasks:
            task.cancel()
        assert bool(errors) is failing, errors
        return cluster

    return run(main, start=START)


def node(name: str, *, cpu: str = "4", memory: str = "8Gi", pods: str = "110", **more: Any) -> Object:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **more.pop("labels", {})}},
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods}},
        **more,
    }


def template(app: str = "web", *, image: str = "app:1", cpu: str = "500m", **spec: Any) -> Object:
    annotations = spec.pop("annotations", {})
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"labels": {"app": app}, "annotations": annotations},
        "spec": {"containers": [container], **spec},
    }


def workload(name: str, replicas: int | None, made_of: Object, **spec: Any) -> Object:
    size = {} if replicas is None else {"replicas": replicas}
    selector = {"matchLabels": dict(made_of["metadata"]["labels"])}
    return {"metadata": {"name": name}, "spec": {**size, "selector": selector, "template": made_of, **spec}}


def pod(name: str, **spec: Any) -> Object:
    made = template(**spec)
    return {"metadata": {"name": name, **made["metadata"]}, "spec": made["spec"]}


def names(items: Sequence[Object]) -> list[str]:
    return [item["metadata"]["name"] for item in items]


def nodes_of(cluster: Cluster) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in cluster.all(PODS))
