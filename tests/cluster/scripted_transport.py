"""A transport that gives scripted answers in order, and records its requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from springtide.cluster.clock import Clock
from springtide.cluster.errors import ClusterError
from springtide.cluster.resources import Object, Resource, Selection
from springtide.cluster.transport import INITIAL_EVENTS_END, ListPage, WatchEvent, WatchEventType

PODS = Resource("", "v1", "pods", "Pod")


def pod(name: str, version: int, node: str = "") -> Object:
    """Make a minimal pod."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "default", "name": name, "resourceVersion": str(version)},
        "spec": {"nodeName": node},
    }


def added(name: str, version: int, node: str = "") -> WatchEvent:
    return WatchEvent(WatchEventType.ADDED, pod(name, version, node))


def modified(name: str, version: int, node: str = "") -> WatchEvent:
    return WatchEvent(WatchEventType.MODIFIED, pod(name, version, node))


def deleted(name: str, version: int, node: str = "") -> WatchEvent:
    return WatchEvent(WatchEventType.DELETED, pod(name, version, node))


def bookmark(version: int, *, end: bool = False) -> WatchEvent:
    """Make a bookmark; with `end`, the one that follows the initial events of a WatchList."""
    annotations = {INITIAL_EVENTS_END: "true"} if end else {}
    metadata = {"resourceVersion": str(version), "annotations": annotations}
    return WatchEvent(WatchEventType.BOOKMARK, {"kind": "Pod", "apiVersion": "v1", "metadata": metadata})


@dataclass(frozen=True)
class Asked:
    """A request; `at` is its virtual time in seconds."""

    verb: str
    version: str = ""
    initial_events: bool = False
    limit: int = 0
    continue_: str = ""
    at: float = field(default=0.0, compare=False)
    timeout: float | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Quiet:
    """Nothing happens for some seconds."""

    seconds: float


@dataclass(frozen=True)
class Stream:
    """What a watch brings; then it ends, or it stays open until its timeout."""

    steps: Sequence[WatchEvent | ClusterError | Quiet]
    ends: bool = False


class ScriptedTransport:
    """The transport. When the answers run out, watches stay open, and lists are a mistake."""

    def __init__(self, clock: Clock, answers: Sequence[ListPage | Stream | ClusterError]) -> None:
        self._clock = clock
        self._answers = list(answers)
        self.asked: list[Asked] = []
        self.open = 0

    async def list(
        self, selection: Selection, *, limit: int = 0, continue_: str = "", version: str = "", exact: bool = False
    ) -> ListPage:
        """Answer with the next page."""
        assert not exact
        self.asked.append(Asked("list", version, limit=limit, continue_=continue_, at=self._clock.monotonic()))
        answer = self._answers.pop(0)
        if isinstance(answer, ClusterError):
            raise answer
        assert isinstance(answer, ListPage), f"a list was asked for where the script has {answer}"
        return answer

    async def watch(
        self, selection: Selection, *, version: str = "", initial_events: bool = False, timeout: float | None = None
    ) -> AsyncGenerator[WatchEvent, None]:
        """Answer with the next stream."""
        asked = Asked("watch", version, initial_events, at=self._clock.monotonic(), timeout=timeout)
        self.asked.append(asked)
        answer = self._answers.pop(0) if self._answers else Stream(())
        if isinstance(answer, ClusterError):
            raise answer
        assert isinstance(answer, Stream), f"a watch was asked for where the script has {answer}"
        self.open += 1
        try:
            for step in answer.steps:
                if isinstance(step, ClusterError):
                    raise step
                if isinstance(step, Quiet):
                    await asyncio.sleep(step.seconds)
                else:
                    yield step
            if not answer.ends:
                await asyncio.sleep(timeout or 0)
        finally:
            self.open -= 1

    async def _unasked(self, *args: Any, **options: Any) -> NoReturn:
        msg = "a reflector only lists and watches"
        raise AssertionError(msg)

    get = create = patch = delete = _unasked
