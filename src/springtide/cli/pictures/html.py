"""Writes forecasts as an HTML page: drawings, tables of changes, and problems, in one file without scripts.

The page loads nothing: it can be sent by mail, attached to a review, or served with the strictest content policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from springtide.apis.forecast import format_instant
from springtide.apis.problems import format_path
from springtide.cli.pictures.formatting import format_relative, format_subject
from springtide.cli.pictures.lanes import describe_value
from springtide.cli.pictures.svg import draw
from springtide.cli.pictures.svg_canvas import FONT, Markup, escape, style_element, tag
from springtide.cli.pictures.time_axis import clock_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from springtide.apis.forecast import Forecast, Lane, LaneChange
    from springtide.apis.problems import Problem
    from springtide.cli.pictures.time_axis import ZoneClock


_MOST_ROWS: Final = 400
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"

_STYLE: Final = (
    ":root{color-scheme:light dark;--paper:#ffffff;--page:#f3f5f8;--ink:#1c2430;--muted:#5c6878;"
    "--rule:#dde3ea;--error:#b3261e;--warning:#8a5a00}"
    "@media(prefers-color-scheme:dark){:root{--paper:#14181f;--page:#0c0f14;--ink:#e8ecf2;--muted:#9aa7b8;"
    "--rule:#2b3442;--error:#ff8a80;--warning:#f0b93a}}"
    f"body{{margin:0;background:var(--page);color:var(--ink);font:14px/1.5 {FONT}}}"
    "main{max-width:1200px;margin:0 auto;padding:24px 16px 48px}"
    "h1{font-size:24px;margin:8px 0 4px}p{margin:0 0 16px;color:var(--muted)}"
    "section{background:var(--paper);border:1px solid var(--rule);border-radius:10px;overflow:hidden}"
    "section{margin:0 0 24px}"
    # On a narrow screen a drawing is scrolled, not shrunk until its letters are illegible.
    ".drawing{overflow-x:auto}.drawing>svg{display:block;width:100%;height:auto;min-width:900px}"
    "details,.problems{border-top:1px solid var(--rule);padding:10px 28px;margin:0}"
    "summary{cursor:pointer;font-weight:600}summary span{color:var(--muted);font-weight:400}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;margin:8px 0}"
    "table{font-variant-numeric:tabular-nums}"
    "th{text-align:left;color:var(--muted);font-weight:500}"
    "td,th{padding:4px 16px 4px 0;border-bottom:1px solid var(--rule);vertical-align:top}"
    "td:nth-child(-n+3){white-space:nowrap}td:nth-child(3){font-weight:600}"
    ".problems{list-style:none}.problems li{margin:4px 0}"
    ".error{color:var(--error)}.warning{color:var(--warning)}"
    "h1,summary,li,td:last-child{overflow-wrap:anywhere}"
    "@media(max-width:720px){details,.problems{padding:10px 14px}thead{display:none}"
    "tr{display:flex;flex-wrap:wrap;border-bottom:1px solid var(--rule)}td{border:0;padding:2px 14px 2px 0}"
    "td:last-child{flex-basis:100%}}"
    "@media print{.drawing>svg{min-width:0}}"
    "code{font:12px ui-monospace,'SF Mono',Menlo,Consolas,monospace}"
)


def render_html(forecasts: Sequence[Forecast], *, zone: str | None, now: int, title: str | None) -> str:
    """Write forecasts as one page; ``zone`` overrides the zone that each object is written in."""
    heading = title or "What will happen"
    head = tag(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        tag("title", escape(heading)),
        tag("style", Markup(_STYLE)),
    )
    shared_style = tag("svg", style_element(), width=0, height=0, style="position:absolute", aria_hidden="true")
    sections = [_section(forecast, zone=zone, now=now) for forecast in forecasts]
    body = tag(
        "body",
        shared_style,
        tag(
            "main",
            tag("h1", escape(heading)),
            tag("p", escape(f"as of {format_instant(now)}")),
            *(sections or [tag("p", escape("nothing to show"))]),
        ),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _section(forecast: Forecast, *, zone: str | None, now: int) -> Markup:
    clock = clock_for(forecast, zone)
    return tag(
        "section",
        tag("div", draw((forecast,), zone=zone, now=now, title=None, with_style=False), class_="drawing"),
        _problems(forecast.problems),
        *(_changes(lane, clock, now) for lane in forecast.drawn),
        aria_label=format_subject(forecast),
    )


def _problems(problems: Sequence[Problem]) -> Markup:
    if not problems:
        return Markup("")
    return tag("ul", *(_problem(problem) for problem in problems), class_="problems")


def _problem(problem: Problem) -> Markup:
    hint = f" ({problem.hint})" if problem.hint else ""
    return tag(
        "li",
        tag("strong", escape(problem.severity), class_=problem.severity),
        Markup(" "),
        tag("code", escape(format_path(problem.path))),
        escape(f"{': ' if problem.path else ''}{problem.message}{hint}"),
    )


def _changes(lane: Lane, clock: ZoneClock, now: int) -> Markup:
    count = len(lane.changes)
    total = "no changes" if not count else "1 change" if count == 1 else f"{count:,} changes"
    about = tag("summary", escape(f"{lane.name} "), tag("span", escape(total)))
    rows = [_row(lane, change, clock, now) for change in lane.changes[:_MOST_ROWS]]
    left_out = count - len(rows)
    more = tag("p", escape(f"… and {left_out:,} more; -o json shows all")) if left_out else Markup("")
    head = tag("tr", *(tag("th", escape(name), scope="col") for name in ("when", "from now", "value", "because")))
    table = tag("table", tag("thead", head), tag("tbody", *rows)) if rows else tag("p", escape(_steady(lane)))
    return tag("details", about, tag("div", table, class_="wide"), more, open=_is_short(lane))


def _row(lane: Lane, change: LaneChange, clock: ZoneClock, now: int) -> Markup:
    when = tag("time", escape(clock.moment(change.at, year=True)), datetime=format_instant(change.at))
    cells = (format_relative(change.at, now), describe_value(lane, change.value), change.because)
    return tag("tr", tag("td", when), *(tag("td", escape(cell) or Markup(" ")) for cell in cells))


def _steady(lane: Lane) -> str:
    return f"{describe_value(lane, lane.current)} throughout" + (f": {lane.because}" if lane.because else "")


def _is_short(lane: Lane) -> str | None:
    return "" if len(lane.changes) <= 12 else None
