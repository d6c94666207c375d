"""`springtide simulate`: the real controllers on manifests, over days of virtual time.

The trace is printed as it is made, as text or as JSON lines; a terminal shows a progress bar as well.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import traceback
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click
import msgspec

from springtide.almanac import load_zone
from springtide.almanac.civil import DAY, LAST_DAY
from springtide.apis.forecast import format_instant
from springtide.cli.console import printable_lines, show_missing_packages, supports_unicode, visible_json
from springtide.cli.options import DurationType, default_timezone_option, files_argument, parse_moment
from springtide.cli.sources import prepare_manifests

if TYPE_CHECKING:
    from springtide.simulator.trace import TraceEntry
    from springtide.simulator.world import World


_NOISY_PATHS = ("lastTransitionTime", "observedGeneration", "lastUpdateTime", "lastHeartbeatTime", "lastProbeTime")
"""Suffixes of paths that change together with others; the text leaves them out."""
_REDUNDANT_PATHS = {"Lease": ("spec.acquireTime", "spec.leaseTransitions", "spec.leaseDurationSeconds")}
"""Paths that repeat what another path of the same kind says."""
_LONGEST_VALUE = 100


class TracePrinter:
    """Prints the entries of a trace, and on a terminal a progress bar."""

    def __init__(self, output: str, begins: int, length: int) -> None:
        self._json = output == "json"
        self._encoder = msgspec.json.Encoder()
        self._begins = begins
        self._length = length
        self._reached = begins
        self._count = 0
        self._progress: Any = None
        self._bar: Any = None

    def __enter__(self) -> TracePrinter:
        if sys.stderr.isatty() and not _is_pipe(sys.stdout):
            from rich.console import Console
            from rich.progress import Progress

            # On the stream of the trace where that is a terminal: the console then keeps the bar below the lines.
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

    def print(self, entry: TraceEntry) -> None:
        """Print one entry."""
        self._reached = max(self._reached, entry.at)
        if self._json:
            self._write_json(entry.as_json())
        elif (text := _format_entry(entry)) is not None:
            self._count += 1
            self._write(printable_lines(text))

    async def progress(self, world: World) -> None:
        """Update the progress bar; the scenario calls this now and then."""
        self._reached = world.clock.now()
        if self._progress is not None:
            self._progress.update(self._bar, completed=self._reached - self._begins)

    def end(self, *, complete: bool) -> None:
        """Print the last line: whether the trace is complete."""
        end = format_instant(self._begins + self._length if complete else self._reached)
        changes = f"{self._count} change{'' if self._count == 1 else 's'}"
        if self._json:
            self._write_json({"end": end, "complete": complete})
        elif complete:
            self._write(f"{end}  end: {changes}")
        else:
            self._write(f"{end}  stopped: {changes} so far, the rest was not simulated")

    def _write_json(self, line: dict[str, Any]) -> None:
        # JSON is UTF-8, whatever the encoding of the terminal is.
        click.echo(visible_json(self._encoder.encode(line)).encode())

    def _write(self, text: str) -> None:
        if self._progress is not None and sys.stdout.isatty():
            self._progress.console.out(text, highlight=False)
        else:
            encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
            click.echo(text.encode(encoding, errors="replace").decode(encoding))


def _is_pipe(stream: Any) -> bool:
    """Return whether a stream is a pipe: its reader may print to the same terminal, where a bar would disturb it."""
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _format_entry(entry: TraceEntry) -> str | None:
    """Write an entry as text: actor and verb, a line for each change, the reason; None if all paths are left out."""
    named = f"{entry.namespace}/{entry.name}" if entry.namespace else entry.name
    at = format_instant(entry.at)
    if entry.kind == "Event":
        return _format_event(entry, at)
    arrow = "→" if supports_unicode() else "->"
    lines = []
    for path, (old, new) in entry.change.items():
        if path in _REDUNDANT_PATHS.get(entry.kind, ()) or (entry.verb != "create" and path.endswith(_NOISY_PATHS)):
            continue
        values = _value(new) if old is None else f"{_value(old)} {arrow} {_value(new)}"
        lines.append(f"    {path}: {values}")
    if not lines and entry.change:
        return None
    if entry.because:
        lines.append(f"    because {entry.because}")
    return "\n".join([f"{at}  {entry.kind} {named}: {entry.verb} by {entry.actor}", *lines])


def _format_event(entry: TraceEntry, at: str) -> str | None:
    """Write an event as `kubectl get events` does; repetitions are left out."""
    parts = {path: new for path, (_, new) in entry.change.items()}
    if entry.verb != "create":
        return None
    about = parts.get("involvedObject") or {}
    return f"{at}  Event on {about.get('kind')} {about.get('name')}: {parts.get('reason')}: {parts.get('message')}"


def _value(value: Any) -> str:
    if isinstance(value, dict) and {"type", "status"} <= value.keys():
        parts = [value["status"], *(value[part] for part in ("reason", "message") if value.get(part))]
        return f"{parts[0]}, {': '.join(parts[1:])}" if parts[1:] else str(parts[0])
    text = "gone" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


_INTERRUPTED = 130


@click.command("simulate")
@files_argument
@click.option(
    "--for", "length", type=DurationType(), default="7d", show_default=True, help="How much virtual time passes."
)
@click.option("--from", "start", metavar="TIME", help="When virtual time begins; the present if not given.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="The seed of random numbers: the same seed gives the same trace.",
)
@click.option(
    "--faults",
    type=click.Choice(["none", "light", "heavy"]),
    default="none",
    show_default=True,
    help="Failures of requests, watches, processes and nodes. Two replicas run then, and elect a leader.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json: a line for every change, for scripts.",
)
@default_timezone_option
def command(
    paths: tuple[str, ...],
    length: int,
    start: str | None,
    seed: int,
    faults: str,
    output: str,
    default_timezone: str,
) -> None:
    """Run the real controllers on manifests in a simulated cluster, and print everything that changes.

    The cluster is in memory, and its time is virtual: a week takes seconds. It creates the pods of workloads, schedules
    them to the nodes of the manifests, and runs every controller of Springtide. The trace has every change with its
    time, actor and reason. The same seed gives the same trace.

    \b
      springtide simulate calendar.yaml --for 30d
      springtide simulate manifests/ --from 2026-12-20 --for 2w -o json | jq -c 'select(.actor != "user")'
      springtide simulate manifests/ --faults heavy --seed 7

    TIME is RFC 3339 (2026-11-27T06:00:00Z), or a local time or date (2026-11-27T06:00, 2026-11-27) of
    --default-timezone. Ctrl-C ends it early; the trace up to then is complete, and its last line says so.

    Exit codes: 0 fine; 1 a manifest has errors or is refused; 2 something unreadable; 130 ended early.
    """
    begins = parse_moment(start, load_zone(default_timezone), "--from")
    if begins + length > (LAST_DAY + 1) * DAY:
        raise click.BadParameter("the simulation would end after the year 9999", param_hint="--for")
    printer = TracePrinter(output, begins, length)
    try:
        code = _simulate(paths, printer, begins, length, seed, faults, default_timezone)
    except KeyboardInterrupt:
        printer.end(complete=False)
        code = _INTERRUPTED
    raise SystemExit(code)


def _simulate(
    paths: tuple[str, ...], printer: TracePrinter, begins: int, length: int, seed: int, faults: str, default_zone: str
) -> int:
    try:
        from springtide.assembly.simulated_cluster import simulated_scenario
    except ModuleNotFoundError as missing:
        return show_missing_packages("simulating", missing)
    prepared = prepare_manifests(paths, now=begins, default_zone=default_zone, otherwise="nothing was simulated")
    if prepared.code:
        return prepared.code
    objects = [placed.value for placed in prepared.objects]
    _disable_logging()
    scenario = simulated_scenario(
        objects, start=format_instant(begins), faults=faults, default_zone=default_zone, listener=printer.print
    )
    try:
        with printer:
            scenario.every(f"{max(60, length // 200)}s", printer.progress).run(f"{length}s", seed=seed)
    except BrokenPipeError:
        raise
    except Exception:
        traceback.print_exc()
        printer.end(complete=False)
        options = f"--from {format_instant(begins)} --for {length}s --faults {faults} --seed {seed}"
        click.echo(f"this is a bug in Springtide; to reproduce it, run the same files with {options}", err=True)
        return 1
    printer.end(complete=True)
    return 0


def _disable_logging() -> None:
    """Suppress the logs of the simulated processes: the trace has what matters."""
    logger = logging.getLogger("springtide")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
