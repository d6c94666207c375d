"""`springtide explain`: what an object of a cluster wants now, why, what comes next, and what stops it.

The text for terminals has labels on the left and wrapped sentences to the right of them.
"""

from __future__ import annotations

import asyncio
import shutil
import textwrap
from collections.abc import Iterator, Sequence

import click

from springtide.almanac import load_zone
from springtide.apis.meta.times import clock_time, date_and_time
from springtide.apis.redaction import redacted
from springtide.assembly.manifests import ClusterChoice
from springtide.cli.options import default_timezone_option, object_options, parse_optional_moment
from springtide.cli.pictures.formatting import format_relative, format_value, printable
from springtide.controllers.explanation import Explanation, ObservedCondition, PastEvent, UpcomingChange

_LABEL = 12
_WIDEST = 100
_COLOURS = {"True": "green", "False": "red"}


def render_explanation(explanation: Explanation, *, width: int, unicode: bool) -> str:
    """Render an explanation as text; lines are no longer than `width`, unless a single word is."""
    page = _Page(min(width, _WIDEST), unicode=unicode)
    sections = [
        page.section("wants", [click.style(printable(explanation.headline), bold=True)]),
        page.section("because", [page.wrapped(text) for text in explanation.because]),
        page.section("next", [*page.table(explanation), *page.unknown_next(explanation)]),
        page.section("stopped by", page.stops(explanation), colour="red" if explanation.stopped else "cyan"),
        page.section("conditions", [page.condition(one, explanation) for one in explanation.conditions]),
        page.section("happened", page.events(explanation)),
        page.section("notes", [page.wrapped(text) for text in explanation.notes]),
    ]
    return "\n".join([*page.title(explanation), "", *(line for section in sections for line in section)]) + "\n"


class _Page:
    def __init__(self, width: int, *, unicode: bool) -> None:
        self._width = width
        self._unicode = unicode

    def title(self, explanation: Explanation) -> list[str]:
        """Write the object and the time, on two lines where one is too short."""
        subject = explanation.subject
        name = printable(f"{subject.kind}/{subject.name}")
        where = f" in namespace {subject.namespace}" if subject.namespace is not None else ""
        when = _moment(subject.at, explanation.zone)
        whole = f"{name}{where}, {when}"
        texts = [whole] if len(whole) <= self._width else [f"{name}{where}", f"  {when}"]
        lines = [line for text in texts for line in self._broken(text, self._width, "  ")]
        return [click.style(name, bold=True) + lines[0].removeprefix(name), *lines[1:]]

    def section(self, label: str, entries: Sequence[str], *, colour: str = "cyan") -> Iterator[str]:
        """Write entries below each other, with a label before the first line."""
        head = click.style(label.ljust(_LABEL), fg=colour)
        for entry in entries:
            for line in entry.split("\n"):
                yield head + line
                head = " " * _LABEL

    def wrapped(self, text: str, hang: str = "  ") -> str:
        """Wrap a text; all lines but the first are indented."""
        return "\n".join(self._broken(printable(redacted(text)), self._width - _LABEL, hang))

    @staticmethod
    def _broken(text: str, width: int, hang: str) -> list[str]:
        return textwrap.wrap(text, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)

    def table(self, explanation: Explanation) -> list[str]:
        """List the next changes: local time, UTC, time until then, value, and reason."""
        rows = [self._row(coming, explanation) for coming in explanation.next]
        widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
        return [
            self._beside([cell.ljust(width) for cell, width in zip(row, widths, strict=False) if width], row[4])
            for row in rows
        ]

    def unknown_next(self, explanation: Explanation) -> list[str]:
        """Say why no (further) changes are known, where there may be some."""
        return [self.wrapped(f"not known: {explanation.next_unknown}")] if explanation.next_unknown else []

    def _row(self, coming: UpcomingChange, explanation: Explanation) -> tuple[str, str, str, str, str]:
        local = date_and_time(coming.at, load_zone(coming.zone))
        if coming.zone == explanation.zone:
            local = local.removesuffix(f" {coming.zone}")  # the title has it
        value = format_value(coming.value, unicode=self._unicode)
        # The row has the time already.
        because = coming.because.replace(f" ({clock_time(coming.at, load_zone(coming.zone))})", "")
        relative = format_relative(coming.at, explanation.subject.at)
        return local, _in_utc(coming.at, coming.zone), relative, value, because

    def _beside(self, cells: Sequence[str], text: str) -> str:
        """Write a reason behind the cells if it fits there, else below; lines break only between cells."""
        text = printable(redacted(text))
        row = "  ".join(cells)
        if len(row) + 2 + len(text) <= self._width - _LABEL:
            return f"{row}  {click.style(text, dim=True)}"
        lines = [cells[0]]
        for cell in cells[1:]:
            if len(f"{lines[-1]}  {cell}".rstrip()) <= self._width - _LABEL:
                lines[-1] += f"  {cell}"
            else:
                lines.append(f"  {cell}")
        whole = "\n".join(line.rstrip() for line in lines)
        return f"{whole}\n{click.style(self.wrapped('  ' + text, '    '), dim=True)}"

    def stops(self, explanation: Explanation) -> list[str]:
        """Write what stops the object, and until when."""
        return [
            self.wrapped(
                f"{stop.what}: {stop.why}"
                + ("" if stop.until is None else f"; until {_moment(stop.until, explanation.zone)}")
            )
            for stop in explanation.stopped
        ] or ["nothing"]

    def condition(self, condition: ObservedCondition, explanation: Explanation) -> str:
        """Write a condition; instead of a message that the page has already, its reason."""
        state = click.style(condition.status.ljust(8), fg=_COLOURS.get(condition.status, "yellow"))
        others = [one.message for one in explanation.conditions if one.type != "Ready" and one.message]
        repeated = (
            not condition.message
            or any(condition.message in stop.why for stop in explanation.stopped)
            or condition.message in "; ".join(explanation.because)
            or (condition.type == "Ready" and any(message in condition.message for message in others))
        )
        text = condition.reason if repeated else condition.message
        return state + self.wrapped(f"{' ' * 8}{condition.type}: {text}", " " * 10).removeprefix(" " * 8)

    def events(self, explanation: Explanation) -> list[str]:
        """Write past events with their times, without failures that a condition still reports."""
        current = [one.message for one in explanation.conditions if one.message]
        return [
            self._event(one, explanation.zone)
            for one in explanation.history
            if not (one.bad and any(message in one.what for message in current))
        ]

    def _event(self, event: PastEvent, zone: str) -> str:
        when = date_and_time(event.at, load_zone(zone)).removesuffix(f" {zone}")
        text = self.wrapped(f"{when}  {event.what}")
        return click.style(text, fg="yellow") if event.bad else text


def _moment(at: int, zone: str) -> str:
    local = date_and_time(at, load_zone(zone))
    return local if zone == "UTC" else f"{local} ({_in_utc(at, zone)})"


def _in_utc(at: int, zone: str) -> str:
    """Write the time in UTC, with the date where it is another day in UTC."""
    if zone == "UTC":
        return ""
    there, here = (date_and_time(at, load_zone(name)).split(" ")[0] for name in ("UTC", zone))
    return clock_time(at, load_zone("UTC")) if there == here else f"{there} {clock_time(at, load_zone('UTC'))}"


@click.command("explain")
@click.argument("name", metavar="KIND/NAME")
@object_options
@click.option("--at", "moment", metavar="TIME", help="The time to explain; the present if not given.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="The output format.",
)
@default_timezone_option
def command(name: str, cluster: ClusterChoice, moment: str | None, output: str, default_timezone: str) -> None:
    """Say what an object of a cluster wants now, why, what comes next, and what stops it.

    \b
      springtide explain metricsproducer/peak -n shop
      springtide explain cronfhpa/nightly -n shop --context production
      springtide explain horizontalautoscaler/web -o json | jq .stopped
      springtide explain deployment/web                       what scales it, and why
      springtide explain calendar/holidays                    its next days, and what depends on them

    Explains MetricsProducer, HorizontalAutoscaler, ScalableNodeGroup, CronFederatedHPA and Calendar; and, by what
    scales them, Deployment, StatefulSet, ReplicaSet, ReplicationController, HorizontalPodAutoscaler, FederatedHPA and
    ScaledObject. It only reads: the object and its events, its scale target, Calendars, Grants, and other objects that
    read or scale the same. Kinds that may not be read are named in a note. No controller is needed: without its status,
    the answer comes from the object.

    \b
    -o json and yaml have these keys; times are UTC, null is "none" or "not known":
      apiVersion, kind, namespace, name, at
      wants       {"replicas": 6, "behavior": "day", "timezone": …} of a schedule,
                  {"replicas": 6} of an autoscaler or a group of nodes,
                  {"replicas"|"min"|"max": 6} of cron rules: what they set last,
                  {"active": true} of a calendar; of a workload, that of what
                  scales it, and {} if nothing does
      because     [sentence]
      next        [{"at", "value", "lane", "because"}]; values as in `springtide preview -o json`
      nextUnknown why it is not known what comes next, else null
      stopped     [{"what", "why", "until"}]: empty means that nothing stops it
      conditions  [{"type", "status", "reason", "message", "since"}]
      history     [{"at", "what", "bad"}]: executions and events, newest first
      notes       [sentence]

    TIME is RFC 3339 (2026-11-27T06:00:00Z), or a local time or date of --default-timezone. The present is the
    cluster's, whose clock can be another one, as with `springtide up --speed`. For another time the answer follows
    from schedules and rules; conditions, events and the target are still those of the present.

    \b
    Exit codes: 0 explained, also if something stops it; 2 there is no such object, or no cluster.
    """
    kind, slash, object_name = name.partition("/")
    if not slash or not kind or not object_name:
        raise click.UsageError(f"{name!r} is not KIND/NAME, such as metricsproducer/peak")
    at = parse_optional_moment(moment, load_zone(default_timezone), "--at")
    # Imported late, so that --help is fast.
    from springtide.assembly.cluster_reader import UnknownNameError, connect
    from springtide.assembly.explanation_reader import read_explanation_input
    from springtide.cli.console import as_data, show_failure, supports_unicode
    from springtide.cluster.errors import ClusterError
    from springtide.controllers.explain import explain
    from springtide.controllers.explanation import ExplanationInput

    async def read() -> ExplanationInput:
        async with connect(cluster) as connection:
            return await read_explanation_input(connection, kind, object_name, at=at, default_zone=default_timezone)

    try:
        explanation = explain(asyncio.run(read()))
    except UnknownNameError as missing:
        show_failure(f"{missing}; {missing.hint}" if missing.hint else str(missing))
        raise SystemExit(2) from None
    except ClusterError as failure:
        show_failure(str(failure))
        raise SystemExit(2) from None
    if output == "text":
        text = render_explanation(explanation, width=shutil.get_terminal_size().columns, unicode=supports_unicode())
        click.echo(text, nl=False)
    else:
        click.echo(redacted(as_data(explanation.document(), output)), nl=False)
