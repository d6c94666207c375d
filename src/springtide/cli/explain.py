"""`springtide explain`: what an object of a cluster wants now, why, what comes next, and what stopped it."""

from __future__ import annotations

import asyncio
import shutil

import click

from springtide.almanac import load_zone
from springtide.cli.arguments import default_timezone_option, parse_named_moment
from springtide.cli.cluster_options import ClusterChoice, object_options


@click.command("explain")
@click.argument("name", metavar="KIND/NAME")
@object_options
@click.option("--at", "moment", metavar="TIME", help="The time to explain; the present if not given.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True, help="The form."
)
@default_timezone_option
def command(name: str, cluster: ClusterChoice, moment: str | None, output: str, default_timezone: str) -> None:
    """Tell what an object of a cluster wants now, why, what comes next, and what stopped it.

    \b
      springtide explain metricsproducer/peak -n shop
      springtide explain cronfhpa/nightly -n shop --context production
      springtide explain horizontalautoscaler/web -o json | jq .stopped

    Explains MetricsProducer, HorizontalAutoscaler, ScalableNodeGroup and CronFederatedHPA. It only reads: the object
    and its events, what it scales, Calendars, Grants, and whatever else follows or scales the same. What may not be
    read is told, and left out. It needs no controller: where none has reported, the answer comes from the object alone.

    \b
    -o json and yaml have these keys; times are UTC, null is "none" or "not known":
      apiVersion, kind, namespace, name, at
      wants       {"replicas": 6, "behavior": "day", "timezone": …} of a schedule,
                  {"replicas": 6} of an autoscaler or a group of nodes,
                  {"replicas"|"min"|"max": 6} of cron rules: what they set last
      because     [sentence]
      next        [{"at", "value", "lane", "because"}]; values as in `springtide preview -o json`
      nextUnknown why it is not known what comes next, else null
      stopped     [{"what", "why", "until"}]: empty means that nothing is in the way
      conditions  [{"type", "status", "reason", "message", "since"}]
      history     [{"at", "what", "bad"}]: executions and events, newest first
      notes       [sentence]

    TIME is RFC 3339 (2026-11-27T06:00:00Z), or a local time or date of --default-timezone. The present is the
    cluster's, also where its clock is its own, as with `springtide up --speed`. For another time the answer follows
    from schedules and rules; conditions, events and the target are still those of the present.

    \b
    Exit codes: 0 explained, whatever stops it; 2 there is no such object, or no cluster.
    """
    word, slash, called = name.partition("/")
    if not slash or not word or not called:
        raise click.UsageError(f"{name!r} is not KIND/NAME, such as metricsproducer/peak")
    at = parse_named_moment(moment, load_zone(default_timezone), "--at")
    # Here, so that help is instant.
    from springtide.apis.explaining import Facts, explain
    from springtide.cli.connecting import NoSuchThing, connected
    from springtide.cli.explaining import render
    from springtide.cli.gathering import gather_facts
    from springtide.cli.running import failed
    from springtide.cli.screen import as_data, speaks_unicode
    from springtide.cluster.errors import ClusterError

    async def gathered() -> Facts:
        async with connected(cluster) as connection:
            return await gather_facts(connection, word, called, at=at, default_zone=default_timezone)

    try:
        explanation = explain(asyncio.run(gathered()))
    except NoSuchThing as missing:
        failed(f"{missing}; {missing.hint}" if missing.hint else str(missing))
        raise SystemExit(2) from None
    except ClusterError as failure:
        failed(str(failure))
        raise SystemExit(2) from None
    if output == "text":
        text = render(explanation, width=shutil.get_terminal_size().columns, unicode=speaks_unicode())
        click.echo(text, nl=False)
    else:
        click.echo(as_data(explanation.document(), output), nl=False)
