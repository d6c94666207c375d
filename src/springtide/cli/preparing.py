"""Manifests on their way into a cluster of our own: read, judged, put in order, and rehearsed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from springtide.apis.fields import Context
from springtide.cli.findings import examine
from springtide.cli.inputs import Source, read_inputs
from springtide.cli.screen import note, show_problem

if TYPE_CHECKING:
    from springtide.cli.staging import Placed


@dataclass(frozen=True, slots=True)
class Prepared:
    """What goes into the cluster, in order; or why nothing does, as an exit code."""

    objects: tuple[Placed, ...] = ()
    code: int = 0


def prepare(paths: tuple[str, ...], *, now: int, default_zone: str, otherwise: str) -> Prepared:
    """Read manifests and tell everything that is wrong with them; `otherwise` says what is not done if errors are."""
    sources, unread = read_inputs(paths)
    found = examine(sources, unread, Context(now=now, default_zone=default_zone))
    for problem in found.problems:
        show_problem(problem, err=True)
    code = found.exit_code(strict=False)
    if code:
        advice = "" if found.unreadable else ": `springtide check` and `springtide convert` help to mend this"
        click.echo(otherwise + advice, err=True)
        return Prepared(code=code)
    return _rehearsed(sources, now, otherwise)


def show_refusal(placed: Placed, message: str) -> None:
    """Tell that the API server does not take an object."""
    severity = click.style("error", fg="red", bold=True)
    click.echo(f"{placed.file}:{placed.line}: {severity}: {message}", err=True)


def _rehearsed(sources: list[Source], now: int, otherwise: str) -> Prepared:
    """Put the objects in order, with notes about those that do nothing, and see whether a fresh cluster takes them."""
    # Here, because it takes packages that not everybody has.
    from springtide.cli.staging import stage
    from springtide.cli.worlds import without_actor
    from springtide.simulator.newcomers import refusals

    staging = stage(sources)
    for placed in staging.unknown:
        api_version, _ = placed.kind
        note(f"{placed.file}:{placed.line}: {placed.told} ({api_version}): the cluster has no such kind, skipped")
    refused = refusals([placed.value for placed in staging.objects], now)
    for value, answer in refused:
        show_refusal(next(placed for placed in staging.objects if placed.value is value), answer.message)
    if refused:
        click.echo(f"{otherwise}: the API server refuses what is told above", err=True)
        return Prepared(code=1)
    if idle := without_actor(placed.kind[1] for placed in staging.objects):
        note(f"nothing acts on {', '.join(idle)} yet: such objects are stored, judged and left alone")
    if any(_measures_pods(placed) for placed in staging.objects):
        note("pods are not measured here: a HorizontalPodAutoscaler finds external metrics only")
    return Prepared(staging.objects)


def _measures_pods(placed: Placed) -> bool:
    """Tell whether an object wants to know what pods use, as an autoscaler does that follows anything but a series."""
    if placed.kind[1] != "HorizontalPodAutoscaler":
        return False
    metrics = (placed.value.get("spec") or {}).get("metrics") or [{}]
    return any(metric.get("type") != "External" for metric in metrics)
