"""Fields that stand twice in the same object. Readers of JSON keep the last and say nothing; the API tells the writer.

Nearly no body has any, so the common case is one pass in C that finds none; only then is it found out where they are.

The bodies of requests: JSON or YAML, from anybody.

Whatever is sent, reading it takes time and memory in proportion to its size, and ends with a value that can be stored
and written again, or with a refusal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
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


class _Pairs(list[tuple[str, Any]]):
    """An object with all its fields, in the order in which they are written."""


class _Repeated(Exception):
    """A field stands twice somewhere."""


def _look(fields: list[tuple[str, Any]]) -> None:
    if len(dict(fields)) < len(fields):
        raise _Repeated


def _reader(pairs: Callable[[list[tuple[str, Any]]], Any]) -> json.JSONDecoder:
    # Numbers do not matter here, and reading a long one takes long.
    return json.JSONDecoder(object_pairs_hook=pairs, parse_int=str, parse_float=str)


_LOOKING = _reader(_look)
_PLACING = _reader(_Pairs)


def duplicate_json_fields(body: bytes) -> list[Path]:
    """Give the places of fields that stand more than once, in the order of the text; the text is known to be JSON."""
    text = body.decode()
    try:
        _LOOKING.decode(text)
    except _Repeated:
        return list(_walk(_PLACING.decode(text), ()))
    return []


def duplicate_yaml_keys(root: Node) -> list[str]:
    """Tell of keys that stand more than once, each with its line."""
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
class RequestBody:
    """A body that has been read, and what stands in it more than once: the last one counted."""

    value: Any
    repeated: list[Path] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    """The same for YAML, in words that name lines."""


def media_of(content_type: str) -> str:
    """Give the media type of a body, without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def decoded(body: bytes, content_type: str, expected: str) -> RequestBody:
    """Read a body; `expected` names the kind that it should be, for messages."""
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


def from_json(body: bytes, expected: str) -> RequestBody:
    """Read JSON."""
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
    """Read a patch, which is JSON of any shape."""
    try:
        body, value = _parsed(body)
    except _NotJson as error:
        raise BadRequest(str(error) if strategic else f"error decoding patch: {error}") from error
    return RequestBody(value, duplicate_json_fields(body))


def from_yaml(body: bytes, expected: str) -> RequestBody:
    """Read YAML; what client libraries send under that name is JSON nearly always, so that is tried first."""
    try:
        body, value = _parsed(body)
    except _NotJson:
        return _from_yaml(body, expected)
    return RequestBody(value, duplicate_json_fields(body))


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


def _from_yaml(body: bytes, expected: str) -> RequestBody:
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise _unreadable(expected, f"{error.reason} at byte {error.start}") from error
    documents = read_yaml(text)
    if not documents:
        raise _unreadable(expected, "it is empty")
    document = documents[0]
    if isinstance(document, UnreadableDocument):
        raise _unreadable(expected, f"line {document.line}: {document.message}")
    return RequestBody(_storable(document.value), lines=duplicate_yaml_keys(document.root))


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
