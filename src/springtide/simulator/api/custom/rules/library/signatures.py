"""How a function is told to the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Signature:
    """One overload of a function; types are named as the engine's own are: STRING, INT, LIST, MAP, DYN …"""

    name: str
    parameters: tuple[str, ...]
    result: str
    call: Callable[..., Any]
    member: bool = True
    """Whether it is called on its first parameter, as in `text.find(pattern)`."""
