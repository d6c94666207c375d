"""`springtide explain-budget`: how many nodes may be disrupted, by reason, and why."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator
from typing import Any

import click

from springtide.almanac import load_zone
from springtide.apis.forecast import format_instant
from springtide.apis.karpenter.budgets import AccountingEquation, BudgetDefault, DisruptionReason, parse_reason
from springtide.apis.karpenter.explain import DisruptionExplanation, ReasonExplanation, explain_disruption
from springtide.apis.karpenter.forecast import pool_budgets
from springtide.apis.kinds import ValidationContext
from springtide.apis.objects import calendars_in
from springtide.assembly.manifests import check_sources, read_sources
from springtide.cli.console import as_data, show_problem
from springtide.cli.options import default_timezone_option, files_argument, parse_moment
from springtide.cli.pictures.formatting import printable


class DisruptingType(click.ParamType[dict[DisruptionReason, int]]):
    """Numbers of nodes that are being disrupted, by reason: ``drifted=3,empty=2``."""

    name = "reason=n,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[DisruptionReason, int]:
        """Parse the counts; a reason can have any of its aliases."""
        if isinstance(value, dict):
            return value
        counts: dict[DisruptionReason, int] = {}
        for part in filter(None, (part.strip() for part in value.split(","))):
            name, _, number = part.partition("=")
            reason = parse_reason(name.strip())
            if reason is None:
                listed = ", ".join(reason.value for reason in DisruptionReason)
                self.fail(f"{name.strip()!r} is not a reason; there are {listed}", param, ctx)
            if not re.fullmatch(r"\d{1,10}", number.strip(), re.ASCII):
                self.fail(f"{part!r} is not reason=number, such as drifted=3", param, ctx)
            counts[reason] = counts.get(reason, 0) + int(number)
        return counts


@click.command("explain-budget")
@files_argument
@click.option("--at", "moment", metavar="TIME", help="The time to explain; the present if not given.")
@click.option("--nodes", type=click.IntRange(min=0), required=True, metavar="N", help="Nodes that the pool has.")
@click.option("--disrupting", type=DisruptingType(), default="", help="Nodes that are being disrupted already.")
@click.option(
    "--unhealthy", type=click.IntRange(min=0), default=0, metavar="K", help="Nodes that are not ready, besides those."
)
@click.option(
    "--reading",
    type=click.Choice(["fallback", "floor"], case_sensitive=False),
    help="Budgets without reasons apply to every reason (floor), or to those that no active budget names (fallback).",
)
@click.option(
    "--equation", type=click.Choice(["1", "2"]), help="Whether disrupted nodes count per reason (1) or in total (2)."
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="The output format.",
)
@default_timezone_option
def command(
    paths: tuple[str, ...],
    moment: str | None,
    nodes: int,
    disrupting: dict[DisruptionReason, int],
    unhealthy: int,
    reading: str | None,
    equation: str | None,
    output: str,
    default_timezone: str,
) -> None:
    """Say how many nodes of a NodePool may be disrupted, by reason, and why.

    \b
      springtide explain-budget pool.yaml --nodes 100 --disrupting drifted=3,empty=2
      springtide explain-budget pool.yaml --nodes 40 --at 2026-12-24T09:00 --default-timezone Europe/Berlin

    Reasons are Empty, Drifted, Underutilized, Unhealthy and Expired, in any case; Unhealthy is shown for pools with
    `repair`, and where a budget names it. TIME is RFC 3339 (2026-11-27T06:00:00Z), or a local time or date of
    --default-timezone (2026-11-27T06:00, 2026-11-27). A budget with errors blocks the reasons that it names, as it
    would in a cluster.

    \b
    Exit codes: 0 no errors; 1 errors in the files; 2 something could not be read, or there is no NodePool.
    """
    at = parse_moment(moment, load_zone(default_timezone), "--at")
    found = check_sources(*read_sources(paths), ValidationContext(now=at, default_zone=default_timezone))
    calendars = calendars_in(manifest.object for manifest in found.manifests)
    explained = [
        (
            manifest.object.name,
            explain_disruption(
                pool_budgets(manifest.object.value, default_zone=default_timezone, calendars=calendars),
                at=at,
                nodes=nodes,
                disrupting=disrupting,
                unhealthy=unhealthy,
                reading=BudgetDefault(reading.capitalize()) if reading else None,
                equation=AccountingEquation(int(equation)) if equation else None,
            ),
        )
        for manifest in found.manifests
        if manifest.object.kind.kind == "NodePool"
    ]
    if output == "text":
        _show(explained, at)
    else:
        pools = [explanation.document(name) for name, explanation in explained]
        click.echo(as_data({"pools": pools}, output), nl=False)
    for problem in found.problems:
        show_problem(problem, err=True)
    if not explained:
        click.echo("there is no NodePool in these files", err=True)
    raise SystemExit(found.exit_code(strict=False) or (0 if explained else 2))


def _show(explained: list[tuple[str, DisruptionExplanation]], at: int) -> None:
    width = shutil.get_terminal_size().columns
    for name, explanation in explained:
        click.echo("\n".join(_table(name, explanation, at, width)) + "\n")


def _table(name: str, explanation: DisruptionExplanation, at: int, width: int) -> Iterator[str]:
    """Write the numbers as a table, and the reasons for them as sentences below, wrapped to a width."""
    floor = explanation.reading is BudgetDefault.FLOOR
    applies = "every reason" if floor else "reasons that no active budget names"
    total = explanation.equation is AccountingEquation.TOTAL
    counted = "all disrupted nodes count" if total else "disrupted nodes count by reason"
    yield click.style(printable(f"NodePool/{name}"), bold=True) + f"  {explanation.nodes} nodes at {format_instant(at)}"
    yield from _wrapped(f"budgets without reasons apply to {applies}; {counted}", width)
    yield ""
    rows = [_HEADINGS, *(_row(reason, found) for reason, found in explanation.reasons.items())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(width) if column in _TEXT_COLUMNS else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        line = "  " + "  ".join(cells).rstrip()
        yield click.style(line, dim=True) if number == 0 else line
    yield ""
    for reason, found in explanation.reasons.items():
        yield from _wrapped(printable(f"  {reason.value}: {found.because}."), width, hang="    ")


def _wrapped(text: str, width: int, hang: str = "") -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)


_HEADINGS = ("REASON", "LIMIT", "CONSUMING", "ALLOWED", "BUDGET", "NEXT LIMIT")
_TEXT_COLUMNS = (0, 5)


def _row(reason: DisruptionReason, found: ReasonExplanation) -> tuple[str, ...]:
    written = found.document()
    following = written["next"]
    return (
        reason.value,
        str(written["limit"]),
        str(found.consuming),
        str(found.allowed),
        "-" if found.budget is None else str(found.budget),
        f"{following['limit']} at {following['at']}" if following else "-",
    )
