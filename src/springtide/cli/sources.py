"""Where `check` and `preview` read from: files, or a cluster; never both, so that no name can mean two things."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from springtide.apis import registry
from springtide.apis.fields import Context
from springtide.apis.kinds import Kind, Version
from springtide.cli.cluster_options import ClusterChoice
from springtide.cli.findings import Findings, examine, examine_objects
from springtide.cli.inputs import SUFFIXES, Unread, read_inputs


def every_kind(kind: Kind, version: Version) -> bool:  # noqa: ARG001
    """Want objects of all kinds."""
    return True


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found, and when."""

    findings: Findings
    at: int
    """The time for which everything was judged."""
    present: int
    """What time it is where the objects are."""


def examine_sources(
    names: Sequence[str],
    cluster: ClusterChoice,
    *,
    at: int | None,
    default_zone: str,
    wanted: Callable[[Kind, Version], bool] = every_kind,
) -> Examined:
    """Read what is named, and judge it for a time, or for the present where the objects are.

    The present is one of whole minutes, so that the same objects give the same messages for a while. `wanted` chooses
    kinds where a cluster is meant and nothing is named.
    """

    def context(now: int) -> Context:
        return Context(now=now - now % 60 if at is None else at, default_zone=default_zone)

    if not cluster.said:
        if not names:
            raise click.UsageError("name files or folders, or say with -n, -A or --cluster to read from a cluster")
        sources, unread = read_inputs(tuple(names))
        here = context(now := int(time.time()))
        return Examined(examine(sources, [_hinting_at_clusters(one) for one in unread], here), here.now, now)
    for name in names:
        if name == "-" or name.endswith(SUFFIXES):
            raise click.UsageError(f"files and a cluster do not mix: {name!r} is a file, and a cluster is meant")
    # Here, so that judging files needs no network.
    from springtide.cli.from_cluster import gather, place_of

    gathered = gather(names, cluster, context, wanted)
    for note in gathered.notes:
        click.echo(click.style(f"note: {note}", dim=True), err=True)
    there = context(gathered.now)
    found = examine_objects(
        [(place_of(loaded), loaded) for loaded in gathered.asked],
        gathered.companions,
        gathered.unread,
        there,
        unseen=frozenset(gathered.unseen),
    )
    return Examined(found, there.now, gathered.now)


def _hinting_at_clusters(unread: Unread) -> Unread:
    """Tell whoever names an object without saying where it is."""
    word = unread.name.partition("/")[0].lower()
    if Path(unread.name).exists() or not any(word in _names(kind) for kind in registry.KINDS):
        return unread
    return replace(unread, hint=f"`--cluster {unread.name}` reads it from a cluster")


def _names(kind: Kind) -> tuple[str, ...]:
    return (kind.kind.lower(), kind.plural, *kind.short_names)
