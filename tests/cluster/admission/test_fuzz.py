"""Ten thousand requests that no API server sends: each is answered or cut off, and none breaks anything."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from random import Random

import pytest
from tests.apis.judging import CONTEXT
from tests.cluster.admission.nonsense import nonsense, request

from springtide.cluster.admission.app import admission_app
from springtide.cluster.compute import ThreadCompute
from springtide.cluster.serving import Serving, serving

REQUESTS = 10_000
CLIENTS = 50
"""They come at the same time, so that one that waits holds up nobody."""
BODIES = 300
"""Good ones take long to make; each is sent many times, and often with another byte wrong."""
REST = 0.2
"""Seconds after which a client knows that the server waits for more, and hangs up; it is no harm if it does not."""


async def answered(served: Serving, data: bytes) -> bytes:
    """Send a request on a connection of its own, and give all that is answered."""
    reader, writer = await asyncio.open_connection(served.host, served.port)
    try:
        writer.write(data)
        async with asyncio.timeout(REST):
            first = await reader.read(1)
        return first + await reader.read()
    except (ConnectionError, TimeoutError):
        return b""
    finally:
        writer.close()


def test_no_request_breaks_anything(caplog: pytest.LogCaptureFixture) -> None:
    seen: Counter[bytes] = Counter()
    made = Random(0)
    bodies = [nonsense(made) for _ in range(BODIES)]

    async def client(served: Serving, seed: int) -> None:
        random = Random(seed)
        for _ in range(REQUESTS // CLIENTS):
            data = request(random, bodies)
            async with asyncio.timeout(30):
                answer = await answered(served, data)
            status = answer[9:12]
            seen[status] += 1
            assert not status.startswith(b"5"), (data, answer)
            if status == b"200" and b"application/json" in answer:
                assert json.loads(answer.partition(b"\r\n\r\n")[2])["response"]["uid"] is not None

    async def story() -> None:
        compute = ThreadCompute(2)
        try:
            async with serving(admission_app(compute, lambda: CONTEXT.now)) as served:
                async with asyncio.TaskGroup() as clients:
                    for seed in range(CLIENTS):
                        clients.create_task(client(served, seed))
                assert (await answered(served, b"GET /healthz HTTP/1.0\r\n\r\n")).endswith(b"ok")
        finally:
            compute.close()

    with caplog.at_level(logging.INFO):
        asyncio.run(story())
    assert seen.total() == REQUESTS
    assert min(seen[b"200"], seen[b"400"]) > REQUESTS // 100
    assert caplog.records == []
