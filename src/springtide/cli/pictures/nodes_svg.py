"""Draws a plan as one SVG without external resources: cards of nodes, with a tile for each pod.

The upper bar of a card is cpu, the lower one memory. What the system, DaemonSets and running pods have is hatched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from springtide.cli.pictures.nodes import (
    EXISTING,
    NodeGroup,
    PlanPicture,
    StrategyResult,
    WorkloadPods,
    after_rollouts,
    amount_of_cpu,
    amount_of_memory,
    counted,
    dollars,
    merged_groups,
)
from springtide.cli.pictures.svg_canvas import (
    FONT,
    MARGIN,
    RIGHT,
    WIDTH,
    Markup,
    join,
    label,
    longest_fit,
    tag,
    text_width,
    tooltip,
    wrap,
)

# Light and dark; text on all of them is legible in the ink of the palette.
_WORKLOADS: Final = (
    ("#8cc2e6", "#2b6c99"),
    ("#f2b866", "#8f5f10"),
    ("#7fcdb4", "#12755a"),
    ("#dfa3c6", "#8a4a70"),
    ("#ede07a", "#776e16"),
    ("#f0a27d", "#96502a"),
    ("#b9acec", "#5f50a8"),
    ("#bccb7e", "#5e6b22"),
)
_PLAIN: Final = (
    ("paper", "fill", "#ffffff", "#14181f"),
    ("card", "fill", "#f7f9fb", "#1b212b"),
    ("edge", "stroke", "#d5dce4", "#323c4b"),
    ("ink", "fill", "#1c2430", "#e8ecf2"),
    ("muted", "fill", "#5c6878", "#9aa7b8"),
    ("track", "fill", "#e9edf2", "#262e3a"),
    ("gap", "stroke", "#f7f9fb", "#1b212b"),
    ("reserved", "stroke", "#aab4c0", "#596679"),
    ("other", "fill", "#c3cad4", "#4a5564"),
    ("pill", "fill", "#dde5ee", "#323c4b"),
    ("cost", "fill", "#8cc2e6", "#2b6c99"),
    ("alarm", "fill", "#b3261e", "#ff8a80"),
)
_SHAPES: Final = (
    f"text{{font-family:{FONT};font-variant-numeric:tabular-nums}}"
    ".title{font-size:20px;font-weight:650}.heading{font-size:15px;font-weight:650}"
    ".type{font-size:14px;font-weight:650}.note{font-size:13px}.small{font-size:11px}.end{text-anchor:end}"
    ".middle{text-anchor:middle}.strong{font-weight:600}.edge,.gap,.reserved{stroke-width:1}"
)

_COLUMNS: Final = 3
_GUTTER: Final = 16
_CARD: Final = (RIGHT - MARGIN - (_COLUMNS - 1) * _GUTTER) / _COLUMNS
_HEIGHT: Final = 146
_LINE: Final = 19
_PAD: Final = 14
_BAR_LEFT: Final = 72
_BAR_RIGHT: Final = _CARD - 56
_NARROWEST_TILE: Final = 4
_MOST_CARDS: Final = 48
MOST_UNPLACED: Final = 30
"""How many shapes of pods that cannot be placed are listed in the drawing."""


def style_of_plans() -> Markup:
    """Write the style sheet and the hatching of the drawings of plans."""
    colours = (*_PLAIN, *((f"w{number}", "fill", *pair) for number, pair in enumerate(_WORKLOADS)))
    light = "".join(f".{name}{{{prop}:{colour}}}" for name, prop, colour, _ in colours)
    dark = "".join(f".{name}{{{prop}:{colour}}}" for name, prop, _, colour in colours)
    hatch = tag(
        "pattern",
        tag("path", d="M3 0V6", class_="reserved"),
        id="hatch-reserved",
        width=6,
        height=6,
        patternUnits="userSpaceOnUse",
        patternTransform="rotate(45)",
    )
    return join(
        (
            tag("style", Markup(f"{_SHAPES}{light}@media(prefers-color-scheme:dark){{{dark}}}")),
            tag("defs", hatch),
        )
    )


def render_plan_svg(picture: PlanPicture, *, title: str | None) -> str:
    """Draw a plan as an SVG document."""
    return f"{draw_plan(picture, title=title)}\n"


def draw_plan(picture: PlanPicture, *, title: str | None, with_style: bool = True) -> Markup:
    """Draw a plan; the style may be shared by several drawings of a page."""
    drawing = _Drawing(picture)
    drawing.draw(title)
    height = drawing.y + MARGIN - 8
    return tag(
        "svg",
        style_of_plans() if with_style else Markup(""),
        tooltip(picture.headline),
        tag("rect", width=WIDTH, height=height, class_="paper"),
        *drawing.shapes,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height:.0f}",
        width=WIDTH,
        height=height,
        role="img",
    )


class _Drawing:
    """Draws from top to bottom; `y` is the lower edge of what is drawn."""

    def __init__(self, picture: PlanPicture) -> None:
        self.picture = picture
        self.shapes: list[Markup] = []
        self.y: float = MARGIN
        self.colours = {name: f"w{number}" for number, name in enumerate(picture.workloads[: len(_WORKLOADS)])}

    def draw(self, title: str | None) -> None:
        """Draw everything."""
        picture = self.picture
        self._lines(title or picture.headline, 20, "title ink", 26, bold=True)
        about = [picture.headline] if title else []
        for text in (*about, picture.summary if picture.pending else "", picture.bound):
            self._lines(text, 13, "note muted", _LINE)
        if picture.new or picture.existing:
            self.y += 10
            self._legend()
        if picture.new:
            self._section("New nodes", merged_groups(picture.new, _MOST_CARDS))
        if picture.existing:
            self._section(EXISTING, picture.existing)
        if len(picture.alternatives) > 1 and picture.pending:
            self._heading("Strategies")
            self._strategies()
        if picture.rollout is not None:
            cost, stranded = picture.rollout
            self._heading("After rollouts, with the scheduler's own scoring")
            self._lines(after_rollouts(cost, stranded), 13, "note ink", _LINE)
        if picture.unplaced:
            self._heading("Cannot be placed")
            self._unplaced()

    def _lines(self, text: str, size: int, classes: str, height: int, *, bold: bool = False, indent: int = 0) -> None:
        for line in wrap(text, size, RIGHT - MARGIN - indent, bold=bold):
            self.y += height
            self.shapes.append(label(line, MARGIN + indent, self.y - 5, classes))

    def _heading(self, text: str) -> None:
        self.y += 36
        self.shapes.append(label(text, MARGIN, self.y - 4, "heading ink"))
        self.y += 6

    def _legend(self) -> None:
        """Explain the colours, in as many rows as are needed."""
        entries = [(name, self.colours[name]) for name in self.colours]
        others = len(self.picture.workloads) - len(entries)
        if others > 0:
            entries.append((counted(others, "other workload"), "other"))
        entries += [("reserved: system, DaemonSets, running pods", "reserved"), ("free", "track")]
        x: float = MARGIN
        self.y += 18
        for text, classes in entries:
            shown = longest_fit((text, f"{text[:40]}…"), 12, 420) or f"{text[:20]}…"
            width = 20 + text_width(shown, 12) + 18
            if x + width > RIGHT and x > MARGIN:
                x = MARGIN
                self.y += _LINE
            self.shapes.append(_swatch(x, self.y - 12, 14, 14, classes))
            self.shapes.append(label(shown, x + 20, self.y, "note ink"))
            x += width

    def _section(self, heading: str, groups: Sequence[NodeGroup]) -> None:
        self._heading(heading)
        self.y += 4
        shown = groups[:_MOST_CARDS]
        for number, group in enumerate(shown):
            column = number % _COLUMNS
            if number and not column:
                self.y += _HEIGHT + _GUTTER
            self.shapes.append(self._card(group, MARGIN + column * (_CARD + _GUTTER), self.y))
        self.y += _HEIGHT
        left = groups[_MOST_CARDS:]
        if left:
            nodes = sum(group.nodes for group in left)
            self.y += 8
            self._lines(f"… and {counted(nodes, 'node')} more; -o json lists all", 13, "note muted", _LINE)

    def _card(self, group: NodeGroup, x: float, y: float) -> Markup:
        name = group.type if group.is_new else group.names[0]
        price = f"{dollars(group.price)}/h" if group.is_new else ""
        pill = f"×{group.nodes:,}" if group.nodes > 1 else ""
        room = _CARD - 2 * _PAD - text_width(price, 13, bold=True) - (text_width(pill, 12) + 26 if pill else 8)
        shown = _shortened(name, 14, room, bold=True)
        parts = [label(shown, x + _PAD, y + 25, "type ink")]
        if pill:
            left = x + _PAD + text_width(shown, 14, bold=True) + 8
            width = text_width(pill, 12) + 14
            parts.append(tag("rect", x=left, y=y + 12, width=width, height=18, rx=9, class_="pill"))
            parts.append(label(pill, left + width / 2, y + 25, "note strong ink middle"))
        parts.append(label(price, x + _CARD - _PAD, y + 25, "note strong ink end"))
        size = f"{amount_of_cpu(group.cpu)}, {amount_of_memory(group.memory)}"
        about = (group.pool, group.zone, group.capacity_type) if group.is_new else (group.type,)
        text = " · ".join(filter(None, (*about, size)))
        parts.append(label(_shortened(text, 12, _CARD - 2 * _PAD), x + _PAD, y + 44, "small muted"))
        parts += self._bar(group, x, y + 56, 32, memory=False)
        parts += self._bar(group, x, y + 96, 14, memory=True)
        pods = ", ".join(each.text for each in group.pods)
        parts.append(label(_shortened(pods, 12, _CARD - 2 * _PAD), x + _PAD, y + 132, "small ink"))
        names = ", ".join(group.names[:5]) + (f" and {group.nodes - 5:,} more" if group.nodes > 5 else "")
        frame = tag("rect", x=x, y=y, width=_CARD, height=_HEIGHT, rx=8, class_="card edge")
        return tag("g", tooltip(f"{names}: {pods}"), frame, *parts)

    def _bar(self, group: NodeGroup, x: float, y: float, height: int, *, memory: bool) -> Iterator[Markup]:
        left, width = x + _BAR_LEFT, _BAR_RIGHT - _BAR_LEFT
        whole = max(1, (group.memory if memory else group.cpu) * group.nodes)
        use = group.memory_use if memory else group.cpu_use
        baseline = y + height / 2 + 4
        yield label("memory" if memory else "cpu", x + _PAD, baseline, "small muted")
        yield label(f"{use} %", x + _CARD - _PAD, baseline, "note ink end")
        yield tag("rect", x=left, y=y, width=width, height=height, rx=2, class_="track")
        reserved = width * (group.memory_reserved if memory else group.cpu_reserved) / whole
        if reserved >= 1:
            yield _swatch(left + width - reserved, y, reserved, height, "reserved")
        at = left
        for each in group.pods:
            part = width * (each.memory if memory else each.cpu) / whole
            if part <= 0:
                continue
            yield self._segment(each, group.nodes, at, y, part, height, memory=memory)
            at += part

    def _segment(
        self, each: WorkloadPods, nodes: int, x: float, y: float, width: float, height: int, *, memory: bool
    ) -> Markup:
        """Draw the pods of one workload: a tile for each, or one for all where they are too narrow."""
        amount = amount_of_memory(each.memory) if memory else amount_of_cpu(each.cpu)
        on_all = f" on {nodes:,} nodes" if nodes > 1 else ""
        parts = [tooltip(f"{each.workload}: {counted(each.pods, 'pod')}, {amount}{on_all}")]
        colour = self.colours.get(each.workload, "other")
        parts.append(tag("rect", x=x, y=y, width=width, height=height, class_=colour))
        tiles = max(1, round(each.pods / nodes))
        tile = width / tiles
        if tile >= _NARROWEST_TILE:
            lines = "".join(f"M{x + tile * number:.2f} {y}v{height}" for number in range(1, tiles + 1))
            parts.append(tag("path", d=lines, class_="gap"))
        else:
            parts.append(tag("path", d=f"M{x + width:.2f} {y}v{height}", class_="gap"))
        text = longest_fit((each.workload,), 11, (width if tile < _NARROWEST_TILE or tiles == 1 else tile) - 6)
        if text is not None and height > 20:
            middle = x + (width if tile < _NARROWEST_TILE or tiles == 1 else tile) / 2
            parts.append(label(text, middle, y + height / 2 + 4, "small ink middle"))
        return tag("g", *parts)

    def _strategies(self) -> None:
        most = max(each.cost for each in self.picture.alternatives) or 1
        for each in self.picture.alternatives:
            self.y += 24
            self.shapes += self._strategy(each, most)

    def _strategy(self, each: StrategyResult, most: int) -> Iterator[Markup]:
        here = "strong " if each.strategy == self.picture.strategy else ""
        yield label(each.strategy, MARGIN, self.y, f"note {here}ink")
        yield label(counted(each.nodes, "node"), MARGIN + 190, self.y, f"note {here}ink end")
        yield label(f"{dollars(each.cost)}/h", MARGIN + 310, self.y, f"note {here}ink end")
        left = MARGIN + 326
        width = 480 * each.cost / most
        yield tag(
            "rect", x=left, y=self.y - 12, width=max(width, 1), height=15, rx=2, class_="cost" if here else "pill"
        )
        notes = ["this plan"] if here else []
        if each.unplaced != self.picture.unplaceable:
            notes.append(f"{counted(each.unplaced, 'pod')} not placed")
        yield label(", ".join(notes), left + width + 10, self.y, "note muted")

    def _unplaced(self) -> None:
        for each in self.picture.unplaced[:MOST_UNPLACED]:
            self._lines(each.text, 13, "note strong alarm", 22)
            self._lines(each.because, 13, "note ink", 18, indent=14)
        left = self.picture.unplaced[MOST_UNPLACED:]
        if left:
            pods = counted(sum(each.count for each in left), "pod")
            self._lines(f"… and {pods} more; -o json lists all", 13, "note muted", 22)


def _swatch(x: float, y: float, width: float, height: float, classes: str) -> Markup:
    if classes != "reserved":
        return tag("rect", x=x, y=y, width=width, height=height, rx=2, class_=classes)
    box = {"x": x, "y": y, "width": width, "height": height, "rx": 2}
    return join((tag("rect", **box, class_="track"), tag("rect", **box, fill="url(#hatch-reserved)")))


def _shortened(text: str, size: int, room: float, *, bold: bool = False) -> str:
    """Cut a text to a width, with an ellipsis."""
    if text_width(text, size, bold=bold) <= room:
        return text
    while text and text_width(f"{text}…", size, bold=bold) > room:
        text = text[:-1]
    return f"{text.rstrip(' ,')}…"
