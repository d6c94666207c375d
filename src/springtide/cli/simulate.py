"""`springtide simulate`: the real controllers, on manifests, over days of virtual time."""

from __future__ import annotations

import logging
import traceback

import click

from springtide.almanac import load_zone
from springtide.almanac.civil import DAY, LAST_DAY
from springtide.apis.forecast import format_instant
from springtide.cli.arguments import SpanType, default_timezone_option, files_argument, parse_moment
from springtide.cli.preparing import prepare
from springtide.cli.screen import without_embedded
from springtide.cli.traces import Teller

_INTERRUPTED = 130


@click.command("simulate")
@files_argument
@click.option("--for", "length", type=SpanType(), default="7d", show_default=True, help="How much virtual time passes.")
@click.option("--from", "start", metavar="TIME", help="When virtual time begins; the present if not given.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="What chance is drawn from.")
@click.option(
    "--faults",
    type=click.Choice(["none", "light", "heavy"]),
    default="none",
    show_default=True,
    help="What goes wrong: requests, streams, processes, nodes. Two replicas run then, and elect a leader.",
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
    """Run the real controllers on manifests in a simulated cluster, and tell everything that changes.

    The cluster is in memory, and its time is virtual: a week takes seconds. It makes pods of workloads, places them on
    the nodes that the manifests have, and runs every controller of Springtide. What is told is when something changed,
    by whom, what, and because of what. The same seed gives the same trace.

    \b
      springtide simulate calendar.yaml --for 30d
      springtide simulate manifests/ --from 2026-12-20 --for 2w -o json | jq -c 'select(.actor != "user")'
      springtide simulate manifests/ --faults heavy --seed 7

    TIME is RFC 3339 (2026-11-27T06:00:00Z), or a local time or date (2026-11-27T06:00, 2026-11-27) of
    --default-timezone. Ctrl-C ends it early; the trace up to there is complete, and its last line says so.
    Exit codes: 0 fine; 1 a manifest has errors or is refused; 2 something unreadable; 130 ended early.
    """
    begins = parse_moment(start, load_zone(default_timezone), "--from")
    if begins + length > (LAST_DAY + 1) * DAY:
        raise click.BadParameter("the simulation would end after the year 9999", param_hint="--for")
    teller = Teller(output, begins, length)
    try:
        code = _simulate(paths, teller, begins, length, seed, faults, default_timezone)
    except KeyboardInterrupt:
        teller.end(complete=False)
        code = _INTERRUPTED
    raise SystemExit(code)


def _simulate(
    paths: tuple[str, ...], teller: Teller, begins: int, length: int, seed: int, faults: str, default_zone: str
) -> int:
    try:
        from springtide.cli.worlds import simulated
    except ModuleNotFoundError as missing:
        return without_embedded("simulating", missing)
    prepared = prepare(paths, now=begins, default_zone=default_zone, otherwise="nothing was simulated")
    if prepared.code:
        return prepared.code
    objects = [placed.value for placed in prepared.objects]
    _log_nothing()
    scenario = simulated(
        objects, start=format_instant(begins), faults=faults, default_zone=default_zone, listener=teller.tell
    )
    try:
        with teller:
            scenario.every(f"{max(60, length // 200)}s", teller.progress).run(f"{length}s", seed=seed)
    except BrokenPipeError:
        raise
    except Exception:
        traceback.print_exc()
        teller.end(complete=False)
        again = f"--from {format_instant(begins)} --for {length}s --faults {faults} --seed {seed}"
        click.echo(f"this is a bug of Springtide; the same files show it again with {again}", err=True)
        return 1
    teller.end(complete=True)
    return 0


def _log_nothing() -> None:
    """Keep quiet about what goes wrong in the simulated world: what counts is in the trace, or ends it."""
    logger = logging.getLogger("springtide")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
