"""What all commands share about showing things: data for scripts, problems for people, what a screen can do."""

from __future__ import annotations

import os
import sys
from typing import Any

import click
import msgspec

from springtide.apis.yaml import dump
from springtide.cli.findings import Finding

_COLOURS = {"error": "red", "warning": "yellow"}


def as_data(value: Any, output: str) -> str:
    """Write data for scripts, as JSON or YAML, with a newline at the end."""
    if output == "yaml":
        return dump(value)
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def show_problem(problem: Finding, *, err: bool = False) -> None:
    """Print a problem as compilers do, so that editors can jump to it, and its fix below."""
    place = ":".join(str(part) for part in (problem.file, problem.line, problem.column) if part is not None)
    severity = click.style(problem.severity, fg=_COLOURS[problem.severity], bold=True)
    # Where there is no line, the place names the object itself.
    named = problem.kind and problem.name and problem.line is not None
    subject = f"{problem.kind}/{problem.name} " if named else ""
    field = click.style(problem.path, bold=True) + " " if problem.path else ""
    click.echo(f"{place}: {severity}: {subject}{field}{problem.message}", err=err)
    if problem.hint:
        click.echo("    " + click.style(f"{'→' if speaks_unicode() else '->'} {problem.hint}", dim=True), err=err)


def note(text: str) -> None:
    """Tell something that is good to know and no problem."""
    click.echo(click.style(f"note: {text}", dim=True), err=True)


def without_embedded(doing: str, missing: ModuleNotFoundError) -> int:
    """Tell how to get what an embedded cluster needs; gives the exit code."""
    click.echo(f"{doing} needs more packages ({missing.name}): pip install 'springtide[embedded]'", err=True)
    return 1


def wants_colour() -> bool:
    """Tell whether standard output shows colours and its reader wants them."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def speaks_unicode() -> bool:
    """Tell whether standard output can show more than ASCII."""
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"
