"""The live line of `springtide up`: time, nodes, pods and the last scaling change of the cluster, on one terminal line.

It is drawn on terminals only. What the process writes to standard error meanwhile (logs, messages of signals) appears
above it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from typing import Any, TextIO, cast

from rich.cells import cell_len

from springtide.apis.forecast import format_instant
from springtide.apiserver.server import ApiServer, CommittedWrite
from springtide.cli.console import supports_unicode
from springtide.cli.pictures.formatting import printable
from springtide.cli.pictures.terminal_canvas import shorten
from springtide.cluster.clock import Clock
from springtide.cluster.resources import NODES, PODS, Object, Selection

_SECONDS = 1.0
"""How often the line is drawn."""
_SIZES = {
    "replicas": "",
    "minReplicas": "min ",
    "maxReplicas": "max ",
    "minReplicaCount": "min ",
    "maxReplicaCount": "max ",
}
"""The fields of a spec whose change is a scaling change, and how they are shown."""
_DEFAULT_NAMESPACE = "default"
_YEAR = len("2026-")
_CLOCK = slice(len("2026-11-27T"), len("2026-11-27T06:00"))
"""Parts of a time that the line leaves out or shows."""


@dataclass(frozen=True, slots=True)
class ScalingChange:
    """A change of replicas, or of the bounds of an autoscaler."""

    at: int
    subject: str
    sizes: str
    because: str


class ClusterActivity:
    """Counts nodes, pods and scaling changes of an API server, from the writes that take effect."""

    def __init__(self, server: ApiServer) -> None:
        self.nodes = len(server.list(Selection(NODES)).items)
        self.running = self.pending = 0
        self.changes = 0
        self.last: ScalingChange | None = None
        for pod in server.list(Selection(PODS)).items:
            self._count(pod, 1)
        server.observers.append(self._observe)

    def _observe(self, written: CommittedWrite) -> None:
        old, new = written.old, written.new
        if written.resource == PODS:
            self._count(old, -1)
            self._count(new, 1)
        elif written.resource == NODES:
            self.nodes += (new is not None) - (old is not None)
        elif old is not None and new is not None and (sizes := _size_changes(old, new)):
            self.changes += 1
            self.last = ScalingChange(written.at, _subject(new), sizes, written.write.because)

    def _count(self, pod: Object | None, by: int) -> None:
        if pod is None or "deletionTimestamp" in pod["metadata"]:
            return
        match (pod.get("status") or {}).get("phase", "Pending"):
            case "Running":
                self.running += by
            case "Pending":
                self.pending += by


def _size_changes(old: Object, new: Object) -> str:
    """Describe what has changed; empty where nothing has, or where another object decides the size."""
    before, after = old.get("spec"), new.get("spec")
    if before is after or not isinstance(before, dict) or not isinstance(after, dict):
        return ""
    if any(owner.get("controller") for owner in new["metadata"].get("ownerReferences") or ()):
        return ""
    return ", ".join(
        f"{shown}{_size(before, name)} → {_size(after, name)}"
        for name, shown in _SIZES.items()
        if before.get(name) != after.get(name)
    )


def _size(spec: Object, name: str) -> Any:
    return spec.get(name, "unset")


def _subject(item: Object) -> str:
    namespace = item["metadata"].get("namespace", _DEFAULT_NAMESPACE)
    place = "" if namespace == _DEFAULT_NAMESPACE else f"{namespace}/"
    return f"{place}{item['metadata']['name']}"


def render_activity(activity: ClusterActivity, now: int, width: int) -> str:
    """Write the line; parts that do not fit into the width are left out, and the last change is cut."""
    pending = f", {activity.pending} pending" if activity.pending else ""
    parts = [
        format_instant(now)[_YEAR:].replace("T", " "),
        f"{activity.nodes} node{'' if activity.nodes == 1 else 's'}",
        f"{activity.running} pod{'' if activity.running == 1 else 's'} running{pending}",
        f"{activity.changes} change{'' if activity.changes == 1 else 's'}",
    ]
    line = shorten(parts[0], width)
    for part in parts[1:]:
        longer = f"{line} | {part}"
        if cell_len(longer) > width:
            return line
        line = longer
    if (last := activity.last) is None:
        return line
    because = f": {last.because}" if last.because else ""
    return shorten(f"{line}, {format_instant(last.at)[_CLOCK]} {last.subject} {last.sizes}{because}", width)


class LiveLine:
    """One line at the end of a terminal's output, which is drawn again and again."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = ""

    def draw(self, text: str) -> None:
        """Replace the line."""
        if text != self._shown:
            self._stream.write(self._erasure() + text)
            self._stream.flush()
            self._shown = text

    def leave(self) -> None:
        """Keep the line as it is; what follows is written below it."""
        if self._shown:
            self._stream.write("\n")
            self._stream.flush()
            self._shown = ""

    def clear(self) -> None:
        """Remove the line, for other output in its place."""
        if self._shown:
            self._stream.write(self._erasure())
            self._stream.flush()
            self._shown = ""

    def _erasure(self) -> str:
        """Return the codes that erase the line, also if a narrower terminal has wrapped it."""
        rows = max(1, -(-cell_len(self._shown) // columns()))
        return ("\r" if rows == 1 else f"\r\x1b[{rows - 1}A") + "\x1b[J"


class _AboveLine:
    """A text stream whose output appears above the live line."""

    def __init__(self, stream: TextIO, line: LiveLine) -> None:
        self._stream = stream
        self._line = line

    def write(self, text: str) -> int:
        """Write a text in place of the line, which is drawn again later."""
        self._line.clear()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def columns() -> int:
    """Return the width of the terminal."""
    return max(1, shutil.get_terminal_size().columns)


@contextmanager
def live_line() -> Iterator[LiveLine | None]:
    """Return the live line of this process; None where standard output or standard error is no terminal."""
    if not (sys.stdout.isatty() and sys.stderr.isatty()) or os.environ.get("TERM") == "dumb":
        yield None
        return
    line = LiveLine(sys.stdout)
    with redirect_stderr(cast(TextIO, _AboveLine(sys.stderr, line))):
        try:
            yield line
        finally:
            line.leave()


async def show_activity(line: LiveLine, activity: ClusterActivity, clock: Clock) -> None:
    """Draw the line every second until cancelled."""
    unicode = supports_unicode()
    while True:
        # Not in the last column: some terminals begin a new line there.
        text = printable(render_activity(activity, clock.now(), columns() - 1))
        line.draw(text if unicode else text.replace("→", "->").replace("…", "~").encode("ascii", "replace").decode())
        await asyncio.sleep(_SECONDS)
