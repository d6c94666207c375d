"""`springtide up`: an embedded cluster with all controllers, for kubectl, for scripts, and to look around."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from springtide.almanac import load_zone
from springtide.cli.arguments import default_timezone_option, parse_moment
from springtide.cli.kubeconfig_file import KubeconfigFile, kubeconfig_file
from springtide.cli.logging_options import logging_options
from springtide.cli.metric_options import metric_options
from springtide.cli.preparing import Prepared, prepare, show_refusal
from springtide.cli.running import failed, given_up_when_told, run_until_told
from springtide.cli.screen import without_embedded
from springtide.cli.welcome import welcome
from springtide.cluster.logs import configure

if TYPE_CHECKING:
    from springtide.cli.hosting import Hosting
    from springtide.cli.offering import MetricSources
    from springtide.cli.staging import Placed

_MANAGER = "springtide-up"


@click.command("up")
@click.argument("paths", nargs=-1, metavar="[FILE|DIR|-]...")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the cluster is kept, so that the next `up` goes on with it. Without: in memory, until the end.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The address to serve at; others than loopback can be reached by others.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="The port to serve at; 0 takes any that is free.  [default: 7443, or any that is free]",
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True, max=100_000),
    default=1.0,
    show_default=True,
    metavar="N",
    help="How many times as fast as the world's the cluster's clock runs: 600 shows a day in less than three minutes.",
)
@click.option("--from", "start", metavar="TIME", help="When the cluster's time begins; the present if not given.")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where the kubeconfig is written once the cluster is ready, until it ends.  [default: a file of its own]",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Where metrics are served, those of MetricsProducers among them; 0 takes any that is free.  [default: not]",
)
@metric_options
@default_timezone_option
@logging_options(level="warning")
def command(
    paths: tuple[str, ...],
    data: Path | None,
    host: str,
    port: int | None,
    speed: float,
    start: str | None,
    kubeconfig: Path | None,
    metrics_port: int | None,
    sources: MetricSources,
    default_timezone: str,
    log_format: str,
    log_level: str,
) -> None:
    """Run an embedded cluster with all controllers, and apply manifests to it.

    It is an API server with everything around it that kubectl needs: workloads get pods, pods get nodes, and all of
    Springtide's controllers and webhooks run. Nothing needs to be installed, and nothing outside this process is
    touched. Containers do not run: docs/embedded.md tells what is different from a real cluster.

    \b
      springtide up examples/*.yaml
      springtide up manifests/ --data ~/.springtide       keep it; kill it whenever you like
      springtide up examples/*.yaml --speed 600           ten minutes in a second
      springtide up examples/*.yaml --speed 3600 --from 2026-12-23

    TIME is RFC 3339 (2026-11-27T06:00:00Z), or a local time or date of --default-timezone. Ctrl-C ends it.
    Exit codes: 0 ended; 1 a manifest has errors or is refused, or the cluster cannot be started; 2 something
    unreadable, or the command line is wrong; 130 torn away by a second Ctrl-C.
    """
    begins = parse_moment(start, load_zone(default_timezone), "--from") if start is not None else None
    try:
        from springtide.cli.hosting import Hosting
        from springtide.controllers import CONTROLLERS
    except ModuleNotFoundError as missing:
        raise SystemExit(without_embedded("an embedded cluster", missing)) from None
    prepared = Prepared()
    if paths:
        now = begins if begins is not None else int(time.time())
        prepared = prepare(paths, now=now, default_zone=default_timezone, otherwise="nothing was started")
    if prepared.code:
        raise SystemExit(prepared.code)
    hosting = Hosting(
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
    configure(sys.stderr, log_level, log_format)
    raise SystemExit(_host(hosting, prepared.objects, kubeconfig))


def _host(hosting: Hosting, objects: tuple[Placed, ...], kubeconfig: Path | None) -> int:
    from springtide.cluster.errors import ServerError
    from springtide.cluster.serving import ServingFailed
    from springtide.simulator.durable import JournalError

    try:
        with kubeconfig_file(kubeconfig, hosting.data) as file:
            return run_until_told(lambda stop: _up(stop, hosting, objects, file))
    except ServingFailed as failure:
        return failed(f"{failure}; --host and --port choose another address")
    except (JournalError, ServerError, OSError) as failure:
        return failed(str(failure))


async def _up(stop: asyncio.Event, hosting: Hosting, objects: tuple[Placed, ...], file: KubeconfigFile) -> int:
    from springtide.cli.applying import apply
    from springtide.cli.hosting import hosted
    from springtide.simulator.newcomers import resource_of

    async with AsyncExitStack() as stack:
        with given_up_when_told(stop):
            cluster = await stack.enter_async_context(hosted(hosting))
            server = cluster.cluster.server
            applied = await apply(
                cluster.transport, objects, lambda kind, version: resource_of(server, kind, version), manager=_MANAGER
            )
        for placed, answer in applied.refused:
            show_refusal(placed, answer.message)
        file.write(cluster.kubeconfig())
        click.echo(
            welcome(
                cluster.serving.url,
                cluster.cluster.clock,
                hosting,
                applied,
                file.path,
                metrics_url=cluster.metrics_url,
            )
        )
        await stop.wait()
    return 0
