"""An API server with objects and without controllers, on HTTPS in a thread of the test."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from springtide.apis.yaml import Document, read
from springtide.apiserver.admission import ADMIN
from springtide.apiserver.conversion import convert
from springtide.apiserver.direct import DirectTransport
from springtide.apiserver.http import ApiApp, kubeconfig
from springtide.apiserver.server import ApiServer
from springtide.cluster.certificates import make_authority, make_serving
from springtide.cluster.clock import WallClock
from springtide.cluster.resources import Key, Object, Resource
from springtide.cluster.serving import TlsIdentity, serving
from springtide.cluster.transport import Patch, Write
from springtide.simulator.bootstrap import install

_WALL = WallClock()
_TOKEN = "of-the-tests"
_WRITE = Write("the tests")
_PLURALS = {"CronFederatedHPA": "cronfederatedhpas", "FederatedHPA": "federatedhpas"}
_CLUSTER_WIDE = ("Namespace", "Calendar", "Grant", "Node", "NodeClaim", "NodePool")


@contextmanager
def served_objects(folder: Path, text: str, *, clock: Callable[[], int] = _WALL.now) -> Iterator[Path]:
    """Serve a cluster with these objects, status included; yields its kubeconfig."""
    now = int(time.time())
    authority = make_authority("test", now=now, seconds=3600)
    identity = TlsIdentity(make_serving(authority, ["127.0.0.1"], now=now, seconds=3600))
    server = ApiServer(now=clock, random=Random(1), converter=convert)
    install(server)
    asyncio.run(_fill(DirectTransport(server), text))
    path = folder / "kubeconfig"
    ready, done = threading.Event(), threading.Event()

    async def serve() -> None:
        app = ApiApp(server, authenticate=lambda token: ADMIN if token == _TOKEN else None)
        async with serving(app, identity=identity, dated=False) as served:
            path.write_text(kubeconfig(served.url, authority.certificate, _TOKEN))
            ready.set()
            await asyncio.to_thread(done.wait)
            app.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(30), "the server did not start"
        yield path
    finally:
        done.set()
        thread.join()


async def _fill(transport: DirectTransport, text: str) -> None:
    for document in read(text):
        assert isinstance(document, Document)
        body: Object = document.value
        resource = _resource_of(body)
        key = Key(body["metadata"].get("namespace", ""), body["metadata"]["name"])
        made = await transport.create(resource, body, _WRITE, namespace=key.namespace)
        status: dict[str, Any] = body.get("status") or {}
        if status:
            await transport.patch(resource, key, Patch.merge({"status": status}), _WRITE, subresource="status")
        if (message := body["metadata"].get("annotations", {}).get("tests/event")) is not None:
            await transport.create(_EVENTS, _event(made, message), _WRITE, namespace=key.namespace)


_EVENTS = Resource("", "v1", "events", "Event")


def _event(item: Object, message: str) -> Object:
    metadata = item["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name']}.1", "namespace": metadata["namespace"]},
        "involvedObject": {"kind": item["kind"], "name": metadata["name"], "uid": metadata["uid"]},
        "reason": "ValueChanged",
        "message": message,
        "type": "Normal",
        "count": 3,
        "lastTimestamp": "2026-11-16T11:00:00Z",
    }


def _resource_of(body: Object) -> Resource:
    group, _, version = body["apiVersion"].rpartition("/")
    kind = body["kind"]
    plural = _PLURALS.get(kind, f"{kind.lower()}s")
    return Resource(group, version, plural, kind, namespaced=kind not in _CLUSTER_WIDE)
