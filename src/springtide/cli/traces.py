"""Traces of a simulation as they are told: lines for scripts or for people, and a bar that shows how far it is."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

import click
import msgspec

from springtide.apis.forecast import format_instant
from springtide.cli.screen import speaks_unicode
from springtide.simulator.trace import Entry
from springtide.simulator.world import World

_DULL = ("lastTransitionTime", "observedGeneration", "lastUpdateTime", "lastHeartbeatTime")
"""Ends of paths that change whenever something else does: people need not read them."""
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
        if sys.stderr.isatty():
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
        self._told += 1
        self._reached = max(self._reached, entry.at)
        self._print(self._encoder.encode(entry.as_json()).decode() if self._json else _told(entry))

    async def progress(self, world: World) -> None:
        """Show how far it is; an action of the scenario, done now and then."""
        self._reached = world.clock.now()
        if self._progress is not None:
            self._progress.update(self._bar, completed=self._reached - self._begins)

    def end(self, *, complete: bool) -> None:
        """Print the last line: whether this is the whole story."""
        end = format_instant(self._begins + self._length if complete else self._reached)
        if self._json:
            click.echo(self._encoder.encode({"end": end, "complete": complete}).decode())
        elif complete:
            click.echo(f"{end}  the end: {self._told} changes")
        else:
            click.echo(f"{end}  stopped here: {self._told} changes so far, the rest was not simulated")

    def _print(self, text: str) -> None:
        if self._progress is not None and sys.stdout.isatty():
            self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            click.echo(text)


def _told(entry: Entry) -> str:
    """Write an entry for people: who did what, then every change on a line of its own, then why."""
    named = f"{entry.namespace}/{entry.name}" if entry.namespace else entry.name
    lines = [f"{format_instant(entry.at)}  {entry.kind} {named}: {entry.verb} by {entry.actor}"]
    arrow = "→" if speaks_unicode() else "->"
    for path, (old, new) in entry.change.items():
        if entry.verb == "create" or not path.endswith(_DULL):
            values = _value(new) if old is None else f"{_value(old)} {arrow} {_value(new)}"
            lines.append(f"    {path}: {values}")
    if entry.because:
        lines.append(f"    because {entry.because}")
    return "\n".join(lines)


def _value(value: Any) -> str:
    text = "gone" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
