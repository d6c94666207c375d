"""Writes a plan as an HTML page: the drawing, and tables of all nodes and of the pods that cannot be placed.

The page loads nothing and has no scripts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from springtide.cli.pictures.nodes import EXISTING, NodeGroup, PlanPicture, counted, dollars
from springtide.cli.pictures.nodes_svg import MOST_UNPLACED, draw_plan, style_of_plans
from springtide.cli.pictures.svg_canvas import FONT, Markup, escape, tag

_MOST_ROWS: Final = 400
_MOST_NAMES: Final = 20
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = (
    ":root{color-scheme:light dark;--paper:#ffffff;--page:#f3f5f8;--text:#1c2430;--faint:#5c6878;--line:#dde3ea}"
    "@media(prefers-color-scheme:dark)"
    "{:root{--paper:#14181f;--page:#0c0f14;--text:#e8ecf2;--faint:#9aa7b8;--line:#2b3442}}"
    f"body{{margin:0;background:var(--page);color:var(--text);font:14px/1.5 {FONT}}}"
    "main{max-width:1200px;margin:0 auto;padding:24px 16px 48px}"
    "section{background:var(--paper);border:1px solid var(--line);border-radius:10px;overflow:hidden;margin:0 0 24px}"
    # On a narrow screen the drawing is scrolled, not shrunk until its letters are illegible.
    ".drawing{overflow-x:auto}.drawing>svg{display:block;width:100%;height:auto;min-width:900px}"
    "details{padding:10px 28px}summary{cursor:pointer;font-weight:600}summary span{color:var(--faint);font-weight:400}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;margin:8px 0;font-variant-numeric:tabular-nums}"
    "th{text-align:left;color:var(--faint);font-weight:500}"
    "td,th{padding:4px 16px 4px 0;border-bottom:1px solid var(--line);vertical-align:top}"
    "td{overflow-wrap:anywhere}.number{text-align:right;white-space:nowrap}p{color:var(--faint);margin:8px 0}"
    "@media print{.drawing>svg{min-width:0}}"
)


def render_plan_html(picture: PlanPicture, *, title: str | None) -> str:
    """Write a plan as a page."""
    heading = title or picture.headline
    head = tag(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        tag("title", escape(heading)),
        tag("style", Markup(_STYLE)),
    )
    drawing = tag("div", draw_plan(picture, title=title, with_style=False), class_="drawing")
    shared_style = tag("svg", style_of_plans(), width=0, height=0, style="position:absolute", aria_hidden="true")
    sections = [tag("section", drawing, aria_label=picture.headline)]
    if picture.new:
        sections.append(_new_nodes(picture.new))
    if picture.existing:
        sections.append(_existing_nodes(picture.existing))
    if len(picture.unplaced) > MOST_UNPLACED:
        rows = [(each.text, each.because) for each in picture.unplaced]
        about = counted(picture.unplaceable, "pod")
        sections.append(_table("Cannot be placed", about, ("pods", "because"), rows, numbers=()))
    return f"<!doctype html>\n{tag('html', head, tag('body', shared_style, tag('main', *sections)), lang='en')}\n"


def _new_nodes(groups: Sequence[NodeGroup]) -> Markup:
    headings = ("nodes", "type", "pool", "zone", "capacity", "per hour", "cpu", "memory", "pods", "names")
    rows = [
        (
            f"{group.nodes:,}",
            group.type,
            group.pool,
            group.zone,
            group.capacity_type,
            dollars(group.price),
            f"{group.cpu_use} %",
            f"{group.memory_use} %",
            ", ".join(each.text for each in group.pods),
            _names(group.names),
        )
        for group in groups
    ]
    about = counted(sum(group.nodes for group in groups), "node")
    return _table("New nodes", about, headings, rows, numbers=(0, 5, 6, 7))


def _existing_nodes(groups: Sequence[NodeGroup]) -> Markup:
    rows = [
        (
            _names(group.names),
            f"{group.cpu_use} %",
            f"{group.memory_use} %",
            ", ".join(each.text for each in group.pods),
        )
        for group in groups
    ]
    headings = ("node", "cpu", "memory", "new pods")
    return _table(EXISTING, counted(len(groups), "node"), headings, rows, numbers=(1, 2))


def _names(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {rest:,} more" if rest > 0 else "")


def _table(
    heading: str, about: str, headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Iterable[int]
) -> Markup:
    aligned = dict.fromkeys(numbers, "number")
    head = tag("tr", *(tag("th", escape(name), class_=aligned.get(n), scope="col") for n, name in enumerate(headings)))
    body = [
        tag("tr", *(tag("td", escape(cell) or Markup(" "), class_=aligned.get(n)) for n, cell in enumerate(row)))
        for row in rows[:_MOST_ROWS]
    ]
    left = len(rows) - len(body)
    more = tag("p", escape(f"… and {left:,} more; -o json shows all")) if left > 0 else Markup("")
    summary = tag("summary", escape(f"{heading} "), tag("span", escape(about)))
    table = tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="wide")
    return tag("section", tag("details", summary, table, more, open="" if len(rows) <= 20 else None))
