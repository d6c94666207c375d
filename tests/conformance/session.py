"""One play of a case on one server: the requests that it makes, and the answers in the order in which they came.

Paths are written short: `v1/pods/web` is that pod in the namespace of the play, and `apps/v1/deployments` all
deployments there; a path that begins with a slash is meant as it stands. Every play has a namespace of its own, whose
name also makes the names of things outside of namespaces unique.
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

_PATIENCE = 30.0
_NAP = 0.05
_LONGEST_LAG = 40
"""Naps for which the cache of a server may be behind."""
_JUDGED_BY_CACHE = ("PATCH", "PUT")
_TOLD = ("retry-after", "allow")
_FROM_ANSWERS = ("continue", "resourceVersion")
"""Parameters whose values a case takes from earlier answers: another play has others."""


class Session:
    """What a case is given."""

    def __init__(self, wire: Wire, namespace: str, shared: dict[str, str]) -> None:
        self.namespace = namespace
        self.group = f"{namespace}.example.com"
        """An API group that nobody uses who does not want the very same kind in it."""
        self.shared = shared
        """The groups of definitions that plays share, by what they define: a server is slow to serve a new one."""
        self.steps: list[Object] = []
        self._wire = wire
        self._litter: list[str] = []

    def unique(self, name: str) -> str:
        """Give a name that nobody else uses, for what lives outside of namespaces."""
        return f"{name}-{self.namespace}"

    # Verbs: each is recorded, and gives the body of the answer

    def get(self, path: str, *, accept: str = "", **query: Any) -> Any:
        """Read an object or a list."""
        return self.send("GET", path, headers={"Accept": accept} if accept else {}, **query)

    def create(self, path: str, body: Any, **query: Any) -> Any:
        """Create an object."""
        return self.send("POST", path, body, **query)

    def update(self, path: str, body: Any, **query: Any) -> Any:
        """Replace an object."""
        return self.send("PUT", path, body, **query)

    def patch(self, path: str, body: Any, kind: str = MERGE, **query: Any) -> Any:
        """Change an object; the kind of the patch is its content type."""
        return self.send("PATCH", path, body, headers={"Content-Type": kind}, **query)

    def apply(self, path: str, body: Any, manager: str, **query: Any) -> Any:
        """Apply a configuration on the server's side."""
        return self.patch(path, body, APPLY, fieldManager=manager, **query)

    def delete(self, path: str, options: Object | None = None, **query: Any) -> Any:
        """Delete an object or a collection."""
        return self.send("DELETE", path, options, **query)

    def send(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, **query: Any
    ) -> Any:
        """Send a request of any shape; bytes go as they are, anything else as JSON."""
        if method in _JUDGED_BY_CACHE:
            self._let_cache_catch_up(path)
        answer = self._sent(method, path, body, headers or {}, query)
        step: Object = {"request": _line(method, path, query), "status": answer.status, "body": answer.body}
        if answer.warnings:
            step["warnings"] = list(answer.warnings)
        told = {name: answer.headers[name] for name in _TOLD if name in answer.headers}
        if not answer.headers.get("content-type", "").startswith("application/json"):
            told["content-type"] = answer.headers.get("content-type", "")
        if told:
            step["headers"] = told
        self.steps.append(step)
        if answer.status == 201 and path.startswith("/") and isinstance(answer.body, dict):
            self._litter.append(f"{path}/{answer.body.get('metadata', {}).get('name', '')}")
        return answer.body

    @contextmanager
    def watching(self, path: str, *, accept: str = "", **query: Any) -> Iterator[Callable[[int], list[Any]]]:
        """Open a watch; what is given reads, and records, as many events as it is asked for."""
        headers = {"Accept": accept} if accept else {}
        query = {"watch": True} | query
        with self._wire.stream(self._full(path), _query(query), headers) as lines:

            def read(count: int) -> list[Any]:
                events = [next(lines, None) for _ in range(count)]
                self.steps.append({"request": _line("GET", path, query), "events": events})
                return events

            yield read

    def watch(self, path: str, count: int, **query: Any) -> list[Any]:
        """Read so many events of a watch."""
        with self.watching(path, **query) as read:
            return read(count)

    # What prepares or waits, and is not recorded

    def prepare(self, path: str, body: Any, *, stays: bool = False) -> Object:
        """Create something that the case needs and is not about."""
        answer = self._sent("POST", path, body, {}, {})
        assert answer.status == 201, answer.body
        if path.startswith("/") and not stays:
            self._litter.append(f"{path}/{answer.body['metadata']['name']}")
        return dict(answer.body)

    def quietly(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """Send a request that the case needs and is not about."""
        return self._sent(method, path, body, headers or {}, {})

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
        """Send a request again and again until its answer is the wanted one."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            answer = self._sent(method, path, body, headers or {}, query)
            if wanted(answer):
                return answer.body
            assert time.monotonic() < deadline, f"{method} {path} never came to be as wanted: {answer}"
            time.sleep(_NAP)

    def gone(self, path: str) -> None:
        """Wait until there is no such object."""
        self.until(lambda answer: answer.status == 404, path)

    def clean(self) -> None:
        """Delete what was created outside of the namespace, the newest first."""
        for path in reversed(self._litter):
            self._sent("DELETE", path, None, {}, {})

    def _let_cache_catch_up(self, path: str) -> None:
        """Wait until a server's cache has an object as it is stored, if there is one.

        An update begins with what the cache has, and begins anew where that is old; but what the first try has warned
        of is told all the same.
        """
        for _ in range(_LONGEST_LAG):
            stored, cached = (
                _version(self._sent("GET", path, None, {}, query)) for query in ({}, {"resourceVersion": "0"})
            )
            if stored is None or stored == cached:
                return
            time.sleep(_NAP)

    def _sent(self, method: str, path: str, body: Any, headers: Mapping[str, str], query: Mapping[str, Any]) -> Answer:
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
    """Give the version of the object that an answer shows."""
    if answer.status != 200 or not isinstance(answer.body, dict) or answer.body.get("kind", "").endswith("List"):
        return None
    version = (answer.body.get("metadata") or {}).get("resourceVersion")
    return str(version) if version else None


def _query(query: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in query.items()}


def _line(method: str, path: str, query: Mapping[str, Any]) -> str:
    asked = "&".join(
        f"{name}=…" if name in _FROM_ANSWERS and len(value) > 1 else f"{name}={value}"
        for name, value in _query(query).items()
    )
    return f"{method} {path}" + (f"?{asked}" if asked else "")
