"""`springtide check`: every problem of manifests or of a cluster's objects, with its place and its fix."""

from __future__ import annotations

import click
import msgspec

from springtide.assembly.manifests import CheckedManifests, ClusterChoice
from springtide.cli.console import as_data, note, show_problem
from springtide.cli.options import cluster_options, default_timezone_option, sources_argument
from springtide.cli.pictures.formatting import printable
from springtide.cli.sources import note_missing_effects, read_and_check


@click.command("check")
@sources_argument
@cluster_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    show_default=True,
    help="json is for scripts, github for annotations in a pull request.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings too.")
@default_timezone_option
def command(names: tuple[str, ...], cluster: ClusterChoice, output: str, strict: bool, default_timezone: str) -> None:
    """Find every problem of manifests, or of a cluster's objects, each with its place and its fix.

    \b
      springtide check manifests/                          files, folders, or - for standard input
      springtide check -n shop                             all of Springtide's objects of a namespace
      springtide check -A                                  all that there are, Calendars and NodePools too
      springtide check -n shop cronfhpa metricsproducer/peak --context production

    Reads YAML or JSON with any number of documents. References between objects are checked as well, so name all
    files of an application at once. Kinds that Springtide does not know are skipped with a note. Another note says on
    which kinds no controller acts yet.

    With --cluster, -n, -A, --context or --kubeconfig arguments name objects of a cluster, as kubectl does: KIND/NAME,
    or KIND for all of them. Files and a cluster do not mix. What the objects refer to is looked up there. A problem's
    "file" is then cluster:NAMESPACE/KIND/NAME, and it has no line.

    Colours are off where there is no terminal, and with NO_COLOR.

    \b
    Exit codes: 0 no errors; 1 errors (with --strict: warnings too); 2 something could not be read.
    """
    found = read_and_check(names, cluster, at=None, default_zone=default_timezone).manifests
    match output:
        case "json":
            _show_json(found)
        case "github":
            _show_github(found)
        case _:
            _show_text(found)
    note_missing_effects(found)
    raise SystemExit(found.exit_code(strict=strict))


def _show_json(found: CheckedManifests) -> None:
    click.echo(as_data({"problems": list(msgspec.to_builtins(found.problems))}, "json"), nl=False)


def _show_text(found: CheckedManifests) -> None:
    for problem in found.problems:
        show_problem(problem)
    for text in found.skipped:
        note(text)
    click.echo(_summary(found), err=True)


def _summary(found: CheckedManifests) -> str:
    objects = _count(len(found.manifests), "object")
    if not found.problems:
        return click.style(f"{objects} checked, no problems.", fg="green")
    return f"{objects} checked: {_count(found.errors, 'error')}, {_count(found.warnings, 'warning')}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _show_github(found: CheckedManifests) -> None:
    """Print workflow commands, which GitHub shows beside the lines of a pull request."""
    for problem in found.problems:
        properties = {
            "file": problem.file,
            "line": problem.line,
            "col": problem.column,
            "title": problem.path,
        }
        listed = ",".join(f"{key}={_escaped(str(value), property_=True)}" for key, value in properties.items() if value)
        text = problem.message + (f" ({problem.hint})" if problem.hint else "")
        click.echo(f"::{problem.severity} {listed}::{_escaped(text)}")


def _escaped(text: str, *, property_: bool = False) -> str:
    text = printable(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))
    return text.replace(":", "%3A").replace(",", "%2C") if property_ else text
