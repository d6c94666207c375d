"""`springtide explain-budget`: how many nodes may be disrupted, by reason, and why."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from springtide.almanac import load_zone
from springtide.apis.forecast import format_instant
from springtide.apis.karpenter.budgets import AccountingEquation, BudgetDefault, DisruptionReason, parse_reason
from springtide.apis.karpenter.explain import DisruptionExplanation, ReasonExplanation, explain_disruption
from springtide.apis.karpenter.forecast import pool_budgets
from springtide.apis.karpenter.pool_nodes import PoolNodes
from springtide.apis.objects import LoadedObject, calendars_in
from springtide.assembly.manifests import ClusterChoice
from springtide.cli.console import as_data, note, show_failure, show_problem
from springtide.cli.options import cluster_options, default_timezone_option, parse_optional_moment, sources_argument
from springtide.cli.pictures.formatting import printable
from springtide.cli.sources import read_and_check


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
@sources_argument
@cluster_options
@click.option("--at", "moment", metavar="TIME", help="The time to explain; the present if not given.")
@click.option(
    "--nodes",
    type=click.IntRange(min=0),
    metavar="N",
    help="Nodes that the pool has; those of a cluster are counted if this is not given.",
)
@click.option("--disrupting", type=DisruptingType(), help="Nodes that are being disrupted already.")
@click.option("--unhealthy", type=click.IntRange(min=0), metavar="K", help="Nodes that are not ready, besides those.")
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
    names: tuple[str, ...],
    cluster: ClusterChoice,
    moment: str | None,
    nodes: int | None,
    disrupting: dict[DisruptionReason, int] | None,
    unhealthy: int | None,
    reading: str | None,
    equation: str | None,
    output: str,
    default_timezone: str,
) -> None:
    """Say how many nodes of a NodePool may be disrupted, by reason, and why.

    \b
      springtide explain-budget pool.yaml --nodes 100 --disrupting drifted=3,empty=2
      springtide explain-budget pool.yaml --nodes 40 --at 2026-12-24T09:00 --default-timezone Europe/Berlin
      springtide explain-budget nodepool/spot --context production
      springtide explain-budget --cluster                       all NodePools, with the nodes that they have

    Reasons are Empty, Drifted, Underutilized, Unhealthy and Expired, in any case; Unhealthy is shown for pools with
    `repair`, and where a budget names it. TIME is RFC 3339 (2026-11-27T06:00:00Z), or a local time or date of
    --default-timezone (2026-11-27T06:00, 2026-11-27). A budget with errors blocks the reasons that it names, as it
    would in a cluster.

    With --cluster, --context or --kubeconfig arguments name NodePools of a cluster, and their nodes are counted there:
    those that are initialized and belong to a NodeClaim of the pool. The ones that are being deleted or have the taint
    karpenter.sh/disrupted are disrupting, for the reason in the condition DisruptionReason of their NodeClaim (Expired
    without one); of the others, those that are not ready are unhealthy. --disrupting and --unhealthy take precedence;
    with --nodes, nothing is counted.

    \b
    Exit codes: 0 no errors; 1 errors in the objects; 2 something could not be read, or there is no NodePool.
    """
    if nodes is None and not cluster.requested:
        msg = "--nodes is missing: in files there are none to count; --cluster counts those of a pool in a cluster"
        raise click.UsageError(msg)
    given = parse_optional_moment(moment, load_zone(default_timezone), "--at")
    checked = read_and_check(
        names or (("nodepool",) if cluster.requested else ()),
        cluster,
        at=given,
        default_zone=default_timezone,
    )
    found, at = checked.manifests, checked.present if given is None else given
    calendars = calendars_in(found.objects)
    pools = [manifest.object for manifest in found.manifests if manifest.object.kind.kind == "NodePool"]
    counted = _count_nodes(pools, cluster) if nodes is None and pools else {}
    explained = []
    for pool in pools:
        there = counted.get(pool.name, PoolNodes())
        explanation = explain_disruption(
            pool_budgets(pool.value, default_zone=default_timezone, calendars=calendars),
            at=at,
            nodes=there.nodes if nodes is None else nodes,
            disrupting=there.disrupting if disrupting is None else disrupting,
            unhealthy=there.unhealthy if unhealthy is None else unhealthy,
            reading=BudgetDefault(reading.capitalize()) if reading else None,
            equation=AccountingEquation(int(equation)) if equation else None,
        )
        explained.append((pool.name, explanation))
    if output == "text":
        _show(explained, at)
    else:
        documents = [explanation.document(name) for name, explanation in explained]
        click.echo(as_data({"pools": documents}, output), nl=False)
    for problem in found.problems:
        show_problem(problem, err=True)
    if not explained and not found.problems:
        where = "here" if cluster.requested else "in these files"
        click.echo(f"there is no NodePool {where}", err=True)
    raise SystemExit(found.exit_code(strict=False) or (0 if explained else 2))


def _count_nodes(pools: Sequence[LoadedObject], cluster: ClusterChoice) -> Mapping[str, PoolNodes]:
    """Count the nodes of pools in a cluster; ends the command where they cannot be read."""
    # Imported late: explaining files needs no HTTP client.
    from springtide.assembly.cluster_reader import read_pool_nodes

    read = read_pool_nodes([pool.name for pool in pools], cluster)
    for text in read.notes:
        note(text)
    if read.refusal:
        show_failure(f"{read.refusal}; --nodes says how many there are")
        raise SystemExit(2)
    return read.pools


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
