"""Defaults must be good values themselves: nothing would check them when they are filled in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from springtide.cluster.errors import Cause
from springtide.simulator.api.custom import wording
from springtide.simulator.api.custom.correlation import same
from springtide.simulator.api.custom.embedded import judge_embedded
from springtide.simulator.api.custom.filling import prune, tree_copy
from springtide.simulator.api.custom.places import ABSENT, Place
from springtide.simulator.api.custom.rules import judge_rules, rules_of
from springtide.simulator.api.custom.validation import validate


def judge_defaults(place: Place, path: str) -> Iterator[Cause]:
    """Find the defaults of a schema that their own schema refuses."""
    if place.default is not ABSENT:
        yield from _judge_default(place, f"{path}.default")
    if place.items is not None:
        yield from judge_defaults(place.items, f"{path}.items")
    for name, part in place.properties.items():
        yield from judge_defaults(part, f"{path}.properties[{name}]")


def _judge_default(place: Place, path: str) -> Iterator[Cause]:
    value = place.default
    pruned = tree_copy([value])
    prune({"default": pruned[0]}, Place(properties={"default": place}))
    if not same(pruned[0], value):
        yield wording.invalid(path, value, "must not have unknown fields")
    found = [*judge_embedded(value, place), *validate(place, value)]
    rules = rules_of(place) if not found else None
    if rules is not None:
        found += judge_rules(rules, value, value) or judge_rules(rules, value, None)
    for cause in found:
        below = "" if cause.field == wording.NOWHERE else cause.field
        where = f"{path}{below}" if below.startswith("[") else f"{path}.{below}" if below else path
        yield replace(cause, field=where)
