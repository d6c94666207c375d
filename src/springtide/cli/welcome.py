"""What `springtide up` says when it is ready: where the cluster is, and what to try."""

from __future__ import annotations

import ipaddress
import shlex
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from springtide.apis.forecast import format_instant
from springtide.cluster.clock import Clock, ScaledClock

if TYPE_CHECKING:
    from springtide.cli.applying import Applied
    from springtide.cli.hosting import Hosting
    from springtide.cli.staging import Placed

_SHOWN_KINDS = 3
_WIDTH = 80
_INDENT = 15
_KUBECTL = "https://kubernetes.io/docs/tasks/tools"


def welcome(
    url: str, clock: Clock, hosting: Hosting, applied: Applied, kubeconfig: Path, *, metrics_url: str = ""
) -> str:
    """Put it into a few lines, the first of them for whoever reads only one."""
    ready = f"{click.style('ready', fg='green', bold=True)}: the API server is {url}"
    told = [*_facts(clock, hosting, applied), *([("metrics", f"{metrics_url}/metrics")] if metrics_url else [])]
    facts = [line for name, fact in told for line in _lines(name, fact)]
    commands = [
        (f"export KUBECONFIG={shlex.quote(str(kubeconfig.absolute()))}", "in another terminal"),
        ("kubectl get nodes,metricsproducers,cronfhpa -A", ""),
        ("kubectl get pods -A --watch", "what happens"),
        ("kubectl describe metricsproducers", "and why: conditions say it"),
        ("springtide explain KIND/NAME", "in words, with what comes next"),
        ("kubectl explain metricsproducer.spec", "every field of every kind"),
        ("kubectl apply -f FILE", "judged by webhooks, as on a live one"),
    ]
    width = max(len(line) for line, why in commands[1:] if why)
    tips = [f"  {line:{width}}  {click.style(f'# {why}', dim=True)}" if why else f"  {line}" for line, why in commands]
    return "\n".join([ready, *facts, "", *tips, "", "Ctrl-C ends it."])


def _lines(name: str, fact: str) -> Iterator[str]:
    """Write a fact beside its name, on as many lines as it takes."""
    for number, line in enumerate(
        textwrap.wrap(fact, _WIDTH - _INDENT, break_long_words=False, break_on_hyphens=False)
    ):
        yield f"  {name if number == 0 else '':<12} {line}"


def _facts(clock: Clock, hosting: Hosting, applied: Applied) -> Iterator[tuple[str, str]]:
    yield "controllers", ", ".join(controller.name for controller in hosting.controllers)
    yield "manifests", _counted(applied.objects)
    if applied.refused:
        yield "refused", f"{_counted([placed for placed, _ in applied.refused])}, as told above"
    yield "kept", f"in {hosting.data}" if hosting.data is not None else "in memory only; --data DIR keeps it"
    # Asked of the clock, not of the options: what is kept goes on with the time that it had.
    if isinstance(clock, ScaledClock):
        pace = "at the world's speed" if clock.speed == 1 else f"{clock.speed:g} times as fast as the world's"
        yield "its time", f"{format_instant(clock.now())} now, {pace}"
    if not _on_loopback(hosting.host):
        yield "reached", "by others as well: whoever has the token may do everything"
    if shutil.which("kubectl") is None:
        yield "kubectl", f"is not on your PATH; see {_KUBECTL}"


def _counted(objects: Sequence[Placed]) -> str:
    """Tell how many objects there are, and of which kinds most are."""
    if not objects:
        return "none"
    kinds = Counter(placed.kind[1] for placed in objects).most_common()
    shown = [f"{count} {kind}" for kind, count in kinds[:_SHOWN_KINDS]]
    more = sum(count for _, count in kinds[_SHOWN_KINDS:])
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _on_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
