"""What a case is, and how the modules of cases are read.

A case is a function that is given a `Play`; its name says what is shown. A module of cases is an area.
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
    """One thing that a Kubernetes API server does."""

    area: str
    name: str
    scene: Callable[[Session], None]
    controllers: bool = False
    """Whether the server alone does not do it: the garbage collector and the namespace controller must run."""

    @property
    def id(self) -> str:
        """The name under which it is found everywhere."""
        return f"{self.area}/{self.name}"


def case(scene: Callable[[Session], None]) -> Callable[[Session], None]:
    """Make a function a case."""
    scene.conformance = [(scene.__name__, scene)]  # type: ignore[attr-defined]
    return scene


def each(table: Mapping[str, Any]) -> Callable[[Callable[[Session, Any], None]], Callable[[Session, Any], None]]:
    """Make a function a case for each entry of a table; the keys end the names."""

    def made(scene: Callable[[Session, Any], None]) -> Callable[[Session, Any], None]:
        scene.conformance = [  # type: ignore[attr-defined]
            (f"{scene.__name__}[{key}]", lambda play, value=value: scene(play, value)) for key, value in table.items()
        ]
        return scene

    return made


def controlled(scene: Callable[[Session], None]) -> Callable[[Session], None]:
    """Say of a case that controllers must run."""
    scene.controlled = True  # type: ignore[attr-defined]
    return scene


@cache
def all_cases() -> tuple[Case, ...]:
    """Read all areas, in the order of their names; the cases of each in the order in which they are written."""
    return tuple(_read())


def _read() -> Iterator[Case]:
    for module in sorted(pkgutil.iter_modules(cases.__path__), key=lambda each: each.name):
        area = importlib.import_module(f"{cases.__name__}.{module.name}")
        for scene in vars(area).values():
            for name, play in getattr(scene, "conformance", ()):
                yield Case(module.name, name, play, getattr(scene, "controlled", False))
