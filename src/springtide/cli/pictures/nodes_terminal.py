"""Draws a plan with characters: a bar for the cpu and one for the memory of each group of nodes.

A bar shows what the pods of each workload request of a node, what is reserved, and what is left. In a terminal without
colours, letters stand for workloads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from springtide.cli.pictures.formatting import printable
from springtide.cli.pictures.nodes import (
    EXISTING,
    NodeGroup,
    PlanPicture,
    WorkloadPods,
    after_rollouts,
    counted,
    dollars,
    merged_groups,
)
from springtide.cli.pictures.terminal_canvas import Ink, Line, Piece, fit, paint, pieces, shorten, wrap

_MOST_GROUPS: Final = 16
_MOST_LINES: Final = 40
_MOST_UNPLACED: Final = 20
_MOST_EXISTING: Final = 12
_WIDE: Final = 116
_LEAST_ROOM: Final = 66
_INKS: Final = (Ink.LEVEL, Ink.ACTIVE, Ink.COLLISION, Ink.PIN, Ink.BUDGET, Ink.BLOCKED)
COLOURS: Final = len(_INKS)
"""How many workloads have a colour of their own."""
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_OTHER: Final = "+"


def render_plan(picture: PlanPicture, *, width: int, colour: bool, unicode: bool) -> str:
    """Draw a plan with characters, in lines of at most `width` columns."""
    return paint(_Terminal(picture, width, colour=colour).lines(), width=width, colour=colour, unicode=unicode)


class _Terminal:
    """Writes the lines of a plan."""

    def __init__(self, picture: PlanPicture, width: int, *, colour: bool) -> None:
        self.picture, self.width, self.colour = picture, width, colour
        self.cells: dict[str, Piece] = {}
        limit = COLOURS if colour else len(_LETTERS)
        for number, workload in enumerate(picture.workloads[:limit]):
            self.cells[workload] = ("█", _INKS[number]) if colour else (_LETTERS[number], Ink.PLAIN)
        self.other: Piece = ("▒", Ink.FAINT) if colour else (_OTHER, Ink.PLAIN)

    def lines(self) -> Iterator[Line]:
        """Write everything."""
        picture = self.picture
        for text in wrap(picture.headline, self.width):
            yield [(text, Ink.STRONG)]
        for text in (picture.summary if picture.pending else "", picture.bound):
            yield from ([(part, Ink.PLAIN)] for part in wrap(text, self.width))
        if picture.new:
            yield from self._heading("New nodes")
            yield from self._legend()
            yield from self._groups(merged_groups(picture.new, _MOST_GROUPS))
        if picture.existing:
            yield from self._heading(EXISTING)
            if not picture.new:
                yield from self._legend()
            yield from self._groups(picture.existing[:_MOST_EXISTING])
            if len(picture.existing) > _MOST_EXISTING:
                yield [(f"  … and {len(picture.existing) - _MOST_EXISTING:,} more", Ink.FAINT)]
        if len(picture.alternatives) > 1 and picture.pending:
            yield from self._heading("Strategies")
            yield from self._strategies()
        if picture.rollout is not None:
            yield from self._rollout(*picture.rollout)
        if picture.unplaced:
            yield from self._heading("Cannot be placed")
            yield from self._unplaced()

    def _heading(self, text: str) -> Iterator[Line]:
        yield []
        yield [(text, Ink.STRONG)]

    def _legend(self) -> Iterator[Line]:
        """Explain the cells, in as many lines as are needed."""
        entries: list[tuple[Piece, str]] = [(cell, shorten(workload, 30)) for workload, cell in self.cells.items()]
        others = len(self.picture.workloads) - len(self.cells)
        if others > 0:
            entries.append((self.other, counted(others, "other workload")))
        entries += [(("░", Ink.FAINT), "reserved"), (("·", Ink.FAINT), "free")]
        line: Line = [("  ", Ink.PLAIN)]
        used = 2
        for (glyph, ink), text in entries:
            size = len(text) + 5
            if used + size > self.width and used > 2:
                yield line
                line, used = [("  ", Ink.PLAIN)], 2
            line += [(glyph, ink), (f" {text}   ", Ink.PLAIN)]
            used += size
        yield line

    def _groups(self, groups: Sequence[NodeGroup]) -> Iterator[Line]:
        shown = groups[:_MOST_LINES]
        rows = [self._identity(group) for group in shown]
        widths = [min(28, max(len(row[column]) for row in rows)) for column in range(len(rows[0]))]
        for group, row in zip(shown, rows, strict=True):
            yield from self._group(group, row, widths, few=len(groups) <= _MOST_GROUPS)
        left = groups[_MOST_LINES:]
        if left:
            nodes = sum(group.nodes for group in left)
            cost = sum(group.nodes * group.price for group in left)
            yield [
                (f"  … and {counted(nodes, 'node')} of {len(left):,} more kinds, {dollars(cost)} per hour", Ink.FAINT)
            ]

    @staticmethod
    def _identity(group: NodeGroup) -> tuple[str, ...]:
        if not group.is_new:
            return ("", printable(group.names[0] if group.nodes == 1 else group.type), "", "", "", "")
        return (
            f"{group.nodes:,} ×",
            printable(group.type),
            printable(group.zone),
            printable(group.capacity_type),
            printable(group.pool),
            f"{dollars(group.price)}/h",
        )

    def _group(self, group: NodeGroup, row: tuple[str, ...], widths: Sequence[int], *, few: bool) -> Iterator[Line]:
        count, *names, price = (
            fit(cell.rjust(width) if column in (0, 5) else cell, width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lead = [count] if widths[0] else []
        line: Line = [("  " + " ".join([*lead, names[0]]), Ink.STRONG)]
        line += [(f"  {name}", Ink.PLAIN) for name in names[1:] if name]
        if widths[5]:
            line.append((f"  {price}", Ink.PLAIN))
        room = self.width - sum(len(text) for text, _ in line)
        one_line = self.width >= _WIDE and room >= _LEAST_ROOM
        size = max(8, min(24, (room - 50) // 3 if one_line else (self.width - 34) // 2))
        bars: Line = [
            ("  cpu ", Ink.FAINT),
            *self._bar(group, size, memory=False),
            (f"{group.cpu_use:4} %", Ink.PLAIN),
            ("  memory ", Ink.FAINT),
            *self._bar(group, size, memory=True),
            (f"{group.memory_use:4} %", Ink.PLAIN),
        ]
        if one_line:
            pods = self._listed(group.pods, room - 29 - 2 * size)
            yield [*line, *bars, (f"  {pods}", Ink.PLAIN)]
            return
        yield line
        yield [("    ", Ink.PLAIN), *bars]
        if few:
            yield [(f"      {self._listed(group.pods, self.width - 6)}", Ink.PLAIN)]

    @staticmethod
    def _listed(pods: Sequence[WorkloadPods], room: int) -> str:
        """List workloads as far as there is room, and say how many more there are."""
        text = ", ".join(printable(each.text) for each in pods)
        for kept in range(len(pods) - 1, 0, -1):
            if len(text) <= room:
                return text
            text = ", ".join(printable(each.text) for each in pods[:kept]) + f", +{len(pods) - kept}"
        return shorten(text, max(room, 1))

    def _bar(self, group: NodeGroup, size: int, *, memory: bool) -> Line:
        whole = (group.memory if memory else group.cpu) * group.nodes
        parts: dict[Piece, int] = {}
        for each in group.pods:
            cell = self.cells.get(each.workload, self.other)
            parts[cell] = parts.get(cell, 0) + (each.memory if memory else each.cpu)
        reserved = group.memory_reserved if memory else group.cpu_reserved
        counts = shares([*parts.values(), reserved], whole, size)
        used = [cell for cell, count in zip(parts, counts, strict=False) for _ in range(count)]
        free: list[Piece] = [("·", Ink.FAINT)] * (size - sum(counts))
        return pieces([*used, *free, *[("░", Ink.FAINT)] * counts[-1]])

    def _strategies(self) -> Iterator[Line]:
        picture = self.picture
        for each in picture.alternatives:
            here = each.strategy == picture.strategy
            change = each.cost - picture.cost
            if here:
                note = "this plan"
            else:
                note = f"{'+' if change > 0 else '-'}{dollars(abs(change))}" if change else "the same cost"
            left = f", {counted(each.unplaced, 'pod')} not placed" if each.unplaced != picture.unplaceable else ""
            nodes = "node " if each.nodes == 1 else "nodes"
            text = f"  {each.strategy:12} {each.nodes:7,} {nodes}  {dollars(each.cost):>12}/h  {note}{left}"
            yield [(text, Ink.STRONG if here else Ink.PLAIN)]

    def _rollout(self, cost: int, stranded: int) -> Iterator[Line]:
        yield from self._heading("After rollouts, with the scheduler's own scoring")
        yield from ([(f"  {text}", Ink.PLAIN)] for text in wrap(after_rollouts(cost, stranded), self.width - 2))

    def _unplaced(self) -> Iterator[Line]:
        for each in self.picture.unplaced[:_MOST_UNPLACED]:
            yield [(f"  {printable(each.text)}", Ink.BLOCKED)]
            yield from ([(f"    {text}", Ink.PLAIN)] for text in wrap(each.because, self.width - 4))
        left = self.picture.unplaced[_MOST_UNPLACED:]
        if left:
            pods = counted(sum(each.count for each in left), "pod")
            yield [(f"  … and {pods} of {len(left):,} more shapes; -o json lists all", Ink.FAINT)]


def shares(amounts: Sequence[int], whole: int, cells: int) -> list[int]:
    """Divide cells by amounts; what is above zero gets a cell while there are any."""
    if whole <= 0:
        return [0] * len(amounts)
    exact = [amount * cells for amount in amounts]
    given = [max(part // whole, 1 if part else 0) for part in exact]
    total = min(cells, -(-sum(exact) // whole))
    by_rest = sorted(range(len(amounts)), key=lambda place: (-(exact[place] - given[place] * whole), place))
    for place in by_rest:
        if sum(given) < total and exact[place] > given[place] * whole:
            given[place] += 1
    while sum(given) > cells:
        widest = max(range(len(given)), key=lambda place: (given[place], place))
        given[widest] -= 1
    return given
