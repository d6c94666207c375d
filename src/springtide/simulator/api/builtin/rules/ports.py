"""Ports: which numbers and names they may have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from springtide.cluster.errors import Cause
from springtide.simulator.api.builtin.judging import invalid

_RANGE = "must be between 1 and 65535, inclusive"
_LONGEST_NAME = 15


def port_number(number: int, path: str) -> Iterator[Cause]:
    """Judge the number of a port."""
    if not 1 <= number <= 65535:
        yield invalid(path, number, _RANGE)


def port_name(name: str, path: str) -> Iterator[Cause]:
    """Judge the name of a port."""
    yield from (invalid(path, name, problem) for problem in _name_problems(name))


def port(value: Any, path: str) -> Iterator[Cause]:
    """Judge what names a port: its number, or its name."""
    yield from port_name(value, path) if isinstance(value, str) else port_number(value, path)


def _name_problems(name: str) -> Iterator[str]:
    if len(name) > _LONGEST_NAME:
        yield f"must be no more than {_LONGEST_NAME} characters"
    if not re.fullmatch("[-a-z0-9]+", name):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", name):
        yield "must contain at least one letter (a-z)"
    if "--" in name:
        yield "must not contain consecutive hyphens"
    if name.startswith("-") or name.endswith("-"):
        yield "must not begin or end with a hyphen"
