"""Which state of which object a write was computed from.

The API server has no fencing token, so a write that is late (from a leader that is one no more, or from a cache that
has fallen behind) can only be recognised by what it was computed from. Whoever writes therefore names the object that
was read, and the write takes effect only as long as that is still what the server has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from springtide.cluster.port import Patch, Precondition
from springtide.cluster.resources import Key, Object, key_of


@dataclass(frozen=True, slots=True)
class Origin:
    """An object as it was read: its identity over time, and its version. Projected records keep one of these."""

    key: Key
    uid: str
    version: str

    @classmethod
    def of(cls, item: Any) -> Origin:
        """Take the origin from a whole object or a view of one; an origin is its own."""
        if isinstance(item, Origin):
            return item
        metadata = item["metadata"] if isinstance(item, dict) else item.metadata
        if isinstance(metadata, dict):
            uid, version = metadata.get("uid"), metadata.get("resourceVersion")
        else:
            uid, version = metadata.uid, metadata.resource_version
        return cls(key_of(item), uid or "", version or "")

    def changed_by(self, patch: Patch) -> Object:
        """Show as much of the changed object as the patch itself says, for those who must go on without an answer."""
        body: Object = patch.body if isinstance(patch.body, dict) else {}
        identity = {
            "namespace": self.key.namespace,
            "name": self.key.name,
            "uid": self.uid,
            "resourceVersion": self.version,
        }
        known = {name: value for name, value in identity.items() if value}
        return body | {"metadata": (body.get("metadata") or {}) | known}

    def precondition(self, *, exact: bool = True) -> Precondition:
        """Demand this very version, or (not `exact`) only that it is still the same object under that name."""
        if not self.uid or (exact and not self.version):
            wanted = "uid and resourceVersion" if exact else "uid"
            msg = f"{self.key}: an object without {wanted} was never read from a cluster, expected one that was"
            raise ValueError(msg)
        return Precondition(self.version if exact else "", self.uid)
