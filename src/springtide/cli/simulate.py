"""`springtide simulate`: the real controllers on manifests, over days of virtual time.

The trace is printed as it is made, as text or as JSON lines; a terminal shows a progress bar as well.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click
import msgspec

from springtide.almanac import load_zone
from springtide.almanac.civil import DAY, LAST_DAY
from springtide.apis.forecast import format_instant
from springtide.apis.schema import nearest
from springtide.assembly.manifests import ManifestSource, UnreadableSource, read_sources, zones_named_in
from springtide.cli.console import note, printable_lines, show_missing_packages, supports_unicode, visible_json
from springtide.cli.options import (
    DurationType,
    default_timezone_option,
    files_argument,
    parse_moment,
    parse_offset_moment,
)
from springtide.cli.pictures.formatting import printable
from springtide.cli.simulation_summary import SimulationSummary
from springtide.cli.sources import prepare_manifests

if TYPE_CHECKING:
    from springtide.simulator.trace import TraceEntry
    from springtide.simulator.world import World


_NOISY_PATHS = ("lastTransitionTime", "observedGeneration", "lastUpdateTime", "lastHeartbeatTime", "lastProbeTime")
"""Suffixes of paths that change together with others; the text leaves them out."""
_REDUNDANT_PATHS = {"Lease": ("spec.acquireTime", "spec.leaseTransitions", "spec.leaseDurationSeconds")}
"""Paths that repeat what another path of the same kind says."""
_LONGEST_VALUE = 100


@dataclass(frozen=True, slots=True)
class TraceChoice:
    """The kinds and the objects whose changes and events are printed; without any, all are."""

    kinds: frozenset[str] = frozenset()
    objects: frozenset[tuple[str, str]] = frozenset()
    """Kind and name; in any namespace."""

    def includes(self, entry: TraceEntry) -> bool:
        """Return whether an entry is printed; an event belongs to the object that it is about."""
        if not self.kinds and not self.objects:
            return True
        subjects = [(entry.kind, entry.name)]
        if entry.kind == "Event" and isinstance(about := entry.change.get("involvedObject", [None, None])[1], dict):
            subjects.append((str(about.get("kind")), str(about.get("name"))))
        return any(kind in self.kinds or (kind, name) in self.objects for kind, name in subjects)


class TracePrinter:
    """Prints the entries of a trace, and on a terminal a progress bar."""

    def __init__(self, output: str, begins: int, length: int, *, chosen: TraceChoice, quiet: bool) -> None:
        self._json = output == "json"
        self._chosen = chosen
        self._quiet = quiet
        self._summary = SimulationSummary()
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
        self._summary.record(entry)
        if not self._chosen.includes(entry):
            return
        if self._json:
            if not self._quiet:
                self._write_json(entry.as_json())
        elif (text := _format_entry(entry)) is not None:
            self._count += 1
            if not self._quiet:
                self._write(printable_lines(text))

    async def progress(self, world: World) -> None:
        """Update the progress bar; the scenario calls this now and then."""
        self._reached = world.clock.now()
        if self._progress is not None:
            self._progress.update(self._bar, completed=self._reached - self._begins)

    def end(self, *, complete: bool) -> None:
        """Print the summary, and the last line: whether the trace is complete."""
        at = self._begins + self._length if complete else self._reached
        end = format_instant(at)
        changes = f"{self._count} change{'' if self._count == 1 else 's'}"
        summary = self._summary.lines(at)
        if self._json:
            self._write_json({"end": end, "complete": complete, **({"summary": summary} if self._quiet else {})})
            return
        if summary:
            self._write("\n".join(["summary", *(f"    {printable(line)}" for line in summary)]))
        if complete:
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
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Print only changes and events of this kind.")
@click.option(
    "--object", "objects", multiple=True, metavar="KIND/NAME", help="Print only changes and events of this object."
)
@click.option("-q", "--quiet", is_flag=True, help="Print only the summary.")
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
    kinds: tuple[str, ...],
    objects: tuple[str, ...],
    quiet: bool,
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
      springtide simulate manifests/ --from 2026-11-27T06:00 --object deployment/web
      springtide simulate manifests/ --for 30d --quiet

    It ends with a summary: the replicas, what the bounds of autoscalers have cut, and what has failed. --kind and
    --object, which may be repeated, choose what is printed before; the summary is always of everything.

    TIME is RFC 3339 (2026-11-27T06:00:00Z), or a local time or date (2026-11-27T06:00, 2026-11-27) of the zone that
    the manifests name, if that is one, else of --default-timezone. Ctrl-C ends it early; the trace up to then is
    complete, and its last line says so.

    Exit codes: 0 fine; 1 a manifest has errors or is refused; 2 something unreadable; 130 ended early.
    """
    sources, unread = read_sources(paths)
    begins = _begin(start, sources, default_timezone)
    if begins + length > (LAST_DAY + 1) * DAY:
        raise click.BadParameter("the simulation would end after the year 9999", param_hint="--for")
    try:
        chosen = _choose(kinds, objects)
    except ModuleNotFoundError as missing:
        raise SystemExit(show_missing_packages("simulating", missing)) from None
    printer = TracePrinter(output, begins, length, chosen=chosen, quiet=quiet)
    try:
        code = _simulate(sources, unread, printer, begins, length, seed, faults, default_timezone)
    except KeyboardInterrupt:
        printer.end(complete=False)
        code = _INTERRUPTED
    raise SystemExit(code)


def _begin(start: str | None, sources: Sequence[ManifestSource], default_zone: str) -> int:
    """Parse the time at which a simulation begins; a local one is read in the zone of the manifests."""
    if start is None or parse_offset_moment(start) is not None:
        return parse_moment(start, load_zone(default_zone), "--from")
    named = zones_named_in(sources)
    zone = load_zone(named[0] if len(named) == 1 else default_zone)
    begins = parse_moment(start, zone, "--from")
    if start != "now" and len(named) > 1:
        others = f"the manifests name {', '.join(named)}"
        note(f"{start} is read in {zone.name}, as {format_instant(begins)}: {others}")
    return begins


def _choose(kinds: Sequence[str], objects: Sequence[str]) -> TraceChoice:
    """Look up the kinds and objects to print."""
    if not kinds and not objects:
        return TraceChoice()
    from springtide.assembly.simulated_cluster import kinds_by_name

    known = kinds_by_name()

    def kind(written: str, option: str) -> str:
        found = known.get(written.lower())
        if found is None:
            guess = nearest(written, known.values())
            hint = f"; did you mean {guess}?" if guess else ""
            raise click.BadParameter(f"the simulated cluster has no kind {written!r}{hint}", param_hint=option)
        return found

    chosen: dict[tuple[str, str], None] = {}
    for written in objects:
        word, _, name = written.partition("/")
        if not word or not name:
            raise click.BadParameter(f"{written!r} is not KIND/NAME, such as deployment/web", param_hint="--object")
        chosen[kind(word, "--object"), name] = None
    return TraceChoice(frozenset(kind(word, "--kind") for word in kinds), frozenset(chosen))


def _simulate(
    sources: Sequence[ManifestSource],
    unread: Sequence[UnreadableSource],
    printer: TracePrinter,
    begins: int,
    length: int,
    seed: int,
    faults: str,
    default_zone: str,
) -> int:
    try:
        from springtide.assembly.simulated_cluster import simulated_scenario
    except ModuleNotFoundError as missing:
        return show_missing_packages("simulating", missing)
    prepared = prepare_manifests(
        sources, unread, now=begins, default_zone=default_zone, otherwise="nothing was simulated"
    )
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
