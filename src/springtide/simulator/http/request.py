"""A request as the handlers read it: path, query, headers and a body of bounded size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from springtide.cluster.errors import ApiError, BadRequest

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

MOST_BYTES = 3 * 1024 * 1024
"""The largest body that is read; a real server has the same limit."""
_MOST_PARAMETERS = 200


class ClientGone(Exception):
    """The client went away before it had said everything; nobody is left to answer."""


class TooLarge(ApiError):
    """The body of the request is larger than anything that can be stored."""

    code = 413
    reason = "RequestEntityTooLarge"


class Request:
    """One request."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self._scope = scope
        self._receive = receive
        self._query: Mapping[str, Sequence[str]] | None = None

    @property
    def query(self) -> Mapping[str, Sequence[str]]:
        """The parameters, each with all its values."""
        if self._query is None:
            try:
                self._query = _parameters(self._scope.get("query_string", b""))
            except ValueError as error:
                raise BadRequest(f"the query of the request cannot be read: {error}") from error
        return self._query

    def parameter(self, name: str) -> str:
        """Give the first value of a parameter; empty where there is none."""
        values = self.query.get(name)
        return values[0] if values else ""

    def header(self, name: str) -> str:
        """Give a header, several of that name joined by commas; empty where there is none."""
        wanted = name.encode()
        return ",".join(value.decode("latin-1") for given, value in self._scope["headers"] if given == wanted)

    async def body(self) -> bytes:
        """Read the whole body."""
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > MOST_BYTES:
                raise TooLarge(f"Request entity too large: limit is {MOST_BYTES}")
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)

    async def gone(self) -> None:
        """Wait until the client has gone away."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


@lru_cache(maxsize=64)
def _parameters(query: bytes) -> Mapping[str, Sequence[str]]:
    """Take a query apart; those of writes are the same for every object."""
    text = query.decode("latin-1")
    return parse_qs(text, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS, errors="replace")
