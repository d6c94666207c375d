"""A process with an embedded API server full of pods: `python -m bench.http.server COUNT`.

It prints one line of JSON with where it is reached, and then obeys lines on its standard input: `churn N` changes N
pods as fast as it can, and says when it has; the end of the input is its end.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
from random import Random

from bench.http.pods import pod

from springtide.apiserver.admission import ADMIN
from springtide.apiserver.http import ApiApp
from springtide.apiserver.kinds import collection_id
from springtide.apiserver.server import ApiServer
from springtide.cluster.certificates import make_authority, make_serving
from springtide.cluster.resources import PODS, key_of
from springtide.cluster.serving import TlsIdentity, serving
from springtide.cluster.transport import Write

_BENCH = Write("bench")
_BATCH = 100


def filled(count: int) -> ApiServer:
    """Make a server with so many pods."""
    server = ApiServer(now=lambda: int(time.time()), random=Random(0))
    pods = server.storage.collection(collection_id(PODS))
    sample = server.create(PODS, pod(0), _BENCH, namespace="default")
    for n in range(1, count):
        # Validating each pod would take minutes, and is not measured here.
        written = pod(n)
        metadata = sample["metadata"] | written["metadata"] | {"uid": f"{n:08x}{sample['metadata']['uid'][8:]}"}
        item = sample | {"metadata": metadata, "spec": sample["spec"] | {"nodeName": written["spec"]["nodeName"]}}
        server.storage.write(pods, key_of(item), item)
    return server


async def churn(server: ApiServer, count: int) -> None:
    """Change pods one after the other, with short pauses in which watches are served.

    The changes are stored and sent to watches without validation: only the speed of watches is measured.
    """
    pods = server.storage.collection(collection_id(PODS))
    keys = list(pods.live)
    for n in range(count):
        old = pods.live[keys[n % len(keys)]]
        metadata = old["metadata"] | {"annotations": {"example.com/turn": str(n)}}
        change = server.storage.write(pods, keys[n % len(keys)], old | {"metadata": metadata})
        for subscription in pods.subscriptions:
            subscription.deliver(change)
        if n % _BATCH == 0:
            await asyncio.sleep(0)


async def main(count: int) -> None:
    """Serve until the input ends."""
    server = filled(count)
    token = secrets.token_urlsafe()
    now = int(time.time())
    authority = make_authority("bench", now=now, seconds=86_400)
    identity = TlsIdentity(make_serving(authority, ["127.0.0.1"], now=now, seconds=86_400))
    app = ApiApp(server, authenticate=lambda given: ADMIN if given == token else None)
    async with serving(app, identity=identity, dated=False) as served:
        print(json.dumps({"url": served.url, "ca": authority.certificate.decode(), "token": token}), flush=True)
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            verb, _, number = line.partition(" ")
            if verb == "churn":
                begin = time.perf_counter()
                await churn(server, int(number))
                print(json.dumps({"seconds": time.perf_counter() - begin, "version": server.revision}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
