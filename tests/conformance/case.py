"""Conformance cases, and how they are collected.

A case is a function that takes a `Session`. A module of cases is an area.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.conformance import cases
from tests.conformance.session import Session


@dataclass(frozen=True, slots=True)
class Case:
    """A function that sends requests to an API server."""

    area: str
    name: str
    run: Callable[[Session], None]
    controllers: bool = False
    """Whether the garbage collector and the namespace controller must run."""

    @property
    def id(self) -> str:
        """Area and name."""
        return f"{self.area}/{self.name}"


def case(run: Callable[[Session], None]) -> Callable[[Session], None]:
    """Register a function as a case."""
    run.conformance = [(run.__name__, run)]  # type: ignore[attr-defined]
    return run


def each(table: Mapping[str, Any]) -> Callable[[Callable[[Session, Any], None]], Callable[[Session, Any], None]]:
    """Register a function as one case per entry of a table. The keys are appended to the name."""

    def made(run: Callable[[Session, Any], None]) -> Callable[[Session, Any], None]:
        run.conformance = [  # type: ignore[attr-defined]
            (f"{run.__name__}[{key}]", lambda session, value=value: run(session, value)) for key, value in table.items()
        ]
        return run

    return made


def controlled(run: Callable[[Session], None]) -> Callable[[Session], None]:
    """Mark a case that needs controllers."""
    run.controlled = True  # type: ignore[attr-defined]
    return run


@cache
def all_cases() -> tuple[Case, ...]:
    """Return all cases, ordered by area and then as written."""
    return tuple(_collect())


def _collect() -> Iterator[Case]:
    for module in sorted(pkgutil.iter_modules(cases.__path__), key=lambda each: each.name):
        area = importlib.import_module(f"{cases.__name__}.{module.name}")
        for run in vars(area).values():
            for name, case_run in getattr(run, "conformance", ()):
                yield Case(module.name, name, case_run, getattr(run, "controlled", False))
