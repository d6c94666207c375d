"""Objects as a journal holds them: JSON, with a checksum that also covers whose it is.

SQLite finds damage to the shape of its file. A checksum finds damage to what stands in it, so that what is read is what
was stored, or an error.
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

import msgspec

from springtide.cluster.errors import BadRequest
from springtide.cluster.resources import Key, Object
from springtide.simulator.api.storage import CollectionId

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(dict)


class Row(NamedTuple):
    """One change, as the table `versions` has it."""

    revision: int
    group: str
    plural: str
    namespace: str
    name: str
    before: int | None
    checksum: int
    object: bytes | None

    def whole(self) -> bool:
        """Tell whether it is as it was written."""
        return self.checksum == _checksum(self.revision, self.identity, self.key, self.object)

    @property
    def identity(self) -> CollectionId:
        """Where the object belongs."""
        return CollectionId(self.group, self.plural)

    @property
    def key(self) -> Key:
        """Which object it is."""
        return Key(self.namespace, self.name)

    def decoded(self, old: Object | None) -> Object | None:
        """Give what the object became; None where it went. What is as it was before is taken from the old one."""
        if self.object is None:
            return None
        new: Object = _DECODER.decode(self.object)
        if old is not None:
            _share(new["metadata"], old["metadata"])
            _share(new, old)
        return new


def row(revision: int, identity: CollectionId, key: Key, before: int | None, item: Object | None) -> Row:
    """Write a change; `BadRequest` for an object that JSON cannot hold."""
    try:
        encoded = None if item is None else _ENCODER.encode(item)
    except (UnicodeEncodeError, RecursionError, TypeError) as problem:
        raise BadRequest(f"the object cannot be stored: {problem}") from problem
    checksum = _checksum(revision, identity, key, encoded)
    return Row(revision, *identity, *key, before, checksum, encoded)


def _share(new: Object, old: Object) -> None:
    """Keep once what is the same in both, field by field: a long history then takes little room."""
    for name, value in new.items():
        before = old.get(name)
        # To compare what they encode to takes less time than to look, and does not take true for 1.
        if type(value) in (dict, list) and before is not None and _ENCODER.encode(value) == _ENCODER.encode(before):
            new[name] = before


def _checksum(revision: int, identity: CollectionId, key: Key, encoded: bytes | None) -> int:
    head = crc32("\0".join((str(revision), *identity, *key)).encode())
    return crc32(encoded, head) if encoded is not None else ~head & 0xFFFFFFFF
