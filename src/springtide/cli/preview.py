"""`springtide preview`: what manifests, or objects of a cluster, will do over time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass

import click
import msgspec

from springtide.almanac import load_zone
from springtide.apis.core.workloads import ScaledObject
from springtide.apis.forecast import Forecast, ForecastQuery, to_plain
from springtide.apis.kinds import Kind, KindVersion
from springtide.apis.objects import LoadedObject, forecast_of, with_calendars
from springtide.apis.scheduled.autoscaler import HorizontalAutoscaler
from springtide.apis.scheduled.follower_forecast import forecast_follower
from springtide.apis.scheduled.followers import ScheduleFollower, read_followers
from springtide.assembly.manifests import CheckedManifests, ClusterChoice, LocatedProblem
from springtide.cli.console import data_pieces, note, show_problem, supports_colour, supports_unicode
from springtide.cli.options import (
    DurationType,
    ZoneType,
    cluster_options,
    default_timezone_option,
    parse_optional_moment,
    sources_argument,
)
from springtide.cli.pictures.formatting import printable
from springtide.cli.sources import note_missing_effects, read_and_check


@click.command("preview")
@sources_argument
@cluster_options
@click.option("--from", "start", metavar="TIME", help="Where the picture begins; the present if not given.")
@click.option("--for", "length", type=DurationType(), default="7d", show_default=True, help="How far it looks ahead.")
@click.option("--tz", type=ZoneType(), metavar="ZONE", help="Draw in this zone instead of the object's own.")
@click.option("--nodes", type=click.IntRange(min=0), metavar="N", help="Nodes of a pool: budgets become counts.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml", "svg", "html", "ics"]),
    default="text",
    show_default=True,
    help="json and yaml are for scripts, svg and html for documents, ics for calendars.",
)
@click.option("--title", metavar="TEXT", help="The heading of a picture, or the name of a calendar.")
@default_timezone_option
def command(
    names: tuple[str, ...],
    cluster: ClusterChoice,
    start: str | None,
    length: int,
    tz: str | None,
    nodes: int | None,
    output: str,
    title: str | None,
    default_timezone: str,
) -> None:
    """Show what manifests, or objects of a cluster, will do over time, daylight saving and collisions included.

    Draws the schedules of MetricsProducer, the rules of CronFederatedHPA, the windows of CapacityBuffer, the
    budgets of NodePool (a lane for each reason) and the days of Calendar. An autoscaler whose bounds cut what its
    schedule asks for is drawn beside that.

    \b
      springtide preview schedule.yaml --for 2w
      springtide preview pool.yaml --nodes 40 -o svg --title "Budgets" > budgets.svg
      springtide preview rules.yaml --from 2026-10-24 --tz Europe/Berlin
      springtide preview -n shop metricsproducer/peak

    With --cluster, -n, -A, --context or --kubeconfig arguments name objects of a cluster, as kubectl does: KIND/NAME,
    or KIND for all of them; without names all that depend on time are drawn. Files and a cluster do not mix.
    Calendars are those of the files, or of the cluster.

    TIME is RFC 3339 (2026-11-27T06:00:00Z), or a local time or date (2026-11-27T06:00, 2026-11-27) of --tz, else of
    --default-timezone. The present is the cluster's where objects come from one.

    Exit codes are those of `springtide check`.
    """
    if title is not None and output in ("json", "yaml"):
        raise click.UsageError(f"-o {output} has no title: --title is for pictures and calendars")
    checked = read_and_check(
        names,
        cluster,
        at=parse_optional_moment(start, load_zone(tz or default_timezone), "--from"),
        default_zone=default_timezone,
        wanted=_depends_on_time,
    )
    found = checked.manifests
    query = ForecastQuery(checked.at, checked.at + length, default_zone=default_timezone, nodes=nodes)
    named = cluster.requested and bool(names)
    drawn = _forecasts(found, query, named=named)
    if output in ("json", "yaml"):
        _write(_data(drawn, output))
    else:
        # A calendar of what autoscalers do beside what schedules say would have every entry twice, if not asked for.
        forecasts = [one.forecast for one in drawn if output != "ics" or named or not one.follows]
        _write(_picture(forecasts, output, zone=tz, now=checked.present, title=title))
    _show_unshown(found)
    note_missing_effects(found)
    if (output == "text" and not cluster.requested) or (output in ("text", "ics") and named):
        _note_undrawn(found, drawn)
    raise SystemExit(found.exit_code(strict=False))


def _depends_on_time(kind: Kind, version: KindVersion) -> bool:  # noqa: ARG001
    """Select the kinds that are drawn; of HorizontalAutoscalers those that follow a schedule."""
    return version.forecaster is not None or version.view is HorizontalAutoscaler


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The forecast of an object, and its problems."""

    loaded: LoadedObject
    forecast: Forecast
    problems: tuple[LocatedProblem, ...]
    follows: bool
    """Whether it is an autoscaler that follows a schedule."""


def _forecasts(found: CheckedManifests, query: ForecastQuery, *, named: bool) -> list[_Drawn]:
    """Forecast what depends on time, and the autoscalers that follow a schedule.

    Unless they were named, autoscalers are drawn where their bounds cut what the schedule asks for: else the picture
    of the schedule is theirs, too.
    """
    query = with_calendars(query, found.objects)
    followers = {id(follower.loaded): follower for follower in read_followers(found.objects)}
    # Of the related objects of a cluster, those that follow a schedule that is drawn.
    others = () if named else (loaded for loaded in found.related if id(loaded) in followers)
    drawn: list[_Drawn] = []
    for loaded in (*(manifest.object for manifest in found.manifests), *others):
        follower = followers.get(id(loaded))
        if follower is not None:
            forecast = forecast_follower(follower, query, always=named)
        else:
            forecast = forecast_of(loaded, query)
        if forecast is not None:
            drawn.append(_Drawn(loaded, forecast, found.problems_of(loaded), follower is not None))
    return drawn


def _picture(forecasts: list[Forecast], output: str, *, zone: str | None, now: int, title: str | None) -> Iterator[str]:
    match output:
        case "svg":
            from springtide.cli.pictures.svg import render_svg

            yield render_svg(forecasts, zone=zone, now=now, title=title)
        case "html":
            from springtide.cli.pictures.html import render_html

            yield render_html(forecasts, zone=zone, now=now, title=title)
        case "ics":
            from springtide.cli.pictures.ics import render_ics

            yield from render_ics(forecasts, title=title)
        case _:
            from springtide.cli.pictures.terminal import render_terminal

            yield render_terminal(
                forecasts,
                zone=zone,
                now=now,
                title=title,
                width=min(shutil.get_terminal_size().columns, 160),
                colour=supports_colour(),
                unicode=supports_unicode(),
            )


_PIECE = 1 << 16


def _write(pieces: Iterator[str]) -> None:
    """Print pieces as they are made: the first one at once, later ones together where they are short."""
    waiting: list[str] = []
    length = _PIECE
    for piece in pieces:
        waiting.append(piece)
        length += len(piece)
        if length >= _PIECE:
            click.echo("".join(waiting), nl=False)
            waiting.clear()
            length = 0
    click.echo("".join(waiting), nl=False)


def _data(drawn: list[_Drawn], output: str) -> Iterator[str]:
    objects = ({**to_plain(one.forecast), "problems": list(msgspec.to_builtins(one.problems))} for one in drawn)
    return data_pieces({"objects": objects}, output)


def _show_unshown(found: CheckedManifests) -> None:
    """Print on standard error, with every output format, the problems of what is no object of a known kind."""
    shown = {problem for manifest in found.manifests for problem in manifest.problems}
    for problem in found.problems:
        if problem not in shown:
            show_problem(problem, err=True)


def _note_undrawn(found: CheckedManifests, drawn: list[_Drawn]) -> None:
    """Print which objects are not drawn, and why; built-in kinds only where there are no others."""
    shown = {id(one.loaded) for one in drawn}
    followers = {id(follower.loaded): follower for follower in read_followers(found.objects)}
    only_builtin = all(manifest.object.kind.builtin for manifest in found.manifests)
    for manifest in found.manifests:
        loaded = manifest.object
        if id(loaded) in shown:
            continue
        if (follower := followers.get(id(loaded))) is not None:
            note(printable(f"{follower.label} {_follower_note(follower)}"))
        elif only_builtin or not loaded.kind.builtin:
            note(printable(f"{loaded.kind.kind} `{loaded.name}` does not depend on time"))


def _follower_note(follower: ScheduleFollower) -> str:
    names = ", ".join(f"`{one.name}`" for one in follower.followed)
    if isinstance(follower.loaded.view, ScaledObject):
        return (
            f"is not drawn: it follows MetricsProducer {names}, and KEDA also activates and deactivates it, after"
            " periods of its own"
        )
    if not follower.complete:
        return f"is not drawn: it follows MetricsProducer {names}, and metrics that are not schedules"
    bounds = follower.rules.bounds
    return f"follows MetricsProducer {names} within its bounds of {bounds.least} and {bounds.most}"
