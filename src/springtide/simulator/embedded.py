"""The embedded cluster: an API server and the controllers of Kubernetes itself, in this process.

It is a simulated cluster without faults, on real or scaled time. It opens no port: `springtide.apiserver.http` serves
it to other processes, and controllers in the same process use its transport.
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
        """Create the cluster; HorizontalPodAutoscalers read `metrics`, and without it measure nothing."""
        self.clock = clock
        self._behaviours = behaviours.measuring(metrics) if metrics is not None else behaviours.ALL
        self.server = ApiServer(now=clock.now, random=random, converter=convert, storage=storage)
        install(self.server)
        self._random = random

    def transport(self) -> DirectTransport:
        """Return a direct transport for clients in this process."""
        return DirectTransport(self.server)

    async def run(self, settings: ManagerSettings) -> None:
        """Run the controllers until cancelled; a failure of any of them ends the cluster."""
        manager = Manager(self.transport(), self.clock, self._behaviours, random=self._random, settings=settings)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(GarbageCollector(self.server).run(self.clock))
            tasks.create_task(NamespaceController(self.server).run(self.clock))
            tasks.create_task(manager.run())
