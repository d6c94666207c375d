"""The cluster under test of the crash tests, and the client that checks it.

The client writes at random until the cluster is killed, remembers each response, and compares them with the cluster
after a restart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from springtide.cluster.resources import Object


class ProcessDied(Exception):
    """The process ended before it responded. The write may or may not have taken effect."""


@dataclass(frozen=True)
class ListResult:
    """All objects by name, and the version of the list."""

    items: dict[str, Object]
    version: int


@dataclass(frozen=True)
class WatchEvent:
    """One event of a watch."""

    change: str
    item: Object


class ClusterUnderTest(Protocol):
    """A cluster in one folder that is started and killed repeatedly; tests write ConfigMaps in one namespace."""

    def start(self) -> None:
        """Start the process and wait until it responds; `ProcessDied` if it is killed first."""
        ...

    def kill(self) -> None:
        """Kill the process with SIGKILL; from any thread, and also if it has ended."""
        ...

    def create(self, body: Object) -> Object:
        """Create an object."""
        ...

    def patch(self, name: str, body: Object) -> Object:
        """Patch an object with a merge patch."""
        ...

    def delete(self, name: str) -> None:
        """Delete an object."""
        ...

    def listed(self) -> ListResult:
        """List all objects."""
        ...

    def events(self, version: int, count: int) -> list[WatchEvent] | None:
        """Return the events after a version; None if it is compacted. Waits for at most `count` events."""
        ...


_NAMES = 12
_LARGEST = 40_000
"""Bytes: an object of many database pages, so that a torn write would be detected."""


@dataclass(frozen=True)
class PendingWrite:
    """A write that was sent."""

    change: str
    name: str
    data: dict[str, str]


@dataclass
class CrashTestClient:
    """The acknowledged state: the objects, and the events in order."""

    rng: Random
    present: dict[str, Object] = field(default_factory=dict)
    events: list[WatchEvent] = field(default_factory=list)
    seen: list[int] = field(default_factory=lambda: [0])
    """Versions returned by the server."""
    pending: PendingWrite | None = None
    """The write that was sent without a response."""

    def write_until_killed(self, cluster: ClusterUnderTest) -> None:
        """Write at random until the cluster is killed."""
        try:
            while True:
                self._write(cluster)
        except ProcessDied:
            return

    def check(self, cluster: ClusterUnderTest, *, complete: bool) -> None:
        """Compare a restarted cluster with what was acknowledged, and accept the pending write if it took effect.

        With `complete`, no version is compacted.
        """
        listed = cluster.listed()
        assert listed.version >= self.seen[-1], "versions never go back"
        self._resolve_pending(listed.items)
        assert listed.items == self.present, "what was acknowledged is there, exactly, and nothing else"
        for version in {self.rng.choice(self.seen), self.seen[-1]} - {0}:
            expected = [event for event in self.events if _version(event.item) > version]
            message = cluster.events(version, len(expected))
            assert message is not None or not complete, f"version {version} is still known"
            if message is not None:
                assert [_canonical(event) for event in message] == [_canonical(event) for event in expected], version
        self.seen.append(listed.version)

    def _write(self, cluster: ClusterUnderTest) -> None:
        name = f"n{self.rng.randrange(_NAMES)}"
        data = {"text": self.rng.choice("abc") * self.rng.randrange(1, _LARGEST), "n": str(len(self.events))}
        if name not in self.present:
            self.pending = PendingWrite("ADDED", name, data)
            self._record(name, cluster.create({"metadata": {"name": name}, "data": data}))
        elif self.rng.random() < 0.7:
            self.pending = PendingWrite("MODIFIED", name, data)
            self._record(name, cluster.patch(name, {"data": data}))
        else:
            self.pending = PendingWrite("DELETED", name, {})
            cluster.delete(name)
            self._gone(name)

    def _record(self, name: str, item: Object) -> None:
        change = "MODIFIED" if name in self.present else "ADDED"
        assert _version(item) > self.seen[-1], "versions grow"
        self.present[name] = item
        self.events.append(WatchEvent(change, item))
        self.seen.append(_version(item))
        self.pending = None

    def _gone(self, name: str) -> None:
        # The response to a delete does not contain the version of the deletion: it is one that was not seen before.
        item = self.present.pop(name)
        last = max(self.seen[-1], _version(self.events[-1].item))
        self.events.append(
            WatchEvent("DELETED", {**item, "metadata": {**item["metadata"], "resourceVersion": str(last + 1)}})
        )
        self.pending = None

    def _resolve_pending(self, found: dict[str, Object]) -> None:
        """Determine whether the pending write has taken effect."""
        intent, self.pending = self.pending, None
        if intent is None:
            return
        item = found.get(intent.name)
        if intent.change == "DELETED":
            if item is None:
                self._gone(intent.name)
        elif item is not None and item != self.present.get(intent.name):
            assert item["data"] == intent.data, "an object is whole, or as it was"
            self._record(intent.name, item)


def _version(item: Object) -> int:
    return int(item["metadata"]["resourceVersion"])


def _canonical(event: WatchEvent) -> tuple[str, object]:
    if event.change != "DELETED":
        return event.change, event.item
    metadata = {name: value for name, value in event.item["metadata"].items() if name != "resourceVersion"}
    return event.change, {**event.item, "metadata": metadata}
