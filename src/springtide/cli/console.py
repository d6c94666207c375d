"""What commands have in common: output of data, problems and notes, and the options about logging."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from itertools import groupby, islice
from typing import Any

import click
import msgspec

from springtide.apis.redaction import redacted
from springtide.apis.yaml import dump
from springtide.apis.yaml.dump import streamed_lines
from springtide.assembly.manifests import LocatedProblem
from springtide.cli.pictures.formatting import printable

_COLOURS = {"error": "red", "warning": "yellow"}


_ESCAPED_IN_JSON = re.compile(b"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]")


def printable_lines(text: str) -> str:
    """Make a text of several lines safe for a terminal."""
    return "\n".join(map(printable, text.split("\n")))


def visible_json(written: bytes) -> str:
    """Escape what a terminal would execute and JSON allows in strings: the value stays the same."""
    return _ESCAPED_IN_JSON.sub(lambda found: f"\\u{ord(found[0].decode()):04x}".encode(), written).decode()


def as_data(value: Any, output: str) -> str:
    """Write data for scripts, as JSON or YAML, with a newline at the end."""
    if output == "yaml":
        return dump(value)
    return visible_json(_json(value)) + "\n"


_BATCH = 500


def data_pieces(value: dict[str, Any], output: str) -> Iterator[str]:
    """Write data for scripts in pieces, as `as_data` does; iterators stand for lists and are read as they are written.

    Iterators are values of mappings, and their items are mappings.
    """
    if output == "yaml":
        lines = streamed_lines(value)
        while batch := list(islice(lines, _BATCH)):
            yield "\n".join([*batch, ""])
        return
    yield from map(visible_json, _json_pieces(value, b"\n"))
    yield "\n"


def _json_pieces(value: dict[str, Any], newline: bytes) -> Iterator[bytes]:
    """Write a mapping in pieces; `newline` is a line break with the indentation of the mapping."""
    before = b"{"
    for key, item in value.items():
        yield before + newline + b"  " + msgspec.json.encode(key) + b": "
        before = b","
        if isinstance(item, Iterator):
            yield from _json_items(item, newline + b"  ")
        else:
            yield _json(item).replace(b"\n", newline + b"  ")
    yield newline + b"}" if value else b"{}"


def _json_items(items: Iterator[dict[str, Any]], newline: bytes) -> Iterator[bytes]:
    """Write the items of a list; those without iterators in batches, which is faster."""
    before = b"["
    for nested, run in groupby(items, key=_has_iterators):
        while batch := list(islice(run, 1 if nested else _BATCH)):
            if nested:
                yield before + newline + b"  "
                yield from _json_pieces(batch[0], newline + b"  ")
            else:
                yield before + _json(batch)[1:-2].replace(b"\n", newline)
            before = b","
    yield b"[]" if before == b"[" else newline + b"]"


def _has_iterators(item: dict[str, Any]) -> bool:
    return any(isinstance(part, Iterator) for part in item.values())


def _json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2)


def show_problem(problem: LocatedProblem, *, err: bool = False) -> None:
    """Print a problem in the format of compilers, which editors can follow, and its hint on the next line."""
    place = ":".join(str(part) for part in (problem.file, problem.line, problem.column) if part is not None)
    severity = click.style(problem.severity, fg=_COLOURS[problem.severity], bold=True)
    # Without a line, the place already names the object.
    named = problem.kind and problem.name and problem.line is not None
    subject = f"{problem.kind}/{problem.name} " if named else ""
    field = click.style(printable(problem.path), bold=True) + ": " if problem.path else ""
    click.echo(
        f"{printable(place)}: {severity}: {printable(subject)}{field}{printable(redacted(problem.message))}", err=err
    )
    if problem.hint:
        hint = f"{'→' if supports_unicode() else '->'} {printable(redacted(problem.hint))}"
        click.echo("    " + click.style(hint, dim=True), err=err)


def note(text: str) -> None:
    """Print a note, which is no problem, on standard error."""
    click.echo(click.style(f"note: {printable(redacted(text))}", dim=True), err=True)


def show_failure(message: str) -> int:
    """Print why the command cannot continue; returns the exit code."""
    click.echo(f"{click.style('error', fg='red', bold=True)}: {printable_lines(redacted(message))}", err=True)
    return 1


def show_missing_packages(doing: str, missing: ModuleNotFoundError) -> int:
    """Say how to install the packages of an embedded cluster; returns the exit code."""
    install = "pip install './springtide[embedded]', in the folder with the clone"
    click.echo(f"{doing} needs more packages ({missing.name}): {install}", err=True)
    return 1


def supports_colour() -> bool:
    """Return whether standard output is a terminal with colours, and the user wants them."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def supports_unicode() -> bool:
    """Return whether the encoding of standard output is UTF-8."""
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"


_LOG_LEVELS = ["debug", "info", "warning", "error"]


def logging_options(*, level: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add ``--log-format`` and ``--log-level``; `level` is its default."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option(
            "--log-level",
            type=click.Choice(_LOG_LEVELS),
            default=level,
            show_default=True,
            help="The lowest level that is logged.",
        )(command)
        return click.option(
            "--log-format",
            type=click.Choice(["auto", "text", "json"]),
            default="auto",
            show_default=True,
            help="auto: text in a terminal, JSON lines everywhere else.",
        )(command)

    return add
