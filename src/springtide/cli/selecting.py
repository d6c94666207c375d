"""Which controllers a process runs: `--controllers a,b` names them, `--controllers -c` leaves some out."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from springtide.cluster.controller import Controller

ALL = "*"


class NoSuchSelection(ValueError):
    """The text names something that does not exist, or contradicts itself; the message is for people."""


def select(text: str, controllers: Sequence[type[Controller]]) -> tuple[type[Controller], ...]:
    """Give the controllers that a text names, in their own order; `*` and nothing mean all, `-name` all but it."""
    known = [controller.name for controller in controllers]
    wanted: list[str] = []
    unwanted: list[str] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        name = word.removeprefix("-")
        if name != ALL and name not in known:
            raise NoSuchSelection(_unknown(name, known))
        if word == f"-{ALL}":
            raise NoSuchSelection("-* leaves nothing to run; name what is to run")
        (unwanted if word.startswith("-") else wanted).append(name)
    for name in unwanted:
        if name in wanted:
            raise NoSuchSelection(f"{name!r} is both named and left out")
    everything = not wanted or ALL in wanted
    chosen = tuple(
        controller
        for controller in controllers
        if (everything or controller.name in wanted) and controller.name not in unwanted
    )
    if not chosen:
        raise NoSuchSelection(f"{text!r} leaves nothing to run, expected some of {', '.join(known)}")
    return chosen


def _unknown(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    meant = f"; did you mean {close[0]!r}?" if close else f", expected some of {', '.join(known)}"
    return f"there is no controller {name!r}{meant}"
