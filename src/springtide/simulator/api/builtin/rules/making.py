"""What rules are made of: the ways in which most of them judge, told once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from springtide.cluster.errors import Cause
from springtide.cluster.resources import Object
from springtide.simulator.api.builtin.judging import invalid

Rule: TypeAlias = Callable[[Object, Object | None], Iterable[Cause]]

AT_LEAST_ZERO = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"


class Rules(NamedTuple):
    """The rules of a kind, in the order in which their causes are listed."""

    main: tuple[Rule, ...] = ()
    """Asked about new objects, and where something else than metadata and status has changed."""
    status: tuple[Rule, ...] = ()
    """Asked where the status has changed."""


def field_of(item: Object | None, path: str) -> Any:
    """Find what stands at a path; None where nothing does."""
    found: Any = item
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def not_negative(*paths: str) -> Rule:
    """Make a rule: these numbers are never negative."""

    def rule(item: Object, old: Object | None) -> Iterator[Cause]:  # noqa: ARG001
        for path in paths:
            number = field_of(item, path)
            if isinstance(number, int) and number < 0:
                yield invalid(path, number, AT_LEAST_ZERO)

    return rule


def fixed(*paths: str) -> Rule:
    """Make a rule: these fields never change."""

    def rule(item: Object, old: Object | None) -> Iterator[Cause]:
        if old is None:
            return
        for path in paths:
            value = field_of(item, path)
            if value != field_of(old, path):
                yield invalid(path, value, IMMUTABLE)

    return rule


def without(spec: Object, names: Collection[str]) -> Object:
    """Give an object without some of its fields."""
    return {name: value for name, value in spec.items() if name not in names}
