"""An API server with a journal in a child process, reached through pipes.

As a program it is that process: it reads a JSON request per line, and writes a JSON response per line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import SystemRandom
from typing import Any

from tests.apiserver.journal.crash_client import ListResult, ProcessDied, WatchEvent

from springtide.apiserver.journal import open_journal, restore_storage
from springtide.apiserver.server import ApiServer
from springtide.cluster.errors import Gone
from springtide.cluster.resources import Key, Object, Resource, Selection
from springtide.cluster.transport import Patch, Write

_CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
_NAMESPACE = "default"
_WRITE = Write("tester")
_ROOT = Path(__file__).parents[3]


class PipedCluster:
    """The client side."""

    def __init__(self, folder: Path, *, history: int) -> None:
        self._arguments = (str(folder), str(history))
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self.close()
        command = [sys.executable, "-m", "tests.apiserver.journal.piped_cluster", *self._arguments]
        self._process = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._ask("ready")

    def kill(self) -> None:
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """Kill the process and remove its files."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue

    def create(self, body: Object) -> Object:
        created: Object = self._ask("create", body)
        return created

    def patch(self, name: str, body: Object) -> Object:
        patched: Object = self._ask("patch", name, body)
        return patched

    def delete(self, name: str) -> None:
        self._ask("delete", name)

    def listed(self) -> ListResult:
        items, version = self._ask("list")
        return ListResult({item["metadata"]["name"]: item for item in items}, int(version))

    def events(self, version: int, count: int) -> list[WatchEvent] | None:
        message = self._ask("events", version)
        return None if message is None else [WatchEvent(change, item) for change, item in message]

    def _ask(self, *request: Any) -> Any:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise ProcessDied from None
        line = process.stdout.readline()
        if not line.endswith("\n"):
            # A partially written response is not an acknowledgement.
            raise ProcessDied
        return json.loads(line)


def _answer(server: ApiServer, verb: str, *about: Any) -> Any:
    selection = Selection(_CONFIG_MAPS, _NAMESPACE)
    match verb, *about:
        case ("ready",):
            return True
        case "create", body:
            return server.create(_CONFIG_MAPS, body, _WRITE, namespace=_NAMESPACE)
        case "patch", name, body:
            return server.patch(_CONFIG_MAPS, Key(_NAMESPACE, name), Patch.merge(body), _WRITE)
        case "delete", name:
            return server.delete(_CONFIG_MAPS, Key(_NAMESPACE, name), _WRITE)
        case ("list",):
            page = server.list(selection)
            return page.items, page.version
        case "events", version:
            try:
                events = server.watch(selection, version=str(version)).events
            except Gone:
                return None
            return [(event.change, event.object) for event in events]
    raise AssertionError(verb)


def main(folder: str, history: str) -> None:
    """Respond to requests until the input is closed."""
    with open_journal(Path(folder)) as journal:
        storage = restore_storage(journal, history=int(history))
        server = ApiServer(now=lambda: 1_800_000_000, random=SystemRandom(), storage=storage)
        for line in sys.stdin:
            sys.stdout.write(json.dumps(_answer(server, *json.loads(line))) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
