"""`springtide simulate`: the real controllers, on manifests, over days of virtual time."""

from __future__ import annotations

import logging
import traceback

import click

from springtide.almanac import load_zone
from springtide.almanac.civil import DAY, LAST_DAY
from springtide.apis.fields import Context
from springtide.apis.forecast import format_instant
from springtide.cli.arguments import SpanType, default_timezone_option, files_argument, parse_moment
from springtide.cli.findings import examine
from springtide.cli.inputs import Source, read_inputs
from springtide.cli.screen import show_problem
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
        sources, unread = read_inputs(paths)
        found = examine(sources, unread, Context(now=begins, default_zone=default_timezone))
        for problem in found.problems:
            show_problem(problem, err=True)
        code = found.exit_code(strict=False)
        if code:
            click.echo("nothing was simulated: `springtide check` and `springtide convert` help to mend this", err=True)
        else:
            code = _simulate(sources, teller, begins, length, seed, faults, default_timezone)
    except KeyboardInterrupt:
        teller.end(complete=False)
        code = _INTERRUPTED
    raise SystemExit(code)


def _simulate(
    sources: list[Source], teller: Teller, begins: int, length: int, seed: int, faults: str, default_zone: str
) -> int:
    try:
        from springtide.cli.worlds import simulated
    except ModuleNotFoundError as missing:
        click.echo(f"simulating needs more packages ({missing.name}): pip install 'springtide[embedded]'", err=True)
        return 1
    objects = _staged(sources, begins)
    if objects is None:
        return 1
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


def _staged(sources: list[Source], now: int) -> list[dict[str, object]] | None:
    """Give the objects for the cluster in order, with notes about those that do nothing; None if one is refused."""
    from springtide.cli.staging import stage
    from springtide.cli.worlds import without_actor
    from springtide.simulator.newcomers import refusals

    staging = stage(sources)
    for placed in staging.unknown:
        api_version, _ = placed.kind
        _note(f"{placed.file}:{placed.line}: {placed.told} ({api_version}): the cluster has no such kind, skipped")
    refused = refusals([placed.value for placed in staging.objects], now)
    for value, answer in refused:
        placed = next(placed for placed in staging.objects if placed.value is value)
        severity = click.style("error", fg="red", bold=True)
        click.echo(f"{placed.file}:{placed.line}: {severity}: {answer.message}", err=True)
    if refused:
        click.echo("nothing was simulated: the API server refuses what is told above", err=True)
        return None
    if idle := without_actor(placed.kind[1] for placed in staging.objects):
        _note(f"nothing acts on {', '.join(idle)} yet: such objects are stored, judged and left alone")
    if any(placed.kind[1] == "HorizontalPodAutoscaler" for placed in staging.objects):
        _note("nothing is measured in a simulation: a HorizontalPodAutoscaler finds no metrics")
    return [placed.value for placed in staging.objects]


def _note(text: str) -> None:
    click.echo(click.style(f"note: {text}", dim=True), err=True)


def _log_nothing() -> None:
    """Keep quiet about what goes wrong in the simulated world: what counts is in the trace, or ends it."""
    logger = logging.getLogger("springtide")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
