"""What goes back to a client: a status line, headers, and a body that is there or still to be made."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

from springtide.apis.yaml.dump import block_lines
from springtide.cluster.errors import ApiError

if TYPE_CHECKING:
    from starlette.types import Send

JSON = "application/json"
YAML = "application/yaml"
Headers = tuple[tuple[str, str], ...]

encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Answer:
    """One response; a body of several chunks is sent as they come."""

    body: bytes | AsyncGenerator[bytes, None]
    code: int = 200
    media: str = JSON
    headers: Headers = field(default=())
    endless: bool = False
    """Whether it goes on for as long as the client listens."""

    async def send(self, send: Send, date: bytes) -> None:
        """Write it out."""
        headers = [(b"date", date), (b"content-type", self.media.encode()), (b"cache-control", b"no-cache, private")]
        headers += [(name.encode(), value.encode("latin-1", "replace")) for name, value in self.headers]
        start = {"type": "http.response.start", "status": self.code, "headers": headers}
        if isinstance(self.body, bytes):
            headers.append((b"content-length", str(len(self.body)).encode()))
            await send(start)
            await send({"type": "http.response.body", "body": self.body})
            return
        await send(start)
        async with aclosing(self.body) as chunks:
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def in_yaml(self) -> Answer:
        """Give the same answer in YAML; only what is JSON can be, and it is put together as a whole."""
        if self.endless or self.media != JSON or self.body == b"":
            return self
        if isinstance(self.body, bytes):
            whole = self.body
        else:
            async with aclosing(self.body) as chunks:
                whole = b"".join([chunk async for chunk in chunks])
        return replace(self, body=_yaml(msgspec.json.decode(whole)), media=YAML)


def answered(value: Any, code: int = 200, *, headers: Headers = ()) -> Answer:
    """Answer with a JSON value."""
    return Answer(encode(value) + b"\n", code, headers=headers)


def refused(error: ApiError, *, headers: Headers = ()) -> Answer:
    """Answer with an error, as a `Status`."""
    if error.retry_after is not None:
        headers = (*headers, ("retry-after", str(int(-(-error.retry_after // 1)))))
    return answered(error.status(), error.code, headers=(*headers, *warned(error.warnings)))


def warned(warnings: Iterable[str]) -> Headers:
    """Write warnings as the headers that kubectl shows."""
    return tuple(("warning", f"299 - {_quoted(text)}") for text in warnings)


def _yaml(value: Any) -> bytes:
    return "\n".join((*block_lines(_in_order(value)), "")).encode()


def _in_order(value: Any) -> Any:
    """Give a value with the fields of all objects by name, which is how YAML is written."""
    if isinstance(value, dict):
        return {name: _in_order(value[name]) for name in sorted(value)}
    return [_in_order(part) for part in value] if isinstance(value, list) else value


def _quoted(text: str) -> str:
    flat = " ".join(text.splitlines())
    return '"' + flat.replace("\\", "\\\\").replace('"', '\\"') + '"'
