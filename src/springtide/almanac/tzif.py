"""Time zone files (RFC 9636) as they come in the tzdata package.

`zoneinfo` answers "which offset at this instant" but not "when does it change next", and finding out by
probing is slow and can miss short-lived changes. The files list every change, so they are read directly.
"""

import pkgutil
import struct
from dataclasses import dataclass

_HEADER = struct.Struct(">4sc15x6l")
_TYPE = struct.Struct(">lbb")


@dataclass(frozen=True, slots=True)
class ZoneFile:
    """What a time zone file says: the offset before all changes, the changes, the rule after them."""

    first_offset: int
    changes: tuple[tuple[int, int], ...]
    footer: str


def zone_names() -> tuple[str, ...]:
    """Return the names of all zones in the tzdata package, sorted."""
    return tuple(sorted(_read("zones").decode("ascii").split()))


def read_zone_file(name: str) -> ZoneFile:
    """Read a zone of the tzdata package; the name must be one of `zone_names`."""
    return parse_zone_file(_read(f"zoneinfo/{name}"))


def parse_zone_file(data: bytes) -> ZoneFile:
    """Read the 64-bit block and the footer of a time zone file."""
    # A first block with 32-bit times serves old readers; the block that counts follows it.
    magic, version, utc_marks, standard_marks, leaps, times, types, letters = _HEADER.unpack_from(data, 0)
    if magic != b"TZif" or version < b"2":
        msg = f"time zone file starts with {data[:5]!r}, expected TZif of version 2 or later"
        raise ValueError(msg)
    at = _HEADER.size + times * 5 + types * 6 + letters + leaps * 8 + standard_marks + utc_marks
    _, _, utc_marks, standard_marks, leaps, times, types, letters = _HEADER.unpack_from(data, at)
    at += _HEADER.size
    instants = struct.unpack_from(f">{times}q", data, at)
    at += times * 8
    kinds = data[at : at + times]
    at += times
    # A type is (offset, is daylight saving, index of its abbreviation).
    offsets = [_TYPE.unpack_from(data, at + i * _TYPE.size)[:2] for i in range(types)]
    at += types * _TYPE.size + letters + leaps * 12 + standard_marks + utc_marks
    footer = data[at:].strip(b"\n").decode("ascii")
    return ZoneFile(
        # Before the first change clocks show the first offset that is not daylight saving, as zoneinfo
        # reads it.
        first_offset=next((offset for offset, daylight in offsets if not daylight), offsets[0][0]),
        changes=tuple((at, offsets[kind][0]) for at, kind in zip(instants, kinds, strict=True)),
        footer=footer,
    )


def _read(resource: str) -> bytes:
    # Lighter than importlib.resources, which would be the slowest import of every command.
    data = pkgutil.get_data("tzdata", resource)
    if data is None:
        msg = f"the tzdata package has no {resource}, expected it to be installed whole"
        raise FileNotFoundError(msg)
    return data
