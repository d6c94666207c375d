"""A cluster started with `springtide up --data`, reached over HTTPS."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
import time
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from tests.apiserver.journal.crash_client import ListResult, ProcessDied, WatchEvent

from springtide.cluster.resources import Object

_CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
_MERGE = "application/merge-patch+json"
_TIMEOUT = 60
"""Seconds until a test fails instead of hanging."""


class HttpsCluster:
    """The client side."""

    def __init__(self, folder: Path) -> None:
        self._kubeconfig = folder / "kubeconfig"
        self._command = [
            *(sys.executable, "-c", "from springtide.cli import main; main()", "up", "--log-level", "error"),
            *("--data", str(folder / "data"), "--port", "0", "--kubeconfig", str(self._kubeconfig)),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: HTTPSConnection | None = None
        self._token = ""

    def start(self) -> None:
        self.close()
        self._kubeconfig.unlink(missing_ok=True)
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        until = time.monotonic() + _TIMEOUT
        while not self._kubeconfig.exists():
            if self._process.poll() is not None:
                assert self._process.returncode == -9, "it is up, or we have killed it"
                raise ProcessDied
            assert time.monotonic() < until, "it is up some time"
            time.sleep(0.01)
        self._connect()

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
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def create(self, body: Object) -> Object:
        created: Object = self._ask("POST", _CONFIG_MAPS, body)
        return created

    def patch(self, name: str, body: Object) -> Object:
        patched: Object = self._ask("PATCH", f"{_CONFIG_MAPS}/{name}", body, _MERGE)
        return patched

    def delete(self, name: str) -> None:
        self._ask("DELETE", f"{_CONFIG_MAPS}/{name}")

    def listed(self) -> ListResult:
        answer = self._ask("GET", _CONFIG_MAPS)
        items = [{"apiVersion": "v1", "kind": "ConfigMap"} | item for item in answer["items"]]
        return ListResult(
            {item["metadata"]["name"]: item for item in items}, int(answer["metadata"]["resourceVersion"])
        )

    def events(self, version: int, count: int) -> list[WatchEvent] | None:
        # The stream ends by itself only if events are missing.
        response = self._send("GET", f"{_CONFIG_MAPS}?watch=true&resourceVersion={version}&timeoutSeconds=10")
        try:
            if response.status == 410:
                return None
            message: list[WatchEvent] = []
            while len(message) < count and (line := response.readline()):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    assert event["object"]["code"] == 410, event
                    return None
                message.append(WatchEvent(event["type"], event["object"]))
            return message
        finally:
            self._connect()

    def _connect(self) -> None:
        """Open a new connection: one with a running watch cannot be shared."""
        if self._connection is not None:
            self._connection.close()
        config = yaml.safe_load(self._kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._token = config["users"][0]["user"]["token"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        address = urlsplit(cluster["server"])
        context = ssl.create_default_context(cadata=authority)
        self._connection = HTTPSConnection(address.hostname or "", address.port, context=context, timeout=_TIMEOUT)

    def _send(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> HTTPResponse:
        assert self._connection is not None
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind, "Accept": "application/json"}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        return self._connection.getresponse()

    def _ask(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> Any:
        try:
            response = self._send(method, path, body, kind)
            content = response.read()
        except (OSError, HTTPException) as broken:
            assert self._process is not None
            # A live process responds; otherwise it has ended, or this fails.
            self._process.wait(_TIMEOUT)
            raise ProcessDied from broken
        assert response.status < 300, content
        return json.loads(content)
