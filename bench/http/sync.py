"""A cluster's pods over HTTP: listed, cached, indexed and queued; and changes of them, told by a watch.

Server and clients are processes of their own. The same work with kopf, a framework for operators, is measured in the
same run: on the same server, with the same pods.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from springtide.simulator.http.kubeconfig import kubeconfig

FEW = 20_000
MANY = 150_000
CHANGES = 60_000


@dataclass(frozen=True, slots=True)
class Child:
    """A process that answers lines with lines of JSON."""

    process: subprocess.Popen[str]

    def heard(self) -> Any:
        """Wait for its next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args!r} has ended with {self.process.wait()}")
        return json.loads(line)

    def tell(self, line: str) -> None:
        """Give it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


@contextmanager
def child(module: str, *arguments: object) -> Iterator[Child]:
    """Run a module as a process of its own, which ends with the block."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Child(process)
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def cluster(count: int) -> Iterator[tuple[Child, Path]]:
    """Serve so many pods; gives the server and a kubeconfig for it."""
    with child("bench.http.server", count) as server, tempfile.TemporaryDirectory() as folder:
        where = server.heard()
        path = Path(folder) / "kubeconfig"
        path.write_text(kubeconfig(where["url"], where["ca"].encode(), where["token"]))
        yield server, path


def tell(name: str, count: int, said: Any) -> float:
    """Print what a client has measured; gives its pods per second."""
    rate: float = count / said["seconds"]
    memory = f"{said['held']:5.0f} MB held, {said['peak']:5.0f} MB at most, {said['held'] * 1e3 / count:5.2f} KB a pod"
    print(f"{name:28} {rate:9,.0f}/s   {count:,} pods in {said['seconds']:.1f} s   {memory}")
    return rate


def watch(server: Child, config: Path) -> None:
    """Change pods, and tell how long it takes until a client's cache has all of it."""
    with child("bench.http.client", config, FEW, "--watch") as client:
        tell("springtide", FEW, client.heard())
        begin = time.time()
        server.tell(f"churn {CHANGES}")
        done = server.heard()
        client.tell(str(done["version"]))
        seconds = client.heard()["reached"] - begin
    print(f"{'springtide, watch':28} {CHANGES / seconds:9,.0f}/s   {CHANGES:,} changes in {seconds:.1f} s")


def main() -> None:
    with cluster(FEW) as (server, config):
        watch(server, config)
        with child("bench.http.client", config, FEW) as client:
            ours = tell("springtide", FEW, client.heard())
        with child("bench.http.kopf_client", config, FEW) as client:
            theirs = tell("kopf", FEW, client.heard())
        print(f"{'':28} {ours / theirs:9,.1f}x as fast as kopf")
    with cluster(MANY) as (_, config), child("bench.http.client", config, MANY) as client:
        tell("springtide", MANY, client.heard())


if __name__ == "__main__":
    main()
