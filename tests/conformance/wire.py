"""An HTTP connection to an API server. It uses nothing of Springtide, so that a case sees what any HTTP client sees."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

_SECONDS = 20
USER_AGENT = "conformance/1.0"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The URL of a server, and a token."""

    url: str
    token: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request."""

    status: int
    headers: Mapping[str, str]
    warnings: tuple[str, ...]
    body: Any
    """The JSON value, or the text if it is not JSON."""


class Wire:
    """A connection that is reopened when the server has closed it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> Answer:
        """Send a request and read the answer."""
        kept = self._connection is not None
        try:
            return self._request(method, path, query, body, headers)
        except (http.client.HTTPException, ConnectionError):
            self.close()
            if not kept:
                raise
        # The server may have closed an idle connection; then it has not read the request.
        return self._request(method, path, query, body, headers)

    @contextmanager
    def stream(self, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Iterator[Iterator[Any]]:
        """Open a stream; yields its lines as JSON values."""
        connection = _connected(self._endpoint)
        try:
            connection.request("GET", _target(path, query), None, _headers(self._endpoint, headers))
            with connection.getresponse() as response:
                yield (json.loads(line) for line in response if line.strip())
        finally:
            connection.close()

    def _request(
        self, method: str, path: str, query: Mapping[str, str], body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        if self._connection is None:
            self._connection = _connected(self._endpoint)
        self._connection.request(method, _target(path, query), body, _headers(self._endpoint, headers))
        response = self._connection.getresponse()
        text = response.read()
        return Answer(
            response.status,
            {name.lower(): value for name, value in response.headers.items()},
            tuple(response.headers.get_all("Warning") or ()),
            _value(text),
        )


def _connected(endpoint: Endpoint) -> http.client.HTTPConnection:
    where = urlsplit(endpoint.url)
    address = where.hostname or "127.0.0.1", where.port
    if where.scheme == "http":
        return http.client.HTTPConnection(*address, timeout=_SECONDS)
    # The server under test was started by the caller, so there is no need to verify it.
    return http.client.HTTPSConnection(*address, timeout=_SECONDS, context=ssl._create_unverified_context())


def _target(path: str, query: Mapping[str, str]) -> str:
    return quote(path, safe="/:~") + (f"?{urlencode(query)}" if query else "")


def _headers(endpoint: Endpoint, headers: Mapping[str, str]) -> dict[str, str]:
    return {
        "Authorization": f"Bearer {endpoint.token}",
        "Accept": "application/json",
        "User-Agent": USER_AGENT,
        **headers,
    }


def _value(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace")
