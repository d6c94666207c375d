"""Where `check` and `preview` read from: files, or a cluster; never both, so that no name can mean two things.

Manifests on their way into a cluster of our own: read, judged, put in order, and rehearsed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from springtide.apis import scheme as registry
from springtide.apis.kinds import Kind, KindVersion, ValidationContext
from springtide.assembly.manifests import (
    SUFFIXES,
    CheckedManifests,
    ClusterChoice,
    ManifestSource,
    UnreadableSource,
    check_cluster_objects,
    check_sources,
    read_sources,
)
from springtide.cli.console import note, show_problem

if TYPE_CHECKING:
    from springtide.assembly.staging import StagedObject


def every_kind(kind: Kind, version: KindVersion) -> bool:  # noqa: ARG001
    """Want objects of all kinds."""
    return True


@dataclass(frozen=True, slots=True)
class CheckedSources:
    """What was found, and when."""

    findings: CheckedManifests
    at: int
    """The time for which everything was judged."""
    present: int
    """What time it is where the objects are."""


def read_and_check(
    names: Sequence[str],
    cluster: ClusterChoice,
    *,
    at: int | None,
    default_zone: str,
    wanted: Callable[[Kind, KindVersion], bool] = every_kind,
) -> CheckedSources:
    """Read what is named, and judge it for a time, or for the present where the objects are.

    The present is one of whole minutes, so that the same objects give the same messages for a while. `wanted` chooses
    kinds where a cluster is meant and nothing is named.
    """

    def context(now: int) -> ValidationContext:
        return ValidationContext(now=now - now % 60 if at is None else at, default_zone=default_zone)

    if not cluster.said:
        if not names:
            raise click.UsageError("name files or folders, or say with -n, -A or --cluster to read from a cluster")
        sources, unread = read_sources(tuple(names))
        here = context(now := int(time.time()))
        return CheckedSources(check_sources(sources, [_with_cluster_hint(one) for one in unread], here), here.now, now)
    for name in names:
        if name == "-" or name.endswith(SUFFIXES):
            raise click.UsageError(f"files and a cluster do not mix: {name!r} is a file, and a cluster is meant")
    # Here, so that judging files needs no network.
    from springtide.assembly.cluster_reader import place_of, read_cluster_objects

    gathered = read_cluster_objects(names, cluster, context, wanted)
    for text in gathered.notes:
        click.echo(click.style(f"note: {text}", dim=True), err=True)
    there = context(gathered.now)
    found = check_cluster_objects(
        [(place_of(loaded), loaded) for loaded in gathered.asked],
        gathered.companions,
        gathered.unread,
        there,
        unseen=frozenset(gathered.unseen),
    )
    return CheckedSources(found, there.now, gathered.now)


def _with_cluster_hint(unread: UnreadableSource) -> UnreadableSource:
    """Tell whoever names an object without saying where it is."""
    word = unread.name.partition("/")[0].lower()
    if Path(unread.name).exists() or not any(word in _names(kind) for kind in registry.KINDS):
        return unread
    return replace(unread, hint=f"`--cluster {unread.name}` reads it from a cluster")


def _names(kind: Kind) -> tuple[str, ...]:
    return (kind.kind.lower(), kind.plural, *kind.short_names)


@dataclass(frozen=True, slots=True)
class PreparedManifests:
    """What goes into the cluster, in order; or why nothing does, as an exit code."""

    objects: tuple[StagedObject, ...] = ()
    code: int = 0


def prepare_manifests(paths: tuple[str, ...], *, now: int, default_zone: str, otherwise: str) -> PreparedManifests:
    """Read manifests and tell everything that is wrong with them; `otherwise` says what is not done if errors are."""
    sources, unread = read_sources(paths)
    found = check_sources(sources, unread, ValidationContext(now=now, default_zone=default_zone))
    for problem in found.problems:
        show_problem(problem, err=True)
    code = found.exit_code(strict=False)
    if code:
        advice = "" if found.unreadable else ": `springtide check` and `springtide convert` help to mend this"
        click.echo(otherwise + advice, err=True)
        return PreparedManifests(code=code)
    return _dry_run(sources, now, otherwise)


def show_refusal(placed: StagedObject, message: str) -> None:
    """Tell that the API server does not take an object."""
    severity = click.style("error", fg="red", bold=True)
    click.echo(f"{placed.file}:{placed.line}: {severity}: {message}", err=True)


def _dry_run(sources: list[ManifestSource], now: int, otherwise: str) -> PreparedManifests:
    """Put the objects in order, with notes about those that do nothing, and see whether a fresh cluster takes them."""
    # Here, because it takes packages that not everybody has.
    from springtide.assembly.simulated_cluster import kinds_without_controller
    from springtide.assembly.staging import stage
    from springtide.simulator.bootstrap import dry_run_refusals

    staging = stage(sources)
    for placed in staging.unknown:
        api_version, _ = placed.kind
        note(f"{placed.file}:{placed.line}: {placed.told} ({api_version}): the cluster has no such kind, skipped")
    refused = dry_run_refusals([placed.value for placed in staging.objects], now)
    for value, answer in refused:
        show_refusal(next(placed for placed in staging.objects if placed.value is value), answer.message)
    if refused:
        click.echo(f"{otherwise}: the API server refuses what is told above", err=True)
        return PreparedManifests(code=1)
    if idle := kinds_without_controller(placed.kind[1] for placed in staging.objects):
        note(f"nothing acts on {', '.join(idle)} yet: such objects are stored, judged and left alone")
    if any(_measures_pods(placed) for placed in staging.objects):
        note("pods are not measured here: a HorizontalPodAutoscaler finds external metrics only")
    return PreparedManifests(staging.objects)


def _measures_pods(placed: StagedObject) -> bool:
    """Tell whether an object wants to know what pods use, as an autoscaler does that follows anything but a series."""
    if placed.kind[1] != "HorizontalPodAutoscaler":
        return False
    metrics = (placed.value.get("spec") or {}).get("metrics") or [{}]
    return any(metric.get("type") != "External" for metric in metrics)
