"""What `springtide up` says when it is ready: where the cluster is, and what to try."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from springtide.apis.forecast import format_instant

if TYPE_CHECKING:
    from springtide.cli.hosting import Hosted, Hosting
    from springtide.cli.staging import Placed

_SHOWN_KINDS = 4


def welcome(hosted: Hosted, hosting: Hosting, objects: Sequence[Placed], kubeconfig: Path) -> str:
    """Put it into a few lines, the first of them for whoever reads only one."""
    names = ", ".join(controller.name for controller in hosting.controllers)
    kept = f"kept in {hosting.data}" if hosting.data is not None else "kept in memory only: --data DIR keeps it"
    facts = [
        f"{click.style('ready', fg='green', bold=True)}: the API server is {hosted.serving.url}",
        f"  controllers: {names}; manifests: {_counted(objects)}; {kept}",
    ]
    if hosting.speed != 1 or hosting.start is not None:
        now = format_instant(hosted.cluster.clock.now())
        facts.append(f"  its time is {now} now, and runs {hosting.speed:g} times as fast as the world's")
    commands = [
        (f"export KUBECONFIG={shlex.quote(str(kubeconfig.absolute()))}", "in another terminal"),
        ("kubectl get nodes,pods,calendars -A", ""),
        ("kubectl get events -A --watch", "what happens, and why"),
        ("kubectl explain calendar.spec", "every field of every kind"),
        ("kubectl apply -f FILE", "judged by the same webhooks as on a live cluster"),
    ]
    width = max(len(line) for line, _ in commands[1:])
    tips = [f"  {line:{width}}  {click.style(f'# {why}', dim=True)}" if why else f"  {line}" for line, why in commands]
    return "\n".join([*facts, "", *tips, "", "Ctrl-C ends it."])


def _counted(objects: Sequence[Placed]) -> str:
    """Tell how many objects there are, and of which kinds most are."""
    if not objects:
        return "none"
    kinds = Counter(placed.kind[1] for placed in objects).most_common()
    shown = [f"{count} {kind}" for kind, count in kinds[:_SHOWN_KINDS]]
    more = sum(count for _, count in kinds[_SHOWN_KINDS:])
    return ", ".join(shown) + (f" and {more} more" if more else "")
