"""Traces of a simulation as they are told: lines for scripts or for people, and a bar that shows how far it is."""

from __future__ import annotations

import os
import stat
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click
import msgspec

from springtide.apis.forecast import format_instant
from springtide.cli.screen import speaks_unicode

if TYPE_CHECKING:
    from springtide.simulator.trace import Entry
    from springtide.simulator.world import World

_DULL = ("lastTransitionTime", "observedGeneration", "lastUpdateTime", "lastHeartbeatTime", "lastProbeTime")
"""Ends of paths that change whenever something else does: people need not read them."""
_TOLD_ELSEWHERE = {"Lease": ("spec.acquireTime", "spec.leaseTransitions", "spec.leaseDurationSeconds")}
"""Paths that say once more what another path of the same kind says."""
_LONGEST_VALUE = 100


class Teller:
    """Prints the entries of a trace as they come; on a terminal it shows the progress as well."""

    def __init__(self, output: str, begins: int, length: int) -> None:
        self._json = output == "json"
        self._encoder = msgspec.json.Encoder()
        self._begins = begins
        self._length = length
        self._reached = begins
        self._told = 0
        self._progress: Any = None
        self._bar: Any = None

    def __enter__(self) -> Teller:
        if sys.stderr.isatty() and not _is_pipe(sys.stdout):
            from rich.console import Console
            from rich.progress import Progress

            # On the stream of the trace where that is a terminal, or the bar would run through its lines.
            console = Console(stderr=not sys.stdout.isatty())
            self._progress = Progress(console=console, transient=True)
            self._bar = self._progress.add_task("simulating", total=self._length)
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def tell(self, entry: Entry) -> None:
        """Print one entry."""
        self._reached = max(self._reached, entry.at)
        if self._json:
            self._write_json(entry.as_json())
        elif (text := _told(entry)) is not None:
            self._told += 1
            self._write(text)

    async def progress(self, world: World) -> None:
        """Show how far it is; an action of the scenario, done now and then."""
        self._reached = world.clock.now()
        if self._progress is not None:
            self._progress.update(self._bar, completed=self._reached - self._begins)

    def end(self, *, complete: bool) -> None:
        """Print the last line: whether this is the whole story."""
        end = format_instant(self._begins + self._length if complete else self._reached)
        changes = f"{self._told} change{'' if self._told == 1 else 's'}"
        if self._json:
            self._write_json({"end": end, "complete": complete})
        elif complete:
            self._write(f"{end}  the end: {changes}")
        else:
            self._write(f"{end}  stopped here: {changes} so far, the rest was not simulated")

    def _write_json(self, line: dict[str, Any]) -> None:
        # JSON is UTF-8, whatever the encoding of the terminal.
        click.echo(self._encoder.encode(line))

    def _write(self, text: str) -> None:
        if self._progress is not None and sys.stdout.isatty():
            self._progress.console.out(text, highlight=False)
        else:
            encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
            click.echo(text.encode(encoding, errors="replace").decode(encoding))


def _is_pipe(stream: Any) -> bool:
    """Tell whether somebody reads along, perhaps on the same terminal: a bar would run through what they show."""
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _told(entry: Entry) -> str | None:
    """Write an entry for people: who did what, then every change on a line of its own, then why; None: not worth it."""
    named = f"{entry.namespace}/{entry.name}" if entry.namespace else entry.name
    at = format_instant(entry.at)
    if entry.kind == "Event":
        return _told_event(entry, at)
    arrow = "→" if speaks_unicode() else "->"
    lines = []
    for path, (old, new) in entry.change.items():
        if path in _TOLD_ELSEWHERE.get(entry.kind, ()) or (entry.verb != "create" and path.endswith(_DULL)):
            continue
        values = _value(new) if old is None else f"{_value(old)} {arrow} {_value(new)}"
        lines.append(f"    {path}: {values}")
    if not lines and entry.change:
        return None
    if entry.because:
        lines.append(f"    because {entry.because}")
    return "\n".join([f"{at}  {entry.kind} {named}: {entry.verb} by {entry.actor}", *lines])


def _told_event(entry: Entry, at: str) -> str | None:
    """Write an event as `kubectl get events` does; that it happened once more is not told."""
    parts = {path: new for path, (_, new) in entry.change.items()}
    if entry.verb != "create":
        return None
    about = parts.get("involvedObject") or {}
    return f"{at}  Event on {about.get('kind')} {about.get('name')}: {parts.get('reason')}: {parts.get('message')}"


def _value(value: Any) -> str:
    if isinstance(value, dict) and {"type", "status"} <= value.keys():
        told = [value["status"], *(value[part] for part in ("reason", "message") if value.get(part))]
        return f"{told[0]}, {': '.join(told[1:])}" if told[1:] else str(told[0])
    text = "gone" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
