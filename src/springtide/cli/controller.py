"""`springtide controller`: the controllers on a live cluster, in any number of replicas."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from springtide.apis.redaction import redacted_address
from springtide.cli.console import logging_options, show_failure
from springtide.cli.options import default_timezone_option, metric_options
from springtide.cli.stop_signals import run_until_signalled
from springtide.quantity import whole_number

if TYPE_CHECKING:
    from springtide.assembly.services import MetricSourceSettings
    from springtide.cluster.admission.configurations import ServiceTarget


_METRICS_PORT = 8080
_HEALTH_PORT = 8081
_WEBHOOK_PORT = 9443
_EXTERNAL_METRICS_PORT = 6443
_POD_IP = "POD_IP"
"""The environment variable with the IP address of this process's pod; the chart sets it."""


def _https(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001
    if value and (urlsplit(value).scheme != "https" or not urlsplit(value).hostname):
        raise click.BadParameter(
            f"{redacted_address(value)!r} is not an address that an API server can call; write https://HOST[:PORT]"
        )
    return value


def _service(ctx: click.Context, param: click.Parameter, value: str) -> str:  # noqa: ARG001
    name, _, port = value.partition(":")
    if value and (not name or (":" in value and not 0 < (whole_number(port) or 0) < 65536)):
        raise click.BadParameter(f"{value!r} is not a Service; write NAME or NAME:PORT")
    return value


@click.command("controller")
@click.option("--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="The kubeconfig file to use.")
@click.option("--context", metavar="NAME", help="The context of it to use, if not the current one.")
@click.option(
    "--controllers",
    metavar="NAMES",
    default="*",
    show_default=True,
    help="Which controllers run: a,b for these, -c for all but that.",
)
@click.option(
    "--mode",
    type=click.Choice(["observe", "act"]),
    default="act",
    show_default=True,
    help="observe: decide, and write events, logs and metrics of the process, but nothing else.",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="Whether replicas elect a leader, which alone acts.",
)
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    default="springtide-system",
    show_default=True,
    help="The namespace of Springtide itself: its Lease, pause switch and certificates. All namespaces are watched.",
)
@default_timezone_option
@click.option("--metrics-host", default="127.0.0.1", show_default=True, help="The address of metrics.")
@click.option(
    "--metrics-port",
    type=click.IntRange(-1, 65535),
    default=_METRICS_PORT,
    show_default=True,
    help="Their port; 0 takes any free one, -1 serves none.",
)
@click.option("--health-host", default="127.0.0.1", show_default=True, help="The address of health, for probes.")
@click.option(
    "--health-port",
    type=click.IntRange(-1, 65535),
    default=_HEALTH_PORT,
    show_default=True,
    help="Its port; 0 takes any free one, -1 serves none.",
)
@click.option(
    "--webhooks/--no-webhooks", default=False, show_default=True, help="Whether admission webhooks are served."
)
@click.option("--webhook-host", default="127.0.0.1", show_default=True, help="The address of webhooks.")
@click.option(
    "--webhook-port",
    type=click.IntRange(0, 65535),
    default=_WEBHOOK_PORT,
    show_default=True,
    help="Their port; 0 takes any free one.",
)
@click.option(
    "--webhook-service",
    metavar="NAME[:PORT]",
    default="",
    callback=_service,
    help="The Service through which the API server calls them; its port is 443 if not given.",
)
@click.option(
    "--webhook-url",
    metavar="URL",
    default="",
    callback=_https,
    help="The URL at which the API server calls them, where there is no Service.",
)
@click.option(
    "--webhook-client-ca-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The authorities, in PEM, that sign the client certificate of the API server: only clients with such a"
    " certificate can connect to webhooks. Read again when the file changes. Without it, every client can.",
)
@click.option(
    "--webhook-client-name",
    "webhook_client_names",
    metavar="NAME",
    multiple=True,
    help="A common name or DNS name that the client certificate must have; repeatable. Any, if not given.",
)
@metric_options
@click.option(
    "--external-metrics/--no-external-metrics",
    default=False,
    show_default=True,
    help="Whether series of MetricsProducers are served as external.metrics.k8s.io, to stock autoscalers. A cluster has"
    " one such API service: where another one is installed, it is left alone and readiness reports it.",
)
@click.option(
    "--external-metrics-host", default="127.0.0.1", show_default=True, help="The address of external metrics."
)
@click.option(
    "--external-metrics-port",
    type=click.IntRange(0, 65535),
    default=_EXTERNAL_METRICS_PORT,
    show_default=True,
    help="Their port; 0 takes any free one.",
)
@click.option(
    "--external-metrics-service",
    metavar="NAME[:PORT]",
    default="",
    callback=_service,
    help="The Service through which the API server calls them; its port is 443 if not given.",
)
@logging_options(level="info")
def command(
    kubeconfig: Path | None,
    context: str | None,
    controllers: str,
    mode: str,
    leader_elect: bool,
    namespace: str,
    default_timezone: str,
    metrics_host: str,
    metrics_port: int,
    health_host: str,
    health_port: int,
    sources: MetricSourceSettings,
    external_metrics: bool,
    external_metrics_host: str,
    external_metrics_port: int,
    external_metrics_service: str,
    webhooks: bool,
    webhook_host: str,
    webhook_port: int,
    webhook_service: str,
    webhook_url: str,
    webhook_client_ca_file: Path | None,
    webhook_client_names: tuple[str, ...],
    log_format: str,
    log_level: str,
) -> None:
    """Run the controllers on a live cluster.

    Which cluster: --kubeconfig or --context if given, else the environment's KUBECONFIG, else the service account of
    the pod this runs in, else ~/.kube/config. Replicas elect a leader by a Lease; the others have synced caches.

    \b
      springtide controller --mode observe                 see what it would do, and change nothing
      springtide controller --controllers calendar
      springtide controller --controllers=-calendar        all but that one
      springtide controller --webhooks --webhook-service springtide-webhooks
      springtide controller --prometheus-url http://prometheus.monitoring:9090/

    `/metrics` is served on --metrics-port, `/healthz` and `/readyz` on --health-port. At Ctrl-C or SIGTERM it shuts
    down: no new reconciles start, running ones are finished, the lease is released. The chart in charts/springtide
    installs it; see docs/operations.md. Requests to a cluster that does not answer are retried until it does.

    Exit codes: 0 shut down; 1 no cluster is named, or a port is taken; 2 the command line is wrong; 130 forced to stop
    by a second Ctrl-C.
    """
    # Imported late, so that --help is fast.
    from springtide.assembly.live_cluster import (
        ControllerProcessSettings,
        ExternalMetricsSettings,
        InvalidSelection,
        ListenAddress,
        WebhookSettings,
        run_live,
        select_controllers,
    )
    from springtide.cluster.admission.configurations import UrlTarget
    from springtide.cluster.certificates.clients import AuthoritiesFile, ClientVerification, InvalidAuthorities
    from springtide.cluster.client import Mode
    from springtide.cluster.http import AccessError, find_access
    from springtide.cluster.logs import configure
    from springtide.cluster.serving import ServingFailed
    from springtide.controllers import CONTROLLERS

    if webhooks and bool(webhook_service) == bool(webhook_url):
        raise click.UsageError(
            "--webhooks needs either --webhook-service or --webhook-url: where the API server calls them"
        )
    if webhook_client_ca_file is not None and not webhooks:
        raise click.UsageError("--webhook-client-ca-file needs --webhooks")
    if webhook_client_names and webhook_client_ca_file is None:
        raise click.UsageError("--webhook-client-name needs --webhook-client-ca-file: names alone verify nothing")
    if external_metrics and not external_metrics_service:
        raise click.UsageError("--external-metrics needs --external-metrics-service: where the API server calls them")
    try:
        chosen = select_controllers(controllers, CONTROLLERS)
    except InvalidSelection as failure:
        raise click.BadParameter(str(failure), param_hint="--controllers") from None
    try:
        clients = (
            ClientVerification(AuthoritiesFile(webhook_client_ca_file), webhook_client_names)
            if webhook_client_ca_file is not None
            else None
        )
    except InvalidAuthorities as failure:
        raise click.BadParameter(str(failure), param_hint="--webhook-client-ca-file") from None
    settings = ControllerProcessSettings(
        controllers=chosen,
        mode=Mode(mode),
        elect=leader_elect,
        namespace=namespace,
        default_zone=default_timezone,
        metrics=ListenAddress(metrics_host, metrics_port) if metrics_port >= 0 else None,
        health=ListenAddress(health_host, health_port) if health_port >= 0 else None,
        webhooks=(
            WebhookSettings(
                ListenAddress(webhook_host, webhook_port),
                _target(webhook_service, namespace) if webhook_service else UrlTarget(webhook_url),
                clients,
            )
            if webhooks
            else None
        ),
        sources=sources,
        external_metrics=(
            ExternalMetricsSettings(
                ListenAddress(external_metrics_host, external_metrics_port),
                _target(external_metrics_service, namespace),
                pod_address=os.environ.get(_POD_IP, ""),
            )
            if external_metrics
            else None
        ),
    )
    configure(sys.stderr, log_level, log_format)
    try:
        found = find_access(kubeconfig, context)
        code = run_until_signalled(lambda stop: run_live(stop, found, settings))
    except AccessError as failure:
        code = show_failure(str(failure))
    except ServingFailed as failure:
        code = show_failure(f"{failure}; --metrics-port, --health-port and --webhook-port choose other ports")
    raise SystemExit(code)


def _target(text: str, namespace: str) -> ServiceTarget:
    """Parse the name of a Service; its port is 443 if not given."""
    from springtide.cluster.admission.configurations import ServiceTarget

    name, _, port = text.partition(":")
    return ServiceTarget(namespace, name, int(port or 443))
