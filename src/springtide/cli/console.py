"""What all commands share about showing things: data for scripts, problems for people, what a screen can do.

The options of long-lived commands about what they log, and how.

Runs a long-lived command until somebody ends it: Ctrl-C or SIGTERM asks for an orderly end, a second one insists.

To close the terminal is to ask as well, unless the command was started so that it survives that (`nohup`).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click
import msgspec

from springtide.apis.yaml import dump
from springtide.assembly.manifests import LocatedProblem
from springtide.cluster.compute import tune_gc

_COLOURS = {"error": "red", "warning": "yellow"}


def as_data(value: Any, output: str) -> str:
    """Write data for scripts, as JSON or YAML, with a newline at the end."""
    if output == "yaml":
        return dump(value)
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def show_problem(problem: LocatedProblem, *, err: bool = False) -> None:
    """Print a problem as compilers do, so that editors can jump to it, and its fix below."""
    place = ":".join(str(part) for part in (problem.file, problem.line, problem.column) if part is not None)
    severity = click.style(problem.severity, fg=_COLOURS[problem.severity], bold=True)
    # Where there is no line, the place names the object itself.
    named = problem.kind and problem.name and problem.line is not None
    subject = f"{problem.kind}/{problem.name} " if named else ""
    field = click.style(problem.path, bold=True) + " " if problem.path else ""
    click.echo(f"{place}: {severity}: {subject}{field}{problem.message}", err=err)
    if problem.hint:
        click.echo("    " + click.style(f"{'→' if supports_unicode() else '->'} {problem.hint}", dim=True), err=err)


def note(text: str) -> None:
    """Tell something that is good to know and no problem."""
    click.echo(click.style(f"note: {text}", dim=True), err=True)


def show_missing_packages(doing: str, missing: ModuleNotFoundError) -> int:
    """Tell how to get what an embedded cluster needs; gives the exit code."""
    click.echo(f"{doing} needs more packages ({missing.name}): pip install 'springtide[embedded]'", err=True)
    return 1


def supports_colour() -> bool:
    """Tell whether standard output shows colours and its reader wants them."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def supports_unicode() -> bool:
    """Tell whether standard output can show more than ASCII."""
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"


_LEVELS = ["debug", "info", "warning", "error"]


def logging_options(*, level: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add ``--log-format`` and ``--log-level``, which is `level` unless somebody says otherwise."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option(
            "--log-level",
            type=click.Choice(_LEVELS),
            default=level,
            show_default=True,
            help="From which level on is logged.",
        )(command)
        return click.option(
            "--log-format",
            type=click.Choice(["auto", "text", "json"]),
            default="auto",
            show_default=True,
            help="auto: lines for people in a terminal, JSON lines everywhere else.",
        )(command)

    return add


FORCED_EXIT_CODE = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_until_signalled(main: Callable[[asyncio.Event], Coroutine[Any, Any, int]]) -> int:
    """Run `main` with an event that is set when it shall end; gives its exit code, or 130 if it was torn away."""
    tune_gc()
    return asyncio.run(_run_until_signalled(main))


def show_failure(words: str) -> int:
    """Tell why the command cannot go on; gives the exit code."""
    click.echo(f"{click.style('error', fg='red', bold=True)}: {words}", err=True)
    return 1


@contextmanager
def cancelled_on_stop(stop: asyncio.Event) -> Iterator[None]:
    """Do not finish the block once the command shall end: nobody waits for what it begins."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - only coroutines of a task can be told
    told = asyncio.create_task(stop.wait())
    told.add_done_callback(lambda done: None if done.cancelled() else task.cancel())
    try:
        yield
    finally:
        told.cancel()


async def _run_until_signalled(main: Callable[[asyncio.Event], Coroutine[Any, Any, int]]) -> int:
    stop = asyncio.Event()
    running = asyncio.ensure_future(main(stop))
    insisted = False

    def told() -> None:
        nonlocal insisted
        if stop.is_set():
            insisted = True
            running.cancel()
            return
        # First of all: whoever reads what we say may be gone, and must not keep us from ending.
        stop.set()
        with suppress(OSError):
            click.echo("stopping; once more to stop at once", err=True)

    loop = asyncio.get_running_loop()
    heeded = _SIGNALS if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (*_SIGNALS, signal.SIGHUP)
    for number in heeded:
        loop.add_signal_handler(number, told)
    try:
        return await running
    except asyncio.CancelledError:
        return FORCED_EXIT_CODE if insisted else 0
    finally:
        for number in heeded:
            loop.remove_signal_handler(number)
