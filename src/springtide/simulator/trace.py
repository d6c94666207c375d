"""The trace of a simulation: every write that took effect, with its time, actor and reason.

Runs are compared by their traces: the same scenario with the same seed gives the same bytes on any machine. So a trace
holds nothing that differs between runs, and leaves out fields that every write changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from springtide.apis.forecast import format_instant
from springtide.apiserver.server import CommittedWrite
from springtide.cluster.resources import Object

_ABSENT = object()
_LONGEST_VALUE = 60
_CHANGES_IN_A_LINE = 3
_NAMES = ("type", "name", "key", "uid")
_HOLDERS = frozenset({"spec", "status", "metadata.annotations", "metadata.labels"})
"""Containers whose presence follows from their contents: only the contents are traced."""
_VERBS = {"create/binding": "bind", "create/eviction": "evict"}
"""Subresources that the trace shows as verbs."""
_BOOKKEEPING = frozenset({"resourceVersion", "managedFields", "generation", "uid", "creationTimestamp", "selfLink"})
_HEARTBEATS = frozenset(
    {("Lease", "spec.renewTime"), ("Event", "count"), ("Event", "lastTimestamp"), ("Event", "series")}
)
"""Renewals of leases and heartbeats of nodes, left out because they would fill the trace."""


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One line of the trace."""

    at: int
    actor: str
    verb: str
    kind: str
    namespace: str
    name: str
    change: dict[str, list[Any]]
    because: str

    def as_json(self) -> dict[str, Any]:
        """Return the entry in the shape that scripts read."""
        return {
            "at": format_instant(self.at),
            "actor": self.actor,
            "verb": self.verb,
            "object": {"kind": self.kind, "namespace": self.namespace, "name": self.name},
            "change": self.change,
            "because": self.because,
        }

    def as_line(self) -> str:
        """Return the entry as one line for debugging; a large change is cut."""
        named = f"{self.namespace}/{self.name}" if self.namespace else self.name
        changes = [f"{path}: {_short(old)} → {_short(new)}" for path, (old, new) in self.change.items()]
        more = [f"and {len(changes) - _CHANGES_IN_A_LINE} more"] if len(changes) > _CHANGES_IN_A_LINE else []
        told = "; ".join([*changes[:_CHANGES_IN_A_LINE], *more])
        why = f"  ({self.because})" if self.because else ""
        return f"{format_instant(self.at)}  {self.actor}  {self.verb} {self.kind} {named}  {told}{why}"


class Trace:
    """Collects entries, and passes each to a listener as it is recorded."""

    def __init__(self, listener: Callable[[TraceEntry], None] | None = None) -> None:
        self.entries: list[TraceEntry] = []
        self._listener = listener

    def record(self, written: CommittedWrite) -> None:
        """Record a write, unless all of its changes are left out."""
        change = changes(written.old, written.new, written.resource.kind)
        verb = _VERBS.get(written.verb) or written.verb.partition("/")[0]
        if not change and verb not in ("create", "delete"):
            return
        entry = TraceEntry(
            at=written.at,
            actor=written.write.manager,
            verb=verb,
            kind=written.resource.kind,
            namespace=written.key.namespace,
            name=written.key.name,
            change=change,
            because=written.write.because,
        )
        self.entries.append(entry)
        if self._listener is not None:
            self._listener(entry)

    def as_bytes(self) -> bytes:
        """Return the whole trace as JSON lines."""
        encoder = msgspec.json.Encoder()
        return b"".join(encoder.encode(entry.as_json()) + b"\n" for entry in self.entries)


def changes(old: Object | None, new: Object | None, kind: str) -> dict[str, list[Any]]:
    """Return changed paths with the value before and after; null stands for an absent value."""
    if new is None:
        return {}
    found: dict[str, list[Any]] = {}
    if old is None:
        for path, value in _created(new):
            found[path] = [None, value]
        return found
    for path, before, after in _differences(old, new, ""):
        told = [None if before is _ABSENT else before, None if after is _ABSENT else after]
        if (kind, path) not in _HEARTBEATS and told != [None, None]:
            found[path] = told
    return found


def _created(new: Object) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a new object that its author set."""
    for key, value in new.items():
        if key == "metadata":
            for name, part in value.items():
                if name not in _BOOKKEEPING and name not in ("name", "namespace"):
                    yield f"metadata.{name}", part
        elif key not in ("apiVersion", "kind") and value not in ({}, []):
            yield key, value


def _differences(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if old is new or old == new:
        return
    if path in _HOLDERS:
        old, new = {} if old is _ABSENT else old, {} if new is _ABSENT else new
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if path == "metadata" and key in _BOOKKEEPING:
                continue
            yield from _differences(old.get(key, _ABSENT), new.get(key, _ABSENT), _step(path, key))
        return
    before, after = _by_name(old, path), _by_name(new, path)
    if before is not None and after is not None:
        for name in [*before, *(name for name in after if name not in before)]:
            yield from _differences(before.get(name, _ABSENT), after.get(name, _ABSENT), f"{path}[{name}]")
    else:
        yield path, old, new


def _by_name(value: Any, path: str) -> dict[str, Any] | None:
    """Return list entries by their key (such as a condition type); None if they have no key."""
    if value is _ABSENT and path == "status.conditions":
        return {}
    if not isinstance(value, list) or not value or not all(isinstance(entry, dict) for entry in value):
        return None
    for key in _NAMES:
        named = {entry[key]: entry for entry in value if isinstance(entry.get(key), str)}
        if len(named) == len(value):
            return named
    return None


def _step(path: str, key: str) -> str:
    """Append a key to a path; a key that contains dots is put in brackets."""
    if "." in key or "/" in key:
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _short(value: Any) -> str:
    text = "-" if value is None else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"
