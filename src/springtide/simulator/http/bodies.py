"""The bodies of requests: JSON or YAML, from anybody.

Whatever is sent, reading it takes time and memory in proportion to its size, and ends with a value that can be stored
and written again, or with a refusal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from springtide.apis.yaml import Unreadable
from springtide.apis.yaml import read as read_yaml
from springtide.cluster.errors import BadRequest
from springtide.simulator.http import protobuf
from springtide.simulator.http.media import unsupported
from springtide.simulator.http.repeated import Path, repeated_in_json, repeated_in_yaml

_JSON = ("application/json", "")
_YAML = ("application/yaml", "application/x-yaml", "text/yaml")
_DEEPEST = 200
"""How many lists and objects may stand inside each other: deeper ones could not be walked without care everywhere."""
_SHOWN = 30
_LONG = re.compile(rb"\d{19}")
_PLACE = re.compile(r"\(byte (\d+)\)")
JSON_TYPES = {bool: "bool", dict: "object", float: "number", int: "number", list: "array", str: "string"}
"""What Go calls the types of JSON."""
_IDENTITY = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
_INTEGERS = range(-(2**63), 2**64)
_decoder = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class Body:
    """A body that has been read, and what stands in it more than once: the last one counted."""

    value: Any
    repeated: list[Path] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    """The same for YAML, in words that name lines."""


def media_of(content_type: str) -> str:
    """Give the media type of a body, without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def decoded(body: bytes, content_type: str, expected: str) -> Body:
    """Read a body; `expected` names the kind that it should be, for messages."""
    media = media_of(content_type)
    if media in _JSON:
        return from_json(body, expected)
    if media in _YAML:
        return from_yaml(body, expected)
    if media == protobuf.MEDIA:
        value = protobuf.decoded(body)
        check_depth(value)
        return Body(value)
    raise unsupported()


def from_json(body: bytes, expected: str) -> Body:
    """Read JSON."""
    try:
        body, value = _parsed(body)
    except _NotJson as error:
        raise _unrecognized(expected, f"couldn't get version/kind; json parse error: {error}", body) from error
    if value is None:
        return Body({})
    if not isinstance(value, dict):
        why = f"json: cannot unmarshal {JSON_TYPES[type(value)]} into Go value of type {_IDENTITY}"
        raise _unrecognized(expected, f"couldn't get version/kind; json parse error: {why}", body)
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name, ""), str | None):
            why = f"json: cannot unmarshal {JSON_TYPES[type(value[name])]} into Go struct field .{name} of type string"
            raise _unrecognized(expected, f"couldn't get version/kind; json parse error: {why}", body)
    return Body(value, repeated_in_json(body))


def from_patch(body: bytes, *, strategic: bool) -> Body:
    """Read a patch, which is JSON of any shape."""
    try:
        body, value = _parsed(body)
    except _NotJson as error:
        raise BadRequest(str(error) if strategic else f"error decoding patch: {error}") from error
    return Body(value, repeated_in_json(body))


def from_yaml(body: bytes, expected: str) -> Body:
    """Read YAML; what client libraries send under that name is JSON nearly always, so that is tried first."""
    try:
        body, value = _parsed(body)
    except _NotJson:
        return _from_yaml(body, expected)
    return Body(value, repeated_in_json(body))


class _NotJson(Exception):
    """A body is not JSON; the message says why, as Go's reader does."""


def _parsed(body: bytes) -> tuple[bytes, Any]:
    """Read JSON; bytes that are no text count as characters that nobody knows."""
    try:
        body.decode()
    except UnicodeDecodeError:
        body = body.decode(errors="replace").encode()
    try:
        value = _decoder.decode(body)
    except RecursionError as error:
        raise _NotJson("exceeded max depth") from error
    except msgspec.DecodeError as error:
        raise _NotJson(_why_not(body, str(error))) from error
    # Nothing is nested more deeply than it has brackets, which are counted faster than levels.
    if body.count(b"{") + body.count(b"[") >= _DEEPEST:
        check_depth(value)
    return body, _storable(value) if _LONG.search(body) else value


def _why_not(body: bytes, reason: str) -> str:
    place = _PLACE.search(reason)
    if "truncated" in reason or place is None or int(place[1]) >= len(body):
        return "unexpected end of JSON input" if "truncated" in reason else reason
    trailing = "trailing" in reason
    letter = body[int(place[1]) - trailing :].decode(errors="replace")[0]
    return f"invalid character '{letter}' {'after top-level value' if trailing else 'looking for beginning of value'}"


def _unrecognized(expected: str, why: str, body: bytes) -> BadRequest:
    text = body.decode(errors="replace")
    shown = text if text.startswith("{") else body.hex()
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]} ..."
    return BadRequest(f"the object provided is unrecognized (must be of type {expected}): {why} ({shown or '<empty>'})")


def check_depth(value: Any) -> None:
    """Refuse what is nested too deeply."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [part for each in level for part in _parts(each)]
        if not level:
            return
    raise BadRequest(f"the body of the request is nested more than {_DEEPEST} levels deep")


def _from_yaml(body: bytes, expected: str) -> Body:
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise _unreadable(expected, f"{error.reason} at byte {error.start}") from error
    documents = read_yaml(text)
    if not documents:
        raise _unreadable(expected, "it is empty")
    document = documents[0]
    if isinstance(document, Unreadable):
        raise _unreadable(expected, f"line {document.line}: {document.message}")
    return Body(_storable(document.value), lines=repeated_in_yaml(document.root))


def _unreadable(expected: str, why: str) -> BadRequest:
    return BadRequest(f"the object provided is unrecognized (must be of type {expected}): error parsing YAML: {why}")


def _storable(value: Any) -> Any:
    """Give a value with whole numbers that no machine word holds as fractions, which is how JSON readers see them."""
    if type(value) is dict:
        return {name: _storable(part) for name, part in value.items()}
    if type(value) is list:
        return [_storable(part) for part in value]
    if type(value) is not int or value in _INTEGERS:
        return value
    try:
        return float(value)
    except OverflowError as error:
        raise BadRequest("a number of the body is larger than any that an object can hold") from error


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if type(value) is dict else value if type(value) is list else ()
