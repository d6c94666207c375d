"""What a crash test asks of a cluster, whichever way it is reached: a process of its own that can be killed.

Who writes to a cluster that is killed, remembers every answer, and judges what is found afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from springtide.cluster.resources import Object


class Died(Exception):
    """No answer came: the process has ended. A write may have taken effect, or not."""


@dataclass(frozen=True)
class Listed:
    """All objects, by name, and the version that they are of."""

    items: dict[str, Object]
    version: int


@dataclass(frozen=True)
class Told:
    """One line of a watch."""

    change: str
    item: Object


class ClusterUnderTest(Protocol):
    """A cluster in one folder that is started and killed again and again; tests write ConfigMaps of one namespace."""

    def start(self) -> None:
        """Start the process, and wait until it answers; `Died` where it is killed before that."""
        ...

    def kill(self) -> None:
        """End the process as `kill -9` does; from any thread, and also where it has ended."""
        ...

    def create(self, body: Object) -> Object:
        """Create an object."""
        ...

    def patch(self, name: str, body: Object) -> Object:
        """Merge into an object."""
        ...

    def delete(self, name: str) -> None:
        """Delete an object."""
        ...

    def listed(self) -> Listed:
        """List all objects."""
        ...

    def events(self, version: int, count: int) -> list[Told] | None:
        """Give what a watch from a version tells; None where that is gone. To wait for more than `count` is no use."""
        ...


_NAMES = 12
_LARGEST = 40_000
"""Bytes: an object that takes many pages of a database, so that a torn one would show."""


@dataclass(frozen=True)
class Intent:
    """A write that was sent."""

    change: str
    name: str
    data: dict[str, str]


@dataclass
class Witness:
    """Holds what was acknowledged: the objects, and the events in their order."""

    dice: Random
    present: dict[str, Object] = field(default_factory=dict)
    events: list[Told] = field(default_factory=list)
    seen: list[int] = field(default_factory=lambda: [0])
    """Versions that were told to us."""
    pending: Intent | None = None
    """What was sent and not answered."""

    def write_until_killed(self, cluster: ClusterUnderTest) -> None:
        """Write at random, as fast as answers come."""
        try:
            while True:
                self._write(cluster)
        except Died:
            return

    def judge(self, cluster: ClusterUnderTest, *, complete: bool) -> None:
        """Compare what a restarted cluster has with what was acknowledged, and take over the write that was not.

        `complete` tells that no version is so old that it may be gone.
        """
        listed = cluster.listed()
        assert listed.version >= self.seen[-1], "versions never go back"
        self._settle(listed.items)
        assert listed.items == self.present, "what was acknowledged is there, exactly, and nothing else"
        for version in {self.dice.choice(self.seen), self.seen[-1]} - {0}:
            expected = [event for event in self.events if _version(event.item) > version]
            told = cluster.events(version, len(expected))
            assert told is not None or not complete, f"version {version} is still known"
            if told is not None:
                assert [_spelt(event) for event in told] == [_spelt(event) for event in expected], version
        self.seen.append(listed.version)

    def _write(self, cluster: ClusterUnderTest) -> None:
        name = f"n{self.dice.randrange(_NAMES)}"
        data = {"text": self.dice.choice("abc") * self.dice.randrange(1, _LARGEST), "n": str(len(self.events))}
        if name not in self.present:
            self.pending = Intent("ADDED", name, data)
            self._took(name, cluster.create({"metadata": {"name": name}, "data": data}))
        elif self.dice.random() < 0.7:
            self.pending = Intent("MODIFIED", name, data)
            self._took(name, cluster.patch(name, {"data": data}))
        else:
            self.pending = Intent("DELETED", name, {})
            cluster.delete(name)
            self._gone(name)

    def _took(self, name: str, item: Object) -> None:
        change = "MODIFIED" if name in self.present else "ADDED"
        assert _version(item) > self.seen[-1], "versions grow"
        self.present[name] = item
        self.events.append(Told(change, item))
        self.seen.append(_version(item))
        self.pending = None

    def _gone(self, name: str) -> None:
        # The answer to a delete does not say under which version the object went: it is one that we have not seen.
        item = self.present.pop(name)
        last = max(self.seen[-1], _version(self.events[-1].item))
        self.events.append(
            Told("DELETED", {**item, "metadata": {**item["metadata"], "resourceVersion": str(last + 1)}})
        )
        self.pending = None

    def _settle(self, found: dict[str, Object]) -> None:
        """See whether the write that was not answered has taken effect."""
        intent, self.pending = self.pending, None
        if intent is None:
            return
        item = found.get(intent.name)
        if intent.change == "DELETED":
            if item is None:
                self._gone(intent.name)
        elif item is not None and item != self.present.get(intent.name):
            assert item["data"] == intent.data, "an object is whole, or as it was"
            self._took(intent.name, item)


def _version(item: Object) -> int:
    return int(item["metadata"]["resourceVersion"])


def _spelt(event: Told) -> tuple[str, object]:
    if event.change != "DELETED":
        return event.change, event.item
    metadata = {name: value for name, value in event.item["metadata"].items() if name != "resourceVersion"}
    return event.change, {**event.item, "metadata": metadata}
