"""`springtide new`: asks a few questions, shows a picture of the result, and writes a checked manifest."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from springtide.apis.forecast import ForecastQuery as Outlook
from springtide.apis.importers.conversion import autoscaler_object, cron_object, free_name, producer_object
from springtide.apis.kinds import ValidationContext
from springtide.apis.meta.times import instant_in
from springtide.apis.objects import LoadedObject, forecast_of, load
from springtide.apis.problems import Problem, format_path
from springtide.apis.yaml import dump
from springtide.assembly.manifests import LocatedProblem
from springtide.cli.console import show_problem, supports_colour, supports_unicode
from springtide.cli.interview import (
    AnswerError,
    Interview,
    Prompt,
    Tree,
    formatted,
    optional,
    replicas,
    rule_for,
    target,
    window_for,
)

_DAY = 86400
_WEEK = 7 * _DAY
_FURTHEST = 60 * _DAY
_NAME = Prompt("NAME", "Name", formatted("dns-subdomain"))
_NAMESPACE = Prompt("--namespace", "Namespace (empty for none)", optional(formatted("dns-subdomain")), default="")
_ZONE = Prompt("--timezone", "Time zone, such as Europe/Berlin", formatted("zone"))
_WINDOW_TEXT = "Window, such as mon-fri 08:30-18:00=6 or 2026-11-27 06:00-22:00=20"
_DEFAULT = Prompt("--default", "Replicas outside all windows", replicas)
_FOLLOWER = Prompt("--target", "What it scales, such as deployment/shop (empty for nothing)", optional(target), "")
_FILE = Prompt("--file", "File to write, such as office.yaml (empty to print)", optional(str), "")
_TARGET = Prompt("--target", "What is scaled, such as deployment/shop", target)


@click.group("new")
def command() -> None:
    """Ask what is needed, show a picture of the next week, and write a checked manifest.

    Every answer can be given as an option; without a terminal, all must be.

    \b
      springtide new metricsproducer
      springtide new metricsproducer office -n shop --timezone Europe/Berlin \\
        --window "mon-fri 08:30-18:00=6" --default 2 --target deployment/shop > office.yaml
      springtide new cronfederatedhpa peak -n shop --timezone UTC --target hpa/shop \\
        --rule "up=30 8 * * mon-fri:5-20" --rule "down=0 18 * * mon-fri:1-20" --file peak.yaml
    """


def _common(decorated: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of both kinds."""
    options = (
        click.argument("name", required=False),
        click.option("-n", "--namespace", metavar="NAME", help="The namespace of the object."),
        click.option("--timezone", metavar="ZONE", help="The zone that times are written in."),
        click.option(
            "-f",
            "--file",
            "path",
            metavar="FILE",
            help="Where to write; asked at a terminal if not given, else standard output.",
        ),
        click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation before a file is overwritten."),
    )
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


@command.command("metricsproducer", short_help="A number of replicas for each time.")
@_common
@click.option(
    "--window",
    "windows",
    multiple=True,
    metavar="WINDOW",
    help='Such as "mon-fri 08:30-18:00=6" or "2026-11-27 06:00-22:00=20".',
)
@click.option("--default", "default", metavar="N", help="Replicas outside all windows.")
@click.option(
    "--target", "follower", metavar="KIND/NAME", help="Also write a HorizontalAutoscaler that scales this target."
)
def metricsproducer(
    name: str | None,
    namespace: str | None,
    timezone: str | None,
    path: str | None,
    yes: bool,
    windows: tuple[str, ...],
    default: str | None,
    follower: str | None,
) -> None:
    """Write a MetricsProducer: a number of replicas for each time.

    A window is days, times and replicas: "mon-fri 08:30-18:00=6", "sat,sun=1", "daily 22:00-06:00=0", or dates instead
    of days for one that happens once: "2026-11-27 06:00-22:00=20", "2026-12-24=1", "2026-11-27 06:00 - 2026-11-29
    22:00=20". One whose end is before its start ends on the next day. Where windows overlap, one that happens once
    applies before those that recur, then the first one.
    """
    interview = Interview(interactive=sys.stdin.isatty())
    metadata = _metadata(interview, name, namespace)
    zone = interview.one(_ZONE, timezone)
    size = interview.one(_DEFAULT, default)

    question = Prompt("--window", _WINDOW_TEXT, window_for(zone))
    check = _Checker()

    def check_windows(behaviors: list[Tree]) -> None:
        check([producer_object(metadata, zone or "UTC", size or 0, _numbered(behaviors))])

    behaviors = _numbered(interview.several(question, windows, check_windows, needed=True))
    followed = interview.one(_FOLLOWER, follower)
    interview.complete()
    made = [producer_object(metadata, zone or "UTC", size or 0, behaviors)]
    if followed is not None:
        sizes = [size or 0, *(behavior["replicas"] for behavior in behaviors)]
        scaling = autoscaler_object(metadata, followed, (min(sizes), max(sizes)), [metadata["name"]])
        # Without a stabilization window, replicas change when the picture shows it.
        scaling["spec"]["behavior"] = {"scaleDown": {"stabilizationWindowSeconds": 0}}
        made.append(scaling)
    _finish(interview, check, made, path, yes=yes)


@command.command("cronfederatedhpa", short_help="Replicas or bounds that are set at certain times.")
@_common
@click.option("--target", "scaled", metavar="KIND/NAME", help="What is scaled, such as deployment/shop or hpa/shop.")
@click.option("--rule", "rules", multiple=True, metavar="RULE", help='Such as "up=30 8 * * mon-fri:10".')
def cronfederatedhpa(
    name: str | None,
    namespace: str | None,
    timezone: str | None,
    path: str | None,
    yes: bool,
    scaled: str | None,
    rules: tuple[str, ...],
) -> None:
    """Write a CronFederatedHPA: replicas, or the bounds of an autoscaler, that are set at certain times.

    A rule is a name, a cron expression or an instant, and what is set: "up=30 8 * * mon-fri:10",
    "launch=2026-11-27 06:00:50"; for an autoscaler "up=30 8 * * *:5-20", or "5-" and "-20" for one of its bounds.
    """
    interview = Interview(interactive=sys.stdin.isatty())
    metadata = _metadata(interview, name, namespace)
    reference = interview.one(_TARGET, scaled)
    zone = interview.one(_ZONE, timezone)
    known = reference or {"apiVersion": "apps/v1", "kind": "Deployment", "name": "unknown"}
    question = Prompt("--rule", _rule_text(known), rule_for(known, zone))

    check = _Checker()

    def check_rules(made: list[Tree]) -> None:
        check([cron_object(metadata, known, made)])

    # What a rule may set depends on the target: without one, rules cannot be parsed.
    readable = rules if reference is not None else ()
    made = interview.several(question, readable, check_rules, needed=not rules)
    interview.complete()
    _finish(interview, check, [cron_object(metadata, known, made)], path, yes=yes)


def _rule_text(reference: Tree) -> str:
    example = "up=30 8 * * mon-fri:10" if "autoscaling" not in reference["apiVersion"] else "up=30 8 * * mon-fri:5-20"
    return f"Rule, such as {example}"


def _metadata(interview: Interview, name: str | None, namespace: str | None) -> Tree:
    metadata: Tree = {"name": interview.one(_NAME, name)}
    chosen = interview.one(_NAMESPACE, namespace)
    return {**metadata, "namespace": chosen} if chosen else metadata


def _numbered(behaviors: list[Tree]) -> list[Tree]:
    """Return each behaviour a unique name."""
    named: list[Tree] = []
    for behavior in behaviors:
        name = free_name(behavior["name"], [other["name"] for other in named])
        named.append({**behavior, "name": name})
    return named


class _Checker:
    """Raises an error for objects with errors, and shows each warning once."""

    def __init__(self) -> None:
        self._shown: set[Problem] = set()

    def __call__(self, made: list[Tree]) -> list[LoadedObject]:
        """Validate objects as `springtide check` does, without their references; raises `AnswerError`."""
        now = int(time.time())
        read = load(_text(made), ValidationContext(now=now - now % 60))
        loaded = [item for item in read if isinstance(item, LoadedObject)]
        problems = [problem for item in loaded for problem in item.problems]
        for problem in problems:
            if problem.severity == "error":
                raise AnswerError(f"{format_path(problem.path)}: {problem.message}".removeprefix(": "), problem.hint)
        for problem in problems:
            if problem not in self._shown:
                self._shown.add(problem)
                _show(problem)
        return loaded


def _show(problem: Problem) -> None:
    place = format_path(problem.path)
    found = LocatedProblem(file=place, message=problem.message, hint=problem.hint, severity=problem.severity)
    show_problem(found, err=True)


def _text(made: list[Tree]) -> str:
    return "---\n".join(dump(item) for item in made)


def _finish(interview: Interview, check: _Checker, made: list[Tree], path: str | None, *, yes: bool) -> None:
    try:
        _show_picture(check(made))
    except AnswerError as failure:
        raise click.UsageError(f"{failure.message}; {failure.hint}" if failure.hint else failure.message) from None
    text = _text(made)
    asked = path is None and interview.interactive and sys.stdout.isatty()
    while True:
        chosen = interview.one(_FILE, None) if asked else path
        if chosen is None or chosen == "-":
            click.echo(text, nl=False)
            return
        if not Path(chosen).exists() or yes or interview.confirmed(f"{chosen} exists. Overwrite it?"):
            break
        if not asked:
            click.echo(f"{chosen} exists and was not changed: `--yes` overwrites it", err=True)
            raise SystemExit(1)
    _write(chosen, text)


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as failure:
        click.echo(f"{path}: {(failure.strerror or str(failure)).lower()}", err=True)
        raise SystemExit(2) from None
    click.echo(f"wrote {path}; `springtide simulate {path}` tries it, `kubectl apply -f {path}` applies it", err=True)


def _show_picture(loaded: list[LoadedObject]) -> None:
    """Draw the next week, or more, on standard error: standard output is for the manifest."""
    from springtide.cli.pictures.terminal import render_terminal

    now = int(time.time())
    begins = now - now % 60
    until = _end_of_picture(loaded, begins)
    forecasts = [forecast_of(item, Outlook(begins, until)) for item in loaded]
    text = render_terminal(
        # The warnings about the answers were shown before.
        [replace(forecast, problems=()) for forecast in forecasts if forecast is not None],
        zone=None,
        now=now,
        width=min(shutil.get_terminal_size().columns, 160),
        colour=supports_colour(),
        unicode=supports_unicode(),
    )
    click.echo(text, nl=not text.endswith("\n"), err=True)


def _end_of_picture(loaded: list[LoadedObject], begins: int) -> int:
    """Return the end of a week, or of the day after what happens once, if that is in the next two months."""
    ends = [begins + _WEEK]
    for item in loaded:
        spec = item.value["spec"]
        for entry in (*spec.get("rules", ()), *spec.get("schedule", {}).get("behaviors", ())):
            once = instant_in(entry.get("at") or entry.get("until"))
            if once is not None and once - begins <= _FURTHEST:
                ends.append(once + _DAY)
    return max(ends)
