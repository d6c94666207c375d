"""Reads and validates the manifests that a command works on.

`check` and `preview` read files or a cluster, never both, so that no name is ambiguous. `up` and `simulate` stage what
they read and try it on an API server in memory before they start anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from springtide.apis import scheme
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
from springtide.cli.pictures.formatting import printable

if TYPE_CHECKING:
    from springtide.assembly.staging import StagedObject


def every_kind(kind: Kind, version: KindVersion) -> bool:  # noqa: ARG001
    """Select all kinds."""
    return True


@dataclass(frozen=True, slots=True)
class CheckedSources:
    """Validated objects, and the times that they are shown for."""

    manifests: CheckedManifests
    at: int
    """The time for which everything was validated."""
    present: int
    """The present, by the clock of the cluster that the objects come from."""


def read_and_check(
    names: Sequence[str],
    cluster: ClusterChoice,
    *,
    at: int | None,
    default_zone: str,
    wanted: Callable[[Kind, KindVersion], bool] = every_kind,
) -> CheckedSources:
    """Read the named objects, or those of the wanted kinds in a cluster, and validate them for a time or the present.

    The present is rounded down to a minute, so that repeated runs give the same messages.
    """

    def context(now: int) -> ValidationContext:
        return ValidationContext(now=now - now % 60 if at is None else at, default_zone=default_zone)

    if not cluster.requested:
        if not names:
            raise click.UsageError("name files or folders, or read from a cluster with -n, -A or --cluster")
        sources, unread = read_sources(tuple(names))
        here = context(now := int(time.time()))
        return CheckedSources(check_sources(sources, [_with_cluster_hint(one) for one in unread], here), here.now, now)
    for name in names:
        if name == "-" or name.endswith(SUFFIXES):
            raise click.UsageError(
                f"files and a cluster do not mix: {name!r} is a file, and the options name a cluster"
            )
    # Imported late: validating files needs no HTTP client.
    from springtide.assembly.cluster_reader import place_of, read_cluster_objects

    objects = read_cluster_objects(names, cluster, context, wanted)
    for text in objects.notes:
        note(text)
    there = context(objects.now)
    found = check_cluster_objects(
        [(place_of(loaded), loaded) for loaded in objects.requested],
        [(place_of(loaded), loaded) for loaded in objects.related],
        objects.unread,
        there,
        unseen=frozenset(objects.unseen),
    )
    return CheckedSources(found, there.now, objects.now)


def note_missing_effects(manifests: CheckedManifests) -> None:
    """Print what the objects do not do yet, once for each kind; it is no problem of the manifests."""
    _note_once(_missing_effects(manifests))


def _missing_effects(manifests: CheckedManifests) -> Iterator[str]:
    return filter(None, (scheme.missing_effect(manifest.object.value) for manifest in manifests.manifests))


def _note_once(texts: Iterable[str]) -> None:
    for text in dict.fromkeys(texts):
        note(text)


def _with_cluster_hint(unread: UnreadableSource) -> UnreadableSource:
    """Suggest `--cluster` where a missing file has the name of a kind."""
    word = unread.name.partition("/")[0].lower()
    if Path(unread.name).exists() or not any(word in kind.all_names for kind in scheme.KINDS):
        return unread
    return replace(unread, hint=f"`--cluster {unread.name}` reads it from a cluster")


@dataclass(frozen=True, slots=True)
class PreparedManifests:
    """The objects to apply, in order; or an exit code other than 0."""

    objects: tuple[StagedObject, ...] = ()
    code: int = 0


def prepare_manifests(
    sources: Sequence[ManifestSource],
    unread: Sequence[UnreadableSource],
    *,
    now: int,
    default_zone: str,
    otherwise: str,
) -> PreparedManifests:
    """Validate and stage manifests; on errors, print all of them and `otherwise`, which says what is not done."""
    found = check_sources(sources, unread, ValidationContext(now=now, default_zone=default_zone))
    for problem in found.problems:
        show_problem(problem, err=True)
    code = found.exit_code(strict=False)
    if code:
        advice = "" if found.unreadable else ": `springtide check` and `springtide convert` help to correct this"
        click.echo(otherwise + advice, err=True)
        return PreparedManifests(code=code)
    return _dry_run(found, now, default_zone, otherwise)


def show_refusal(staged: StagedObject, message: str) -> None:
    """Print why the API server refuses an object."""
    severity = click.style("error", fg="red", bold=True)
    click.echo(f"{staged.file}:{staged.line}: {severity}: {printable(message)}", err=True)


def _dry_run(manifests: CheckedManifests, now: int, default_zone: str, otherwise: str) -> PreparedManifests:
    """Stage the objects and create them on an API server in memory, with notes about objects that have no effect."""
    # Imported late: these need the packages of the extra `embedded`.
    from springtide.assembly.simulated_cluster import kinds_without_controller
    from springtide.assembly.staging import stage
    from springtide.simulator.bootstrap import dry_run_refusals

    staging = stage(manifests, default_zone)
    for staged in staging.unknown:
        api_version, _ = staged.kind
        note(f"{staged.file}:{staged.line}: {staged.label} ({api_version}): the cluster has no such kind, skipped")
    refused = dry_run_refusals([staged.value for staged in staging.objects], now)
    for value, refusal in refused:
        show_refusal(next(staged for staged in staging.objects if staged.value is value), refusal.message)
    if refused:
        click.echo(f"{otherwise}: the API server refuses the objects above", err=True)
        return PreparedManifests(code=1)
    idle = kinds_without_controller(staged.kind[1] for staged in staging.objects)
    _note_once((*_missing_effects(manifests), *map(scheme.no_controller, idle)))
    if any(_needs_pod_metrics(staged) for staged in staging.objects):
        note("there are no pod metrics here: a HorizontalPodAutoscaler gets external metrics only")
    return PreparedManifests(staging.objects)


def _needs_pod_metrics(staged: StagedObject) -> bool:
    """Return whether an object is a HorizontalPodAutoscaler with a metric that is not external."""
    if staged.kind[1] != "HorizontalPodAutoscaler":
        return False
    metrics = (staged.value.get("spec") or {}).get("metrics") or [{}]
    return any(metric.get("type") != "External" for metric in metrics)
