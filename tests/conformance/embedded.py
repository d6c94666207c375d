"""The embedded API server, on loopback and in a thread of its own, as the cases want it: with or without controllers.

The controllers are the two that Kubernetes runs beside its API server and without which deletion is not whole. Most
cases are about the server alone, and must not see them at work.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from tests.conformance.wire import Endpoint

from springtide.cluster.clock import WallClock
from springtide.cluster.serving import serving
from springtide.simulator.api.converter import convert
from springtide.simulator.api.garbage import GarbageCollector
from springtide.simulator.api.namespaces import NamespaceDeleter
from springtide.simulator.api.performing import User
from springtide.simulator.api.server import ApiServer
from springtide.simulator.http import ApiApp, Tokens
from springtide.simulator.newcomers import install

_ADMIN = User("admin", ("system:masters", "system:authenticated"), "admin")
_SECONDS = 20


@contextmanager
def embedded(*, controllers: bool = False) -> Iterator[Endpoint]:
    """Serve an embedded API server for as long as a block of code lasts."""
    begun: list[Endpoint] = []
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        clock = WallClock()
        server = ApiServer(now=clock.now, random=Random(1), converter=convert)
        install(server)
        tokens = Tokens()
        app = ApiApp(server, authenticate=tokens)
        async with serving(app, dated=False) as there:
            tasks = [
                asyncio.create_task(each(server).run(clock))
                for each in (GarbageCollector, NamespaceDeleter)
                if controllers
            ]
            begun.append(Endpoint(there.url, tokens.issue(_ADMIN)))
            ready.set()
            await over.wait()
            app.close()
            for task in tasks:
                task.cancel()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    try:
        assert ready.wait(_SECONDS), "the embedded server did not start"
        yield begun[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(_SECONDS)
        loop.close()
