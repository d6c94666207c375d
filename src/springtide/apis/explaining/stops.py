"""What can stop any object: somebody's pause, its own errors, a controller that is not there, or what one reports."""

from __future__ import annotations

import re
from collections.abc import Iterator

from springtide.apis.explaining.explanation import Observation, Stop
from springtide.apis.explaining.facts import Facts, instant_of
from springtide.apis.problems import Problem, format_path

_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z", re.ASCII)
_NO_STOPS = ("Ready", "Unambiguous")
"""Conditions that stop nothing: one sums up the others, one tells of surprises."""
_WRONG = "Invalid"


def common_stops(facts: Facts, controller: str) -> Iterator[Stop]:
    """Find what stops an object, whatever its kind."""
    yield from _people(facts)
    for problem in facts.object.problems:
        if problem.severity == "error":
            yield Stop(f"{format_path(problem.path) or facts.object.kind.kind} is wrong", in_words(problem))
    if not facts.present:
        return  # what a controller has reported is of the present
    if not facts.status and not facts.paused:
        yield Stop(
            "no controller has reported yet",
            f"nothing has acted on it; see that `springtide controller` runs, with {controller}, and does more than"
            " observe",
        )
    yield from _reported(facts)


def _reported(facts: Facts) -> Iterator[Stop]:
    """Give what the controller complains of, each complaint once; that the object is wrong is told already."""
    complaints: dict[str, list[Observation]] = {}
    for condition in facts.conditions:
        if condition.status == "False" and condition.type not in _NO_STOPS and condition.reason != _WRONG:
            complaints.setdefault(condition.message or condition.reason, []).append(condition)
    for why, conditions in complaints.items():
        types = " and ".join(one.type for one in conditions)
        yield Stop(f"{types} {'is' if len(conditions) == 1 else 'are'} False", why, ends_at(why, facts.at))


def _people(facts: Facts) -> Iterator[Stop]:
    if facts.paused:
        yield Stop("no controller touches it", facts.paused)
    if facts.object.value.get("metadata", {}).get("deletionTimestamp"):
        yield Stop("it is being deleted", "somebody asked for it")


def ends_at(words: str, at: int) -> int | None:
    """Find the time that words give for an end: the first that lies ahead."""
    named = (instant_of(text) for text in _INSTANT.findall(words))
    return min((instant for instant in named if instant is not None and instant > at), default=None)


def in_words(problem: Problem) -> str:
    """Write a problem with its fix."""
    return f"{problem.message} ({problem.hint})" if problem.hint else problem.message
