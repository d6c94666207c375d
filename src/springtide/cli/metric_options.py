"""The options that say where metrics are read: in this process, or from a Prometheus with its proofs of who asks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from springtide.cli.offering import MetricSources

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path, dir_okay=False)
_OPTIONS = (
    click.option(
        "--metrics-source",
        type=click.Choice(["auto", "in-process", "prometheus"]),
        default="auto",
        show_default=True,
        help="Who answers queries of HorizontalAutoscalers; auto: this process for series of MetricsProducers of the"
        " same namespace, Prometheus for all else.",
    ),
    click.option(
        "--prometheus-url",
        metavar="URL",
        default="",
        help="The Prometheus that is asked; a Grant must list it for the namespaces that may.",
    ),
    click.option(
        "--prometheus-token-file", type=_FILE, help="A file with a bearer token for it; read when it changes."
    ),
    click.option("--prometheus-username", metavar="NAME", default="", help="A user name for it."),
    click.option("--prometheus-password-file", type=_FILE, help="A file with that user's password."),
    click.option(
        "--prometheus-header",
        metavar="NAME=VALUE",
        multiple=True,
        help="A header to send, such as X-Scope-OrgID=team-a; any number of them. Secrets belong into files.",
    ),
    click.option("--prometheus-ca-file", type=_FILE, help="A file with the authorities to trust there."),
    click.option("--prometheus-client-cert", type=_FILE, help="A file with a certificate to show there."),
    click.option("--prometheus-client-key", type=_FILE, help="A file with the key of that certificate."),
    click.option("--prometheus-server-name", metavar="NAME", default="", help="The name its certificate must be for."),
    click.option(
        "--prometheus-timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=10.0,
        show_default=True,
        metavar="SECONDS",
        help="How long an answer may take.",
    ),
)


def metric_options(command: F) -> F:
    """Add the options to a command, which is given what they mean as `sources`."""

    @functools.wraps(command)
    def with_sources(**given: Any) -> Any:
        ours = {name: given.pop(name) for name in list(given) if name.startswith("prometheus_")}
        return command(sources=_sources(given.pop("metrics_source"), ours), **given)

    decorated: Any = with_sources
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    made: F = decorated
    return made


def _sources(source: str, given: dict[str, Any]) -> MetricSources:
    # Here, so that help is instant.
    from springtide.cli.offering import MetricSources
    from springtide.metrics.reading.combined import Source
    from springtide.metrics.reading.prometheus_settings import PrometheusSettings

    if not given["prometheus_url"]:
        useless = [name for name, value in given.items() if value and name != "prometheus_timeout"]
        if useless or source == "prometheus":
            raise click.UsageError("--prometheus-url is missing: there is nobody to ask")
        return MetricSources(Source(source))
    try:
        settings = PrometheusSettings(
            url=given["prometheus_url"],
            headers=dict(_header(text) for text in given["prometheus_header"]),
            bearer_token_file=given["prometheus_token_file"],
            username=given["prometheus_username"],
            password_file=given["prometheus_password_file"],
            ca_file=given["prometheus_ca_file"],
            client_certificate_file=given["prometheus_client_cert"],
            client_key_file=given["prometheus_client_key"],
            server_name=given["prometheus_server_name"],
            timeout=given["prometheus_timeout"],
        )
    except ValueError as failure:
        raise click.UsageError(str(failure)) from None
    return MetricSources(Source(source), settings)


def _header(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        # Not shown: it may be a secret.
        raise ValueError("--prometheus-header must be NAME=VALUE")
    return name.strip(), value.strip()
