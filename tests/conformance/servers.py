"""Runs cases on a server, and serves the embedded API server for them, on loopback and in a thread of its own.

Most cases need the server alone. Some need the garbage collector and the namespace controller, which would disturb the
others.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import TypeAlias

from tests.conformance.answers import Difference, differences, recorded
from tests.conformance.case import Case
from tests.conformance.session import Object, Session
from tests.conformance.symbols import in_symbols
from tests.conformance.wire import Endpoint, Wire

from springtide.apiserver.admission import User
from springtide.apiserver.conversion import convert
from springtide.apiserver.garbage_collection import GarbageCollector, NamespaceController
from springtide.apiserver.http import ApiApp, TokenAuthenticator
from springtide.apiserver.server import ApiServer
from springtide.cluster.clock import WallClock
from springtide.cluster.serving import serving
from springtide.simulator.bootstrap import install

SERVICE_ACCOUNT = "conformance"
"""The service account of all pods, for servers that insist on one."""


@contextmanager
def case_runner(endpoint: Endpoint) -> Iterator[Callable[[Case], list[Object]]]:
    """Yield a function that runs a case and returns its answers in symbols; deletes shared definitions afterwards."""
    wire = Wire(endpoint)
    shared: dict[str, str] = {}
    try:
        yield lambda case: _run_case(case, Session(wire, f"c{secrets.token_hex(4)}z", shared))
    finally:
        for group in shared.values():
            path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}"
            wire.request("DELETE", path, {}, None, {})
        wire.close()


def _run_case(case: Case, session: Session) -> list[Object]:
    try:
        session.prepare("/api/v1/namespaces", {"metadata": {"name": session.namespace}})
        session.prepare("v1/serviceaccounts", {"metadata": {"name": SERVICE_ACCOUNT}})
        case.run(session)
        return in_symbols(session.steps, {session.group: "{group}", session.namespace: "{ns}"})
    finally:
        session.clean()


_ADMIN = User("admin", ("system:masters", "system:authenticated"), "admin")
_SECONDS = 20


@contextmanager
def embedded_server(*, controllers: bool = False) -> Iterator[Endpoint]:
    """Serve an embedded API server during a `with` block."""
    begun: list[Endpoint] = []
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        clock = WallClock()
        server = ApiServer(now=clock.now, random=Random(1), converter=convert)
        install(server)
        tokens = TokenAuthenticator()
        app = ApiApp(server, authenticate=tokens)
        async with serving(app, dated=False) as there:
            tasks = [
                asyncio.create_task(each(server).run(clock))
                for each in (GarbageCollector, NamespaceController)
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


DifferencesOf: TypeAlias = Callable[[Case], list[Difference]]


@contextmanager
def embedded_servers() -> Iterator[DifferencesOf]:
    """Yield a function that runs a case and returns the differences from the recorded answers."""
    with (
        embedded_server() as alone,
        case_runner(alone) as plain,
        embedded_server(controllers=True) as whole,
        case_runner(whole) as controlled,
    ):

        def played(case: Case) -> list[Difference]:
            answers = (controlled if case.controllers else plain)(case)
            return list(differences(recorded(case.area)[case.name], answers))

        yield played
