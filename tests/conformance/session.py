"""One run of a case on one server: sends requests and records the answers.

Paths are short: `v1/pods/web` is that pod in the namespace of the session, `apps/v1/deployments` all Deployments there.
A path that begins with a slash is used as it is. Each session has a namespace of its own, whose name also makes the
names of cluster-scoped objects unique.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.conformance.wire import Answer, Wire

Object = dict[str, Any]

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

_TIMEOUT_SECONDS = 30.0
_POLL_SECONDS = 0.05
_MAX_CACHE_POLLS = 40
"""How often the cache of a server may still be behind."""
_SERVED_FROM_CACHE = ("PATCH", "PUT")
_RECORDED_HEADERS = ("retry-after", "allow")
_FROM_ANSWERS = ("continue", "resourceVersion")
"""Query parameters that come from earlier answers and so differ between runs."""


class Session:
    """The argument of a case."""

    def __init__(self, wire: Wire, namespace: str, shared: dict[str, str]) -> None:
        self.namespace = namespace
        self.group = f"{namespace}.example.com"
        """An API group of this session only."""
        self.shared = shared
        """The groups of shared definitions, by content: it takes a server some time to serve a new one."""
        self.steps: list[Object] = []
        self._wire = wire
        self._created: list[str] = []

    def unique(self, name: str) -> str:
        """Return a name for a cluster-scoped object that no other session uses."""
        return f"{name}-{self.namespace}"

    # Recorded requests: each returns the body of the answer.

    def get(self, path: str, *, accept: str = "", **query: Any) -> Any:
        """Get an object or a list."""
        return self.send("GET", path, headers={"Accept": accept} if accept else {}, **query)

    def create(self, path: str, body: Any, **query: Any) -> Any:
        """Create an object."""
        return self.send("POST", path, body, **query)

    def update(self, path: str, body: Any, **query: Any) -> Any:
        """Update an object."""
        return self.send("PUT", path, body, **query)

    def patch(self, path: str, body: Any, kind: str = MERGE, **query: Any) -> Any:
        """Patch an object; the kind of the patch is its content type."""
        return self.send("PATCH", path, body, headers={"Content-Type": kind}, **query)

    def apply(self, path: str, body: Any, manager: str, **query: Any) -> Any:
        """Apply a configuration."""
        return self.patch(path, body, APPLY, fieldManager=manager, **query)

    def delete(self, path: str, options: Object | None = None, **query: Any) -> Any:
        """Delete an object or a collection."""
        return self.send("DELETE", path, options, **query)

    def send(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, **query: Any
    ) -> Any:
        """Send any request. Bytes are sent as they are, anything else as JSON."""
        if method in _SERVED_FROM_CACHE:
            self._wait_for_cache(path)
        answer = self._send(method, path, body, headers or {}, query)
        step: Object = {"request": _request_line(method, path, query), "status": answer.status, "body": answer.body}
        if answer.warnings:
            step["warnings"] = list(answer.warnings)
        recorded_headers = {name: answer.headers[name] for name in _RECORDED_HEADERS if name in answer.headers}
        if not answer.headers.get("content-type", "").startswith("application/json"):
            recorded_headers["content-type"] = answer.headers.get("content-type", "")
        if recorded_headers:
            step["headers"] = recorded_headers
        self.steps.append(step)
        if answer.status == 201 and path.startswith("/") and isinstance(answer.body, dict):
            self._created.append(f"{path}/{answer.body.get('metadata', {}).get('name', '')}")
        return answer.body

    @contextmanager
    def watching(self, path: str, *, accept: str = "", **query: Any) -> Iterator[Callable[[int], list[Any]]]:
        """Open a watch; yields a function that reads and records a number of events."""
        headers = {"Accept": accept} if accept else {}
        query = {"watch": True} | query
        with self._wire.stream(self._full(path), _query(query), headers) as lines:

            def read(count: int) -> list[Any]:
                events = [next(lines, None) for _ in range(count)]
                self.steps.append({"request": _request_line("GET", path, query), "events": events})
                return events

            yield read

    def watch(self, path: str, count: int, **query: Any) -> list[Any]:
        """Read a number of events from a watch."""
        with self.watching(path, **query) as read:
            return read(count)

    # Requests that are not recorded.

    def prepare(self, path: str, body: Any, *, keep: bool = False) -> Object:
        """Create an object that the case needs."""
        answer = self._send("POST", path, body, {}, {})
        assert answer.status == 201, answer.body
        if path.startswith("/") and not keep:
            self._created.append(f"{path}/{answer.body['metadata']['name']}")
        return dict(answer.body)

    def send_unrecorded(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request that the case needs."""
        return self._send(method, path, body, headers or {}, {})

    def until(
        self,
        wanted: Callable[[Answer], bool],
        path: str,
        body: Any = None,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> Any:
        """Repeat a request until its answer is the wanted one."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while True:
            answer = self._send(method, path, body, headers or {}, query)
            if wanted(answer):
                return answer.body
            assert time.monotonic() < deadline, f"{method} {path} never came to be as wanted: {answer}"
            time.sleep(_POLL_SECONDS)

    def gone(self, path: str) -> None:
        """Wait until an object is gone."""
        self.until(lambda answer: answer.status == 404, path)

    def clean(self) -> None:
        """Delete the cluster-scoped objects that were created, the newest first."""
        for path in reversed(self._created):
            self._send("DELETE", path, None, {}, {})

    def _wait_for_cache(self, path: str) -> None:
        """Wait until the server's watch cache has caught up with the stored object.

        An update starts from the cached object and is retried if that is old, but warnings of the first try are sent.
        """
        for _ in range(_MAX_CACHE_POLLS):
            stored, cached = (
                _version(self._send("GET", path, None, {}, query)) for query in ({}, {"resourceVersion": "0"})
            )
            if stored is None or stored == cached:
                return
            time.sleep(_POLL_SECONDS)

    def _send(self, method: str, path: str, body: Any, headers: Mapping[str, str], query: Mapping[str, Any]) -> Answer:
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        content = {} if body is None else {"Content-Type": "application/json"}
        return self._wire.request(method, self._full(path), _query(query), raw, {**content, **headers})

    def _full(self, path: str) -> str:
        if path.startswith("/"):
            return path
        first, rest = path.split("/", 1)
        if first.startswith("v") and "." not in first:
            return f"/api/{first}/namespaces/{self.namespace}/{rest}"
        version, rest = rest.split("/", 1)
        return f"/apis/{first}/{version}/namespaces/{self.namespace}/{rest}"


def _version(answer: Answer) -> str | None:
    """Return the resourceVersion of the object in an answer."""
    if answer.status != 200 or not isinstance(answer.body, dict) or answer.body.get("kind", "").endswith("List"):
        return None
    version = (answer.body.get("metadata") or {}).get("resourceVersion")
    return str(version) if version else None


def _query(query: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in query.items()}


def _request_line(method: str, path: str, query: Mapping[str, Any]) -> str:
    asked = "&".join(
        f"{name}=…" if name in _FROM_ANSWERS and len(value) > 1 else f"{name}={value}"
        for name, value in _query(query).items()
    )
    return f"{method} {path}" + (f"?{asked}" if asked else "")
