"""The embedded cluster: an API server and everything that Kubernetes itself does with it, in this process.

It is what the simulated world is, without faults and on a clock that goes by itself. It knows no network: whoever
wants to reach it from outside serves it (`springtide.simulator.http`), and whoever wants controllers in it runs them
on its transport.
"""

from __future__ import annotations

import asyncio
from random import Random

from springtide.apiserver.conversion import convert
from springtide.apiserver.direct import DirectTransport
from springtide.apiserver.garbage_collection import GarbageCollector, NamespaceController
from springtide.apiserver.server import ApiServer
from springtide.apiserver.storage import Storage
from springtide.cluster.clock import Clock
from springtide.cluster.manager import Manager, ManagerSettings
from springtide.simulator import behaviours
from springtide.simulator.behaviours.autoscaling.metrics import Metrics
from springtide.simulator.bootstrap import install


class EmbeddedCluster:
    """An API server with our CRDs, and the controllers, the scheduler and the kubelets of a cluster."""

    def __init__(
        self, clock: Clock, random: Random, *, storage: Storage | None = None, metrics: Metrics | None = None
    ) -> None:
        """Make it; `metrics` is what HorizontalPodAutoscalers read, who else measure nothing."""
        self.clock = clock
        self._behaviours = behaviours.measuring(metrics) if metrics is not None else behaviours.ALL
        self.server = ApiServer(now=clock.now, random=random, converter=convert, storage=storage)
        install(self.server)
        self._random = random

    def transport(self) -> DirectTransport:
        """Connect somebody in this process."""
        return DirectTransport(self.server)

    async def run(self, settings: ManagerSettings) -> None:
        """Let it live until this is cancelled; what fails in it ends it."""
        manager = Manager(self.transport(), self.clock, self._behaviours, random=self._random, settings=settings)
        async with asyncio.TaskGroup() as living:
            living.create_task(GarbageCollector(self.server).run(self.clock))
            living.create_task(NamespaceController(self.server).run(self.clock))
            living.create_task(manager.run())
