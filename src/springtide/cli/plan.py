"""`springtide plan`: which nodes to add for the pods that are pending, at what cost, and why some cannot be placed."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from springtide.apis.kinds import ValidationContext
from springtide.assembly.manifests import ClusterChoice, LocatedProblem, read_sources
from springtide.cli.console import (
    as_data,
    data_pieces,
    note,
    show_failure,
    show_problem,
    supports_colour,
    supports_unicode,
)
from springtide.cli.options import cluster_options
from springtide.packing.catalogue import InstanceType, TypesError, built_in, read_types, types_document

if TYPE_CHECKING:
    from springtide.assembly.planning import PlanningInput
    from springtide.assembly.planning_objects import Collected
    from springtide.cli.plan_result import PlanResult

_STRATEGIES = ("least-cost", "least-waste", "least-nodes", "most-pods", "priority")


class _StrategyType(click.Choice[str]):
    """The name of a strategy; `price` is what Cluster Autoscaler calls least-cost."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept the other name as well."""
        return super().convert("least-cost" if value == "price" else value, param, ctx)


@click.command("plan")
@click.argument("names", nargs=-1, metavar="[FILE|DIR|-]...")
@click.option(
    "-f", "--filename", "files", multiple=True, metavar="FILE", help="A file, a folder or -; the same as an argument."
)
@cluster_options
@click.option(
    "--types",
    "types_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Instance types with their offerings and prices; without it the built-in catalogue.",
)
@click.option("--print-types", is_flag=True, help="Write the built-in catalogue as YAML, to start a file from.")
@click.option(
    "--strategy",
    type=_StrategyType(_STRATEGIES),
    default="least-cost",
    show_default=True,
    help="What the best plan is.",
)
@click.option(
    "--preferences",
    type=click.Choice(["respect", "required"]),
    default="respect",
    show_default=True,
    help="Whether what pods prefer decides between nodes only, or adds nodes as well.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 for pods that cannot be placed too.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml", "svg", "html"]),
    default="text",
    show_default=True,
    help="json and yaml are for scripts, svg and html for documents.",
)
@click.option("--title", metavar="TEXT", help="The heading of a picture.")
def command(
    names: tuple[str, ...],
    files: tuple[str, ...],
    cluster: ClusterChoice,
    types_file: Path | None,
    print_types: bool,
    strategy: str,
    preferences: str,
    strict: bool,
    output: str,
    title: str | None,
) -> None:
    """Show which nodes the pending pods need, what they cost, and why some pods cannot be placed.

    \b
      springtide plan -f pods.yaml -f pools.yaml            nodes, pods and pools from manifests
      kubectl get pods,nodes,nodepools -A -o json | springtide plan -
      springtide plan --context production                  what a cluster needs now
      springtide plan --context production -f new.yaml      and what it would need with these objects
      springtide plan -f shop/ --types machines.yaml -o html > plan.html

    Reads pods, nodes, NodePools, NodeClaims, DaemonSets, volumes and what else decides where pods can run; lists and
    the output of `kubectl get -o json` too. Pods that a workload wants and that are not in the input count as pending.
    Nothing is changed: a plan only says what would be added. With -n only pending pods of that namespace are planned
    for, else those of all; other pods keep their room.

    Strategies: least-cost (`price` of Cluster Autoscaler); least-waste, the smallest machines whatever they cost;
    least-nodes; most-pods, pools that can run more of the pods first; priority, one pool after the other by weight.
    All of them are compared, and one is shown. Every cost is of new nodes. The scheduler does not know the plan, so
    the cost after rollouts, with its own scoring, is shown as well.

    \b
    Exit codes: 0 no errors, also if pods cannot be placed (with --strict: 1); 1 errors in the input, or there is no
    NodePool; 2 something could not be read.
    """
    if print_types:
        for document in types_document(built_in()):
            click.echo(as_data([document], "yaml"), nl=False)
        return
    if title is not None and output in ("json", "yaml", "text"):
        raise click.UsageError(f"-o {output} has no title: --title is for pictures")
    paths = (*files, *names)
    if not paths and not cluster.requested:
        raise click.UsageError("name files or folders with -f, or read a cluster with --cluster or --context")
    # Imported late, as all of the packer: --help needs none of it.
    from springtide.assembly.planning import PlanningOptions, assemble
    from springtide.cli.plan_result import make_plan

    progress = _Progress()
    types = built_in() if types_file is None else _read_types(types_file)
    found = _collect(paths, cluster, progress)
    options = PlanningOptions(
        namespace=cluster.namespace or "",
        foreign_types=types_file is not None,
        required_preferences=preferences == "required",
    )
    given = assemble(found, options)
    code = 2 if given.unreadable else 1 if given.errors else 0
    refusal = _refusal(given, from_files=not cluster.requested)
    if refusal and not given.unreadable:
        progress.clear()
        _report(given)
        show_failure(refusal[0])
        click.echo("    " + click.style(f"{'→' if supports_unicode() else '->'} {refusal[1]}", dim=True), err=True)
        raise SystemExit(max(code, 1))
    if refusal:
        progress.clear()
        _report(given)
        raise SystemExit(code)
    result = make_plan(given, types, strategy, progress)
    relaxed = frozenset(key for each in result.unplaced for key in each.pods)
    if options.required_preferences and relaxed:
        # What cannot be had is not required: those pods are planned for with their preferences as they are.
        given = assemble(found, replace(options, relaxed=relaxed))
        result = make_plan(given, types, strategy, progress)
    progress.clear()
    for piece in _written(result, output, title):
        click.echo(piece, nl=False)
    _report(given)
    for text in result.notes:
        note(text)
    raise SystemExit(code or (1 if strict and result.unplaced else 0))


def _refusal(given: PlanningInput, *, from_files: bool) -> tuple[str, str] | None:
    """Return why there can be no plan, and what to do about it."""
    where = "in these files" if from_files else "in the cluster"
    if not given.pods and from_files:
        hint = (
            "`kubectl get pods,nodes,nodepools -A -o json` writes what is needed; Deployments and Jobs will do as well"
        )
        return f"there are no pods and no workloads {where}", hint
    if not given.pools:
        what = "no NodePool to which nodes could be added" if given.static_pools else "no NodePool"
        hint = "add one with -f, such as examples/plan/pools.yaml: a plan adds nodes to pools"
        return f"there is {what} {where}", hint
    return None


class _Progress:
    """A line on a terminal that says what is being done, once that takes longer than a moment."""

    _PATIENCE = 0.5

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._began = self._drawn = time.monotonic()
        self._length = 0

    def __call__(self, text: str) -> None:
        """Show a text instead of the last one."""
        now = time.monotonic()
        if not self._shown or now - self._began < self._PATIENCE or now - self._drawn < 0.05:
            return
        self._drawn = now
        text = text[: shutil.get_terminal_size().columns - 1]
        click.echo("\r" + text.ljust(self._length), nl=False, err=True)
        self._length = len(text)

    def clear(self) -> None:
        """Remove the line."""
        if self._length:
            click.echo("\r" + " " * self._length + "\r", nl=False, err=True)
            self._length = 0


def _read_types(path: Path) -> tuple[InstanceType, ...]:
    """Read instance types; ends the command if they cannot be used."""
    name = "<stdin>" if str(path) == "-" else str(path)
    sources, unread = read_sources((str(path),))
    if unread or not sources:
        show_failure(f"{name}: {unread[0].message if unread else 'there is nothing to read'}")
        raise SystemExit(2)
    try:
        return read_types(sources[0].text, name=name)
    except TypesError as failure:
        from springtide.apis.problems import format_path

        for problem, place in failure.problems:
            located = LocatedProblem(
                file=name,
                line=place.line,
                column=place.column,
                path=format_path(problem.path),
                message=problem.message,
                hint=problem.hint,
                severity=problem.severity,
            )
            show_problem(located, err=True)
        raise SystemExit(2 if failure.unreadable else 1) from None


def _collect(paths: tuple[str, ...], cluster: ClusterChoice, progress: Callable[[str], None]) -> Collected:
    from springtide.assembly.planning_objects import Collected, collect_cluster, collect_files

    found = Collected()
    if cluster.requested:
        collect_cluster(cluster, found, progress)
    if paths:
        sources, unread = read_sources(paths)
        collect_files(sources, unread, found, ValidationContext(now=int(time.time())), progress)
    progress("building the snapshot")
    return found


def _report(given: PlanningInput) -> None:
    for problem in given.problems:
        show_problem(problem, err=True)
    for text in given.notes:
        note(text)


def _written(result: PlanResult, output: str, title: str | None) -> Iterator[str]:
    from springtide.cli.plan_result import plan_document, plan_picture

    if output in ("json", "yaml"):
        return data_pieces(plan_document(result), output)
    picture = plan_picture(result)
    if output == "svg":
        from springtide.cli.pictures.nodes_svg import render_plan_svg

        return iter([render_plan_svg(picture, title=title)])
    if output == "html":
        from springtide.cli.pictures.nodes_html import render_plan_html

        return iter([render_plan_html(picture, title=title)])
    from springtide.cli.pictures.nodes_terminal import render_plan

    width = min(shutil.get_terminal_size().columns, 200)
    return iter([render_plan(picture, width=width, colour=supports_colour(), unicode=supports_unicode())])
