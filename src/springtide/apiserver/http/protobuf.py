"""Decoding of protobuf bodies, which client libraries send for built-in kinds by default.

Responses are always JSON, which every client accepts. The layout of the types is data (`protobuf.json`, written by
`tools/builtin_protobuf.py`): per type, the fields by number, with their JSON names and types. Two things are corrected
here: required fields are encoded even if they are zero, and some types have a special JSON form.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from springtide.apiserver.http.responses import UnsupportedMedia, unsupported_media
from springtide.cluster.errors import BadRequest

MEDIA = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_MAX_DEPTH = 100
_GROUPS = {
    "": "core",
    "admissionregistration.k8s.io": "admissionregistration",
    "authentication.k8s.io": "authentication",
    "authorization.k8s.io": "authorization",
    "coordination.k8s.io": "coordination",
    "networking.k8s.io": "networking",
    "rbac.authorization.k8s.io": "rbac",
    "scheduling.k8s.io": "scheduling",
    "storage.k8s.io": "storage",
}
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5


class ProtobufField(NamedTuple):
    """One field of a type."""

    name: str
    """Empty for an embedded struct, whose fields are inlined."""
    type: str
    zero_is_nothing: bool


def decoded(body: bytes) -> Any:
    """Decode an object."""
    if not body.startswith(_MAGIC):
        raise unsupported_media()
    try:
        envelope = dict(_wire(memoryview(body)[len(_MAGIC) :]))
        type_meta = dict(_wire(envelope.get(1, b"")))
        version, kind = (str(type_meta.get(number, b""), "utf-8") for number in (1, 2))
        fields = {"apiVersion": version, "kind": kind}
        return fields | _message(memoryview(envelope.get(2, b"")), _type_name(version, kind), 0)
    except (ValueError, IndexError, struct.error, TypeError, OverflowError, msgspec.DecodeError) as error:
        raise BadRequest(f"the body of the request is not valid protobuf: {error}") from error


@cache
def _layout() -> dict[str, dict[int, ProtobufField]]:
    table = msgspec.json.decode(
        Path(__file__).with_name("protobuf.json").read_bytes(), type=dict[str, list[tuple[int, str, str]]]
    )
    return {
        name: {number: ProtobufField(label, type_.rstrip("?"), type_.endswith("?")) for number, label, type_ in fields}
        for name, fields in table.items()
    }


def _type_name(version: str, kind: str) -> str:
    group, _, plain = version.rpartition("/")
    name = "meta.v1.DeleteOptions" if kind == "DeleteOptions" else f"{_GROUPS.get(group, group)}.{plain}.{kind}"
    if name not in _layout():
        raise _unknown(version, kind)
    return name


def _unknown(version: str, kind: str) -> UnsupportedMedia:
    return UnsupportedMedia(f"the embedded cluster does not decode protobuf of {kind} in {version}: send JSON")


def _wire(data: Any) -> Iterator[tuple[int, Any]]:
    """Split a message into field numbers and raw values."""
    place, end = 0, len(data)
    while place < end:
        key, place = _varint(data, place)
        form = key & 7
        if form == _VARINT:
            value, place = _varint(data, place)
            yield key >> 3, value
            continue
        if form == _BYTES:
            size, place = _varint(data, place)
        elif form in (_EIGHT_BYTES, _FOUR_BYTES):
            size = 8 if form == _EIGHT_BYTES else 4
        else:
            raise ValueError(f"wire type {form}")
        if place + size > end:
            raise ValueError("unexpected end")
        yield key >> 3, data[place : place + size]
        place += size


def _varint(data: Any, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place
        shift += 7
        if shift > 63:
            raise ValueError("a number exceeds 64 bits")


def _message(data: Any, type_: str, depth: int) -> dict[str, Any]:
    if depth > _MAX_DEPTH:
        raise ValueError(f"nested more than {_MAX_DEPTH} levels deep")
    layout = _layout()[type_]
    item: dict[str, Any] = {}
    for number, raw in _wire(data):
        field = layout.get(number)
        if field is None:
            continue
        form, _, of = field.type.partition(" ")
        if form == "list":
            item.setdefault(field.name, []).append(_value(raw, of, depth))
        elif form == "map":
            entry = dict(_wire(raw))
            value = _value(entry[2], of, depth) if 2 in entry else _ZERO.get(of, {})
            item.setdefault(field.name, {})[str(entry.get(1, b""), "utf-8")] = value
        else:
            value = _value(raw, field.type, depth)
            if not field.name:
                item |= value
            elif value is not None and not (field.zero_is_nothing and not value):
                item[field.name] = value
    return item


_ZERO: dict[str, Any] = {"string": "", "boolean": False, "integer": 0, "double": 0.0, "bytes": "", "quantity": "0"}


def _value(raw: Any, type_: str, depth: int) -> Any:
    """Return the JSON value of a field."""
    if type_.startswith("@"):
        return _message(raw, type_[1:], depth + 1)
    match type_:
        case "string":
            return str(raw, "utf-8")
        case "integer":
            return _signed(raw)
        case "boolean":
            return bool(_signed(raw))
        case "bytes":
            return base64.b64encode(raw).decode()
        case "double":
            return _finite(struct.unpack("<d", raw)[0])
        case "time":
            return _time(dict(_wire(raw)))
        case "quantity":
            return str(dict(_wire(raw)).get(1, b""), "utf-8") or "0"
        case "json":
            content = bytes(dict(_wire(raw)).get(1, b""))
            return msgspec.json.decode(content) if content else None
        case "int-or-string":
            parts = dict(_wire(raw))
            return str(parts.get(3, b""), "utf-8") if parts.get(1) else _signed(parts.get(2, 0))
        case "duration":
            return f"{_signed(dict(_wire(raw)).get(1, 0)) / 1e9:g}s"
        case _ if type_.startswith("items list "):
            of = type_.removeprefix("items list ")
            return [_value(part, of, depth) for number, part in _wire(raw) if number == 1]
        case _:
            raise ValueError(f"a field of type {type_}")


def _signed(raw: Any) -> int:
    if not isinstance(raw, int):
        raise ValueError(f"expected a number, got {len(raw)} bytes")
    return raw - (1 << 64) if raw >= 1 << 63 else raw


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    return value


def _time(parts: dict[int, Any]) -> str | None:
    seconds, nanos = _signed(parts.get(1, 0)), _signed(parts.get(2, 0))
    if not seconds and not nanos:
        return None
    whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{nanos // 1000:06}Z" if nanos else f"{whole}Z"
