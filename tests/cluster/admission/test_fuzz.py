"""Requests to webhooks that no API server sends, drawn from a seed: nearly right ones, and nonsense.

Ten thousand requests that no API server sends: each is answered or cut off, and none breaks anything.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from tests.apis.karpenter.samples import node_pool
from tests.apis.manifests import CONTEXT
from tests.cluster.admission.review_requests import conversion_review, review
from tests.fuzz.mutations import mutated_tree

from springtide.cluster.admission.webhooks import admission_app
from springtide.cluster.compute import LiveCompute
from springtide.cluster.serving import RunningServer, serving

_METHODS = (b"GET", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"TRACE", b"BREW", b"post", b"")
_PATHS = (
    b"/",
    b"",
    b"/validate/",
    b"//validate",
    b"/validate/../convert",
    b"/%00",
    b"/%ff%fe",
    b"/\xff",
    b"/a b",
    b"*",
    b"http://[::1/validate",
    b"/validate?" + b"x" * 5000,
    b"/" + b"x" * 100_000,
    b"/healthz?verbose&verbose&&=",
)
_VERSIONS = (b"HTTP/1.0", b"HTTP/0.9", b"HTTP/2.0", b"HTTP/9", b"HTTP", b"")
_HEADERS = (
    b"content-type: text/html",
    b"content-type: application/yaml;;;=",
    b"content-type: \xff\xfe",
    b"content-length: -1",
    b"content-length: 99999999999999999999999",
    b"content-length: 7\r\ncontent-length: 8",
    b"content-encoding: gzip",
    b"transfer-encoding: chunked",
    b"transfer-encoding: gzip, chunked",
    b"expect: 100-continue",
    b"connection: upgrade\r\nupgrade: websocket",
    b"connection: upgrade\r\nupgrade: h2c",
    b"authorization: Bearer x\r\nauthorization: Basic ====",
    b"host: a\r\nhost: b",
    b"x: a\r\n b",
    b"x : y",
    b": y",
    b"x",
    b"x: \x00",
    b"x: " + b"y" * 100_000,
    b"\r\n".join(b"x%d: y" % n for n in range(1000)),
)


def request(random: Random, bodies: Sequence[bytes]) -> bytes:
    """Return the bytes of a request to a webhook with one of these bodies; two thirds are HTTP as it should be."""
    method, path = b"POST", random.choice((b"/validate", b"/default", b"/convert"))
    version, headers, body = (
        b"HTTP/1.1",
        [b"connection: close", b"content-type: application/json"],
        _hurt(random.choice(bodies), random),
    )
    received = [b"content-length: %d" % len(body)]
    match random.randrange(18):
        case 0:
            return random.randbytes(random.randrange(1, 300)) + b"\r\n\r\n"
        case 1:
            method = random.choice(_METHODS)
        case 2:
            path = random.choice(_PATHS)
        case 3:
            version = random.choice(_VERSIONS)
        case 4:
            headers += random.sample(_HEADERS, random.randint(1, 3))
        case 5:
            received = random.choice(([], [b"transfer-encoding: chunked"], [random.choice(_HEADERS)]))
    whole = b"\r\n".join((b" ".join((method, path, version)), *headers, *received, b"", body))
    return whole[: random.randrange(1, len(whole))] if random.randrange(18) == 0 else whole


def _hurt(body: bytes, random: Random) -> bytes:
    """Replace a byte, or do nothing."""
    place = random.randrange(2 * len(body) + 1)
    return body[:place] + random.randbytes(1) + body[place + 1 :] if place < len(body) else body


def nonsense(random: Random) -> bytes:
    """Return a body that is a review, nearly one, or nothing of the kind."""
    match random.randrange(6):
        case 0:
            return random.randbytes(random.randrange(200))
        case 1:
            body = bytearray(review(node_pool({"budgets": [{"nodes": 5}]})))
            for _ in range(random.randint(1, 5)):
                body[random.randrange(len(body))] = random.randrange(256)
            return bytes(body)
        case 2:
            return review(node_pool())[: random.randrange(300)]
        case 3:
            return conversion_review(random.choice(["karpenter.sh/v1", "karpenter.sh/v1beta1", "x"]), *trees(random))
        case _:
            old, new = trees(random)
            return review(new, random.choice([None, old]), operation=random.choice(["CREATE", "UPDATE", "DELETE", ""]))


def trees(random: Random) -> tuple[Any, Any]:
    """Return two objects with mistakes; texts that are no JSON are left to other tests."""
    made: list[Any] = []
    while len(made) < 2:
        try:
            made.append(json.loads(mutated_tree(random)))
        except ValueError:
            continue
    return made[0], made[1]


REQUESTS = 10_000
CLIENTS = 50
"""They run concurrently, so that a slow one does not delay the others."""
BODIES = 300
"""Good ones take long to make; each is sent many times, and often with another byte wrong."""
REST = 0.2
"""Seconds after which a client knows that the server waits for more, and hangs up; it is no harm if it does not."""


async def answered(served: RunningServer, data: bytes) -> bytes:
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

    async def client(served: RunningServer, seed: int) -> None:
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

    async def scenario() -> None:
        compute = LiveCompute(2)
        try:
            async with serving(admission_app(compute, lambda: CONTEXT.now)) as served:
                async with asyncio.TaskGroup() as clients:
                    for seed in range(CLIENTS):
                        clients.create_task(client(served, seed))
                assert (await answered(served, b"GET /healthz HTTP/1.0\r\n\r\n")).endswith(b"ok")
        finally:
            compute.close()

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())
    assert seen.total() == REQUESTS
    assert min(seen[b"200"], seen[b"400"]) > REQUESTS // 100
    assert caplog.records == []
