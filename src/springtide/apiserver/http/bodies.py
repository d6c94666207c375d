"""Request bodies in JSON, YAML and protobuf, and duplicate fields in them.

Any input is read in time and memory proportional to its size, and yields a value that can be stored and written again,
or an error.

JSON parsers keep the last of duplicate fields silently, while the API reports them. Almost no body has any, so one fast
pass looks for duplicates, and a second one locates them.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import msgspec

from springtide.apis.yaml import UnreadableDocument
from springtide.apis.yaml import read as read_yaml
from springtide.apis.yaml.nodes import MappingNode, Node, SequenceNode, resolved
from springtide.apis.yaml.values import name_of
from springtide.apiserver.http import protobuf
from springtide.apiserver.http.responses import unsupported_media
from springtide.cluster.errors import BadRequest

Path = tuple[str | int, ...]

_JSON = ("application/json", "")
_YAML = ("application/yaml", "application/x-yaml", "text/yaml")
_MAX_DEPTH = 200
"""The maximum nesting of lists and objects, so that recursive functions are safe everywhere."""
_LARGE = 64 * 1024
"""Bytes from which a body is decoded beside the event loop."""
_MOST_YAML_VALUES = 200_000
"""How many values and keys a body in YAML may have: about as many as fit into the largest object of etcd."""
_SHOWN = 30
_LONG = re.compile(rb"\d{19}")
_PLACE = re.compile(r"\(byte (\d+)\)")
JSON_TYPES = {bool: "bool", dict: "object", float: "number", int: "number", list: "array", str: "string"}
"""Go's names of JSON types."""
_IDENTITY = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
_INTEGERS = range(-(2**63), 2**64)
_decoder = msgspec.json.Decoder()


class _Pairs(list[tuple[str, Any]]):
    """An object with all its fields, in their order."""


class _DuplicateFound(Exception):
    """A duplicate field was found."""


def _refuse_duplicates(fields: list[tuple[str, Any]]) -> None:
    if len(dict(fields)) < len(fields):
        raise _DuplicateFound


def _reader(pairs: Callable[[list[tuple[str, Any]]], Any]) -> json.JSONDecoder:
    # Numbers do not matter here, and parsing long ones is slow.
    return json.JSONDecoder(object_pairs_hook=pairs, parse_int=str, parse_float=str)


_DETECTING = _reader(_refuse_duplicates)
_LOCATING = _reader(_Pairs)


def duplicate_json_fields(body: bytes) -> list[Path]:
    """Return the paths of duplicate fields, in the order of the text, which must be valid JSON."""
    text = body.decode()
    try:
        _DETECTING.decode(text)
    except _DuplicateFound:
        return list(_walk(_LOCATING.decode(text), ()))
    return []


def duplicate_yaml_keys(root: Node) -> list[str]:
    """Describe duplicate keys, with their lines."""
    return [f'line {line}: key "{name}" already set in map' for line, name in _walk_nodes(root)]


def _walk(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, part in value:
            if name in seen:
                yield (*path, name)
            seen.add(name)
            yield from _walk(part, (*path, name))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _walk(part, (*path, index))


def _walk_nodes(node: Node) -> Iterator[tuple[int, str]]:
    inner = resolved(node)
    if isinstance(inner, MappingNode):
        seen: set[str] = set()
        for key, value in inner.entries:
            name = name_of(key)
            if name is not None and name in seen:
                yield key.line + 1, name
            elif name is not None:
                seen.add(name)
            yield from _walk_nodes(value)
    elif isinstance(inner, SequenceNode):
        for item in inner.items:
            yield from _walk_nodes(item)


@dataclass(frozen=True, slots=True)
class RequestBody:
    """A decoded body, and its duplicate fields, of which the last value counts."""

    value: Any
    duplicates: list[Path] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    """Duplicate keys of YAML, described by line."""


def media_of(content_type: str) -> str:
    """Return the media type of a body, without parameters."""
    return content_type.partition(";")[0].strip().lower()


def decoded(body: bytes, content_type: str, expected: str) -> RequestBody:
    """Decode a body; `expected` is the kind for messages."""
    media = media_of(content_type)
    if media in _JSON:
        return from_json(body, expected)
    if media in _YAML:
        return from_yaml(body, expected)
    if media == protobuf.MEDIA:
        value = protobuf.decoded(body)
        check_depth(value)
        return RequestBody(value)
    raise unsupported_media()


class BodyDecoder:
    """Decodes large bodies in a thread, one at a time, so that none holds the event loop or adds to another's memory.

    The parser of YAML is written in C, but makes Python objects for every value: some 5 µs each.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bodies")

    async def run(self, decode: Callable[[bytes], RequestBody], body: bytes) -> RequestBody:
        """Decode a body with one of the functions of this module."""
        if len(body) < _LARGE:
            return decode(body)
        return await asyncio.get_running_loop().run_in_executor(self._thread, decode, body)

    def close(self) -> None:
        """Accept no more bodies."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def from_json(body: bytes, expected: str) -> RequestBody:
    """Decode JSON."""
    try:
        body, value = _parsed(body)
    except _NotJson as error:
        raise _unrecognized(expected, f"couldn't get version/kind; json parse error: {error}", body) from error
    if value is None:
        return RequestBody({})
    if not isinstance(value, dict):
        why = f"json: cannot unmarshal {JSON_TYPES[type(value)]} into Go value of type {_IDENTITY}"
        raise _unrecognized(expected, f"couldn't get version/kind; json parse error: {why}", body)
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name, ""), str | None):
            why = f"json: cannot unmarshal {JSON_TYPES[type(value[name])]} into Go struct field .{name} of type string"
            raise _unrecognized(expected, f"couldn't get version/kind; json parse error: {why}", body)
    return RequestBody(value, duplicate_json_fields(body))


def from_patch(body: bytes, *, strategic: bool) -> RequestBody:
    """Decode a patch: JSON of any type."""
    try:
        body, value = _parsed(body)
    except _NotJson as error:
        raise BadRequest(str(error) if strategic else f"error decoding patch: {error}") from error
    return RequestBody(value, duplicate_json_fields(body))


def from_yaml(body: bytes, expected: str) -> RequestBody:
    """Decode YAML; client libraries nearly always send JSON under this media type, so that is tried first."""
    try:
        body, value = _parsed(body)
    except _NotJson:
        return _from_yaml(body, expected)
    return RequestBody(value, duplicate_json_fields(body))


class _NotJson(Exception):
    """The body is not JSON; the message is that of Go's parser."""


def _parsed(body: bytes) -> tuple[bytes, Any]:
    """Decode JSON; bytes that are not UTF-8 become replacement characters."""
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
    # The depth is at most the number of brackets, which are counted faster.
    if body.count(b"{") + body.count(b"[") >= _MAX_DEPTH:
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
    """Refuse excessive nesting."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [part for each in level for part in _parts(each)]
        if not level:
            return
    raise BadRequest(f"the body of the request is nested more than {_MAX_DEPTH} levels deep")


def _from_yaml(body: bytes, expected: str) -> RequestBody:
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise _unreadable(expected, f"{error.reason} at byte {error.start}") from error
    documents = read_yaml(text, most=_MOST_YAML_VALUES)
    if not documents:
        raise _unreadable(expected, "it is empty")
    document = documents[0]
    if isinstance(document, UnreadableDocument):
        raise _unreadable(expected, f"line {document.line}: {document.message}")
    return RequestBody(_storable(document.value), lines=duplicate_yaml_keys(document.root))


def _unreadable(expected: str, why: str) -> BadRequest:
    return BadRequest(f"the object provided is unrecognized (must be of type {expected}): error parsing YAML: {why}")


def _storable(value: Any) -> Any:
    """Return a value with integers beyond 64 bits as floats, as JSON parsers read them."""
    if type(value) is dict:
        return {name: _storable(part) for name, part in value.items()}
    if type(value) is list:
        return [_storable(part) for part in value]
    if type(value) is not int or value in _INTEGERS:
        return value
    try:
        return float(value)
    except OverflowError as error:
        raise BadRequest("a number in the body is too large for an object") from error


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if type(value) is dict else value if type(value) is list else ()
