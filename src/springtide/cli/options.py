"""Options and arguments that several commands have: times, zones, files, the cluster to read, sources of metrics."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from springtide.almanac import UnknownZone, Zone, load_zone
from springtide.apis.meta.times import parse_instant, written_time
from springtide.assembly.manifests import ClusterChoice
from springtide.quantity import DurationError, parse_span

if TYPE_CHECKING:
    from springtide.assembly.services import MetricSourceSettings


_LONGEST = 3660 * 86400
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class DurationType(click.ParamType[int]):
    """A duration in seconds, written as ``7d``, ``36h``, ``2w`` or ``1d12h``."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse a duration."""
        if isinstance(value, int):
            return value
        try:
            seconds = parse_span(value)
        except DurationError as failure:
            self.fail(f"{value!r} is not a length of time; {failure.hint}", param, ctx)
        if not 0 < seconds <= _LONGEST:
            self.fail(f"{value!r} must be longer than nothing and at most ten years", param, ctx)
        return seconds


class ZoneType(click.ParamType[str]):
    """The name of a time zone."""

    name = "zone"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check that the zone exists; the error suggests a similar name."""
        try:
            load_zone(value)
        except UnknownZone as failure:
            self.fail(f"{failure}; {failure.hint}" if failure.hint else str(failure), param, ctx)
        return str(value)


def parse_moment(text: str | None, zone: Zone, option: str) -> int:
    """Parse an RFC 3339 time, or a local time or date of a zone; without text the present is meant."""
    parsed = parse_optional_moment(text, zone, option)
    return int(time.time()) if parsed is None else parsed


def parse_optional_moment(text: str | None, zone: Zone, option: str) -> int | None:
    """Parse a time likewise; None means the present, by the clock of the cluster that is read."""
    if text is None or text == "now":
        return None
    if (instant := parse_offset_moment(text)) is not None:
        return instant
    local = written_time(f"{text}T00:00" if _DATE.fullmatch(text) else text)
    if local is None:
        message = f"{text!r} is not a time; write 2026-11-27T06:00:00Z, 2026-11-27T06:00 or 2026-11-27"
        raise click.BadParameter(message, param_hint=option)
    return zone.instant(local.wall)


def parse_offset_moment(text: str) -> int | None:
    """Parse a time that has an offset; None for all others."""
    try:
        return parse_instant(text)
    except ValueError:
        local = written_time(text)
        complete = local is not None and local.offset
        return parse_instant(f"{local.date}T{local.time}{local.offset.upper()}") if local and complete else None


def default_timezone_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--default-timezone``, the same option that controllers have."""
    return click.option(
        "--default-timezone",
        type=ZoneType(),
        default="UTC",
        show_default=True,
        metavar="ZONE",
        help="The zone of objects that name none.",
    )(command)


def files_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the manifests as arguments: files, folders, or ``-`` for standard input."""
    return click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR|-...")(command)


def sources_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the objects as arguments: manifests as above, or objects of a cluster by kind and name."""
    return click.argument("names", nargs=-1, metavar="[FILE|DIR|-|KIND[/NAME]]...")(command)


def _access_options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.option(
            "-n", "--namespace", metavar="NAME", help="The namespace; that of the kubeconfig context if not given."
        ),
        click.option("--context", metavar="NAME", help="The context of the kubeconfig, if not the current one."),
        click.option(
            "--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="The kubeconfig file to use."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to read from a cluster instead of files; the command gets a `ClusterChoice` as `cluster`."""

    @click.option("--cluster", "requested", is_flag=True, help="Read from a cluster; so do the next options.")
    @_access_options
    @click.option("-A", "--all-namespaces", "all_namespaces", is_flag=True, help="Read all namespaces of the cluster.")
    @wraps(command)
    def with_cluster(
        *,
        requested: bool,
        kubeconfig: Path | None,
        context: str | None,
        namespace: str | None,
        all_namespaces: bool,
        **others: Any,
    ) -> Any:
        if namespace and all_namespaces:
            raise click.UsageError("-n names one namespace and -A means all of them: leave one out")
        requested = requested or all_namespaces or any(given is not None for given in (kubeconfig, context, namespace))
        return command(cluster=ClusterChoice(kubeconfig, context, namespace, all_namespaces, requested), **others)

    return with_cluster


def object_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to read one object of a cluster; the command gets a `ClusterChoice` as `cluster`."""

    @_access_options
    @wraps(command)
    def with_cluster(*, kubeconfig: Path | None, context: str | None, namespace: str | None, **others: Any) -> Any:
        return command(cluster=ClusterChoice(kubeconfig, context, namespace, requested=True), **others)

    return with_cluster


F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path, dir_okay=False)
_OPTIONS = (
    click.option(
        "--metrics-source",
        type=click.Choice(["auto", "in-process", "prometheus"]),
        default="auto",
        show_default=True,
        help="Where queries of HorizontalAutoscalers run; auto: in this process for series of MetricsProducers of the"
        " same namespace, in Prometheus for all others.",
    ),
    click.option(
        "--prometheus-url",
        metavar="URL",
        default="",
        help="The address of the Prometheus; a Grant must list it for the namespaces that may query it.",
    ),
    click.option(
        "--prometheus-token-file", type=_FILE, help="A file with a bearer token for it; read again when it changes."
    ),
    click.option("--prometheus-username", metavar="NAME", default="", help="A user name for it."),
    click.option("--prometheus-password-file", type=_FILE, help="A file with that user's password."),
    click.option(
        "--prometheus-header",
        metavar="NAME=VALUE",
        multiple=True,
        help="A header to send, such as X-Scope-OrgID=team-a; any number of them. Secrets belong in files.",
    ),
    click.option("--prometheus-ca-file", type=_FILE, help="A file with the certificate authorities to trust."),
    click.option("--prometheus-client-cert", type=_FILE, help="A file with a client certificate."),
    click.option("--prometheus-client-key", type=_FILE, help="A file with the key of the client certificate."),
    click.option(
        "--prometheus-server-name", metavar="NAME", default="", help="The name that its certificate must have."
    ),
    click.option(
        "--prometheus-timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=10.0,
        show_default=True,
        metavar="SECONDS",
        help="The time limit of a query.",
    ),
)


def metric_options(command: F) -> F:
    """Add the options about metrics; the command gets a `MetricSourceSettings` as `sources`."""

    @functools.wraps(command)
    def with_sources(**given: Any) -> Any:
        ours = {name: given.pop(name) for name in list(given) if name.startswith("prometheus_")}
        return command(sources=_sources(given.pop("metrics_source"), ours), **given)

    decorated: Any = with_sources
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    made: F = decorated
    return made


def _sources(source: str, given: dict[str, Any]) -> MetricSourceSettings:
    # Imported late, so that --help is fast.
    from springtide.assembly.services import MetricSourceSettings
    from springtide.metrics.reading.prometheus import PrometheusSettings
    from springtide.metrics.reading.queries import QuerySource

    if not given["prometheus_url"]:
        unused = [name for name, value in given.items() if value and name != "prometheus_timeout"]
        if unused or source == "prometheus":
            raise click.UsageError("--prometheus-url is missing")
        return MetricSourceSettings(QuerySource(source))
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
    return MetricSourceSettings(QuerySource(source), settings)


def _header(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        # The text is not shown: it may be a secret.
        raise ValueError("--prometheus-header must be NAME=VALUE")
    return name.strip(), value.strip()
