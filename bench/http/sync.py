"""The pods of a cluster over HTTP: listed, cached, indexed and queued; and their changes, received by a watch.

Server and clients are separate processes. The same work with kopf, a framework for operators, is measured in the same
run, with the same server and the same pods.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.children import Child, child

from springtide.apiserver.http.auth import kubeconfig

FEW = 20_000
MANY = 150_000
CHANGES = 60_000


@contextmanager
def cluster(count: int) -> Iterator[tuple[Child, Path]]:
    """Serve so many pods; return the server and its kubeconfig."""
    with child("bench.http.server", count) as server, tempfile.TemporaryDirectory() as folder:
        where = server.read()
        path = Path(folder) / "kubeconfig"
        path.write_text(kubeconfig(where["url"], where["ca"].encode(), where["token"]))
        yield server, path


def report(name: str, count: int, measured: Any) -> float:
    """Print the measurements of a client; return its pods per second."""
    rate: float = count / measured["seconds"]
    held, peak = measured["memory"], measured["peak"]
    memory = f"{held:5.0f} MB held, {peak:5.0f} MB at most, {held * 1e3 / count:5.2f} KB a pod"
    print(f"{name:28} {rate:9,.0f}/s   {count:,} pods in {measured['seconds']:.1f} s   {memory}")
    return rate


def watch(server: Child, config: Path) -> None:
    """Change pods, and measure how long it takes until the cache of a client is up to date."""
    with child("bench.http.client", config, FEW, "--watch") as client:
        report("springtide", FEW, client.read())
        begin = time.time()
        server.send(f"churn {CHANGES}")
        done = server.read()
        client.send(str(done["version"]))
        seconds = client.read()["reached"] - begin
    print(f"{'springtide, watch':28} {CHANGES / seconds:9,.0f}/s   {CHANGES:,} changes in {seconds:.1f} s")


def main() -> None:
    with cluster(FEW) as (server, config):
        watch(server, config)
        with child("bench.http.client", config, FEW) as client:
            ours = report("springtide", FEW, client.read())
        with child("bench.http.kopf_client", config, FEW) as client:
            theirs = report("kopf", FEW, client.read())
        print(f"{'':28} {ours / theirs:9,.1f}x as fast as kopf")
    with cluster(MANY) as (_, config):
        with child("bench.http.client", config, MANY) as client:
            report("springtide", MANY, client.read())
        with child("bench.http.client", config, MANY, "--shared-record") as client:
            report("springtide, shared record", MANY, client.read())


if __name__ == "__main__":
    main()
