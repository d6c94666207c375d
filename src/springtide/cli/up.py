"""`springtide up`: an embedded cluster with all controllers, for kubectl and for scripts."""

from __future__ import annotations

import asyncio
import ipaddress
import shlex
import shutil
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from springtide.almanac import load_zone
from springtide.apis.forecast import format_instant
from springtide.assembly.embedded_access import KubeconfigFile, kubeconfig_file
from springtide.assembly.manifests import read_sources
from springtide.cli.console import logging_options, show_failure, show_missing_packages
from springtide.cli.options import default_timezone_option, metric_options, parse_moment
from springtide.cli.sources import PreparedManifests, prepare_manifests, show_refusal
from springtide.cli.stop_signals import cancelled_on_stop, run_until_signalled
from springtide.cluster.clock import Clock, ScaledClock
from springtide.cluster.logs import configure

if TYPE_CHECKING:
    from springtide.assembly.embedded_cluster import EmbeddedSettings, SkippedTime
    from springtide.assembly.services import MetricSourceSettings
    from springtide.assembly.staging import AppliedManifests, StagedObject
    from springtide.cli.live_line import LiveLine


_SHOWN_KINDS = 3
_WIDTH = 80
_INDENT = 15
_MARGINS = 6
"""The columns of a hint beside its command and its comment."""
_EXPLAINED = ("MetricsProducer", "HorizontalAutoscaler", "CronFederatedHPA", "ScalableNodeGroup")
"""Kinds of which the hints name an object."""
_DEFAULT_NAMESPACE = "default"
_KUBECTL = "https://kubernetes.io/docs/tasks/tools"


def ready_message(
    url: str,
    clock: Clock,
    settings: EmbeddedSettings,
    applied: AppliedManifests,
    kubeconfig: Path,
    *,
    nodes: int,
    metrics_url: str = "",
) -> str:
    """Write what to know about the cluster; the first line has the address."""
    ready = f"{click.style('ready', fg='green', bold=True)}: the API server is {url}"
    named = [*_facts(clock, settings, applied, nodes)]
    named += [("metrics", f"{metrics_url}/metrics")] if metrics_url else []
    kind, name, flag = _example(applied)
    facts = [line for name, fact in named for line in _lines(name, fact)]
    commands = [
        (f"export KUBECONFIG={shlex.quote(str(kubeconfig.absolute()))}", "in another terminal"),
        ("kubectl get nodes,springtide -A", "all there is"),
        ("kubectl get pods -A --watch", "what happens"),
        (f"kubectl describe {kind} {name}{flag}", "why: see the conditions"),
        (f"springtide explain {kind}/{name}{flag}", "why, and what comes next"),
        ("kubectl explain metricsproducer.spec", "every field of every kind"),
        ("kubectl apply -f FILE", "validated by webhooks"),
    ]
    # A longer command has its comment to itself, so that lines have no more columns than a terminal.
    width = max(len(line) for line, why in commands[1:] if len(line) + len(why) <= _WIDTH - _MARGINS)
    tips = [_tip(line, why, width) for line, why in commands]
    return "\n".join([ready, *facts, "", *tips, "", "Ctrl-C stops it."])


def _tip(line: str, why: str, width: int) -> str:
    comment = click.style(f"# {why}", dim=True)
    return f"  {line:{width}}  {comment}" if max(len(line), width) + len(why) <= _WIDTH - _MARGINS else f"  {line}"


def _example(applied: AppliedManifests) -> tuple[str, str, str]:
    """Choose an object for the hints: its kind and name, and the option that names its namespace."""
    for staged in applied.objects:
        metadata = staged.value["metadata"]
        if staged.kind[1] in _EXPLAINED and metadata.get("name"):
            namespace = metadata.get("namespace", _DEFAULT_NAMESPACE)
            flag = "" if namespace == _DEFAULT_NAMESPACE else f" -n {namespace}"
            return staged.kind[1].lower(), metadata["name"], flag
    return "KIND", "NAME", " -n NAMESPACE"


def _lines(name: str, fact: str) -> Iterator[str]:
    """Write a fact beside its name, on as many lines as it needs."""
    for number, line in enumerate(
        textwrap.wrap(fact, _WIDTH - _INDENT, break_long_words=False, break_on_hyphens=False)
    ):
        yield f"  {name if number == 0 else '':<12} {line}"


def _facts(
    clock: Clock, settings: EmbeddedSettings, applied: AppliedManifests, nodes: int
) -> Iterator[tuple[str, str]]:
    yield "controllers", ", ".join(controller.name for controller in settings.controllers)
    yield "manifests", _count_by_kind(applied.objects)
    yield "nodes", str(nodes) if nodes else "none: pods stay Pending; `springtide up --nodes 3` creates three"
    if applied.refused:
        yield "refused", f"{_count_by_kind([staged for staged, _ in applied.refused])}, see above"
    yield "data", f"in {settings.data}" if settings.data is not None else "in memory only; --data DIR keeps them"
    # From the clock, not from the options: a cluster with stored data continues at its stored time.
    if isinstance(clock, ScaledClock):
        pace = "at real speed" if clock.speed == 1 else f"at {clock.speed:g} times real speed"
        yield "clock", f"{format_instant(clock.now())} now, {pace}"
    if not _on_loopback(settings.host):
        yield "access", "from other machines as well: the token gives full access"
    if shutil.which("kubectl") is None:
        yield "kubectl", f"is not on your PATH; see {_KUBECTL}"


def _count_by_kind(objects: Sequence[StagedObject]) -> str:
    """Write the number of objects of the most frequent kinds."""
    if not objects:
        return "none"
    kinds = Counter(staged.kind[1] for staged in objects).most_common()
    shown = [f"{count} {kind}" for kind, count in kinds[:_SHOWN_KINDS]]
    more = sum(count for _, count in kinds[_SHOWN_KINDS:])
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _on_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


_MANAGER = "springtide-up"


@click.command("up")
@click.argument("paths", nargs=-1, metavar="[FILE|DIR|-]...")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The folder of the cluster's data, with which the next `up` continues. Without it, data are in memory only.",
)
@click.option(
    "--nodes",
    type=click.IntRange(0, 1000),
    default=0,
    metavar="N",
    help="Create N simulated nodes of 16 CPUs and 64 GiB, node-1 to node-N, except those that exist.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The address to listen on; with others than loopback, other machines can connect.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The port to listen on; 0 takes any free one.  [default: 7443, or any free one]",
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True, max=100_000),
    default=1.0,
    show_default=True,
    metavar="N",
    help="How many times as fast as real time the cluster's clock runs: with 600, a day takes less than three minutes.",
)
@click.option(
    "--from", "start", metavar="TIME", help="The time at which the cluster's clock starts; the present if not given."
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The kubeconfig file, written once the cluster is ready and removed at the end.  [default: a new file]",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="The port of /metrics, with those of MetricsProducers; 0 takes any free one.  [default: not served]",
)
@metric_options
@default_timezone_option
@logging_options(level="warning")
def command(
    paths: tuple[str, ...],
    data: Path | None,
    nodes: int,
    host: str,
    port: int | None,
    speed: float,
    start: str | None,
    kubeconfig: Path | None,
    metrics_port: int | None,
    sources: MetricSourceSettings,
    default_timezone: str,
    log_format: str,
    log_level: str,
) -> None:
    """Run an embedded cluster with all controllers, and apply manifests to it.

    It is an API server with everything that kubectl needs: workloads get pods, pods are scheduled to nodes, and all
    controllers and webhooks of Springtide run. Nothing needs to be installed, and nothing outside this process is
    changed. Containers do not run: docs/embedded.md lists the differences from a real cluster.

    \b
      springtide up examples/*.yaml
      springtide up shop.yaml --nodes 3                   with nodes for its pods
      springtide up manifests/ --data ~/.springtide       keep it across restarts
      springtide up examples/*.yaml --speed 600           ten minutes in a second
      springtide up examples/*.yaml --speed 3600 --from 2026-12-23

    TIME is RFC 3339 (2026-11-27T06:00:00Z), or a local time or date of --default-timezone. Ctrl-C stops it.

    Exit codes: 0 stopped; 1 a manifest has errors or is refused, or the cluster cannot be started; 2 something
    unreadable, or the command line is wrong; 130 forced to stop by a second Ctrl-C.
    """
    begins = parse_moment(start, load_zone(default_timezone), "--from") if start is not None else None
    try:
        from springtide.assembly.embedded_cluster import EmbeddedSettings
        from springtide.cli.live_line import live_line
        from springtide.controllers import CONTROLLERS
    except ModuleNotFoundError as missing:
        raise SystemExit(show_missing_packages("an embedded cluster", missing)) from None
    prepared = PreparedManifests()
    if paths:
        now = begins if begins is not None else int(time.time())
        prepared = prepare_manifests(
            *read_sources(paths), now=now, default_zone=default_timezone, otherwise="nothing was started"
        )
    if prepared.code:
        raise SystemExit(prepared.code)
    settings = EmbeddedSettings(
        controllers=CONTROLLERS,
        data=data,
        host=host,
        port=port,
        speed=speed,
        start=begins,
        default_zone=default_timezone,
        sources=sources,
        metrics_port=metrics_port,
    )
    with live_line() as line:
        configure(sys.stderr, log_level, log_format)
        code = _host(settings, prepared.objects, kubeconfig, nodes, line)
    raise SystemExit(code)


def _host(
    settings: EmbeddedSettings,
    objects: tuple[StagedObject, ...],
    kubeconfig: Path | None,
    nodes: int,
    line: LiveLine | None,
) -> int:
    from springtide.apiserver.journal import JournalError
    from springtide.cluster.errors import ServerError
    from springtide.cluster.serving import ServingFailed

    try:
        with kubeconfig_file(kubeconfig, settings.data) as file:
            return run_until_signalled(lambda stop: _up(stop, settings, objects, file, nodes, line))
    except ServingFailed as failure:
        return show_failure(f"{failure}; --host and --port choose another address")
    except (JournalError, ServerError, OSError) as failure:
        return show_failure(str(failure))


def _show_skip(skipped: SkippedTime) -> None:
    from springtide.cli.pictures.formatting import format_span

    stood, continues = format_instant(skipped.stood_at), format_instant(skipped.continues_at)
    length = format_span(skipped.continues_at - skipped.stood_at, spaced=True)
    text = (
        f"the clock of the stored cluster stood at {stood}; it now continues at the present, {continues}, and skips"
        f" {length}: of what was scheduled meanwhile, only what holds at the end takes effect"
    )
    hint = f"to continue where it stood, stop with Ctrl-C and start with --from {stood}"
    click.echo("\n".join(textwrap.wrap(f"warning: {text}", _WIDTH)), err=True)
    click.echo(f"  {hint}", err=True)


async def _up(
    stop: asyncio.Event,
    settings: EmbeddedSettings,
    objects: tuple[StagedObject, ...],
    file: KubeconfigFile,
    nodes: int,
    line: LiveLine | None,
) -> int:
    from springtide.assembly.embedded_cluster import run_embedded_cluster
    from springtide.assembly.staging import apply, create_nodes
    from springtide.cli.live_line import ClusterActivity, show_activity
    from springtide.simulator.bootstrap import resource_of

    async with AsyncExitStack() as stack:
        with cancelled_on_stop(stop):
            cluster = await stack.enter_async_context(run_embedded_cluster(settings, before_skip=_show_skip))
            server = cluster.cluster.server
            await create_nodes(cluster.transport, nodes, manager=_MANAGER)
            applied = await apply(
                cluster.transport, objects, lambda kind, version: resource_of(server, kind, version), manager=_MANAGER
            )
        for staged, refusal in applied.refused:
            show_refusal(staged, refusal.message)
        file.write(cluster.kubeconfig())
        activity = ClusterActivity(server)
        click.echo(
            ready_message(
                cluster.serving.url,
                cluster.cluster.clock,
                settings,
                applied,
                file.path,
                nodes=activity.nodes,
                metrics_url=cluster.metrics_url,
            )
        )
        drawing = asyncio.create_task(show_activity(line, activity, cluster.cluster.clock)) if line else None
        await stop.wait()
        if drawing is not None:
            drawing.cancel()
    return 0
