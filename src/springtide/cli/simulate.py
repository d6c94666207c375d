"""`springtide simulate`: the real controllers, on manifests, over days of virtual time."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import click

from springtide.almanac import load_zone
from springtide.apis.canonical import canonical_text
from springtide.apis.fields import Context
from springtide.apis.forecast import format_instant
from springtide.apis.objects import members_of
from springtide.apis.yaml import Document, read
from springtide.cli.arguments import SpanType, default_timezone_option, files_argument, parse_moment
from springtide.cli.findings import examine
from springtide.cli.inputs import Source, read_inputs
from springtide.cli.screen import show_problem

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
      springtide simulate manifests/ --from 2026-12-20 --for 2w -o json | jq -c 'select(.actor == "user" | not)'
      springtide simulate manifests/ --faults heavy --seed 7

    TIME is RFC 3339 (2026-11-27T06:00:00Z), or a local time or date (2026-11-27T06:00, 2026-11-27) of
    --default-timezone. Ctrl-C ends it early; the trace up to there is complete, and its last line says so.
    Exit codes: 0 fine; 1 a manifest has errors or is refused; 2 something unreadable; 130 ended early.
    """
    begins = parse_moment(start, load_zone(default_timezone), "--from")
    sources, unread = read_inputs(paths)
    found = examine(sources, unread, Context(now=begins, default_zone=default_timezone))
    for problem in found.problems:
        show_problem(problem, err=True)
    if found.exit_code(strict=False):
        click.echo("nothing was simulated: `springtide check` and `springtide convert` help to mend this", err=True)
        raise SystemExit(found.exit_code(strict=False))
    raise SystemExit(_simulate(list(_objects(sources)), begins, length, seed, faults, output))


def _objects(sources: list[Source]) -> Iterator[dict[str, Any]]:
    """Give what the manifests mean, as a cluster would get it."""
    for source in sources:
        for document in read(canonical_text(source.text).text):
            if isinstance(document, Document) and document.value is not None:
                yield from (value for _, value in members_of(document.value))


def _log_bugs_only() -> None:
    """Keep quiet about what goes wrong in the simulated world; a failure of our own code has a stack to show."""
    handler = logging.StreamHandler()
    handler.addFilter(lambda record: record.exc_info is not None)
    logger = logging.getLogger("springtide")
    logger.handlers[:] = [handler]
    logger.propagate = False


def _simulate(objects: list[dict[str, Any]], begins: int, length: int, seed: int, faults: str, output: str) -> int:
    try:
        from springtide.cli.worlds import simulated
    except ModuleNotFoundError as missing:
        click.echo(f"simulating needs more packages ({missing.name}): pip install 'springtide[embedded]'", err=True)
        return 1
    from springtide.cli.traces import Teller
    from springtide.cluster.errors import ApiError

    _log_bugs_only()
    teller = Teller(output, begins, length)
    scenario = simulated(objects, start=format_instant(begins), faults=faults, listener=teller.tell)
    scenario = scenario.every(f"{max(60, length // 200)}s", teller.progress)
    complete = False
    try:
        with teller:
            scenario.run(f"{length}s", seed=seed)
            complete = True
    except KeyboardInterrupt:
        pass
    except ApiError as refused:
        click.echo(f"error: {refused.message}", err=True)
        return 1
    teller.end(complete=complete)
    return 0 if complete else _INTERRUPTED
