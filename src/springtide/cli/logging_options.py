"""The options of long-lived commands about what they log, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

_LEVELS = ["debug", "info", "warning", "error"]


def logging_options(*, level: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add ``--log-format`` and ``--log-level``, which is `level` unless somebody says otherwise."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        command = click.option(
            "--log-level",
            type=click.Choice(_LEVELS),
            default=level,
            show_default=True,
            help="From which level on is logged.",
        )(command)
        return click.option(
            "--log-format",
            type=click.Choice(["auto", "text", "json"]),
            default="auto",
            show_default=True,
            help="auto: lines for people in a terminal, JSON lines everywhere else.",
        )(command)

    return add
