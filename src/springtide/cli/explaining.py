"""An explanation as people read it in a terminal: labels on the left, sentences beside them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import click

from springtide.almanac import load_zone
from springtide.apis.explaining import Coming, Explanation, Happening, Observation
from springtide.apis.meta.clock_times import clock_time, date_and_time
from springtide.cli.pictures.words import format_relative, format_value, plain

_LABEL = 12
_WIDEST = 100
_COLOURS = {"True": "green", "False": "red"}


def render(explanation: Explanation, *, width: int, unicode: bool) -> str:
    """Write an explanation; nothing is wider than the screen, except a word that is."""
    page = _Page(min(width, _WIDEST), unicode=unicode)
    sections = [
        page.section("wants", [click.style(plain(explanation.headline), bold=True)]),
        page.section("because", [page.wrapped(text) for text in explanation.because]),
        page.section("next", [*page.table(explanation), *page.unforeseen(explanation)]),
        page.section("stopped by", page.stops(explanation), colour="red" if explanation.stopped else "cyan"),
        page.section("conditions", [page.condition(one, explanation) for one in explanation.conditions]),
        page.section("happened", page.happenings(explanation)),
        page.section("notes", [page.wrapped(text) for text in explanation.notes]),
    ]
    return "\n".join([*page.title(explanation), "", *(line for section in sections for line in section)]) + "\n"


class _Page:
    def __init__(self, width: int, *, unicode: bool) -> None:
        self._width = width
        self._unicode = unicode

    def title(self, explanation: Explanation) -> list[str]:
        """Name the object and the time, below each other where one line is too short for both."""
        subject = explanation.subject
        name = plain(f"{subject.kind}/{subject.name}")
        where = f" in namespace {subject.namespace}" if subject.namespace is not None else ""
        when = _moment(subject.at, explanation.zone)
        whole = f"{name}{where}, {when}"
        texts = [whole] if len(whole) <= self._width else [f"{name}{where}", f"  {when}"]
        lines = [line for text in texts for line in self._broken(text, self._width, "  ")]
        return [click.style(name, bold=True) + lines[0].removeprefix(name), *lines[1:]]

    def section(self, label: str, entries: Sequence[str], *, colour: str = "cyan") -> Iterator[str]:
        """Put a label before the first line of the first entry, and all others below each other."""
        head = click.style(label.ljust(_LABEL), fg=colour)
        for entry in entries:
            for line in entry.split("\n"):
                yield head + line
                head = " " * _LABEL

    def wrapped(self, text: str, hang: str = "  ") -> str:
        """Break a text into lines, of which all but the first are indented."""
        return "\n".join(self._broken(plain(text), self._width - _LABEL, hang))

    @staticmethod
    def _broken(text: str, width: int, hang: str) -> list[str]:
        return textwrap.wrap(text, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)

    def table(self, explanation: Explanation) -> list[str]:
        """List what lies ahead: when, there and in UTC, how long until then, what, and why."""
        rows = [self._row(coming, explanation) for coming in explanation.next]
        widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
        return [
            self._beside([cell.ljust(width) for cell, width in zip(row, widths, strict=False) if width], row[4])
            for row in rows
        ]

    def unforeseen(self, explanation: Explanation) -> list[str]:
        """Say why nothing is listed ahead, or no more, where something may lie there."""
        return [self.wrapped(f"not known: {explanation.next_unknown}")] if explanation.next_unknown else []

    def _row(self, coming: Coming, explanation: Explanation) -> tuple[str, str, str, str, str]:
        local = date_and_time(coming.at, load_zone(coming.zone))
        if coming.zone == explanation.zone:
            local = local.removesuffix(f" {coming.zone}")  # the title names it
        value = format_value(coming.value, unicode=self._unicode)
        # The row tells the time already.
        because = coming.because.replace(f" ({clock_time(coming.at, load_zone(coming.zone))})", "")
        relative = format_relative(coming.at, explanation.subject.at)
        return local, _in_utc(coming.at, coming.zone), relative, value, because

    def _beside(self, cells: Sequence[str], text: str) -> str:
        """Put a reason behind the cells if it fits there, else below them; a line is broken between cells only."""
        text = plain(text)
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
        """Write what is in the way, and until when."""
        return [
            self.wrapped(
                f"{stop.what}: {stop.why}"
                + ("" if stop.until is None else f"; until {_moment(stop.until, explanation.zone)}")
            )
            for stop in explanation.stopped
        ] or ["nothing"]

    def condition(self, condition: Observation, explanation: Explanation) -> str:
        """Write a condition; its message only where nothing else on the page says it."""
        state = click.style(condition.status.ljust(8), fg=_COLOURS.get(condition.status, "yellow"))
        others = [one.message for one in explanation.conditions if one.type != "Ready" and one.message]
        told = (
            not condition.message
            or any(condition.message in stop.why for stop in explanation.stopped)
            or condition.message in "; ".join(explanation.because)
            or (condition.type == "Ready" and any(message in condition.message for message in others))
        )
        words = condition.reason if told else condition.message
        return state + self.wrapped(f"{' ' * 8}{condition.type}: {words}", " " * 10).removeprefix(" " * 8)

    def happenings(self, explanation: Explanation) -> list[str]:
        """Write what happened and when, but for troubles that conditions still tell of."""
        still = [one.message for one in explanation.conditions if one.message]
        return [
            self._happening(one, explanation.zone)
            for one in explanation.history
            if not (one.bad and any(message in one.what for message in still))
        ]

    def _happening(self, happening: Happening, zone: str) -> str:
        when = date_and_time(happening.at, load_zone(zone)).removesuffix(f" {zone}")
        text = self.wrapped(f"{when}  {happening.what}")
        return click.style(text, fg="yellow") if happening.bad else text


def _moment(at: int, zone: str) -> str:
    local = date_and_time(at, load_zone(zone))
    return local if zone == "UTC" else f"{local} ({_in_utc(at, zone)})"


def _in_utc(at: int, zone: str) -> str:
    """Write the time in UTC, with the weekday where it is another day there."""
    if zone == "UTC":
        return ""
    there, here = (date_and_time(at, load_zone(name)).split(" ")[0] for name in ("UTC", zone))
    return clock_time(at, load_zone("UTC")) if there == here else f"{there} {clock_time(at, load_zone('UTC'))}"
