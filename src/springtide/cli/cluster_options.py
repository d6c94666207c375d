"""Which cluster a command reads from, and where in it: the options that kubectl has, under the same names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """A cluster, and the part of it that is meant."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    """None: the one that the kubeconfig names."""
    everywhere: bool = False
    """Whether all namespaces are meant."""
    said: bool = False
    """Whether any option was given, and so a cluster is meant at all."""


def _which(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.option("-n", "--namespace", metavar="NAME", help="The namespace; the kubeconfig's own if not given."),
        click.option("--context", metavar="NAME", help="The context of the kubeconfig, if not the current one."),
        click.option(
            "--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="The kubeconfig file to use."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command that reads files also read from a cluster; it is given a `ClusterChoice` as `cluster`."""

    @click.option("--cluster", "said", is_flag=True, help="Read from a cluster; each of the next options says so too.")
    @_which
    @click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Look at all namespaces of the cluster.")
    @wraps(command)
    def chosen(
        *,
        said: bool,
        kubeconfig: Path | None,
        context: str | None,
        namespace: str | None,
        everywhere: bool,
        **others: Any,
    ) -> Any:
        if namespace and everywhere:
            raise click.UsageError("-n names one namespace and -A means all of them: leave one out")
        said = said or everywhere or any(given is not None for given in (kubeconfig, context, namespace))
        return command(cluster=ClusterChoice(kubeconfig, context, namespace, everywhere, said), **others)

    return chosen


def object_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command read one object of a cluster; it is given a `ClusterChoice` as `cluster`."""

    @_which
    @wraps(command)
    def chosen(*, kubeconfig: Path | None, context: str | None, namespace: str | None, **others: Any) -> Any:
        return command(cluster=ClusterChoice(kubeconfig, context, namespace, said=True), **others)

    return chosen
